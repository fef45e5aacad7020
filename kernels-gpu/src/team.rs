//! The threads that share a row: some lanes of a warp, a warp, or a block.
use crate::contract::{abi::RowArguments, geometry, sum_tree};
use crate::sink::Table;
use crate::view::Aligned;
use cuda_std::shared::{SharedArray, dynamic_shared_memory};
use cuda_std::thread::{block_dim_x, block_idx_x, grid_dim_x, sync_some_threads, sync_threads, thread_idx_x};

/// Position of a thread in its team and of the team in the grid.
///
/// With `WARPS` = 0 the size of the team is a launch parameter; a constant saves about 3 instructions an element in addresses
/// and in the branches of the reductions (17.3 against 14.5, FP8 at D = 3072, sm_90).
///
/// A thread stands for `LANES` neighbouring virtual lanes, whose chunks lie side by side. With `RESIDENT` teams share a block and each goes its
/// own way, so each has a barrier of its own.
#[derive(Clone, Copy)]
pub struct Team<const WARPS: u32, const LANES: usize = 1, const RESIDENT: bool = false> {
    size: u32,
    /// Index of the thread in its team.
    pub thread: u32,
    /// Row of the team's first iteration.
    pub first_row: u32,
    /// First row of the threads that shuffle and synchronise with this one, a warp or a block: `first_row` unless teams share it.
    pub first_row_together: u32,
    /// Rows between iterations: teams in the grid.
    pub stride: u32,
    /// Shared memory of the block.
    pub shared: SharedArray,
}

impl<const WARPS: u32, const LANES: usize, const RESIDENT: bool> Team<WARPS, LANES, RESIDENT> {
    /// Words of an exchange buffer.
    const EXCHANGE: u32 = geometry::exchange_words(WARPS);

    /// The team of the running thread.
    #[inline(always)]
    pub fn here(a: &RowArguments) -> Self {
        let size = if WARPS == 0 { a.team } else { 32 * WARPS };
        let (t, shared) = (thread_idx_x(), dynamic_shared_memory());
        if RESIDENT {
            let (index, teams) = (Self::index(), block_dim_x() / size);
            let row = index * grid_dim_x() + block_idx_x();
            let stride = teams * grid_dim_x();
            return Self { size, thread: t % size, first_row: row, first_row_together: row, stride, shared };
        }
        if size >= 64 && WARPS != 2 {
            let row = block_idx_x();
            return Self { size, thread: t, first_row: row, first_row_together: row, stride: grid_dim_x(), shared };
        }
        // A power of two of at most 64: teams tile the block.
        let shift = size.trailing_zeros();
        let per_block = block_dim_x() >> shift;
        let first = block_idx_x() * per_block;
        let together = if size == 64 { 0 } else { (t & !31) >> shift };
        Self {
            size,
            thread: t & (size - 1),
            first_row: first + (t >> shift),
            first_row_together: first + together,
            stride: grid_dim_x() * per_block,
            shared,
        }
    }

    /// Number of the team in its block, where teams of so many warps share one.
    #[inline(always)]
    fn index() -> u32 {
        if RESIDENT || WARPS == 2 { thread_idx_x() >> (32 * WARPS).trailing_zeros() } else { 0 }
    }

    /// This team where the first `words` words of shared memory are something else's.
    ///
    /// # Safety
    /// The launch gives room for them too.
    #[inline(always)]
    pub unsafe fn behind(self, words: u32) -> Self {
        // SAFETY: the caller's promise.
        Self { shared: unsafe { self.shared.offset(words) }, ..self }
    }

    /// Waits for the team's threads: for the block's, unless teams go their own ways.
    #[inline(always)]
    pub fn synchronize(self) {
        if RESIDENT { sync_some_threads(1 + Self::index(), 32 * WARPS) } else { sync_threads() }
    }

    /// Threads of the team: `32·W(D)/LANES`, or fewer where a row has fewer chunks than a warp has lanes.
    #[inline(always)]
    pub fn threads(self) -> u32 {
        if WARPS == 0 { self.size } else { 32 * WARPS }
    }

    /// The row `row` of this team, as a number of the thread. Where the assembler knows that a row is the whole block's and has registers to
    /// spare, it computes the row's addresses in the uniform datapath, 20 instructions one after the other.
    #[inline(always)]
    pub fn own(self, row: u32) -> u32 {
        if WARPS > 2 { row + (thread_idx_x() >> (32 * WARPS).trailing_zeros()) } else { row }
    }

    /// Virtual lanes of the row, `V(D)`, in groups of 32.
    #[inline(always)]
    pub fn groups(self) -> u32 {
        self.threads() * LANES as u32 / 32
    }

    /// Whether several warps share a row, so that reductions go through shared memory.
    #[inline(always)]
    pub fn spans_warps(self) -> bool {
        self.threads() >= 64
    }

    /// Where a reduction exchanges its lanes; `buffer` is 0 or 1.
    #[inline(always)]
    pub fn exchange(self, buffer: u32) -> SharedArray {
        // SAFETY: every launch gives room for two buffers for each team of the block that exchanges.
        unsafe { self.shared.offset((2 * Self::index() + buffer) * Self::EXCHANGE) }
    }

    /// Where a sink that has a table ([`Sink::TABLE`](crate::sink::Sink::TABLE)) keeps it; the whole block fills it.
    #[inline(always)]
    pub fn table(self) -> Table {
        let teams = if WARPS == 2 { 2 } else { 1 };
        // SAFETY: every launch of an NVFP4 entry gives room for a table behind the buffers; other sinks compute this address and access
        // nothing there.
        let words = unsafe { self.shared.offset(2 * teams * Self::EXCHANGE) };
        let threads = if WARPS > 2 { 32 * WARPS } else { block_dim_x() };
        Table { words, thread: thread_idx_x(), threads }
    }

    /// Word of the ring that stages rows ahead: slot `slot` of this thread. Slots of one index lie side by side. Teams of several warps
    /// that walk have their block to themselves.
    #[inline(always)]
    pub fn ring(self, slot: u32) -> u32 {
        let block = if WARPS > 1 { 32 * WARPS } else { block_dim_x() };
        2 * Self::EXCHANGE + (slot * block + thread_idx_x()) * 4
    }

    /// Chunk number `i` of this thread, of which every row of the shape class has the first `full`.
    #[inline(always)]
    pub fn place(self, i: usize, full: usize, dim: u32) -> Aligned {
        let (lanes, i_lane) = (LANES as u32, (i % LANES) as u32);
        let (thread, step) = (lanes * self.thread, (i / LANES) as u32 * lanes * self.threads() + i_lane);
        Aligned { thread, step, exists: i < full || step + thread < dim / sum_tree::CHUNK }
    }
}
