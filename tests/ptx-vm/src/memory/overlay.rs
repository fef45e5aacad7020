//! A block's view of the writable buffers: what it changes stays in its own pages until the grid merges them.
//!
//! Blocks are not ordered, so a correct kernel cannot tell this from shared memory, blocks can run in parallel, and the result
//! does not depend on which of them is faster. Pages are by address, so that an aligned access never crosses one.

use std::collections::BTreeMap;

use super::cell::{Actor, Cell, Conflict, Event, Readers};
use super::{Memory, Role, Stored};
use crate::layout;

/// Bytes of a page.
pub(crate) const PAGE: usize = 256;

#[derive(Debug)]
pub(crate) struct Page {
    pub bytes: Vec<u8>,
    pub cells: Vec<Cell>,
}

/// Pages by `address / PAGE`, with the readers' lists.
#[derive(Debug, Default)]
pub(crate) struct Overlay {
    pub pages: BTreeMap<u64, Page>,
    pub readers: Readers,
}

/// Why an access to a writable buffer failed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Trouble {
    Race(Conflict),
    Uninitialised,
    NonCoherent,
    /// A copy is on its way to the byte.
    Copying(Event),
    Twice {
        first: u8,
        second: u8,
    },
}

/// How a block accesses the buffers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub strong: bool,
    pub non_coherent: bool,
    /// Racing writes of equal values are allowed.
    pub equal_writes: bool,
}

impl Page {
    fn of(stored: &Stored, page: u64) -> Self {
        let first = page * PAGE as u64;
        let mut bytes = vec![0; PAGE];
        let mut cells = vec![Cell::default(); PAGE];
        for (place, (byte, cell)) in bytes.iter_mut().zip(&mut cells).enumerate() {
            let offset = (first + place as u64).checked_sub(stored.address).and_then(|o| usize::try_from(o).ok());
            if let Some((offset, value)) = offset.and_then(|o| stored.bytes.get(o).map(|value| (o, *value))) {
                *byte = value;
                cell.initialised = stored.initialised.as_ref().is_none_or(|initialised| initialised[offset]);
            }
        }
        Self { bytes, cells }
    }
}

/// The buffer that holds all of `bytes` bytes at `address`.
pub(crate) fn find(memory: &Memory, address: u64, bytes: usize) -> Option<(&Stored, usize)> {
    let stored = memory.buffers.get(layout::buffer_index(address)?)?;
    let offset = usize::try_from(address.checked_sub(stored.address)?).ok()?;
    let end = offset.checked_add(bytes)?;
    (end <= stored.bytes.len()).then_some((stored, offset))
}

impl Overlay {
    fn page(&mut self, stored: &Stored, address: u64) -> (&mut Page, &mut Readers, usize) {
        let number = address / PAGE as u64;
        let page = self.pages.entry(number).or_insert_with(|| Page::of(stored, number));
        (page, &mut self.readers, usize::try_from(address % PAGE as u64).unwrap_or(0))
    }

    /// Reads from a writable buffer. On failure also says at which byte.
    pub(crate) fn load(
        &mut self,
        stored: &Stored,
        address: u64,
        actor: Actor<'_>,
        manner: Manner,
        into: &mut [u8],
    ) -> Result<(), (u64, Trouble)> {
        let (page, readers, at) = self.page(stored, address);
        for (place, byte) in into.iter_mut().enumerate() {
            let cell = &mut page.cells[at + place];
            let fail = |trouble| (address + place as u64, trouble);
            cell.read(actor, manner.strong, readers).map_err(|conflict| fail(Trouble::Race(conflict)))?;
            if !cell.initialised {
                return Err(fail(Trouble::Uninitialised));
            }
            if manner.non_coherent && cell.written() {
                return Err(fail(Trouble::NonCoherent));
            }
            *byte = page.bytes[at + place];
        }
        Ok(())
    }

    /// Writes to a writable buffer. On failure also says at which byte.
    pub(crate) fn store(
        &mut self,
        stored: &Stored,
        address: u64,
        actor: Actor<'_>,
        manner: Manner,
        bytes: &[u8],
    ) -> Result<(), (u64, Trouble)> {
        let once = stored.role == Role::Output && !manner.strong;
        let (page, readers, at) = self.page(stored, address);
        for (place, value) in bytes.iter().enumerate() {
            let cell = &mut page.cells[at + place];
            let old = page.bytes[at + place];
            let fail = |trouble| (address + place as u64, trouble);
            let equal = manner.equal_writes && old == *value;
            let twice = once && cell.written() && old != *value;
            cell.write(actor, manner.strong, equal, readers).map_err(|conflict| fail(Trouble::Race(conflict)))?;
            if twice {
                return Err(fail(Trouble::Twice { first: old, second: *value }));
            }
            page.bytes[at + place] = *value;
        }
        Ok(())
    }
}
