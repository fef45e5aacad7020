//! `adaln check`: random calls on a backend against the plain reference.
mod case;

use crate::backend::{BackendArgs, Engine};
use crate::cli;
use crate::difference::{self, Difference};
use crate::failure::{Failure, Outcome};
use crate::ui::{self, Ui};
use adaptive_layernorm_producers::named::{Call, Data, Tensors};
use adaptive_layernorm_producers::{E4m3, Operator, Reference, bf16};
use case::Case;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Run random calls and compare every byte with the plain reference
///
/// Shapes and values include the awkward ones: odd multiples, rows around 128, dimensions around every internal limit, NaN, infinities,
/// subnormals, constant rows. The outputs are filled with different garbage before each run, so a byte that is not written shows.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// How many calls
    #[arg(long, value_name = "N", default_value_t = 200, allow_hyphen_values = true, value_parser = |text: &str| cli::whole(text, 1..=u64::MAX))]
    cases: u64,
    /// Where the randomness begins; the same seed gives the same calls [default: another one each time]
    #[arg(long, value_name = "S", allow_hyphen_values = true, value_parser = |text: &str| cli::whole(text, 0..=u64::MAX))]
    seed: Option<u64>,
    /// Only this operator (repeat for more)
    #[arg(long, value_name = "OPERATOR", value_parser = cli::operator(), hide_possible_values = true)]
    operator: Vec<Operator>,
    #[command(flatten)]
    backend: BackendArgs,
}

const EXAMPLES: &str = "\
Examples:
  adaln check --backend cuda --cases 2000
  adaln check --seed 7 --operator adaln_modulation6_bf16

In the repository, the kernels of a GPU without it:
  cargo run --release -p adaln-vm -- check --backend ptx-vm --target sm_110a --cases 50";

/// Runs the cases up to the first that is wrong.
pub fn run(args: &Args, ui: Ui) -> Outcome {
    let engine = args.backend.open()?;
    let seed = args.seed.map_or_else(fresh_seed, Ok)?;
    let operators = if args.operator.is_empty() { Operator::ALL.to_vec() } else { args.operator.clone() };
    ui.note(&format!("backend: {}; seed: {seed}", engine.description()));
    let Compared { rows, bytes } = cases(engine.as_ref(), &operators, seed, args.cases, ui)?;
    let cases = args.cases;
    ui::print(&format!("{cases} cases, {rows} rows, {bytes} bytes: all equal to the reference (seed {seed})\n"))
}

/// What was found equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Compared {
    /// Rows of all cases.
    pub rows: u64,
    /// Bytes of their outputs.
    pub bytes: u64,
}

/// Runs so many cases of a seed.
pub fn cases(engine: &dyn Engine, operators: &[Operator], seed: u64, count: u64, ui: Ui) -> Outcome<Compared> {
    let bar = ui.progress(usize::try_from(count).unwrap_or(usize::MAX));
    let mut compared = Compared::default();
    let operator = |index: u64| operators[(index % operators.len() as u64) as usize];
    for first in (0..count).step_by(BATCH as usize) {
        let batch = (first..count.min(first + BATCH)).into_par_iter();
        let drawn = batch.map(|index| Prepared::draw(seed, index, operator(index)));
        for prepared in drawn.collect::<Outcome<Vec<_>>>()? {
            bar.set_message(prepared.case.to_string());
            let (verdict, what) = match prepared.difference(engine) {
                Ok(None) => {
                    compared.rows += u64::from(prepared.rows);
                    compared.bytes += crate::demo::bytes(&prepared.expected);
                    bar.inc(1);
                    continue;
                }
                Ok(Some(difference)) => ("differs from the reference", difference.to_string()),
                // What the backend itself has against the kernel.
                Err(Failure::Check(fault)) => ("is not run as it should be", fault),
                Err(other) => return Err(other),
            };
            bar.finish_and_clear();
            return Err(report(&prepared, seed, verdict, &what)?);
        }
    }
    bar.finish_and_clear();
    Ok(compared)
}

/// Cases that are drawn and run on the reference side by side, which takes most of the time; the backend gets one after the other.
const BATCH: u64 = 64;

/// A case with its operands and what the reference makes of them.
struct Prepared {
    case: Case,
    index: u64,
    inputs: Tensors,
    expected: Tensors,
    rows: u32,
}

impl Prepared {
    fn draw(seed: u64, index: u64, operator: Operator) -> Outcome<Self> {
        let mut case = Case::draw(seed, index, operator);
        let inputs = case.inputs();
        let call = case.call;
        let expected = filled(&call, &inputs, 0x5a, |outputs| call.run_into(&Reference, &inputs, outputs))?;
        Ok(Self { rows: call.sizes(&inputs)?.rows, case, index, inputs, expected })
    }

    /// Where the backend's outputs differ.
    fn difference(&self, engine: &dyn Engine) -> Outcome<Option<Difference>> {
        let Self { case, inputs, expected, .. } = self;
        let run = |outputs: &mut Tensors| engine.run_into(&case.call, inputs, outputs);
        Ok(difference::first(expected, &filled(&case.call, inputs, 0xa5, run)?))
    }
}

/// A seed that differs each time, short enough to type.
fn fresh_seed() -> Outcome<u64> {
    use rand::TryRng;
    let drawn = rand::rngs::SysRng.try_next_u32();
    drawn.map(u64::from).map_err(|error| Failure::input(format!("no randomness from the system: {error}; give --seed")))
}

/// Outputs that held `garbage` before the run.
fn filled(
    call: &Call,
    inputs: &Tensors,
    garbage: u8,
    run: impl FnOnce(&mut Tensors) -> adaptive_layernorm_producers::Result<()>,
) -> Outcome<Tensors> {
    let mut outputs = call.allocate(inputs)?;
    for tensor in outputs.values_mut() {
        match &mut tensor.data {
            Data::Bf16(data) => data.fill(bf16::from_le_bytes([garbage; 2])),
            Data::F32(data) => data.fill(f32::from_le_bytes([garbage; 4])),
            Data::E4m3(data) => data.fill(E4m3::from_bits(garbage)),
            Data::U8(data) => data.fill(garbage),
        }
    }
    run(&mut outputs)?;
    Ok(outputs)
}

/// Shows what is wrong with a case and how to see it again.
fn report(Prepared { case, index, .. }: &Prepared, seed: u64, verdict: &str, what: &str) -> Outcome<Failure> {
    ui::print(&format!("{case}\n  {what}\n"))?;
    Ok(Failure::Check(format!(
        "case {index} {verdict}; `adaln check --seed {seed} --cases {}` with the same --operator, --backend and --target shows it again",
        index + 1
    )))
}
