//! Row statistics: the only reduction of the project (contract section 1).
//!
//! A thread is a virtual lane. [`row_total`] finishes the tree: over shared memory with one barrier when warps share the row,
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

/// Adds the virtual lanes of a row together, one a thread; `reduction` (0 or 1) of the row.
#[inline(always)]
pub fn row_total<const WARPS: u32>(lane: f32, team: Team<WARPS>, reduction: u32) -> f32 {
    let mut total = if team.spans_warps() { add_groups(lane, team, team.reduction(reduction)) } else { lane };
    let mut step = 16;
    while step > 0 {
        // Lanes past a smaller team hold nothing: +0.
        if step < team.threads() {
            total += shuffle_xor_f32(total, step);
        }
        step /= 2;
    }
    total
}

/// Lanes `l, l+32, l+64, ..` of the row, added in that order, for the `l` of this thread.
///
/// The two reductions of a row use buffers of their own, so one barrier each suffices: a thread that writes for the next row
/// has passed the other reduction's barrier, before which every thread had read.
#[inline(always)]
fn add_groups<const WARPS: u32>(lane: f32, team: Team<WARPS>, shared: SharedArray) -> f32 {
    let groups = team.threads() >> 5;
    // The lanes that are added lie side by side, so a thread reads four with one access.
    let words = (team.thread & 31) * groups;
    // SAFETY: below 32·groups, the room of a reduction; written by this thread alone.
    unsafe { shared.write(words + (team.thread >> 5), lane) };
    sync_threads();
    if groups == 2 {
        // SAFETY: as above; the barrier ordered the writes of all warps before.
        let [a, b] = unsafe { shared.read_2(words) };
        return a + b;
    }
    // SAFETY: as above; `groups` is 4 or 8.
    let [a, b, c, d] = unsafe { shared.read_4(words) };
    let mut total = a + b + c + d;
    if groups == 8 {
        // SAFETY: as above.
        let [e, f, g, h] = unsafe { shared.read_4(words + 4) };
        total = total + e + f + g + h;
    }
    total
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
