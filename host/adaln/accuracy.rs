//! `adaln accuracy`: what every sink and recipe loses, on three kinds of input.
use crate::dequantise::signal_to_noise;
use crate::exact::{self, Place};
use crate::failure::Outcome;
use crate::inputs::{Extents, Source, Values};
use crate::table::{Cell, Column, FormatArgs, Table};
use crate::ui::Ui;
use adaptive_layernorm_producers::named::{Call, Data, Tensors};
use adaptive_layernorm_producers::{Cpu, Nvfp4Recipe, Operator, bf16};
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

/// Show the signal to noise of every sink and recipe against float64
///
/// x has 256 rows of 3072 columns. Shift is 0, and scale 0 too, so the sinks see the normalised rows; in the last column scale makes them a
/// hundred times smaller. The static FP8 scale is the best one, the largest magnitude over 448; the global scale likewise, 2688 over the
/// largest magnitude. Decibels: 6 more are one more bit.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    format: FormatArgs,
}

const COLUMNS: &[Column] = &[
    Column("sink", "sink"),
    Column("bits a value", "bits"),
    Column("N(0, 1)", "normal_db"),
    Column("outlier columns", "outliers_db"),
    Column("20 binades", "wide_db"),
    Column("N(0, 1) / 100", "small_db"),
];
/// What x is drawn from, and what the modulation multiplies it with.
const INPUTS: [(Values, f32); 4] =
    [(Values::Normal, 1.0), (Values::Outliers, 1.0), (Values::Wide, 1.0), (Values::Normal, 0.01)];

/// A sink as the table names it.
struct Row {
    name: &'static str,
    bits: f64,
    call: Call,
    /// Whether a global scale is chosen by the largest magnitude.
    global_scale: bool,
}

fn rows() -> [Row; 7] {
    let nvfp4 = Call::new(Operator::AdaLayerNormQuantNvfp4SwizzledBf16);
    let row = |name, bits, call| Row { name, bits, call, global_scale: false };
    [
        row("bf16", 16.0, Call::new(Operator::AdaLayerNormPtokTableBf16)),
        row("FP8, static scale", 8.0, Call::new(Operator::AdaLayerNormQuantFp8Bf16)),
        row("AWQ, then FP8", 8.0, Call::new(Operator::AwqAdaLayerNormQuantFp8Bf16)),
        row("NVFP4 flashrt-sm110", 4.5, nvfp4.with_recipe(Nvfp4Recipe::FlashRtSm110)),
        row("NVFP4 flashrt-sm120", 4.5, nvfp4.with_recipe(Nvfp4Recipe::FlashRtSm120)),
        row("NVFP4 transformer-engine", 4.5, nvfp4.with_recipe(Nvfp4Recipe::TransformerEngine)),
        Row {
            global_scale: true,
            ..row("NVFP4 transformer-engine, global scale", 4.5, nvfp4.with_recipe(Nvfp4Recipe::TransformerEngine))
        },
    ]
}

/// Computes and prints the table.
pub fn run(args: &Args, ui: Ui) -> Outcome {
    let rows = rows();
    let bar = ui.progress(rows.len());
    let mut table = Table::new(COLUMNS);
    for row in &rows {
        bar.set_message(row.name);
        let noise = INPUTS.iter().map(|(values, gain)| Ok(Cell::Number(decibels(row, *values, *gain)?, 1)));
        let cells = [Ok(Cell::text(row.name)), Ok(Cell::Number(row.bits, 1))].into_iter().chain(noise);
        table.push(cells.collect::<Outcome<Vec<_>>>()?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    table.print(args.format.format)
}

fn decibels(row: &Row, values: Values, gain: f32) -> Outcome<f64> {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let global_scale = row.global_scale.then_some(1.0);
    let mut source = Source { random: &mut random, values, act_scale: 1.0, global_scale };
    let mut inputs = source.draw(&row.call, &Extents::new([256], 3072));
    for (name, tensor) in &mut inputs {
        let len = tensor.data.len();
        match name.as_str() {
            "scale" => tensor.data = vec![bf16::from_f32(gain - 1.0); len].into(),
            // The first chunk shifts, the second scales.
            "table" => tensor.data = [vec![0.0; len / 2], vec![gain - 1.0; len / 2]].concat().into(),
            "shift" | "temb" => tensor.data = Data::zeros(tensor.data.dtype(), len),
            _ => {}
        }
    }
    let sizes = row.call.sizes(&inputs)?;
    let largest = largest(&row.call, &inputs, sizes.rows as usize, sizes.dim as usize);
    for (name, scale) in [("act_scale", largest / 448.0), ("global_scale", 2688.0 / largest)] {
        if let Some(tensor) = inputs.get_mut(name) {
            tensor.data = vec![scale as f32].into();
        }
    }
    let outputs = row.call.run(&Cpu, &inputs)?;
    Ok(signal_to_noise(&row.call, &inputs, &outputs, sizes))
}

/// The largest magnitude of the exact values.
fn largest(call: &Call, inputs: &Tensors, rows: usize, dim: usize) -> f64 {
    let row =
        |row| exact::row(call, inputs, dim, Place { row, output: 0 }).into_iter().fold(0.0, |m: f64, v| m.max(v.abs()));
    (0..rows).map(row).fold(0.0, f64::max)
}
