//! A thread between turns, and what it knows of the others.

use std::rc::Rc;

use super::copy::Copies;
use crate::memory::cell::Actor;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Ready,
    /// Waits at a barrier.
    Barrier {
        id: usize,
    },
    /// Waits at a warp operation with this member mask.
    Warp {
        mask: u32,
    },
    Exited,
}

/// State of a thread outside its registers.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// The next instruction, or the one it waits at.
    pub pc: usize,
    pub status: Status,
    pub executed: u64,
    /// Advances at each synchronisation.
    pub clock: u32,
    /// Per thread of the block: the clock up to which this thread has synchronised with it.
    pub seen: Rc<Vec<u32>>,
    pub copies: Copies,
}

impl Thread {
    pub(super) fn new(seen: Rc<Vec<u32>>) -> Self {
        Self { pc: 0, status: Status::Ready, executed: 0, clock: 1, seen, copies: Copies::default() }
    }

    /// This thread as the author of an access.
    pub(super) fn actor(&self, thread: usize, pc: usize) -> Actor<'_> {
        let narrow = |n: usize| u32::try_from(n).unwrap_or(u32::MAX - 1);
        Actor { thread: narrow(thread), clock: self.clock, seen: &self.seen, pc: narrow(pc) }
    }
}

/// A thread's knowledge when it arrives somewhere.
#[derive(Clone, Debug)]
pub(super) struct Stamp {
    pub thread: usize,
    clock: u32,
    seen: Rc<Vec<u32>>,
}

impl Stamp {
    pub(super) fn of(thread: usize, state: &Thread) -> Self {
        Self { thread, clock: state.clock, seen: Rc::clone(&state.seen) }
    }
}

/// What is known after all of these have met.
pub(super) fn joined(stamps: &[Stamp]) -> Rc<Vec<u32>> {
    let mut merged: Vec<u32> = stamps.first().map(|stamp| stamp.seen.to_vec()).unwrap_or_default();
    let mut last = stamps.first().map(|stamp| &stamp.seen);
    for stamp in stamps {
        if last.is_none_or(|last| !Rc::ptr_eq(last, &stamp.seen)) {
            for (known, other) in merged.iter_mut().zip(stamp.seen.iter()) {
                *known = (*known).max(*other);
            }
            last = Some(&stamp.seen);
        }
    }
    for stamp in stamps {
        if let Some(known) = merged.get_mut(stamp.thread) {
            *known = (*known).max(stamp.clock);
        }
    }
    Rc::new(merged)
}
