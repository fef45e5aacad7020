//! Warp operations: lanes wait until all of their member mask have come to the same instruction.

use super::block::{Blame, Block};
use super::thread::{Stamp, Status, joined};
use crate::error::FaultKind;
use crate::isa::warp::{Lanes, WarpKind, WarpOp};

impl Block<'_> {
    /// A lane comes to a warp operation.
    pub(super) fn arrive_warp(&mut self, thread: usize, pc: usize, op: &WarpOp) -> Result<(), Blame> {
        let blame = |kind| Blame { thread, pc, kind };
        let mask = self.read(thread, op.mask).map_err(blame)?;
        let mask = u32::try_from(mask).unwrap_or(u32::MAX);
        for source in op.sources {
            self.read(thread, source).map_err(blame)?;
        }
        let lane = u32::try_from(thread % 32).unwrap_or(0);
        if mask >> lane & 1 == 0 {
            return Err(blame(FaultKind::MaskWithoutSelf { mask, lane }));
        }
        self.threads[thread].status = Status::Warp { mask };
        let first = thread - thread % 32;
        let mut complete = true;
        for member in members(first, mask) {
            match self.threads.get(member) {
                Some(state) if state.status == Status::Exited => return Err(blame(self.absent(thread, member, mask))),
                None => return Err(blame(self.absent(thread, member, mask))),
                Some(state) => complete &= state.status == (Status::Warp { mask }) && state.pc == pc,
            }
        }
        if complete { self.complete_warp(first, pc, mask, op) } else { Ok(()) }
    }

    fn complete_warp(&mut self, first: usize, pc: usize, mask: u32, op: &WarpOp) -> Result<(), Blame> {
        let mut lanes: Lanes = [[0; 3]; 32];
        for member in members(first, mask) {
            for (place, source) in op.sources.into_iter().enumerate() {
                let value = self.read(member, source);
                lanes[member - first][place] = value.map_err(|kind| Blame { thread: member, pc, kind })?;
            }
        }
        let results = op.kind.run(mask, &lanes).map_err(|outside| Blame {
            thread: first + outside.lane as usize,
            pc,
            kind: FaultKind::ShuffleOutsideMask { mask, lane: outside.source },
        })?;
        self.warp_operations += 1;
        let orders = matches!(op.kind, WarpKind::Sync);
        let stamps: Vec<Stamp> = members(first, mask).map(|m| Stamp::of(m, &self.threads[m])).collect();
        let seen = orders.then(|| joined(&stamps));
        for member in members(first, mask) {
            let [value, flag] = results[member - first];
            let mut frame = self.frame(member);
            frame.set(op.destinations[1], flag);
            frame.set(op.destinations[0], value);
            if let Some(seen) = &seen {
                self.threads[member].clock += 1;
                self.threads[member].seen = std::rc::Rc::clone(seen);
            }
            self.release(member);
        }
        Ok(())
    }

    /// Lanes that wait for one that has just exited wait in vain.
    pub(super) fn check_warp_after_exit(&self, thread: usize) -> Result<(), Blame> {
        let first = thread - thread % 32;
        for peer in (first..first + 32).filter(|peer| *peer < self.threads.len()) {
            match self.threads[peer].status {
                Status::Warp { mask } if mask >> (thread % 32) & 1 == 1 => {
                    return Err(Blame {
                        thread: peer,
                        pc: self.threads[peer].pc,
                        kind: self.absent(peer, thread, mask),
                    });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The report on a warp operation that cannot complete.
    pub(super) fn absent_lane(&self, thread: usize, mask: u32) -> FaultKind {
        let first = thread - thread % 32;
        let (pc, status) = (self.threads[thread].pc, self.threads[thread].status);
        let missing = members(first, mask)
            .find(|member| self.threads.get(*member).is_none_or(|state| state.status != status || state.pc != pc));
        self.absent(thread, missing.unwrap_or(first), mask)
    }

    fn absent(&self, thread: usize, member: usize, mask: u32) -> FaultKind {
        let lane = u32::try_from(member - (thread - thread % 32)).unwrap_or(0);
        FaultKind::AbsentLane { mask, lane, reason: self.doing(member) }
    }
}

/// Threads named by a member mask of the warp that starts at `first`.
fn members(first: usize, mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 == 1).map(move |lane| first + lane)
}
