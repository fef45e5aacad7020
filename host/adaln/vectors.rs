//! `adaln vectors`: small calls with their outputs, for tests of other implementations.
use crate::demo::calls;
use crate::failure::{Failure, Outcome};
use crate::inputs::{Extents, Source, Values};
use crate::table::json;
use crate::tensor_file::{Draft, to_bytes};
use crate::ui::Ui;
use adaptive_layernorm_producers::contract::CONTRACT_VERSION;
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::{Nvfp4Recipe, Operator, Reference};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Write a compact set of calls and their exact outputs, to test any other implementation against
///
/// The folder gets vectors.safetensors (every tensor once) and index.json, which lists the calls: operator, recipe, eps, chunk indices,
/// shape, and the names of the tensors that are its inputs and outputs. The outputs are the plain reference's.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The folder to write to; made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

const EXAMPLES: &str = "\
Example:
  adaln vectors --out vectors

In the repository, a reader in Python with numpy and ml_dtypes (python3 -m pip install numpy ml_dtypes):
  python3 tests/vectors/read.py vectors";

/// Shapes with values that go to their limits: a block column, padding of the scale layout both ways, more than one of its tiles, several
/// chunks of the sum tree.
const SETS: [(&[usize], usize, Values); 6] = [
    (&[3], 48, Values::Normal),
    (&[2, 2], 272, Values::Outliers),
    (&[6], 80, Values::Specials),
    (&[130], 16, Values::Wide),
    (&[2], 1040, Values::Offset),
    (&[4], 64, Values::Constant),
];
/// Static scales of the sets, one of them below the limit of contract section 3.2.
const ACT_SCALES: [f32; SETS.len()] = [0.025, 0.07, 0.02, 1.0, 0.0, 0.003];
/// Global scales of the sets.
const GLOBAL_SCALES: [Option<f32>; SETS.len()] = [None, Some(96.5), None, Some(2688.0), Some(1.0), None];

/// The list of calls.
#[derive(Serialize)]
struct Index {
    about: &'static str,
    contract_version: u32,
    file: &'static str,
    cases: Vec<Case>,
}

/// One call.
#[derive(Serialize)]
struct Case {
    name: String,
    operator: &'static str,
    recipe: Option<&'static str>,
    eps: f32,
    shift_idx: u32,
    scale_idx: u32,
    rows: u32,
    dim: u32,
    values: String,
    /// Operand → tensor.
    inputs: BTreeMap<String, String>,
    /// Output → tensor.
    outputs: BTreeMap<String, String>,
}

const ABOUT: &str = "Calls of the operators of adaptive-layernorm-producers with their exact outputs. Operands are named as in the numeric \
contract; dtypes and shapes are in the safetensors header (F8_E4M3 is e4m3fn). packed has element 2j in the low nibble of byte j; \
sf_swizzled is the 128x4 layout with zero padding. A NaN is stored as 0x7fff in bf16, as 0x7f in e4m3. shift_idx and scale_idx matter to \
per-token tables only, recipe to NVFP4 only.";

/// Writes both files.
pub fn run(args: &Args, ui: Ui) -> Outcome {
    fs::create_dir_all(&args.out).map_err(|error| Failure::file(&args.out, "make the folder", error))?;
    let tensors = Draft::begin(&args.out.join("vectors.safetensors"))?;
    let index = Draft::begin(&args.out.join("index.json"))?;
    let (mut all, mut cases) = (Tensors::new(), Vec::new());
    for call in Operator::ALL.into_iter().flat_map(|operator| calls(operator, &Nvfp4Recipe::ALL)) {
        for set in 0..SETS.len() {
            cases.push(case(call, set, &mut all)?);
        }
    }
    let count = cases.len();
    let list = Index { about: ABOUT, contract_version: CONTRACT_VERSION, file: "vectors.safetensors", cases };
    let bytes = to_bytes(&all, &BTreeMap::from([("contract_version", CONTRACT_VERSION)]))?;
    // The large one first: an index without its tensors is worse than none.
    tensors.finish(&bytes)?;
    index.finish(json(&list)?.as_bytes())?;
    ui.note(&format!("{}: {count} calls, {} bytes of tensors", args.out.display(), bytes.len()));
    Ok(())
}

/// Draws and runs a call; its tensors go to `all`.
fn case(call: Call, set: usize, all: &mut Tensors) -> Outcome<Case> {
    let (leading, dim, values) = SETS[set];
    let chunks = 2 + set;
    let call = Call { shift_idx: set as u32 % 2, scale_idx: chunks as u32 - 1, ..call };
    let mut random = ChaCha8Rng::seed_from_u64(set as u64);
    let (act_scale, global_scale) = (ACT_SCALES[set], GLOBAL_SCALES[set]);
    let mut source = Source { random: &mut random, values, act_scale, global_scale };
    let inputs = source.draw(&call, &Extents { chunks, ..Extents::new(leading, dim) });
    let outputs = call.run(&Reference, &inputs)?;
    let recipe = call.recipe.map(Nvfp4Recipe::name);
    let name = match recipe {
        Some(recipe) => format!("{}.{recipe}.{values}", call.operator),
        None => format!("{}.{values}", call.operator),
    };
    let sizes = call.sizes(&inputs)?;
    let mut stored = |kind: &str, tensors: Tensors| {
        let stored = |(operand, tensor): (String, _)| {
            let full = format!("{name}.{kind}.{operand}");
            all.insert(full.clone(), tensor);
            (operand, full)
        };
        tensors.into_iter().map(stored).collect()
    };
    let (inputs, outputs) = (stored("in", inputs), stored("out", outputs));
    let Call { operator, eps, shift_idx, scale_idx, .. } = call;
    Ok(Case {
        operator: operator.name(),
        recipe,
        eps,
        shift_idx,
        scale_idx,
        rows: sizes.rows,
        dim: sizes.dim,
        values: values.to_string(),
        inputs,
        outputs,
        name,
    })
}
