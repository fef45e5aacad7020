//! Row statistics: the only reduction of the project (contract section 1).
//!
//! A thread is a virtual lane, or two neighbours. [`row_total`] finishes the tree: over shared memory with one barrier when warps share the row,
//! then the butterfly. Every thread gets the total.
use crate::ptx::{divide, fma, reciprocal, sqrt};
use crate::team::Team;
use cuda_std::{shared::SharedArray, warp::shuffle_xor_f32};

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

/// The total of a quantity of which each thread holds its virtual lanes; exchange buffer `buffer` (0 or 1).
///
/// Consecutive reductions use different buffers, so one barrier each suffices: a thread that writes a buffer again has passed
/// the barrier of the other, before which every thread had read.
#[inline(always)]
pub fn row_total<const WARPS: u32, const LANES: usize, const RESIDENT: bool>(
    lanes: [f32; LANES],
    team: Team<WARPS, LANES, RESIDENT>,
    buffer: u32,
) -> f32 {
    if LANES == 2 && WARPS == 1 {
        return warp_total([lanes[0], lanes[1]], team.thread);
    }
    let mut total = lanes[0];
    if team.spans_warps() {
        let shared = team.exchange(buffer);
        let mut i = 0;
        while i < LANES {
            write_lane(shared, team, 0, team.thread * LANES as u32 + i as u32, lanes[i]);
            i += 1;
        }
        team.synchronize();
        total = add_groups(shared, team, 0, team.thread & 31);
    }
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

/// The total of 64 lanes, two neighbours a thread: each half of the warp finishes one of the two.
#[inline(always)]
fn warp_total([first, second]: [f32; 2], thread: u32) -> f32 {
    let (kept, given) = if thread < 16 { (first, second) } else { (second, first) };
    let mut total = kept + shuffle_xor_f32(given, 16);
    let mut step = 8;
    while step > 0 {
        total += shuffle_xor_f32(total, step);
        step /= 2;
    }
    total + shuffle_xor_f32(total, 16)
}

/// Two totals at once, for teams of a warp and more. Both lanes of a butterfly's pair compute the same sum, so the lower half
/// of a warp finishes the first total and the upper half the second: 12 additions and shuffles instead of 20.
#[inline(always)]
pub fn two_row_totals<const WARPS: u32>([first, second]: [f32; 2], team: Team<WARPS>, buffer: u32) -> [f32; 2] {
    let (lane, upper) = (team.thread & 15, team.thread >> 4 & 1);
    let mut total = if team.spans_warps() {
        let shared = team.exchange(buffer);
        write_lane(shared, team, 0, team.thread, first);
        write_lane(shared, team, 1, team.thread, second);
        team.synchronize();
        add_groups(shared, team, upper, lane) + add_groups(shared, team, upper, lane + 16)
    } else {
        let (kept, given) = if upper == 0 { (first, second) } else { (second, first) };
        kept + shuffle_xor_f32(given, 16)
    };
    let mut step = 8;
    while step > 0 {
        total += shuffle_xor_f32(total, step);
        step /= 2;
    }
    let other = shuffle_xor_f32(total, 16);
    if upper == 0 { [total, other] } else { [other, total] }
}

/// Word of lane `32·group + lane` of a quantity. Up to four lanes that are added lie side by side, so a thread reads them
/// with one access and without bank conflicts.
#[inline(always)]
fn word<const WARPS: u32, const LANES: usize, const RESIDENT: bool>(
    team: Team<WARPS, LANES, RESIDENT>,
    quantity: u32,
    group: u32,
    lane: u32,
) -> u32 {
    let groups = team.groups();
    if groups <= 4 {
        return (quantity * 32 + lane) * groups + group;
    }
    let plane = quantity * 2 + group / 4;
    (plane * 32 + lane) * 4 + group % 4
}

/// Puts lane `lane` of a quantity, one of this thread's, where [`add_groups`] finds it after a barrier.
#[inline(always)]
fn write_lane<const WARPS: u32, const LANES: usize, const RESIDENT: bool>(
    shared: SharedArray,
    team: Team<WARPS, LANES, RESIDENT>,
    quantity: u32,
    lane: u32,
    value: f32,
) {
    let at = word(team, quantity, lane >> 5, lane & 31);
    // SAFETY: below 64·groups, the room of a buffer; written by this thread alone.
    unsafe { shared.write(at, value) };
}

/// Lanes `lane, lane+32, lane+64, ..` of a quantity, added in that order.
#[inline(always)]
fn add_groups<const WARPS: u32, const LANES: usize, const RESIDENT: bool>(
    shared: SharedArray,
    team: Team<WARPS, LANES, RESIDENT>,
    quantity: u32,
    lane: u32,
) -> f32 {
    let groups = team.groups();
    let at = word(team, quantity, 0, lane);
    if groups == 2 {
        // SAFETY: inside the buffer; the barrier ordered the writes of all warps before.
        let [a, b] = unsafe { shared.read_2(at) };
        return a + b;
    }
    // SAFETY: as above; `groups` is 4 or 8.
    let [a, b, c, d] = unsafe { shared.read_4(at) };
    let total = a + b + c + d;
    if groups == 4 {
        return total;
    }
    // SAFETY: as above; the quantity's second plane.
    let [e, f, g, h] = unsafe { shared.read_4(at + 128) };
    total + e + f + g + h
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
