//! Register files.

use super::geometry::Place;
use crate::program::{Program, Slot};

/// The registers of all threads of a block.
pub(super) struct Registers {
    slots: usize,
    values: Vec<u64>,
    defined: Vec<bool>,
}

/// A register that has no value yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undefined(pub Slot);

/// The registers of one thread.
pub(super) struct Frame<'r> {
    values: &'r mut [u64],
    defined: &'r mut [bool],
}

impl Registers {
    /// Constants, special registers and buffer addresses have their values; nothing else has.
    pub(super) fn new(program: &Program, addresses: &[(Slot, u64)], place: &Place) -> Self {
        let slots = program.slots;
        let mut first = vec![0; slots];
        let mut first_defined = vec![false; slots];
        for (slot, value) in program.constants.iter().chain(addresses) {
            first[*slot as usize] = *value;
            first_defined[*slot as usize] = true;
        }
        for (slot, _) in &program.specials {
            first_defined[*slot as usize] = true;
        }
        let threads = place.threads();
        let mut registers = Self { slots, values: first.repeat(threads), defined: first_defined.repeat(threads) };
        for thread in 0..threads {
            let number = u32::try_from(thread).unwrap_or(u32::MAX);
            let frame = registers.frame(thread);
            for (slot, special) in &program.specials {
                frame.values[*slot as usize] = u64::from(place.special(*special, number));
            }
        }
        registers
    }

    pub(super) fn frame(&mut self, thread: usize) -> Frame<'_> {
        let at = thread * self.slots..(thread + 1) * self.slots;
        Frame { values: &mut self.values[at.clone()], defined: &mut self.defined[at] }
    }
}

impl Frame<'_> {
    #[inline]
    pub(super) fn get(&self, slot: Slot) -> Result<u64, Undefined> {
        let slot_index = slot as usize;
        if self.defined[slot_index] { Ok(self.values[slot_index]) } else { Err(Undefined(slot)) }
    }

    #[inline]
    pub(super) fn set(&mut self, slot: Slot, value: u64) {
        self.values[slot as usize] = value;
        self.defined[slot as usize] = true;
    }

    /// Copies a value, or the lack of one.
    pub(super) fn copy(&mut self, to: Slot, from: Slot) {
        self.values[to as usize] = self.values[from as usize];
        self.defined[to as usize] = self.defined[from as usize];
    }

    /// Makes a register undefined.
    pub(super) fn clear(&mut self, slot: Slot) {
        self.defined[slot as usize] = false;
    }

    /// The value, or `None`.
    pub(super) fn peek(&self, slot: Slot) -> Option<u64> {
        self.get(slot).ok()
    }
}
