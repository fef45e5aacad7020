//! Mean and reciprocal standard deviation of a row (contract section 1), in the contract's order of summation.
use crate::contract::sum_tree::{CHUNK, lanes};
use crate::convert::{to_f32, to_u32, to_usize};

/// What normalisation needs to know of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// `sum / D`.
    pub mean: f32,
    /// `1 / sqrt(var + eps)`.
    pub rstd: f32,
}

/// The statistics of a row.
pub fn statistics(x: &[f32], eps: f32) -> Statistics {
    let dim = to_f32(x.len());
    let mean = sum(x) / dim;
    let deviations: Vec<f32> = x.iter().map(|x| x - mean).collect();
    let variance = sum_of_squares(&deviations) * (1.0 / dim);
    Statistics { mean, rstd: 1.0 / (variance + eps).sqrt() }
}

/// `(x - mean) · rstd`.
pub fn normalise(x: f32, Statistics { mean, rstd }: Statistics) -> f32 {
    (x - mean) * rstd
}

/// Sum of a row.
pub fn sum(x: &[f32]) -> f32 {
    let mut accumulators = vec![0.0; to_usize(lanes(to_u32(x.len())))];
    let lanes = accumulators.len();
    for (c, chunk) in x.chunks(to_usize(CHUNK)).enumerate() {
        let mut e = [0.0; to_usize(CHUNK)];
        e[..chunk.len()].copy_from_slice(chunk);
        accumulators[c % lanes] += ((e[0] + e[1]) + (e[2] + e[3])) + ((e[4] + e[5]) + (e[6] + e[7]));
    }
    add_lanes(&accumulators)
}

/// Sum of squares of a row of deviations.
pub fn sum_of_squares(deviations: &[f32]) -> f32 {
    let lanes = to_usize(lanes(to_u32(deviations.len())));
    let (mut even, mut odd) = (vec![0.0f32; lanes], vec![0.0f32; lanes]);
    for (c, chunk) in deviations.chunks(to_usize(CHUNK)).enumerate() {
        for (e, d) in chunk.iter().enumerate() {
            let accumulator = if e % 2 == 0 { &mut even[c % lanes] } else { &mut odd[c % lanes] };
            *accumulator = d.mul_add(*d, *accumulator);
        }
    }
    let accumulators: Vec<f32> = even.iter().zip(&odd).map(|(even, odd)| even + odd).collect();
    add_lanes(&accumulators)
}

/// Lanes `l, l + 32, ..` for each of 32 `l`, then a butterfly over the 32.
fn add_lanes(accumulators: &[f32]) -> f32 {
    let (first, rest) = accumulators.split_at(32);
    let mut totals: [f32; 32] = std::array::from_fn(|l| first[l]);
    for group in rest.chunks(32) {
        for (total, part) in totals.iter_mut().zip(group) {
            *total += part;
        }
    }
    for step in [16, 8, 4, 2, 1] {
        let before = totals;
        for (l, total) in totals.iter_mut().enumerate() {
            *total = before[l] + before[l ^ step];
        }
    }
    totals[0]
}
