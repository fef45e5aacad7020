//! Index of the running thread and barriers.
use core::arch::nvptx;

unsafe extern "C" {
    #[link_name = "llvm.nvvm.barrier.cta.sync.aligned.count"]
    fn barrier_sync(barrier: u32, threads: u32);
}

/// x index of the thread in its block.
#[inline(always)]
pub fn thread_idx_x() -> u32 {
    // SAFETY: reads a special register; has no precondition.
    unsafe { nvptx::_thread_idx_x() as u32 }
}

/// x extent of the block, in threads.
#[inline(always)]
pub fn block_dim_x() -> u32 {
    // SAFETY: reads a special register; has no precondition.
    unsafe { nvptx::_block_dim_x() as u32 }
}

/// x index of the block in the grid.
#[inline(always)]
pub fn block_idx_x() -> u32 {
    // SAFETY: reads a special register; has no precondition.
    unsafe { nvptx::_block_idx_x() as u32 }
}

/// x extent of the grid, in blocks.
#[inline(always)]
pub fn grid_dim_x() -> u32 {
    // SAFETY: reads a special register; has no precondition.
    unsafe { nvptx::_grid_dim_x() as u32 }
}

/// Waits until every thread of the block arrives; orders their shared and global accesses.
///
/// Uses the convergent intrinsic: a barrier written as `asm!` may be duplicated into the arms of a branch
/// (rust-lang/rust#137086), which is undefined behaviour on the device.
#[inline(always)]
pub fn sync_threads() {
    // SAFETY: bar.sync 0 has no memory precondition; callers are kernels whose control flow around it is uniform per block.
    unsafe { nvptx::_syncthreads() }
}

/// Waits at barrier `barrier` (1 to 15; 0 is [`sync_threads`]) until `threads` threads of the block, whole warps, have arrived; orders their
/// shared and global accesses.
#[inline(always)]
pub fn sync_some_threads(barrier: u32, threads: u32) {
    // SAFETY: as in `sync_threads`, for control flow that is uniform among the threads that share the barrier.
    unsafe { barrier_sync(barrier, threads) }
}
