//! `adaln run`: one operator on the tensors of a file.
use crate::backend::BackendArgs;
use crate::cli;
use crate::failure::{Failure, Outcome};
use crate::tensor_file::{Draft, TensorFile, to_bytes};
use crate::ui::Ui;
use adaptive_layernorm_producers::contract::CONTRACT_VERSION;
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::operator::{ModulationKind, OperandSpec};
use adaptive_layernorm_producers::{DType, Error, Nvfp4Recipe, Operator};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Run one operator on tensors of a safetensors file
///
/// Operands are looked up under their own names: x, scale, shift, act_scale, inv_s, temb, table, scale_fp8, shift_fp8, scale_deq,
/// shift_deq, global_scale (optional, recipe transformer-engine), adaln_params, layer_modulation. The output file has `out`, or
/// `packed` and `sf_swizzled`, or `out0` to `out5`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Which operator
    #[arg(value_parser = cli::operator())]
    operator: Operator,
    /// The safetensors file that has the operands
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// The safetensors file to write
    #[arg(long, value_name = "FILE")]
    output: PathBuf,
    /// Take a tensor of another name for an operand (repeat for each)
    #[arg(long, value_name = "OPERAND=TENSOR", value_parser = binding)]
    bind: Vec<(String, String)>,
    /// Added to the variance [default: 0.00001]
    #[arg(long, value_name = "E", allow_hyphen_values = true, value_parser = eps)]
    eps: Option<f32>,
    /// Chunk of temb and table that shifts [default: 0]
    #[arg(long, value_name = "I", allow_hyphen_values = true, value_parser = |text: &str| cli::whole(text, 0..=u32::MAX))]
    shift_idx: Option<u32>,
    /// Chunk of temb and table that scales [default: 1]
    #[arg(long, value_name = "J", allow_hyphen_values = true, value_parser = |text: &str| cli::whole(text, 0..=u32::MAX))]
    scale_idx: Option<u32>,
    /// How NVFP4 scales and codes are chosen [default: the GPU's native one; transformer-engine on the CPU]
    #[arg(long, value_name = "RECIPE", value_parser = cli::recipe())]
    recipe: Option<Nvfp4Recipe>,
    #[command(flatten)]
    backend: BackendArgs,
}

const EXAMPLES: &str = "\
Examples:
  adaln run ada_layer_norm_quant_fp8_bf16 --input in.safetensors --output out.safetensors
  adaln run layer_norm_no_affine_quant_nvfp4_swizzled_bf16 --recipe transformer-engine
    --input model.safetensors --bind x=hidden --output q.safetensors

In the repository, the bytes of a Jetson Thor without one:
  cargo run --release -p adaln-vm -- run ada_layer_norm_quant_fp8_bf16 --backend ptx-vm --target sm_110a
    --input in.safetensors --output thor.safetensors";

/// What an output file says about how it was made.
#[derive(Debug, Serialize)]
struct About {
    operator: &'static str,
    recipe: Option<&'static str>,
    eps: f32,
    shift_idx: u32,
    scale_idx: u32,
    contract_version: u32,
}

/// Reads, runs, writes.
pub fn run(args: &Args, ui: Ui) -> Outcome {
    let bindings = bindings(args)?;
    refuse_unread(args)?;
    let mut file = TensorFile::open(&args.input)?;
    if let (Ok(input), Ok(output)) = (fs::canonicalize(&args.input), fs::canonicalize(&args.output))
        && input == output
    {
        return Err(Failure::input(format!("{} is the input too; name another --output", args.output.display())));
    }
    let engine = args.backend.open()?;
    let is_nvfp4 = args.operator.outputs().any(|output| output.name == "packed");
    let recipe = args.recipe.or_else(|| is_nvfp4.then(|| engine.native_recipe()));
    let call = call(args, recipe);
    let inputs = inputs(&call, &bindings, &mut file)?;
    call.sizes(&inputs)?;
    let draft = Draft::begin(&args.output)?;
    let mut outputs = call.allocate(&inputs)?;
    engine.run_into(&call, &inputs, &mut outputs)?;
    draft.finish(&to_bytes(&outputs, &About::of(&call))?)?;
    let shapes = outputs.iter().map(|(name, tensor)| format!("{name} {} {:?}", tensor.data.dtype(), tensor.shape));
    let shapes = shapes.collect::<Vec<_>>().join(", ");
    ui.note(&format!("{}: {shapes} ({})", args.output.display(), engine.description()));
    if let Some(unread) = unread_global_scale(&call, &file, &args.input) {
        ui.note(&unread);
    }
    Ok(())
}

impl About {
    fn of(&Call { operator, recipe, eps, shift_idx, scale_idx }: &Call) -> Self {
        let recipe = recipe.map(Nvfp4Recipe::name);
        Self { operator: operator.name(), recipe, eps, shift_idx, scale_idx, contract_version: CONTRACT_VERSION }
    }
}

/// The call, with the library's defaults for what was not given.
fn call(args: &Args, recipe: Option<Nvfp4Recipe>) -> Call {
    let default = Call { recipe, ..Call::new(args.operator) };
    Call {
        eps: args.eps.unwrap_or(default.eps),
        shift_idx: args.shift_idx.unwrap_or(default.shift_idx),
        scale_idx: args.scale_idx.unwrap_or(default.scale_idx),
        ..default
    }
}

/// Refuses an option that would change nothing.
fn refuse_unread(args: &Args) -> Outcome {
    let modulation = args.operator.modulation();
    let has_table = modulation == ModulationKind::PerTokenTable;
    let options = [
        ("--eps", args.eps.is_some() && modulation == ModulationKind::SixWay, "has no variance"),
        ("--shift-idx", args.shift_idx.is_some() && !has_table, "reads no table"),
        ("--scale-idx", args.scale_idx.is_some() && !has_table, "reads no table"),
    ];
    match options.into_iter().find(|(_, unread, _)| *unread) {
        Some((option, _, why)) => {
            Err(Failure::input(format!("{}: {option} was given, but the operator {why}; leave it out", args.operator)))
        }
        None => Ok(()),
    }
}

/// A global scale in the file that the recipe does not read. No error: a file may hold the operands of several calls.
fn unread_global_scale(call: &Call, file: &TensorFile, path: &Path) -> Option<String> {
    let recipe = call.recipe.filter(|recipe| !recipe.takes_global_scale())?;
    file.has("global_scale").then(|| {
        let reader = Nvfp4Recipe::TransformerEngine;
        format!("{}: global_scale is not read by recipe {recipe}, only by {reader}", path.display())
    })
}

fn binding(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((operand, tensor)) if !operand.is_empty() && !tensor.is_empty() => Ok((operand.into(), tensor.into())),
        _ => Err("expected OPERAND=TENSOR, for example x=hidden_states".to_owned()),
    }
}

/// A number that variances can be added to.
fn eps(text: &str) -> Result<f32, String> {
    let value: f32 = text.parse().map_err(|_| "expected a number".to_owned())?;
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err("expected a number of at least 0 that an f32 holds".to_owned())
    }
}

/// The bindings by operand, each of which the operator has.
fn bindings(args: &Args) -> Outcome<BTreeMap<&str, &str>> {
    let mut bindings = BTreeMap::new();
    for (operand, tensor) in &args.bind {
        if !args.operator.inputs().any(|spec| spec.name == operand) {
            let known = args.operator.inputs().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
            return Err(Failure::input(format!("--bind {operand}=...: {} reads {known} only", args.operator)));
        }
        if bindings.insert(operand.as_str(), tensor.as_str()).is_some() {
            return Err(Failure::input(format!("--bind {operand}=... is given twice; leave one out")));
        }
    }
    Ok(bindings)
}

/// The operands, read from the file.
fn inputs(call: &Call, bindings: &BTreeMap<&str, &str>, file: &mut TensorFile) -> Outcome<Tensors> {
    let mut inputs = Tensors::new();
    for spec in call.operator.inputs() {
        let bound = bindings.get(spec.name).copied();
        // An optional operand that nobody asked for is taken only by a recipe that reads it.
        let wanted = !spec.optional || call.recipe.is_some_and(Nvfp4Recipe::takes_global_scale);
        let name = bound.unwrap_or(spec.name);
        if bound.is_none() && !file.has(name) {
            if spec.optional {
                continue;
            }
            return Err(Error::Missing { operator: call.operator, operand: spec.name, expected: spec.dtype }.into());
        }
        if bound.is_some() || wanted {
            check_dtype(call.operator, spec, file.dtype(name)?)?;
            inputs.insert(spec.name.to_owned(), file.read(name)?);
        }
    }
    Ok(inputs)
}

/// Refuses an element type before the tensor is read.
fn check_dtype(operator: Operator, spec: &OperandSpec, got: Result<DType, String>) -> Outcome {
    let got = match got {
        Ok(dtype) if dtype == spec.dtype => return Ok(()),
        Ok(dtype) => dtype.to_string(),
        Err(other) => other,
    };
    Err(Error::DType { operator, operand: spec.name, expected: spec.dtype, got }.into())
}
