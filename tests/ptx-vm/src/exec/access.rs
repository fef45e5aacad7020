//! Loads, stores and atomics of one thread.

use super::block::{Blame, Block};
use crate::error::FaultKind;
use crate::isa::memory::AtomicOp;
use crate::memory::block::Target;
use crate::memory::overlay::Manner;
use crate::program::{Access, Slot};

/// Bytes of the widest access.
const WIDEST: usize = 32;

impl Block<'_> {
    pub(super) fn target(&mut self, thread: usize, access: &Access, elements: usize) -> Result<Target, FaultKind> {
        let base = self.read(thread, access.base)?;
        Ok(Target {
            space: access.space,
            address: base.wrapping_add_signed(access.offset),
            bytes: usize::from(access.bytes) * elements,
            manner: Manner {
                strong: access.strong,
                non_coherent: access.non_coherent,
                equal_writes: self.options.equal_writes,
            },
        })
    }

    pub(super) fn load(&mut self, thread: usize, pc: usize, access: &Access, to: &[Slot]) -> Result<(), Blame> {
        let blame = |kind| Blame { thread, pc, kind };
        let target = self.target(thread, access, to.len()).map_err(blame)?;
        let mut buffer = [0; WIDEST];
        let bytes = &mut buffer[..target.bytes.min(WIDEST)];
        let actor = self.threads[thread].actor(thread, pc);
        self.memory.load(target, actor, bytes).map_err(blame)?;
        let mut frame = self.registers.frame(thread);
        for (slot, element) in to.iter().zip(bytes.chunks_exact(usize::from(access.bytes))) {
            frame.set(*slot, extended(element, access));
        }
        Ok(())
    }

    pub(super) fn store(&mut self, thread: usize, pc: usize, access: &Access, from: &[Slot]) -> Result<(), Blame> {
        let blame = |kind| Blame { thread, pc, kind };
        let target = self.target(thread, access, from.len()).map_err(blame)?;
        let mut buffer = [0; WIDEST];
        let width = usize::from(access.bytes);
        for (slot, element) in from.iter().zip(buffer.chunks_exact_mut(width)) {
            let value = self.read(thread, *slot).map_err(blame)?;
            element.copy_from_slice(&value.to_le_bytes()[..width]);
        }
        let actor = self.threads[thread].actor(thread, pc);
        self.memory.store(target, actor, &buffer[..target.bytes.min(WIDEST)]).map_err(blame)
    }

    /// Reads, computes and writes without a turn of another thread between.
    pub(super) fn atomic(
        &mut self,
        thread: usize,
        pc: usize,
        access: &Access,
        op: AtomicOp,
        [d, b, c]: [Slot; 3],
    ) -> Result<(), Blame> {
        let blame = |kind| Blame { thread, pc, kind };
        let target = self.target(thread, access, 1).map_err(blame)?;
        let operands = self.read(thread, b).and_then(|b| Ok((b, self.read(thread, c)?)));
        let (b, c) = operands.map_err(blame)?;
        let mut bytes = [0; 8];
        let width = usize::from(access.bytes).min(8);
        let actor = self.threads[thread].actor(thread, pc);
        self.memory.load(target, actor, &mut bytes[..width]).map_err(blame)?;
        let old = u64::from_le_bytes(bytes);
        let new = op.0(old, b, c);
        self.memory.store(target, actor, &new.to_le_bytes()[..width]).map_err(blame)?;
        self.frame(thread).set(d, old);
        Ok(())
    }
}

/// An element as its register holds it.
fn extended(element: &[u8], access: &Access) -> u64 {
    let mut bytes = [0; 8];
    bytes[..element.len()].copy_from_slice(element);
    let value = u64::from_le_bytes(bytes);
    if access.sign_to == 0 {
        return value;
    }
    let unused = 64 - 8 * u32::from(access.bytes);
    let wide = ((value << unused).cast_signed() >> unused).cast_unsigned();
    wide & u64::MAX >> (64 - u32::from(access.sign_to))
}
