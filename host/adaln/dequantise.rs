//! What a consumer sees in an output, and how far that is from float64.
use crate::exact::{self, Place};
use adaptive_layernorm_producers::formats::{e2m1, scale_layout};
use adaptive_layernorm_producers::named::{Call, Data, Tensors};
use adaptive_layernorm_producers::{E4m3, Sizes};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

/// Rows that an error is taken over at most, spread evenly; half a million values settle the third digit.
const ROWS: usize = 256;

/// Signal to noise in decibels: the power of the exact values over the power of the error.
pub fn signal_to_noise(call: &Call, inputs: &Tensors, outputs: &Tensors, sizes: Sizes) -> f64 {
    let (rows, dim) = (sizes.rows as usize, sizes.dim as usize);
    let names: Vec<&String> = outputs.keys().filter(|name| *name != "sf_swizzled").collect();
    let step = rows.div_ceil(ROWS).max(1);
    let places = (0..rows).step_by(step).collect::<Vec<_>>().into_par_iter();
    let powers = places.map(|row| {
        let of_output = |output: usize| {
            let exact = exact::row(call, inputs, dim, Place { row, output });
            let got = self::row(inputs, outputs, names[output], dim, row);
            let noise = exact.iter().zip(&got).map(|(exact, got)| (exact - got).powi(2)).sum::<f64>();
            (exact.iter().map(|v| v * v).sum::<f64>(), noise)
        };
        (0..names.len()).map(of_output).fold((0.0, 0.0), add)
    });
    let (signal, noise) = powers.reduce(|| (0.0, 0.0), add);
    10.0 * (signal / noise).log10()
}

fn add(a: (f64, f64), b: (f64, f64)) -> (f64, f64) {
    (a.0 + b.0, a.1 + b.1)
}

/// A row of an output with its scales applied.
pub fn row(inputs: &Tensors, outputs: &Tensors, name: &str, dim: usize, row: usize) -> Vec<f64> {
    match &outputs[name].data {
        Data::Bf16(out) => out[row * dim..][..dim].iter().map(|v| v.to_f64()).collect(),
        Data::F32(out) => out[row * dim..][..dim].iter().map(|v| f64::from(*v)).collect(),
        Data::E4m3(out) => {
            let act_scale = scalar(inputs, "act_scale").max(1e-12);
            out[row * dim..][..dim].iter().map(|code| f64::from(code.to_f32()) * act_scale).collect()
        }
        Data::U8(packed) => match &outputs["sf_swizzled"].data {
            Data::U8(scales) => {
                let codes = &packed[row * dim / 2..][..dim / 2];
                nvfp4(codes, scales, row, 1.0 / scalar(inputs, "global_scale"))
            }
            _ => Vec::new(),
        },
    }
}

/// A row of NVFP4.
fn nvfp4(codes: &[u8], scales: &[u8], row: usize, factor: f64) -> Vec<f64> {
    let dim = codes.len() * 2;
    let block = |(column, codes): (usize, &[u8])| {
        // Rows and D of a checked call fit 32 bits.
        let at = scale_layout::offset(row as u32, column as u32, dim as u32);
        let scale = f64::from(E4m3::from_bits(scales[at as usize]).to_f32()) * factor;
        let nibbles = codes.iter().flat_map(|byte| e2m1::split(*byte));
        nibbles.map(|nibble| f64::from(e2m1::decode(nibble)) * scale).collect::<Vec<_>>()
    };
    codes.chunks(8).enumerate().flat_map(block).collect()
}

/// A scalar operand; 1 where it is absent.
fn scalar(inputs: &Tensors, name: &str) -> f64 {
    match inputs.get(name).map(|tensor| &tensor.data) {
        Some(Data::F32(data)) => f64::from(data[0]),
        _ => 1.0,
    }
}
