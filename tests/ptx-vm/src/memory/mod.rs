//! The caller's buffers, and what a block sees of memory while it runs.
//!
//! Reading order: this file (buffers between launches), `cell` (who touched a byte), `block` (spaces of a running block),
//! `overlay` (a block's view of the buffers), `grid` (blocks meet).

pub(crate) mod block;
pub(crate) mod cell;
pub(crate) mod grid;
pub(crate) mod overlay;
pub(crate) mod private;

use std::ops::Range;

use crate::error::Unwritten;
use crate::layout;

/// A buffer before it is part of a [`Memory`]: its contents, its role and its alignment.
#[derive(Clone, Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    initialised: bool,
    role: Role,
    alignment: u64,
}

/// What a kernel may do with a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Reads only.
    Input,
    /// Every byte is written at most once, or again with the same value.
    Output,
    /// Anything.
    Scratch,
}

/// What `cudaMalloc` promises.
const DEFAULT_ALIGNMENT: u64 = 256;

impl Buffer {
    /// Initialised and read-only.
    #[must_use]
    pub fn input(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), initialised: true, role: Role::Input, alignment: DEFAULT_ALIGNMENT }
    }

    /// Uninitialised, of `length` bytes that hold `poison`; reading before writing is a fault, and so is writing a byte twice
    /// with different values in one launch.
    #[must_use]
    pub fn output(length: usize, poison: u8) -> Self {
        Self { bytes: vec![poison; length], initialised: false, role: Role::Output, alignment: DEFAULT_ALIGNMENT }
    }

    /// Uninitialised, readable and writable at will.
    #[must_use]
    pub fn scratch(length: usize) -> Self {
        Self { role: Role::Scratch, ..Self::output(length, 0xA5) }
    }

    /// Initialised, readable and writable at will.
    #[must_use]
    pub fn in_out(bytes: impl Into<Vec<u8>>) -> Self {
        Self { role: Role::Scratch, ..Self::input(bytes) }
    }

    /// Puts the buffer at an address that is a multiple of `alignment` and of no larger power of two, so that a kernel which
    /// relies on more is caught. Rounded up to a power of two, at most 2^30.
    #[must_use]
    pub fn with_alignment(self, alignment: usize) -> Self {
        let alignment = u64::try_from(alignment).unwrap_or(1 << 30).clamp(1, 1 << 30).next_power_of_two();
        Self { alignment, ..self }
    }
}

/// A buffer that is part of a [`Memory`]: where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle {
    index: usize,
    address: u64,
}

impl Handle {
    /// The device pointer, as a kernel gets it; offsets may be added.
    #[must_use]
    pub const fn address(self) -> u64 {
        self.address
    }
}

/// Global memory: a list of buffers, which outlives launches.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pub(crate) buffers: Vec<Stored>,
}

/// A buffer in memory.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub address: u64,
    pub bytes: Vec<u8>,
    pub role: Role,
    /// Per byte; `None`: all of them.
    pub initialised: Option<Vec<bool>>,
    /// Per byte, by any launch; `None` for inputs.
    pub written: Option<Vec<bool>>,
}

impl Memory {
    /// No buffers.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a buffer. A launch refuses more than 1,700 of them, for want of address space.
    pub fn add(&mut self, buffer: Buffer) -> Handle {
        let index = self.buffers.len();
        let address = layout::buffer_address(index, buffer.alignment);
        let length = buffer.bytes.len();
        self.buffers.push(Stored {
            address,
            role: buffer.role,
            initialised: (!buffer.initialised).then(|| vec![false; length]),
            written: (buffer.role != Role::Input).then(|| vec![false; length]),
            bytes: buffer.bytes,
        });
        Handle { index, address }
    }

    /// Adds a [`Buffer::input`].
    pub fn input(&mut self, bytes: impl Into<Vec<u8>>) -> Handle {
        self.add(Buffer::input(bytes))
    }

    /// Adds a [`Buffer::output`].
    pub fn output(&mut self, length: usize, poison: u8) -> Handle {
        self.add(Buffer::output(length, poison))
    }

    /// The bytes of a buffer as they are now; unwritten bytes of an output hold its poison. Empty for a handle of another memory.
    #[must_use]
    pub fn bytes(&self, handle: Handle) -> &[u8] {
        self.buffers.get(handle.index).map_or(&[], |stored| &stored.bytes)
    }

    /// Offsets of a buffer that no launch has written.
    #[must_use]
    pub fn unwritten(&self, handle: Handle) -> Vec<Range<usize>> {
        let Some(stored) = self.buffers.get(handle.index) else { return Vec::new() };
        match &stored.written {
            Some(written) => false_ranges(written),
            None if stored.bytes.is_empty() => Vec::new(),
            None => std::iter::once(0..stored.bytes.len()).collect(),
        }
    }

    /// Fails if a byte of the buffer was never written.
    ///
    /// # Errors
    /// [`Unwritten`], with the offsets.
    pub fn check_written(&self, handle: Handle) -> Result<(), Unwritten> {
        let ranges = self.unwritten(handle);
        if ranges.is_empty() { Ok(()) } else { Err(Unwritten { ranges }) }
    }
}

fn false_ranges(flags: &[bool]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (offset, _) in flags.iter().enumerate().filter(|(_, set)| !**set) {
        match ranges.last_mut() {
            Some(last) if last.end == offset => last.end += 1,
            _ => ranges.push(offset..offset + 1),
        }
    }
    ranges
}
