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

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_becomes_the_largest() {
        assert_eq!((to_u32(0), to_u32(3072), to_u32(u32::MAX as usize)), (0, 3072, u32::MAX));
        assert_eq!((to_u32(1 << 32), to_u32((1 << 32) + 7), to_u32(usize::MAX)), (u32::MAX, u32::MAX, u32::MAX));
        assert_eq!((to_index(0), to_index(1 << 33), to_index(u64::MAX)), (0, 1 << 33, usize::MAX));
        assert_eq!((to_usize(u32::MAX), to_u64(usize::MAX)), (0xffff_ffff, 0xffff_ffff_ffff_ffff));
        assert_eq!((to_f32(1), to_f32(3072), to_f32(1 << 24)), (1.0, 3072.0, 16_777_216.0));
    }
}
