//! The order in which a row is summed: part of the contract, a function of D alone.
//!
//! A row is cut into chunks of [`CHUNK`] consecutive elements. Chunk `c` belongs to virtual lane `c mod 32·W(D)`.
//! Every accumulator starts at `+0.0` (so no partial sum is ever `-0.0` and absent elements, entering as zero, add nothing).
//!
//! * Sum: a lane adds its chunks in ascending order, a chunk being `((e0+e1)+(e2+e3)) + ((e4+e5)+(e6+e7))`.
//! * Sum of squares: a lane keeps two accumulators, of even and of odd elements, `acc = fma(d, d, acc)` in ascending
//!   order, and adds odd to even once at the end. One instruction an element, two independent chains.
//!
//! Then, for each `l` in 0..32, the lanes `l, l+32, l+64, ..` are added in that order, and the 32 results by an xor
//! butterfly 16, 8, 4, 2, 1. A kernel with fewer threads than lanes keeps several accumulators a thread: same bits.

/// Consecutive elements that one lane takes at a time: 8 bf16 are one 16-byte load.
pub const CHUNK: u32 = 8;

/// Most warps that share a row.
pub const MAX_WARPS: u32 = 8;

/// Largest supported D: every integer up to it is exact in f32, so `f32(D)` is D.
pub const MAX_DIM: u32 = 1 << 24;

/// Chunks of a row of `dim` elements; the last may be partial.
pub const fn chunks(dim: u32) -> u32 {
    dim.div_ceil(CHUNK)
}

/// `W(D)`: the smallest power of two that leaves a lane at most three chunks, up to [`MAX_WARPS`].
///
/// Measured on an H200 at few rows: two or three chunks a lane beat one and beat six, since both reductions cost the same
/// latency whatever a lane holds, while loads of up to three chunks overlap.
pub const fn warps(dim: u32) -> u32 {
    let mut warps = 1;
    while warps < MAX_WARPS && chunks(dim) > 96 * warps {
        warps *= 2;
    }
    warps
}

/// `V(D) = 32·W(D)`: virtual lanes of a row.
pub const fn lanes(dim: u32) -> u32 {
    32 * warps(dim)
}
