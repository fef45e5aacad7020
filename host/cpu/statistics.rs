//! Mean and reciprocal standard deviation, many virtual lanes at a time.
//!
//! Neighbouring virtual lanes take neighbouring chunks, so a loop over lanes is a loop over memory: the compiler turns it into
//! vectors of lanes, the tree inside a chunk into vertical operations. A chunk is read as four words of two bf16, which widen to
//! f32 by a shift and a mask.
use crate::contract::sum_tree::{CHUNK, lanes};
use crate::convert::{to_f32, to_u32, to_usize};
use half::bf16;

const WIDTH: usize = to_usize(CHUNK);

/// One accumulator per virtual lane, reused from row to row.
pub(super) struct Lanes {
    /// Sums, then squares of even elements.
    even: Vec<f32>,
    /// Squares of odd elements.
    odd: Vec<f32>,
}

/// What normalisation needs to know of a row.
#[derive(Clone, Copy)]
pub(super) struct Statistics {
    pub mean: f32,
    pub rstd: f32,
}

impl Lanes {
    /// Accumulators for rows of `dim` elements.
    pub fn new(dim: usize) -> Self {
        let lanes = to_usize(lanes(to_u32(dim)));
        Self { even: vec![0.0; lanes], odd: vec![0.0; lanes] }
    }
}

/// bf16 to f32: exact, and a NaN stays a NaN.
#[inline(always)]
pub(super) fn widen(x: bf16) -> f32 {
    f32::from_bits(u32::from(x.to_bits()) << 16)
}

/// The statistics of a row.
#[inline(always)]
pub(super) fn statistics(x: &[bf16], eps: f32, lanes: &mut Lanes) -> Statistics {
    let dim = to_f32(x.len());
    let mean = sum(x, lanes) / dim;
    let variance = sum_of_squares(x, mean, lanes) * (1.0 / dim);
    Statistics { mean, rstd: 1.0 / (variance + eps).sqrt() }
}

#[inline(always)]
fn sum(x: &[bf16], Lanes { even, .. }: &mut Lanes) -> f32 {
    let (whole, tail) = x.as_chunks::<WIDTH>();
    even.fill(0.0);
    for chunks in whole.chunks(even.len()) {
        for (lane, chunk) in even.iter_mut().zip(chunks) {
            *lane += chunk_sum(pairs(chunk));
        }
    }
    if !tail.is_empty() {
        // Absent elements enter as zero.
        let mut last = [bf16::ZERO; WIDTH];
        last[..tail.len()].copy_from_slice(tail);
        let lane = whole.len() % even.len();
        even[lane] += chunk_sum(pairs(&last));
    }
    add_lanes(even)
}

#[inline(always)]
fn sum_of_squares(x: &[bf16], mean: f32, Lanes { even, odd }: &mut Lanes) -> f32 {
    let (whole, tail) = x.as_chunks::<WIDTH>();
    even.fill(0.0);
    odd.fill(0.0);
    for chunks in whole.chunks(even.len()) {
        for ((even, odd), chunk) in even.iter_mut().zip(odd.iter_mut()).zip(chunks) {
            for [a, b] in pairs(chunk) {
                let (a, b) = (a - mean, b - mean);
                (*even, *odd) = (a.mul_add(a, *even), b.mul_add(b, *odd));
            }
        }
    }
    let lane = whole.len() % even.len();
    for (i, x) in tail.iter().enumerate() {
        let deviation = widen(*x) - mean;
        let accumulator = if i % 2 == 0 { &mut even[lane] } else { &mut odd[lane] };
        *accumulator = deviation.mul_add(deviation, *accumulator);
    }
    for (even, odd) in even.iter_mut().zip(odd) {
        *even += *odd;
    }
    add_lanes(even)
}

/// A chunk as four pairs of f32.
#[inline(always)]
fn pairs(chunk: &[bf16; WIDTH]) -> [[f32; 2]; WIDTH / 2] {
    let words: [u32; WIDTH / 2] = bytemuck::pod_read_unaligned(bytemuck::bytes_of(chunk));
    // On a little-endian machine the first of two bf16 is the lower half.
    words.map(|word| word.to_le()).map(|word| [f32::from_bits(word << 16), f32::from_bits(word & 0xffff_0000)])
}

/// The tree of a chunk.
#[inline(always)]
fn chunk_sum([a, b, c, d]: [[f32; 2]; WIDTH / 2]) -> f32 {
    ((a[0] + a[1]) + (b[0] + b[1])) + ((c[0] + c[1]) + (d[0] + d[1]))
}

/// Lanes `l, l + 32, ..` for each of 32 `l`, then the butterfly, of which only lane 0 is followed: its partners are the lower half.
#[inline(always)]
fn add_lanes(lanes: &[f32]) -> f32 {
    let (groups, _) = lanes.as_chunks::<32>();
    let mut totals = groups[0];
    for group in &groups[1..] {
        for (total, part) in totals.iter_mut().zip(group) {
            *total += part;
        }
    }
    let mut step = 16;
    while step > 0 {
        for l in 0..step {
            totals[l] += totals[l + step];
        }
        step /= 2;
    }
    totals[0]
}
