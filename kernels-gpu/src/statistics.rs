//! Row statistics: the only reduction of the project (contract section 1).
//!
//! A thread is a virtual lane. [`row_totals`] finishes the tree: over shared memory with one barrier when warps share the row,
//! then the butterfly. Every thread gets the total.
use crate::ptx::{divide, fma, reciprocal, sqrt};
use crate::team::Team;
use cuda_std::{shared::SharedArray, thread::sync_threads, warp::shuffle_xor_f32};

/// `((e0+e1)+(e2+e3)) + ((e4+e5)+(e6+e7))`
#[inline(always)]
pub fn chunk_sum(e: [f32; 8]) -> f32 {
    ((e[0] + e[1]) + (e[2] + e[3])) + ((e[4] + e[5]) + (e[6] + e[7]))
}

/// Adds the squares of a chunk of deviations to the accumulators of even and of odd elements.
#[inline(always)]
pub fn chunk_squares([mut even, mut odd]: [f32; 2], d: [f32; 8]) -> [f32; 2] {
    let mut e = 0;
    while e < 8 {
        even = fma(d[e], d[e], even);
        odd = fma(d[e + 1], d[e + 1], odd);
        e += 2;
    }
    [even, odd]
}

/// Adds the virtual lanes of `N` quantities together, one lane a thread, in exchange buffer `buffer` (0 or 1).
///
/// Consecutive reductions use different buffers, so one barrier each suffices: a thread that writes a buffer again has passed
/// the barrier of the other, before which every thread had read.
#[inline(always)]
pub fn row_totals<const N: usize, const WARPS: u32>(lanes: [f32; N], team: Team<WARPS>, buffer: u32) -> [f32; N] {
    let mut totals = if team.spans_warps() { add_groups(lanes, team, team.exchange(buffer)) } else { lanes };
    let mut step = 16;
    while step > 0 {
        // Lanes past a smaller team hold nothing: +0.
        if step < team.threads() {
            totals = totals.map(|total| total + shuffle_xor_f32(total, step));
        }
        step /= 2;
    }
    totals
}

/// Lanes `l, l+32, l+64, ..` of each quantity, added in that order, for the `l` of this thread.
#[inline(always)]
fn add_groups<const N: usize, const WARPS: u32>(lanes: [f32; N], team: Team<WARPS>, shared: SharedArray) -> [f32; N] {
    let groups = team.threads() >> 5;
    // The lanes that are added lie side by side, so a thread reads four with one access.
    let words = |n: usize| n as u32 * team.threads() + (team.thread & 31) * groups;
    let mut n = 0;
    while n < N {
        // SAFETY: below N·32·groups, the room of a buffer; written by this thread alone.
        unsafe { shared.write(words(n) + (team.thread >> 5), lanes[n]) };
        n += 1;
    }
    sync_threads();
    core::array::from_fn(|n| {
        if groups == 2 {
            // SAFETY: as above; the barrier ordered the writes of all warps before.
            let [a, b] = unsafe { shared.read_2(words(n)) };
            return a + b;
        }
        // SAFETY: as above; `groups` is 4 or 8.
        let [a, b, c, d] = unsafe { shared.read_4(words(n)) };
        let mut total = a + b + c + d;
        if groups == 8 {
            // SAFETY: as above.
            let [e, f, g, h] = unsafe { shared.read_4(words(n) + 4) };
            total = total + e + f + g + h;
        }
        total
    })
}

/// `sum / f32(D)`, correctly rounded, by Markstein's theorem: the product with the rounded reciprocal, its exact remainder
/// by one fma, corrected by one fma. Below 2^-60 a division stands in,
/// since the remainder of a tiny quotient could underflow.
#[inline(always)]
pub fn mean(sum: f32, dim: f32, inv_dim: f32) -> f32 {
    let quotient = sum * inv_dim;
    let corrected = fma(fma(-quotient, dim, sum), inv_dim, quotient);
    if sum.abs() < f32::from_bits((127 - 60) << 23) { divide(sum, dim) } else { corrected }
}

/// `1 / sqrt(var + eps)`, both correctly rounded.
#[inline(always)]
pub fn rstd(squares: f32, inv_dim: f32, eps: f32) -> f32 {
    reciprocal(sqrt(squares * inv_dim + eps))
}
