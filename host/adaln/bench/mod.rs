//! `adaln bench`: what an operator takes, beside a copy of the same bytes.
mod plot;
mod record;
mod work;

use crate::backend::{BackendArgs, Engine, Which};
use crate::cli;
use crate::demo;
use crate::failure::{Failure, Outcome};
use crate::inputs::{Extents, Source, Values};
use crate::table::FormatArgs;
use crate::ui::Ui;
use crate::verify;
use adaptive_layernorm_producers::named::Call;
use adaptive_layernorm_producers::{Nvfp4Recipe, Operator};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;
use record::Record;
use std::path::PathBuf;

/// Measure operators beside a copy of the same bytes in the same run
///
/// GPU: a CUDA graph of 32 launches, the median of 20 replays; cold rotates over operands that together exceed the L2 cache three times, hot
/// repeats one set; the copy is the driver's. CPU: the median of many runs, the copy is one by all threads. Every output is checked against
/// the reference on a few rows before it counts.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Only this operator (repeat for more)
    #[arg(long, value_name = "OPERATOR", value_parser = cli::operator(), hide_possible_values = true)]
    operator: Vec<Operator>,
    /// The recipe of NVFP4 operators (repeat for more) [default: all]
    #[arg(long, value_name = "RECIPE", value_parser = cli::recipe())]
    recipe: Vec<Nvfp4Recipe>,
    /// Only this shape instead of the seed shapes (repeat for more)
    #[arg(long, value_name = "RxD", conflicts_with = "sweep")]
    shape: Vec<Extents>,
    /// Whole runs, of which the median is shown
    #[arg(long, value_name = "N", default_value_t = 1, allow_hyphen_values = true, value_parser = |text: &str| cli::whole(text, 1..=u32::MAX))]
    runs: u32,
    /// Sweep D from 16 to 16384 at the same bytes instead of the seed shapes, under the first condition only (cold on a GPU)
    #[arg(long)]
    sweep: bool,
    // clap drops a requirement that conflicts with what is there: these three conflict with --shape themselves.
    /// Step of D in a sweep
    #[arg(long, value_name = "COLUMNS", default_value_t = 16, requires = "sweep", conflicts_with = "shape", allow_hyphen_values = true, value_parser = |text: &str| cli::whole(text, 1..=16384_u32))]
    step: u32,
    /// Megabytes that a call of a sweep reads and writes
    #[arg(long, value_name = "MB", default_value_t = 64, requires = "sweep", conflicts_with = "shape", allow_hyphen_values = true, value_parser = |text: &str| cli::whole(text, 1..=u32::MAX))]
    megabytes: u32,
    /// Plot time per byte over D
    #[arg(long, value_name = "FILE.svg", requires = "sweep", conflicts_with = "shape")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    backend: BackendArgs,
    #[command(flatten)]
    format: FormatArgs,
}

const EXAMPLES: &str = "\
Examples:
  adaln bench --runs 3 --format json > bench.json
  adaln bench --operator ada_layer_norm_quant_fp8_bf16 --shape 16384x3072
  adaln bench --operator ada_layer_norm_quant_fp8_bf16 --sweep --plot sweep.svg";

/// Measures all of it, so many times, and prints the medians.
pub fn run(args: &Args, ui: Ui) -> Outcome {
    demo::refuse_unread(&args.operator, &args.recipe)?;
    if let Some(empty) = args.shape.iter().find(|shape| shape.is_empty()) {
        return Err(Failure::input(format!(
            "--shape {empty}: expected at least one element, there is nothing to measure"
        )));
    }
    let engine = args.backend.open_to_measure()?;
    let work = work::all(args);
    let which = if args.sweep { Which::First } else { Which::All };
    ui.note(&format!("backend: {}", engine.description()));
    let bar = ui.progress(work.len() * args.runs as usize);
    let mut runs = Vec::new();
    for _ in 0..args.runs {
        let mut records = Vec::new();
        for (call, extents) in &work {
            bar.set_message(format!("{} {extents}", call.operator));
            records.extend(measure(engine.as_ref(), call, extents, which)?);
            bar.inc(1);
        }
        runs.push(records);
    }
    bar.finish_and_clear();
    let records = record::medians(&runs);
    if let Some(path) = &args.plot {
        plot::write(path, &records)?;
    }
    record::table(&records, engine.name()).print(args.format.format)
}

fn measure(engine: &dyn Engine, call: &Call, extents: &Extents, which: Which) -> Outcome<Vec<Record>> {
    extents.fit(call)?;
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut source = Source { random: &mut random, values: Values::Normal, act_scale: 0.025, global_scale: None };
    let inputs = source.draw(call, extents);
    let (sizes, mut outputs) = (call.sizes(&inputs)?, call.allocate(&inputs)?);
    let bytes = demo::bytes(&inputs) + demo::bytes(&outputs);
    let measured = engine.measure(call, &inputs, &mut outputs, which)?;
    // Of what was timed itself: the outputs were zero before.
    verify::rows(call, &inputs, &outputs, sizes)?;
    let record = |measured| Record { call: *call, extents: extents.clone(), sizes, bytes, measured };
    Ok(measured.into_iter().map(record).collect())
}
