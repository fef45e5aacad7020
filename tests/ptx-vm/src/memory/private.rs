//! `.local` and `.param`: memory of one thread, so only initialisation and bounds matter.

use crate::layout::{SPACE_BASE, span};
use crate::program::Extent;

/// The private space of all threads of a block.
#[derive(Debug)]
pub(crate) struct Private {
    extents: Vec<Extent>,
    stride: usize,
    bytes: Vec<u8>,
    initialised: Vec<bool>,
}

/// Why an access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Outside,
    /// The byte at this address has no value.
    Uninitialised(u64),
}

impl Private {
    pub(crate) fn new(extents: &[Extent], threads: usize) -> Self {
        let stride = usize::try_from(span(extents).saturating_sub(SPACE_BASE)).unwrap_or(0);
        Self {
            extents: extents.to_vec(),
            stride,
            bytes: vec![0; stride * threads],
            initialised: vec![false; stride * threads],
        }
    }

    /// Where an access lies in the arrays.
    fn locate(&self, thread: usize, address: u64, bytes: usize) -> Result<usize, Refused> {
        let end = address.checked_add(bytes as u64).ok_or(Refused::Outside)?;
        let inside = self.extents.iter().any(|extent| address >= extent.start && end <= extent.end);
        let offset = usize::try_from(address.wrapping_sub(SPACE_BASE)).ok().filter(|_| inside);
        offset.map(|offset| thread * self.stride + offset).ok_or(Refused::Outside)
    }

    pub(crate) fn load(&self, thread: usize, address: u64, into: &mut [u8]) -> Result<(), Refused> {
        let at = self.locate(thread, address, into.len())?;
        if let Some(hole) = self.initialised[at..at + into.len()].iter().position(|set| !set) {
            return Err(Refused::Uninitialised(address + hole as u64));
        }
        into.copy_from_slice(&self.bytes[at..at + into.len()]);
        Ok(())
    }

    pub(crate) fn store(&mut self, thread: usize, address: u64, bytes: &[u8]) -> Result<(), Refused> {
        let at = self.locate(thread, address, bytes.len())?;
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.initialised[at..at + bytes.len()].fill(true);
        Ok(())
    }
}
