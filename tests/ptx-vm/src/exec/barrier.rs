//! Block-wide barriers (PTX ISA, "Parallel Synchronization Instructions: bar, barrier").
//!
//! Stricter than hardware: a barrier without a thread count must be reached by every thread of the block, none of which may
//! have exited; an aligned one from the same instruction.

use super::block::{Blame, Block};
use super::thread::{Stamp, Status, joined};
use crate::error::FaultKind;
use crate::program::{Barrier, BarrierKind, Op, Reduction};

/// The sixteen barriers of a block.
#[derive(Default)]
pub(super) struct Barriers([Waiting; 16]);

/// Threads at one barrier.
#[derive(Default)]
struct Waiting {
    arrivals: Vec<Arrival>,
    expected: usize,
    counted: bool,
}

struct Arrival {
    stamp: Stamp,
    pc: usize,
    waits: bool,
}

impl Block<'_> {
    /// A thread comes to a barrier.
    pub(super) fn arrive(&mut self, thread: usize, pc: usize, barrier: &Barrier) -> Result<(), Blame> {
        let blame = |kind| Blame { thread, pc, kind };
        let (id, expected) = self.barrier_operands(thread, barrier).map_err(blame)?;
        let counted = barrier.count.is_some();
        self.check_same_instruction(id, thread, pc, barrier.aligned).map_err(blame)?;
        if let BarrierKind::Reduce { p, .. } = barrier.kind {
            self.read(thread, p).map_err(blame)?;
        }
        let waits = barrier.kind != BarrierKind::Arrive;
        let arrival = Arrival { stamp: Stamp::of(thread, &self.threads[thread]), pc, waits };
        let waiting = &mut self.barriers.0[id];
        if waiting.arrivals.is_empty() {
            (waiting.expected, waiting.counted) = (expected, counted);
        } else if waiting.expected != expected {
            return Err(blame(FaultKind::InvalidBarrier(format!(
                "barrier {id} is used with {expected} and with {} threads",
                waiting.expected
            ))));
        }
        waiting.arrivals.push(arrival);
        if waits {
            self.threads[thread].status = Status::Barrier { id };
        } else {
            self.threads[thread].pc = pc + 1;
            self.threads[thread].clock += 1;
        }
        if self.barriers.0[id].arrivals.len() == expected {
            return self.complete(id);
        }
        self.check_barriers_after_exit()
    }

    fn barrier_operands(&mut self, thread: usize, barrier: &Barrier) -> Result<(usize, usize), FaultKind> {
        let id = self.read(thread, barrier.id)?;
        let id = usize::try_from(id).ok().filter(|id| *id < 16);
        let id = id.ok_or_else(|| FaultKind::InvalidBarrier("the barrier number is above 15".into()))?;
        let threads = self.threads.len();
        let Some(count) = barrier.count else { return Ok((id, threads)) };
        let count = self.read(thread, count)?;
        let valid = usize::try_from(count).ok().filter(|count| *count > 0 && count.is_multiple_of(32));
        let invalid =
            || FaultKind::InvalidBarrier(format!("a thread count of {count} is not a positive multiple of 32"));
        Ok((id, valid.ok_or_else(invalid)?))
    }

    /// An aligned barrier is the same instruction for the whole block, or for the warp where it has a count.
    fn check_same_instruction(&self, id: usize, thread: usize, pc: usize, aligned: bool) -> Result<(), FaultKind> {
        let waiting = &self.barriers.0[id];
        let peer = |arrival: &&Arrival| !waiting.counted || arrival.stamp.thread / 32 == thread / 32;
        let other = waiting.arrivals.iter().filter(peer).find(|arrival| arrival.pc != pc);
        match other {
            Some(other) if aligned => Err(FaultKind::DivergentBarrier {
                barrier: u32::try_from(id).unwrap_or(0),
                other_line: self.program.sites.get(other.pc).map_or(0, |site| site.0),
            }),
            _ => Ok(()),
        }
    }

    /// All have come: what each did before is ordered before what the waiting ones do next.
    fn complete(&mut self, id: usize) -> Result<(), Blame> {
        let arrivals = std::mem::take(&mut self.barriers.0[id].arrivals);
        let stamps: Vec<Stamp> = arrivals.iter().map(|arrival| arrival.stamp.clone()).collect();
        let seen = joined(&stamps);
        let (count, total) = self.reduction(&arrivals)?;
        self.barriers_done += 1;
        for arrival in arrivals.iter().filter(|arrival| arrival.waits) {
            let thread = arrival.stamp.thread;
            if let Op::Barrier(Barrier { kind: BarrierKind::Reduce { op, d, .. }, .. }) =
                self.program.code[arrival.pc].op
            {
                let value = match op {
                    Reduction::Count => count,
                    Reduction::All => u64::from(count == total),
                    Reduction::Any => u64::from(count > 0),
                };
                self.frame(thread).set(d, value);
            }
            self.threads[thread].clock += 1;
            self.threads[thread].seen = std::rc::Rc::clone(&seen);
            self.release(thread);
        }
        Ok(())
    }

    /// How many of the reducing threads hold a true predicate, of how many.
    fn reduction(&mut self, arrivals: &[Arrival]) -> Result<(u64, u64), Blame> {
        let (mut count, mut total) = (0, 0);
        for arrival in arrivals {
            let Op::Barrier(Barrier { kind: BarrierKind::Reduce { p, negated, .. }, .. }) =
                self.program.code[arrival.pc].op
            else {
                continue;
            };
            let (thread, pc) = (arrival.stamp.thread, arrival.pc);
            let value = self.read(thread, p).map_err(|kind| Blame { thread, pc, kind })?;
            total += 1;
            count += u64::from((value != 0) != negated);
        }
        Ok((count, total))
    }

    /// A barrier for all threads cannot complete once a thread has exited.
    pub(super) fn check_barriers_after_exit(&self) -> Result<(), Blame> {
        if self.exited == 0 {
            return Ok(());
        }
        for (id, waiting) in self.barriers.0.iter().enumerate() {
            if let Some(first) = waiting.arrivals.first().filter(|_| !waiting.counted) {
                return Err(Blame { thread: first.stamp.thread, pc: first.pc, kind: self.partial_barrier(id) });
            }
        }
        Ok(())
    }

    /// The report on a barrier that cannot complete.
    pub(super) fn partial_barrier(&self, id: usize) -> FaultKind {
        let waiting = &self.barriers.0[id];
        let here = |thread: usize| waiting.arrivals.iter().any(|arrival| arrival.stamp.thread == thread);
        let absent = |exited: bool| {
            (0..self.threads.len())
                .find(|thread| !here(*thread) && (self.threads[*thread].status == Status::Exited) == exited)
        };
        let missing = absent(true).or_else(|| absent(false)).unwrap_or(0);
        FaultKind::PartialBarrier {
            barrier: u32::try_from(id).unwrap_or(0),
            arrived: waiting.arrivals.len(),
            expected: waiting.expected,
            missing: self.place.thread(u32::try_from(missing).unwrap_or(0)),
            reason: self.doing(missing),
        }
    }
}
