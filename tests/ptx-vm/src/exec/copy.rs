//! Asynchronous copies: they begin where they are issued and end where their thread waits for them, no sooner.
//!
//! Hardware may finish a copy at any time between. So the destination belongs to the copy until then: whoever touches it, its own
//! thread included, commits a fault, and a wait that is missing is one under every schedule. A copy that nobody waits for never ends.

use std::collections::VecDeque;

use super::block::{Blame, Block};
use crate::error::FaultKind;
use crate::memory::block::Target;
use crate::program::{Access, Slot};

/// Bytes of the widest copy.
const WIDEST: usize = 16;

/// A copy on its way.
#[derive(Clone, Copy, Debug)]
struct Copy {
    to: Target,
    from: Target,
    /// What the source held when the copy was issued.
    bytes: [u8; WIDEST],
    pc: usize,
}

/// The copies of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Copies {
    /// Issued, in no group yet.
    open: Vec<Copy>,
    /// Committed, the oldest first. A group may be empty.
    groups: VecDeque<Vec<Copy>>,
}

impl Block<'_> {
    /// Issues a copy.
    pub(super) fn copy(
        &mut self,
        thread: usize,
        pc: usize,
        (to, from): (&Access, &Access),
        source_bytes: Slot,
    ) -> Result<(), Blame> {
        let blame = |kind| Blame { thread, pc, kind };
        let to = self.target(thread, to, 1).map_err(blame)?;
        let full = self.target(thread, from, 1).map_err(blame)?;
        let wanted = self.read(thread, source_bytes).map_err(blame)?;
        let wanted = usize::try_from(wanted).ok().filter(|wanted| *wanted <= full.bytes);
        let too_much = || blame(FaultKind::UndefinedResult("cp.async reads more than it writes".into()));
        let from = Target { bytes: wanted.ok_or_else(too_much)?, ..full };
        // The alignment is that of the whole copy, however much of it is read.
        full.aligned().map_err(blame)?;
        let mut bytes = [0; WIDEST];
        let actor = self.threads[thread].actor(thread, pc);
        self.memory.copy_source(from, actor, &mut bytes[..from.bytes]).map_err(blame)?;
        self.memory.begin_copy(to, actor).map_err(blame)?;
        self.threads[thread].copies.open.push(Copy { to, from, bytes, pc });
        Ok(())
    }

    /// Makes a group of the copies issued since the last.
    pub(super) fn commit_copies(&mut self, thread: usize) {
        let copies = &mut self.threads[thread].copies;
        let group = std::mem::take(&mut copies.open);
        copies.groups.push_back(group);
    }

    /// Ends all groups but the `pending` newest.
    pub(super) fn wait_for_copies(&mut self, thread: usize, pc: usize, pending: u64) -> Result<(), Blame> {
        let pending = usize::try_from(pending).unwrap_or(usize::MAX);
        while self.threads[thread].copies.groups.len() > pending {
            let group = self.threads[thread].copies.groups.pop_front().unwrap_or_default();
            self.end_copies(thread, pc, &group)?;
        }
        Ok(())
    }

    /// Ends every copy of the thread, committed or not.
    pub(super) fn wait_for_all_copies(&mut self, thread: usize, pc: usize) -> Result<(), Blame> {
        self.commit_copies(thread);
        self.wait_for_copies(thread, pc, 0)
    }

    fn end_copies(&mut self, thread: usize, pc: usize, group: &[Copy]) -> Result<(), Blame> {
        for copy in group {
            let blame = |kind| Blame { thread, pc: copy.pc, kind };
            let mut bytes = [0; WIDEST];
            let actor = self.threads[thread].actor(thread, pc);
            self.memory.copy_source(copy.from, actor, &mut bytes[..copy.from.bytes]).map_err(blame)?;
            if bytes != copy.bytes {
                return Err(blame(FaultKind::CopySourceChanged { address: copy.from.address }));
            }
            self.memory.end_copy(copy.to, actor, &bytes[..copy.to.bytes]).map_err(blame)?;
        }
        Ok(())
    }
}
