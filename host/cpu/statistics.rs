//! Mean and reciprocal standard deviation, many virtual lanes at a time.
//!
//! A row is first laid out by element of the chunk: `planes[k]` holds element k of every chunk, so that neighbouring lanes are
//! neighbours in memory and the tree of a chunk is vertical. Missing elements of the last chunk are 0.
use crate::contract::sum_tree::{CHUNK, lanes};
use half::bf16;

const WIDTH: usize = CHUNK as usize;

/// Buffers for one row, reused for the next.
pub(super) struct Scratch {
    /// The modulated row, rounded to bf16.
    pub v: Vec<f32>,
    /// Elements by their place in the chunk, `chunks` each.
    planes: Vec<f32>,
    /// One accumulator per virtual lane: sums, even squares.
    first: Vec<f32>,
    /// Odd squares.
    second: Vec<f32>,
}

/// What normalisation needs to know of a row.
#[derive(Clone, Copy)]
pub(super) struct Statistics {
    pub mean: f32,
    pub rstd: f32,
}

impl Scratch {
    /// Buffers for rows of `dim` elements.
    pub fn new(dim: usize) -> Self {
        // dim passed the checks, so it is a u32.
        let lanes = lanes(dim as u32) as usize;
        let chunks = dim.div_ceil(WIDTH);
        Self { v: vec![0.0; dim], planes: vec![0.0; chunks * WIDTH], first: vec![0.0; lanes], second: vec![0.0; lanes] }
    }
}

/// bf16 to f32: exact, and a NaN stays a NaN.
#[inline(always)]
pub(super) fn widen(x: bf16) -> f32 {
    f32::from_bits(u32::from(x.to_bits()) << 16)
}

#[inline(always)]
pub(super) fn statistics(x: &[bf16], eps: f32, scratch: &mut Scratch) -> Statistics {
    // dim is at most 2^24: exact.
    let dim = x.len() as f32;
    transpose(x, &mut scratch.planes);
    let mean = sum(scratch) / dim;
    let tail = x.len() % WIDTH;
    let variance = sum_of_squares(scratch, mean, tail) * (1.0 / dim);
    Statistics { mean, rstd: 1.0 / (variance + eps).sqrt() }
}

/// Element k of chunk c to plane k, place c.
#[inline(always)]
fn transpose(x: &[bf16], planes: &mut [f32]) {
    let chunks = planes.len() / WIDTH;
    let (whole, tail) = x.as_chunks::<WIDTH>();
    let [a, b, c, d, e, f, g, h] = split(planes, chunks);
    for (i, x) in whole.iter().enumerate() {
        a[i] = widen(x[0]);
        b[i] = widen(x[1]);
        c[i] = widen(x[2]);
        d[i] = widen(x[3]);
        e[i] = widen(x[4]);
        f[i] = widen(x[5]);
        g[i] = widen(x[6]);
        h[i] = widen(x[7]);
    }
    if !tail.is_empty() {
        for k in 0..WIDTH {
            planes[k * chunks + whole.len()] = tail.get(k).map_or(0.0, |x| widen(*x));
        }
    }
}

/// The eight planes.
#[inline(always)]
fn split(planes: &mut [f32], chunks: usize) -> [&mut [f32]; WIDTH] {
    let mut rest = planes;
    std::array::from_fn(|_| {
        let (plane, after) = std::mem::take(&mut rest).split_at_mut(chunks);
        rest = after;
        plane
    })
}

#[inline(always)]
fn sum(scratch: &mut Scratch) -> f32 {
    let chunks = scratch.planes.len() / WIDTH;
    let lanes = scratch.first.len();
    let plane = |k: usize, from: usize, to: usize| &scratch.planes[k * chunks..][from..to];
    scratch.first.fill(0.0);
    for from in (0..chunks).step_by(lanes) {
        let to = chunks.min(from + lanes);
        let [a, b, c, d, e, f, g, h] = std::array::from_fn(|k| plane(k, from, to));
        let accumulators = &mut scratch.first[..to - from];
        for (i, accumulator) in accumulators.iter_mut().enumerate() {
            *accumulator += ((a[i] + b[i]) + (c[i] + d[i])) + ((e[i] + f[i]) + (g[i] + h[i]));
        }
    }
    add_lanes(&scratch.first)
}

/// `tail`: elements of the last chunk if it is partial, else 0.
#[inline(always)]
fn sum_of_squares(scratch: &mut Scratch, mean: f32, tail: usize) -> f32 {
    let chunks = scratch.planes.len() / WIDTH;
    let lanes = scratch.first.len();
    for x in &mut scratch.planes {
        *x -= mean;
    }
    if tail > 0 {
        for k in tail..WIDTH {
            scratch.planes[k * chunks + chunks - 1] = 0.0;
        }
    }
    let plane = |k: usize, from: usize, to: usize| &scratch.planes[k * chunks..][from..to];
    scratch.first.fill(0.0);
    scratch.second.fill(0.0);
    for from in (0..chunks).step_by(lanes) {
        let to = chunks.min(from + lanes);
        let [a, b, c, d, e, f, g, h] = std::array::from_fn(|k| plane(k, from, to));
        let accumulators = scratch.first[..to - from].iter_mut().zip(&mut scratch.second[..to - from]);
        for (i, (even, odd)) in accumulators.enumerate() {
            *even = g[i].mul_add(g[i], e[i].mul_add(e[i], c[i].mul_add(c[i], a[i].mul_add(a[i], *even))));
            *odd = h[i].mul_add(h[i], f[i].mul_add(f[i], d[i].mul_add(d[i], b[i].mul_add(b[i], *odd))));
        }
    }
    for (even, odd) in scratch.first.iter_mut().zip(&scratch.second) {
        *even += odd;
    }
    add_lanes(&scratch.first)
}

/// Lanes `l, l + 32, ..` for each of 32 `l`, then the butterfly, of which only lane 0 is followed: its partners are the lower half.
#[inline(always)]
fn add_lanes(accumulators: &[f32]) -> f32 {
    let (groups, _) = accumulators.as_chunks::<32>();
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
