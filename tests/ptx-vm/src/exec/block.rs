//! The threads of a block and their turns.

use std::rc::Rc;

use super::barrier::Barriers;
use super::geometry::Place;
use super::launch::Options;
use super::registers::{Frame, Registers, Undefined};
use super::schedule::Turns;
use super::thread::{Status, Thread};
use crate::error::{Fault, FaultKind};
use crate::memory::Memory;
use crate::memory::block::BlockMemory;
use crate::memory::overlay::Overlay;
use crate::program::{Program, Slot};

/// A block that runs.
pub(super) struct Block<'a> {
    pub(super) program: &'a Program,
    pub(super) place: Place,
    pub(super) options: Options,
    pub(super) registers: Registers,
    pub(super) threads: Vec<Thread>,
    pub(super) memory: BlockMemory<'a>,
    pub(super) barriers: Barriers,
    pub(super) counts: Vec<u64>,
    /// Threads that may run; released ones are appended.
    pub(super) ready: Vec<usize>,
    /// Whether a thread is in `ready`.
    pub(super) queued: Vec<bool>,
    pub(super) exited: usize,
    pub(super) barriers_done: u64,
    pub(super) warp_operations: u64,
}

/// What a block leaves behind.
pub(super) struct Finished {
    pub overlay: Overlay,
    pub counts: Vec<u64>,
    pub barriers: u64,
    pub warp_operations: u64,
}

/// A fault and the thread that is to blame.
#[derive(Debug)]
pub(super) struct Blame {
    pub thread: usize,
    pub pc: usize,
    pub kind: FaultKind,
}

impl<'a> Block<'a> {
    pub(super) fn new(
        program: &'a Program,
        memory: &'a Memory,
        (arguments, addresses): (&[Vec<u8>], &[(Slot, u64)]),
        place: Place,
        options: Options,
    ) -> Self {
        let count = place.threads();
        let nothing_seen = Rc::new(vec![0; count]);
        let mut block_memory = BlockMemory::new(memory, program, place, u64::from(options.dynamic_shared));
        block_memory.set_parameters(arguments);
        Self {
            program,
            place,
            options,
            registers: Registers::new(program, addresses, &place),
            threads: vec![Thread::new(nothing_seen); count],
            memory: block_memory,
            barriers: Barriers::default(),
            counts: vec![0; program.code.len()],
            ready: (0..count).collect(),
            queued: vec![true; count],
            exited: 0,
            barriers_done: 0,
            warp_operations: 0,
        }
    }

    /// Runs all threads to their end.
    pub(super) fn run(mut self, number: u32) -> Result<Finished, Fault> {
        let mut turns = Turns::new(self.options.schedule, number);
        while !self.ready.is_empty() {
            let (position, fuel) = turns.draw(self.ready.len());
            let thread = self.ready[position];
            self.turn(thread, fuel).map_err(|blame| self.fault(blame))?;
            if self.threads[thread].status != Status::Ready {
                // Threads are only ever appended meanwhile, so the position still holds.
                self.ready.remove(position);
                self.queued[thread] = false;
            }
        }
        if self.exited < self.threads.len() {
            return Err(self.fault(self.deadlock()));
        }
        Ok(Finished {
            overlay: self.memory.overlay,
            counts: self.counts,
            barriers: self.barriers_done,
            warp_operations: self.warp_operations,
        })
    }

    /// Nobody can run, somebody waits.
    fn deadlock(&self) -> Blame {
        let waiting = self.threads.iter().position(|thread| thread.status != Status::Exited).unwrap_or(0);
        let pc = self.threads[waiting].pc;
        let kind = match self.threads[waiting].status {
            Status::Barrier { id } => self.partial_barrier(id),
            Status::Warp { mask } => self.absent_lane(waiting, mask),
            Status::Ready | Status::Exited => FaultKind::UndefinedResult("no thread can run".into()),
        };
        Blame { thread: waiting, pc, kind }
    }

    pub(super) fn fault(&self, blame: Blame) -> Fault {
        Fault {
            block: self.place.block,
            thread: self.place.thread(u32::try_from(blame.thread).unwrap_or(0)),
            line: self.program.sites.get(blame.pc).map_or(0, |site| site.0),
            text: String::new(),
            kind: blame.kind,
        }
    }

    pub(super) fn undefined(&self, undefined: Undefined) -> FaultKind {
        let name = self.program.slot_names.get(undefined.0 as usize).cloned().unwrap_or_default();
        FaultKind::UndefinedRegister { name }
    }

    pub(super) fn frame(&mut self, thread: usize) -> Frame<'_> {
        self.registers.frame(thread)
    }

    /// Reads a register outside a turn.
    pub(super) fn read(&mut self, thread: usize, slot: Slot) -> Result<u64, FaultKind> {
        let value = self.frame(thread).get(slot);
        value.map_err(|undefined| self.undefined(undefined))
    }

    /// What a thread does, for reports on those that are missed somewhere.
    pub(super) fn doing(&self, thread: usize) -> String {
        let Some(state) = self.threads.get(thread) else { return "does not exist in this block".into() };
        let line = self.program.sites.get(state.pc).map_or(0, |site| site.0);
        match state.status {
            Status::Exited => "has exited".into(),
            Status::Ready => "runs elsewhere".into(),
            Status::Barrier { id } => format!("waits at barrier {id}, PTX line {line}"),
            Status::Warp { mask } => format!("waits at PTX line {line} with member mask {mask:#010x}"),
        }
    }

    /// A thread goes on behind what it waited for.
    pub(super) fn release(&mut self, thread: usize) {
        self.threads[thread].pc += 1;
        self.threads[thread].status = Status::Ready;
        if !std::mem::replace(&mut self.queued[thread], true) {
            self.ready.push(thread);
        }
    }
}
