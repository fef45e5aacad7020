//! `adaln demo`: every operator on the seed shapes, in one table.
use crate::backend::{BackendArgs, Engine};
use crate::cli;
use crate::dequantise::signal_to_noise;
use crate::failure::Outcome;
use crate::inputs::{Extents, Source, Values};
use crate::seed_shapes;
use crate::table::{Cell, Column, FormatArgs, Table};
use crate::ui::Ui;
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::operator::SinkKind;
use adaptive_layernorm_producers::{Error, Nvfp4Recipe, Operator};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// Run every operator on the seed shapes: time, bandwidth, and error against float64
///
/// Inputs are N(0, 1). GB/s counts the bytes of every operand once. The error is the power of the exact values (float64, before
/// quantisation) over that of the dequantised output's deviation from them, in decibels: 6 more are one more bit.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only this operator (repeat for more)
    #[arg(long, value_name = "OPERATOR", value_parser = cli::operator(), hide_possible_values = true)]
    operator: Vec<Operator>,
    /// The recipe of NVFP4 operators (repeat for more) [default: the GPU's native one; transformer-engine on the CPU]
    #[arg(long, value_name = "RECIPE", value_parser = cli::recipe())]
    recipe: Vec<Nvfp4Recipe>,
    /// Only this shape instead of the seed shapes (repeat for more)
    #[arg(long, value_name = "RxD")]
    shape: Vec<Extents>,
    #[command(flatten)]
    backend: BackendArgs,
    #[command(flatten)]
    format: FormatArgs,
}

const COLUMNS: &[Column] = &[
    Column("operator", "operator"),
    Column("recipe", "recipe"),
    Column("shape", "shape"),
    Column("backend", "backend"),
    Column("time (µs)", "time_us"),
    Column("GB/s", "gb_per_s"),
    Column("SNR against float64 (dB)", "snr_db"),
];

/// Runs all of it, prints one table.
pub fn run(args: &Args, ui: Ui) -> Outcome {
    refuse_unread(&args.operator, &args.recipe)?;
    let engine = args.backend.open()?;
    let work = work(args, engine.native_recipe());
    ui.note(&format!("backend: {}", engine.description()));
    let bar = ui.progress(work.len());
    let mut table = Table::new(COLUMNS);
    for (call, extents) in &work {
        bar.set_message(format!("{} {extents}", call.operator));
        table.push(row(engine.as_ref(), call, extents)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    table.print(args.format.format)
}

/// Every call and shape, in the order of the table.
fn work(args: &Args, native: Nvfp4Recipe) -> Vec<(Call, Extents)> {
    let operators = if args.operator.is_empty() { Operator::ALL.to_vec() } else { args.operator.clone() };
    let recipes = if args.recipe.is_empty() { vec![native] } else { args.recipe.clone() };
    let calls = operators.into_iter().flat_map(|operator| calls(operator, &recipes));
    let shapes = |call: &Call| {
        if args.shape.is_empty() { seed_shapes::of(call.operator) } else { args.shape.clone() }
    };
    calls.flat_map(|call| shapes(&call).into_iter().map(move |extents| (call, extents))).collect()
}

/// Refuses a recipe that none of the operators asked for takes.
pub fn refuse_unread(operators: &[Operator], recipes: &[Nvfp4Recipe]) -> Outcome {
    match (operators, recipes) {
        (&[operator, ..], &[got, ..]) if operators.iter().all(|operator| operator.sink() != SinkKind::Nvfp4) => {
            Err(Error::RecipeWithoutSink { operator, sink: operator.sink(), got }.into())
        }
        _ => Ok(()),
    }
}

/// The operator with each recipe, if it takes one.
pub fn calls(operator: Operator, recipes: &[Nvfp4Recipe]) -> Vec<Call> {
    let call = Call::new(operator);
    match operator.sink() {
        SinkKind::Nvfp4 => recipes.iter().map(|recipe| call.with_recipe(*recipe)).collect(),
        SinkKind::Bf16 | SinkKind::Fp8 | SinkKind::AwqFp8 | SinkKind::SixBf16 => vec![call],
    }
}

fn row(engine: &dyn Engine, call: &Call, extents: &Extents) -> Outcome<Vec<Cell>> {
    extents.fit(call)?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    // Rows of N(0, 1) modulated by 0.5 N(0, 1) stay within 448 x 0.025 = 11.2.
    let mut source = Source { random: &mut random, values: Values::Normal, act_scale: 0.025, global_scale: None };
    let inputs = source.draw(call, extents);
    let mut outputs = call.allocate(&inputs)?;
    let time = engine.time(call, &inputs, &mut outputs)?;
    let bytes = bytes(&inputs) + bytes(&outputs);
    let snr = signal_to_noise(call, &inputs, &outputs, call.sizes(&inputs)?);
    Ok(vec![
        Cell::text(call.operator),
        call.recipe.map_or(Cell::Missing, Cell::text),
        Cell::text(extents),
        Cell::text(engine.name()),
        Cell::Number(time.as_secs_f64() * 1e6, 1),
        Cell::Number(bytes as f64 / time.as_secs_f64() / 1e9, 1),
        // Without rows there is neither signal nor noise.
        if snr.is_nan() { Cell::Missing } else { Cell::Number(snr, 1) },
    ])
}

/// Bytes of all tensors.
pub fn bytes(tensors: &Tensors) -> u64 {
    tensors.values().map(|tensor| tensor.data.len() as u64 * tensor.data.dtype().bytes()).sum()
}
