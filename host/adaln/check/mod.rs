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

/// Run random calls and compare every byte with the plain reference
///
/// Shapes and values include the awkward ones: odd multiples, rows around 128, dimensions around every internal limit, NaN, infinities,
/// subnormals, constant rows. The outputs are filled with different garbage before each run, so a byte that is not written shows.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// How many calls
    #[arg(long, value_name = "N", default_value_t = 200)]
    cases: u64,
    /// Where the randomness begins; the same seed gives the same calls [default: another one each time]
    #[arg(long, value_name = "S")]
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
    let compared = cases(engine.as_ref(), &operators, seed, args.cases, ui)?;
    ui::print(&format!("{} cases, {compared} bytes: all equal to the reference (seed {seed})\n", args.cases))
}

/// Runs so many cases of a seed; gives the bytes compared.
pub fn cases(engine: &dyn Engine, operators: &[Operator], seed: u64, count: u64, ui: Ui) -> Outcome<u64> {
    let bar = ui.progress(usize::try_from(count).unwrap_or(usize::MAX));
    let mut compared = 0;
    for index in 0..count {
        let operator = operators[(index % operators.len() as u64) as usize];
        let mut case = Case::draw(seed, index, operator);
        bar.set_message(case.to_string());
        let inputs = case.inputs();
        let (verdict, what) = match differs(engine, &case.call, &inputs) {
            Ok(Ok(bytes)) => {
                compared += bytes;
                bar.inc(1);
                continue;
            }
            Ok(Err(difference)) => ("differs from the reference", difference.to_string()),
            // What the backend itself has against the kernel.
            Err(Failure::Check(fault)) => ("is not run as it should be", fault),
            Err(other) => return Err(other),
        };
        bar.finish_and_clear();
        return Err(report(&case, index, seed, verdict, &what)?);
    }
    bar.finish_and_clear();
    Ok(compared)
}

/// A seed that differs each time, short enough to type.
fn fresh_seed() -> Outcome<u64> {
    use rand::TryRng;
    let drawn = rand::rngs::SysRng.try_next_u32();
    drawn.map(u64::from).map_err(|error| Failure::input(format!("no randomness from the system: {error}; give --seed")))
}

/// Runs a case on both sides; gives the bytes compared, or where they differ.
fn differs(engine: &dyn Engine, call: &Call, inputs: &Tensors) -> Outcome<Result<u64, Difference>> {
    let expected = filled(call, inputs, 0x5a, |outputs| call.run_into(&Reference, inputs, outputs))?;
    let got = filled(call, inputs, 0xa5, |outputs| engine.run_into(call, inputs, outputs))?;
    Ok(match difference::first(&expected, &got) {
        Some(difference) => Err(difference),
        None => Ok(crate::demo::bytes(&expected)),
    })
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
fn report(case: &Case, index: u64, seed: u64, verdict: &str, what: &str) -> Outcome<Failure> {
    ui::print(&format!("{case}\n  {what}\n"))?;
    Ok(Failure::Check(format!(
        "case {index} {verdict}; `adaln check --seed {seed} --cases {}` with the same --operator, --backend and --target shows it again",
        index + 1
    )))
}
