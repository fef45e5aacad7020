//! Where things lie: the address windows and the placement of variables.
//!
//! One 64-bit generic space. Buffers have a slot of 2^36 bytes each, so a pointer that runs away lands in nothing. The shared,
//! local and param windows lie above them; in their own state space addresses start at a small base, not at 0, so that a null
//! or forgotten base is caught. Variables are apart by a gap, so that running over the end of one is out of bounds.

use crate::program::{AccessSpace, Extent};

/// log2 of a buffer's slot.
pub(crate) const SLOT_BITS: u32 = 36;
/// Most buffers of a launch, those of the module included.
pub(crate) const MAX_BUFFERS: usize = 1700;
/// Generic address of the shared window.
pub(crate) const SHARED_WINDOW: u64 = 0x7F1 << SLOT_BITS;
/// Generic address of the local window.
pub(crate) const LOCAL_WINDOW: u64 = 0x7F2 << SLOT_BITS;
/// Generic address of the param window.
pub(crate) const PARAM_WINDOW: u64 = 0x7F3 << SLOT_BITS;
/// Lowest address of a variable in its own space.
pub(crate) const SPACE_BASE: u64 = 0x400;
/// Gap between variables.
const GAP: u64 = 64;

/// The space and address in it that a generic address means.
pub(crate) fn resolve(generic: u64) -> (AccessSpace, u64) {
    let offset = generic & ((1 << SLOT_BITS) - 1);
    match generic & !((1 << SLOT_BITS) - 1) {
        SHARED_WINDOW => (AccessSpace::Shared, offset),
        LOCAL_WINDOW => (AccessSpace::Local, offset),
        PARAM_WINDOW => (AccessSpace::Param, offset),
        _ => (AccessSpace::Global, generic),
    }
}

/// Address of buffer `index` with exactly the alignment asked for (a multiple of `align`, not of `2 * align`).
pub(crate) fn buffer_address(index: usize, align: u64) -> u64 {
    ((index as u64 + 1) << SLOT_BITS) + (1 << 32) + align
}

/// The buffer that an address would belong to.
pub(crate) fn buffer_index(address: u64) -> Option<usize> {
    usize::try_from((address >> SLOT_BITS).checked_sub(1)?).ok()
}

/// Places a variable behind those already there, with exactly its declared alignment (not, by luck, a larger one).
pub(crate) fn place(extents: &mut Vec<Extent>, bytes: u64, align: u64) -> Option<u64> {
    let floor = extents.last().map_or(SPACE_BASE, |last| last.end + GAP);
    let start = floor.checked_next_multiple_of(align.checked_mul(2)?)?.checked_add(align)?;
    let end = start.checked_add(bytes).filter(|end| *end < 1 << 30)?;
    extents.push(Extent { start, end });
    Some(start)
}

/// Bytes that a space needs, from address 0.
pub(crate) fn span(extents: &[Extent]) -> u64 {
    extents.last().map_or(0, |last| last.end)
}
