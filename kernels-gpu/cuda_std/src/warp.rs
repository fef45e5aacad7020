//! Exchange between the 32 lanes of a warp.
//!
//! The shuffles bind LLVM's convergent intrinsics; `asm!` is not convergent and may be moved into a branch.
unsafe extern "C" {
    #[link_name = "llvm.nvvm.shfl.sync.bfly.f32"]
    fn shfl_bfly_f32(mask: u32, value: f32, lane_mask: u32, clamp: u32) -> f32;
    #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
    fn shfl_bfly_i32(mask: u32, value: u32, lane_mask: u32, clamp: u32) -> u32;
    #[link_name = "llvm.nvvm.bar.warp.sync"]
    fn bar_warp_sync(mask: u32);
}

/// Every lane of the warp takes part.
const FULL_MASK: u32 = u32::MAX;
/// `c` operand of `shfl` for a full-width butterfly: no sub-segments, clamp at lane 31.
const FULL_WIDTH: u32 = 0x1f;

/// Value of `value` in the lane whose index differs by `lane_mask` (a power of two below 32). All 32 lanes must call it.
#[inline(always)]
pub fn shuffle_xor_f32(value: f32, lane_mask: u32) -> f32 {
    // SAFETY: the full member mask requires all lanes to arrive; kernels call this under warp-uniform control flow only.
    unsafe { shfl_bfly_f32(FULL_MASK, value, lane_mask, FULL_WIDTH) }
}

/// As [`shuffle_xor_f32`], for a 32-bit word.
#[inline(always)]
pub fn shuffle_xor_u32(value: u32, lane_mask: u32) -> u32 {
    // SAFETY: as in `shuffle_xor_f32`.
    unsafe { shfl_bfly_i32(FULL_MASK, value, lane_mask, FULL_WIDTH) }
}

/// Waits until all 32 lanes of the warp arrive; orders their shared and global accesses.
#[inline(always)]
pub fn sync_warp() {
    // SAFETY: as in `shuffle_xor_f32`.
    unsafe { bar_warp_sync(FULL_MASK) }
}
