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
#[command(
    after_help = "Examples:\n  adaln check --backend cuda --cases 2000\n  adaln check --seed 7 --operator adaln_modulation6_bf16"
)]
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

/// Runs the cases up to the first difference.
pub fn run(args: &Args, ui: Ui) -> Outcome {
    let engine = args.backend.open()?;
    let seed = args.seed.map_or_else(fresh_seed, Ok)?;
    let operators = if args.operator.is_empty() { Operator::ALL.to_vec() } else { args.operator.clone() };
    ui.note(&format!("backend: {}; seed: {seed}", engine.description()));
    let bar = ui.progress(usize::try_from(args.cases).unwrap_or(usize::MAX));
    let mut compared = 0;
    for index in 0..args.cases {
        let operator = operators[(index % operators.len() as u64) as usize];
        let mut case = Case::draw(seed, index, operator);
        bar.set_message(case.to_string());
        let inputs = case.inputs();
        match differs(engine.as_ref(), &case.call, &inputs)? {
            Ok(bytes) => compared += bytes,
            Err(difference) => {
                bar.finish_and_clear();
                return Err(report(&case, index, seed, &difference)?);
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    ui::print(&format!("{} cases, {compared} bytes: all equal to the reference (seed {seed})\n", args.cases))
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
    let got = filled(call, inputs, 0xa5, |outputs| call.run_into(engine.backend(), inputs, outputs))?;
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

/// Shows the first difference and how to see it again.
fn report(case: &Case, index: u64, seed: u64, difference: &Difference) -> Outcome<Failure> {
    ui::print(&format!("{case}\n  {difference}\n"))?;
    Ok(Failure::Check(format!(
        "case {index} differs from the reference; `adaln check --seed {seed} --cases {}` with the same --operator and --backend shows it again",
        index + 1
    )))
}
