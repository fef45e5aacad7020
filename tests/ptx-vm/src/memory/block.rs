//! All spaces of memory as a running block sees them, with every check that an access must pass.

use super::cell::{Actor, Cell, Conflict, Event, Readers};
use super::overlay::{Manner, Overlay, Trouble, find};
use super::private::{Private, Refused};
use super::{Memory, Role};
use crate::error::{Access, FaultKind, Space};
use crate::exec::geometry::Place;
use crate::layout::{self, SPACE_BASE, span};
use crate::program::{AccessSpace, Extent, Program};

/// Memory of one block.
pub(crate) struct BlockMemory<'a> {
    memory: &'a Memory,
    program: &'a Program,
    place: Place,
    pub overlay: Overlay,
    shared_extents: Vec<Extent>,
    shared: Vec<u8>,
    shared_cells: Vec<Cell>,
    shared_readers: Readers,
    local: Private,
    param: Private,
}

/// An access: where, how wide, in which manner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    pub space: AccessSpace,
    pub address: u64,
    pub bytes: usize,
    pub manner: Manner,
}

fn named(space: AccessSpace) -> Space {
    match space {
        AccessSpace::Shared => Space::Shared,
        AccessSpace::Local => Space::Local,
        AccessSpace::Param => Space::Param,
        AccessSpace::Generic | AccessSpace::Global => Space::Global,
    }
}

impl<'a> BlockMemory<'a> {
    pub(crate) fn new(memory: &'a Memory, program: &'a Program, place: Place, dynamic_shared: u64) -> Self {
        let mut shared_extents = program.shared.clone();
        if let (Some(_), Some(last)) = (program.dynamic_shared, shared_extents.last_mut()) {
            last.end += dynamic_shared;
        }
        let size = usize::try_from(span(&shared_extents).saturating_sub(SPACE_BASE)).unwrap_or(0);
        let threads = place.threads();
        Self {
            memory,
            program,
            place,
            overlay: Overlay::default(),
            shared_extents,
            shared: vec![0; size],
            shared_cells: vec![Cell::default(); size],
            shared_readers: Readers::default(),
            local: Private::new(&program.local, threads),
            param: Private::new(&program.param, threads),
        }
    }

    /// Fills the entry's parameters of every thread.
    pub(crate) fn set_parameters(&mut self, arguments: &[Vec<u8>]) {
        for thread in 0..self.place.threads() {
            for (parameter, argument) in self.program.parameters.iter().zip(arguments) {
                // Sizes were checked by the launch, so this cannot fail.
                let _ = self.param.store(thread, parameter.address, argument);
            }
        }
    }

    /// Reads `into.len()` bytes.
    pub(crate) fn load(&mut self, target: Target, actor: Actor<'_>, into: &mut [u8]) -> Result<(), FaultKind> {
        let target = target.checked()?;
        match target.space {
            AccessSpace::Shared => self.load_shared(target, actor, into),
            AccessSpace::Local => {
                self.local.load(actor.thread as usize, target.address, into).map_err(|r| target.refused(r))
            }
            AccessSpace::Param => {
                self.param.load(actor.thread as usize, target.address, into).map_err(|r| target.refused(r))
            }
            AccessSpace::Global | AccessSpace::Generic => self.load_global(target, actor, into),
        }
    }

    /// Writes `bytes`.
    pub(crate) fn store(&mut self, target: Target, actor: Actor<'_>, bytes: &[u8]) -> Result<(), FaultKind> {
        let target = target.checked()?;
        match target.space {
            AccessSpace::Shared => self.store_shared(target, actor, bytes),
            AccessSpace::Local => {
                self.local.store(actor.thread as usize, target.address, bytes).map_err(|r| target.refused(r))
            }
            AccessSpace::Param => {
                self.param.store(actor.thread as usize, target.address, bytes).map_err(|r| target.refused(r))
            }
            AccessSpace::Global | AccessSpace::Generic => self.store_global(target, actor, bytes),
        }
    }

    fn load_global(&mut self, target: Target, actor: Actor<'_>, into: &mut [u8]) -> Result<(), FaultKind> {
        let Some((stored, offset)) = find(self.memory, target.address, target.bytes) else {
            return Err(self.outside_buffers(target));
        };
        if stored.role == Role::Input {
            into.copy_from_slice(&stored.bytes[offset..offset + into.len()]);
            return Ok(());
        }
        let done = self.overlay.load(stored, target.address, actor, target.manner, into);
        done.map_err(|(address, trouble)| self.trouble(Space::Global, address, trouble))
    }

    fn store_global(&mut self, target: Target, actor: Actor<'_>, bytes: &[u8]) -> Result<(), FaultKind> {
        let Some((stored, _)) = find(self.memory, target.address, target.bytes) else {
            return Err(self.outside_buffers(target));
        };
        if stored.role == Role::Input {
            return Err(FaultKind::ReadOnly { address: target.address });
        }
        let done = self.overlay.store(stored, target.address, actor, target.manner, bytes);
        done.map_err(|(address, trouble)| self.trouble(Space::Global, address, trouble))
    }

    fn shared_offset(&self, target: Target) -> Result<usize, FaultKind> {
        let end = target.address.checked_add(target.bytes as u64);
        let inside = self.shared_extents.iter().any(|e| target.address >= e.start && end.is_some_and(|x| x <= e.end));
        let offset = usize::try_from(target.address.wrapping_sub(SPACE_BASE)).ok().filter(|_| inside);
        offset.ok_or_else(|| target.refused(Refused::Outside))
    }

    fn load_shared(&mut self, target: Target, actor: Actor<'_>, into: &mut [u8]) -> Result<(), FaultKind> {
        let at = self.shared_offset(target)?;
        self.check_copies(target, at)?;
        for (place, byte) in into.iter_mut().enumerate() {
            let cell = &mut self.shared_cells[at + place];
            let read = cell.read(actor, target.manner.strong, &mut self.shared_readers);
            let initialised = cell.initialised;
            let address = target.address + place as u64;
            read.map_err(|conflict| self.trouble(Space::Shared, address, Trouble::Race(conflict)))?;
            if !initialised {
                return Err(self.trouble(Space::Shared, address, Trouble::Uninitialised));
            }
            *byte = self.shared[at + place];
        }
        Ok(())
    }

    fn store_shared(&mut self, target: Target, actor: Actor<'_>, bytes: &[u8]) -> Result<(), FaultKind> {
        let at = self.shared_offset(target)?;
        self.check_copies(target, at)?;
        for (place, value) in bytes.iter().enumerate() {
            let equal = target.manner.equal_writes && self.shared[at + place] == *value;
            let cell = &mut self.shared_cells[at + place];
            let written = cell.write(actor, target.manner.strong, equal, &mut self.shared_readers);
            let address = target.address + place as u64;
            written.map_err(|conflict| self.trouble(Space::Shared, address, Trouble::Race(conflict)))?;
            self.shared[at + place] = *value;
        }
        Ok(())
    }

    /// Fails if a copy is on its way to a byte of the access.
    fn check_copies(&self, target: Target, at: usize) -> Result<(), FaultKind> {
        let Some(place) = self.shared_cells[at..at + target.bytes].iter().position(|cell| cell.copying) else {
            return Ok(());
        };
        let trouble = Trouble::Copying(self.shared_cells[at + place].writer);
        Err(self.trouble(Space::Shared, target.address + place as u64, trouble))
    }

    /// Reads the source of a copy.
    pub(crate) fn copy_source(&mut self, from: Target, actor: Actor<'_>, into: &mut [u8]) -> Result<(), FaultKind> {
        if into.is_empty() { Ok(()) } else { self.load_global(from, actor, into) }
    }

    /// The destination belongs to the copy from now on, and what it held is lost.
    pub(crate) fn begin_copy(&mut self, to: Target, actor: Actor<'_>) -> Result<(), FaultKind> {
        let to = to.checked()?;
        self.store_shared(to, actor, &[0; 16][..to.bytes.min(16)])?;
        self.mark_copy(to, true)
    }

    /// The copy's bytes arrive, as a write of its thread.
    pub(crate) fn end_copy(&mut self, to: Target, actor: Actor<'_>, bytes: &[u8]) -> Result<(), FaultKind> {
        self.mark_copy(to, false)?;
        self.store_shared(to, actor, bytes)
    }

    fn mark_copy(&mut self, to: Target, copying: bool) -> Result<(), FaultKind> {
        let at = self.shared_offset(to)?;
        self.shared_cells[at..at + to.bytes].iter_mut().for_each(|cell| cell.copying = copying);
        Ok(())
    }

    fn trouble(&self, space: Space, address: u64, trouble: Trouble) -> FaultKind {
        match trouble {
            Trouble::Uninitialised => FaultKind::UninitialisedRead { space, address },
            Trouble::NonCoherent => FaultKind::NonCoherentLoad { address },
            Trouble::Copying(copy) => FaultKind::CopyPending { address, copy: party(self.program, self.place, copy) },
            Trouble::Twice { first, second } => FaultKind::WrittenTwice { address, first, second },
            Trouble::Race(Conflict { kind, other }) => {
                FaultKind::Race { space, address, kind, other: party(self.program, self.place, other) }
            }
        }
    }

    fn outside_buffers(&self, target: Target) -> FaultKind {
        let stored =
            layout::buffer_index(target.address).and_then(|index| self.memory.buffers.get(index).zip(Some(index)));
        let hint = match stored {
            Some((stored, index)) => {
                let distance = i128::from(target.address) - i128::from(stored.address);
                format!(" (offset {distance} of buffer {index}, which has {} bytes)", stored.bytes.len())
            }
            None => " (no buffer)".to_owned(),
        };
        FaultKind::OutOfBounds { space: Space::Global, address: target.address, bytes: target.bytes as u64, hint }
    }
}

/// An access as faults name it.
pub(crate) fn party(program: &Program, place: Place, event: Event) -> Access {
    let line = program.sites.get(event.pc as usize).map_or(0, |site| site.0);
    Access { block: place.block, thread: place.thread(event.thread().unwrap_or(0)), line }
}

impl Target {
    /// Resolves a generic address and checks the alignment (PTX ISA, "Addresses as Operands").
    fn checked(self) -> Result<Self, FaultKind> {
        let (space, address) = match self.space {
            AccessSpace::Generic => layout::resolve(self.address),
            space => (space, self.address),
        };
        Self { space, address, ..self }.aligned()
    }

    /// Checks the alignment of an address in its own space.
    pub(crate) fn aligned(self) -> Result<Self, FaultKind> {
        if self.address.is_multiple_of(self.bytes as u64) {
            return Ok(self);
        }
        Err(FaultKind::Misaligned { space: named(self.space), address: self.address, bytes: self.bytes as u64 })
    }

    fn refused(&self, refused: Refused) -> FaultKind {
        let (space, address) = (named(self.space), self.address);
        match refused {
            Refused::Uninitialised(address) => FaultKind::UninitialisedRead { space, address },
            Refused::Outside => {
                FaultKind::OutOfBounds { space, address, bytes: self.bytes as u64, hint: " (no variable)".to_owned() }
            }
        }
    }
}
