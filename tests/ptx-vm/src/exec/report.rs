//! What a launch did.

use crate::program::Program;

/// Counts of a completed launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Per instruction: PTX line, opcode, executions over all threads.
    counts: Vec<(u32, String, u64)>,
    barriers: u64,
    warp_operations: u64,
}

impl Report {
    pub(crate) fn new(program: &Program, counts: &[u64], barriers: u64, warp_operations: u64) -> Self {
        let sites = program.sites.iter().zip(counts);
        let counts = sites.map(|((line, opcode), count)| (*line, opcode.clone(), *count)).collect();
        Self { counts, barriers, warp_operations }
    }

    /// Instructions executed, over all threads; predicated-off ones count.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.counts.iter().map(|(_, _, count)| count).sum()
    }

    /// Executions of instructions whose opcode is `opcode` or starts with `opcode.` (`ld.global` counts `ld.global.nc.v4.b32`).
    #[must_use]
    pub fn count(&self, opcode: &str) -> u64 {
        let matches = |of: &str| of.strip_prefix(opcode).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.counts.iter().filter(|(_, of, _)| matches(of)).map(|(_, _, count)| count).sum()
    }

    /// Block-wide barriers completed, over all blocks.
    #[must_use]
    pub const fn barriers(&self) -> u64 {
        self.barriers
    }

    /// Warp operations (shuffles, votes, ..) completed, over all warps.
    #[must_use]
    pub const fn warp_operations(&self) -> u64 {
        self.warp_operations
    }

    /// PTX lines that hold instructions of the entry which no thread came to, ascending.
    #[must_use]
    pub fn lines_never_run(&self) -> Vec<u32> {
        let inside = self.counts.iter().filter(|(_, opcode, count)| *count == 0 && !opcode.starts_with('('));
        let mut lines: Vec<u32> = inside.map(|(line, _, _)| *line).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }
}
