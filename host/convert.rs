//! Conversions between the integers that sizes come in, the only place that casts one.
//!
//! R, D and C are `u32` in the kernels' arguments, `usize` where slices are cut, `u64` where they are multiplied.

const _: () = assert!(usize::BITS >= 32 && usize::BITS <= 64, "u32 fits usize, usize fits u64");

/// A size as a length or an index: exact.
#[inline(always)]
pub(crate) const fn to_usize(value: u32) -> usize {
    value as usize
}

/// A length as a factor: exact.
#[inline(always)]
pub(crate) const fn to_u64(value: usize) -> u64 {
    value as u64
}

/// A length that passed the checks of R, D or C as a size; one that did not becomes the largest, which no kernel takes.
#[inline(always)]
pub(crate) const fn to_u32(value: usize) -> u32 {
    if value > to_usize(u32::MAX) { u32::MAX } else { value as u32 }
}

/// An offset into a buffer that exists; one past all memory becomes the largest index, which no buffer has.
#[inline(always)]
pub(crate) const fn to_index(value: u64) -> usize {
    if value > to_u64(usize::MAX) { usize::MAX } else { value as usize }
}

/// D as the divisor of a mean: exact, since D is at most 2^24.
#[inline(always)]
pub(crate) const fn to_f32(dim: usize) -> f32 {
    dim as f32
}
