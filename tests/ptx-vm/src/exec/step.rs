//! One thread, instruction by instruction, until it waits, exits or its turn ends.

use super::block::{Blame, Block};
use super::registers::{Frame, Undefined};
use super::thread::Status;
use crate::error::FaultKind;
use crate::program::{NO_GUARD, Op, Program};

/// Why the straight run of a thread stopped.
enum Stop {
    /// The turn is over.
    Fuel,
    Undefined(Undefined),
    /// The ISA leaves the result open.
    NoResult(&'static str),
    StepLimit,
    /// The instruction needs more than the thread's registers.
    Outside,
}

impl Block<'_> {
    /// Runs one thread for at most `fuel` instructions.
    pub(super) fn turn(&mut self, thread: usize, fuel: u32) -> Result<(), Blame> {
        let program = self.program;
        let mut fuel = fuel;
        while self.threads[thread].status == Status::Ready {
            let (pc, stop) = self.straight(program, thread, &mut fuel);
            self.threads[thread].pc = pc;
            let blame = |kind| Blame { thread, pc, kind };
            match stop {
                Stop::Fuel => return Ok(()),
                Stop::Outside => self.outside(thread, pc)?,
                Stop::Undefined(undefined) => return Err(blame(self.undefined(undefined))),
                Stop::NoResult(why) => return Err(blame(FaultKind::UndefinedResult(why.into()))),
                Stop::StepLimit => return Err(blame(FaultKind::StepLimit { limit: self.options.step_limit })),
            }
        }
        Ok(())
    }

    /// Instructions that touch registers and the program counter only. Returns the instruction it stopped at.
    fn straight(&mut self, program: &Program, thread: usize, fuel: &mut u32) -> (usize, Stop) {
        let state = &mut self.threads[thread];
        let mut frame = self.registers.frame(thread);
        let mut pc = state.pc;
        loop {
            if *fuel == 0 {
                return (pc, Stop::Fuel);
            }
            *fuel -= 1;
            state.executed += 1;
            if state.executed > self.options.step_limit {
                return (pc, Stop::StepLimit);
            }
            let inst = &program.code[pc];
            self.counts[pc] += 1;
            if inst.guard != NO_GUARD {
                match frame.get(inst.guard) {
                    Ok(value) if (value != 0) == inst.negated => {
                        pc += 1;
                        continue;
                    }
                    Ok(_) => {}
                    Err(undefined) => return (pc, Stop::Undefined(undefined)),
                }
            }
            match execute(program, &inst.op, &mut frame, pc) {
                Ok(next) => pc = next,
                Err(stop) => return (pc, stop),
            }
        }
    }

    /// Memory, barriers, warp operations and the end of the thread.
    fn outside(&mut self, thread: usize, pc: usize) -> Result<(), Blame> {
        let program = self.program;
        match &program.code[pc].op {
            Op::Load { access, to } => self.load(thread, pc, access, program.slots_of(*to))?,
            Op::Store { access, from } => self.store(thread, pc, access, program.slots_of(*from))?,
            Op::Atomic { access, op, d, b, c } => self.atomic(thread, pc, access, *op, [*d, *b, *c])?,
            Op::Copy { to, from, source_bytes } => self.copy(thread, pc, (to, from), *source_bytes)?,
            Op::CopyCommit => self.commit_copies(thread),
            Op::CopyWait { pending } => self.wait_for_copies(thread, pc, *pending)?,
            Op::CopyWaitAll => self.wait_for_all_copies(thread, pc)?,
            Op::Barrier(barrier) => return self.arrive(thread, pc, barrier),
            Op::Warp(op) => return self.arrive_warp(thread, pc, op),
            Op::Exit => return self.exit(thread),
            _ => return Err(Blame { thread, pc, kind: FaultKind::Trap }),
        }
        self.threads[thread].pc = pc + 1;
        Ok(())
    }

    fn exit(&mut self, thread: usize) -> Result<(), Blame> {
        self.threads[thread].status = Status::Exited;
        self.exited += 1;
        self.check_barriers_after_exit()?;
        self.check_warp_after_exit(thread)
    }
}

/// One instruction on one thread's registers; the next program counter.
#[inline]
fn execute(program: &Program, op: &Op, frame: &mut Frame<'_>, pc: usize) -> Result<usize, Stop> {
    match op {
        Op::Unary { f, d, a } => frame.set(*d, f(frame.get(*a)?)),
        Op::Binary { f, d, a, b } => frame.set(*d, f(frame.get(*a)?, frame.get(*b)?)),
        Op::Ternary { f, d, a, b, c } => frame.set(*d, f(frame.get(*a)?, frame.get(*b)?, frame.get(*c)?)),
        Op::Checked { f, d, s, why } => {
            let [a, b, c, e] = *s;
            let result = f([frame.get(a)?, frame.get(b)?, frame.get(c)?, frame.get(e)?]);
            frame.set(*d, result.ok_or(Stop::NoResult(why))?);
        }
        Op::Many { f, d, s } => {
            let [a, b, c, e] = *s;
            let [first, second] = f([frame.get(a)?, frame.get(b)?, frame.get(c)?, frame.get(e)?]);
            frame.set(d[0], first);
            frame.set(d[1], second);
        }
        Op::Convert { plan, d, a, b } => {
            let conversion = &program.conversions[*plan as usize];
            frame.set(*d, conversion.run(frame.get(*a)?, frame.get(*b)?));
        }
        Op::Compare { plan, d, a, b, c } => {
            let comparison = &program.comparisons[*plan as usize];
            let [first, second] = comparison.run(frame.get(*a)?, frame.get(*b)?, frame.get(*c)?);
            frame.set(d[0], first);
            frame.set(d[1], second);
        }
        Op::Move { d, a } => frame.copy(*d, *a),
        Op::Select { d, a, b, p } => {
            let chosen = if frame.get(*p)? != 0 { *a } else { *b };
            frame.copy(*d, chosen);
        }
        Op::Pack { .. } | Op::Unpack { .. } => repack(program, op, frame),
        Op::Jump { target } => return Ok(*target as usize),
        Op::Table { index, targets } => {
            let choice = u32::try_from(frame.get(*index)?).ok().filter(|choice| *choice < targets.count);
            let choice = choice.ok_or(Stop::NoResult("branch index out of range"))?;
            return Ok(program.targets[(targets.first + choice) as usize] as usize);
        }
        Op::Nothing => {}
        _ => return Err(Stop::Outside),
    }
    Ok(pc + 1)
}

/// "Data Movement and Conversion Instructions: mov", vector forms. As in a copy, a part without a value leaves none.
fn repack(program: &Program, op: &Op, frame: &mut Frame<'_>) {
    match op {
        Op::Pack { d, parts, bits } => {
            let parts = program.slots_of(*parts);
            let word = parts.iter().rev().try_fold(0u64, |word, slot| Some(word << bits | frame.peek(*slot)?));
            match word {
                Some(word) => frame.set(*d, word),
                None => frame.clear(*d),
            }
        }
        Op::Unpack { a, parts, bits } => {
            let word = frame.peek(*a);
            for (place, slot) in (0u32..).zip(program.slots_of(*parts)) {
                match word {
                    Some(word) => frame.set(*slot, word >> (place * bits) & ((1 << bits) - 1)),
                    None => frame.clear(*slot),
                }
            }
        }
        _ => {}
    }
}

impl From<Undefined> for Stop {
    fn from(undefined: Undefined) -> Self {
        Self::Undefined(undefined)
    }
}
