//! Which alignment lets a launch take a vectorised entry.
//!
//! The kernels' fast paths move 8 elements of a row (16 where a thread takes pairs of lanes; modulation6: 4) with one access, or with several
//! of 16 bytes. That needs every operand, and with D a multiple of 8 (16, 4) every row of it, on an address that the access divides; for pairs
//! that is more than a modulation in fp8 needs, which they read by 8 bytes. Other operands run on the entry for any alignment.
use super::{CheckedRows, CheckedSixWay, OperandList, Sizes};
use crate::error::{Error, Result};
use crate::operand::{Device, Sink, View};
use crate::operator::{Axis, OperandSpec};

/// Elements of a row operator's access.
const CHUNK: u64 = 8;
/// Elements of an access of a thread with a pair of lanes.
const PAIR: u64 = 2 * CHUNK;
/// Elements of a modulation6 access.
const QUAD: u64 = 4;
/// The widest access in bytes.
const WIDEST: u64 = 16;
/// Padding of the scale layout is written four bytes at a time by every entry.
const SCALE_WORD: u64 = 4;

impl CheckedRows<'_, '_, '_, Device> {
    /// Whether the operator may run vectorised.
    pub fn is_aligned(&self) -> bool {
        aligned(self.sizes, CHUNK, &self.parts.list())
    }

    /// Whether it may also run in pairs.
    pub fn is_aligned_in_pairs(&self) -> bool {
        aligned(self.sizes, PAIR, &self.parts.list())
    }

    /// Refuses block scales that no entry can pad.
    ///
    /// # Errors
    /// [`Error::Misaligned`].
    pub fn scale_bytes_alignment(&self) -> Result<()> {
        let Sink::Nvfp4(sink) = &self.parts.sink else { return Ok(()) };
        let got = sink.sf_swizzled.extent().address;
        let (operator, operand) = (self.sizes.operator, "sf_swizzled");
        if got.is_multiple_of(SCALE_WORD) {
            return Ok(());
        }
        Err(Error::Misaligned { operator, operand, expected: SCALE_WORD, got })
    }
}

impl CheckedSixWay<'_, Device> {
    /// Whether modulation6 may run vectorised.
    pub fn is_aligned(&self) -> bool {
        aligned(self.sizes, QUAD, &self.parts.list())
    }
}

fn aligned(sizes: Sizes, elements: u64, list: &OperandList) -> bool {
    let is_aligned = |name: &str, address: u64| {
        let spec = sizes.operator.operand(name);
        spec.is_none_or(|spec| address.is_multiple_of(access(spec, elements)))
    };
    u64::from(sizes.dim).is_multiple_of(elements)
        && list.iter().all(|operand| is_aligned(operand.name, operand.extent.address))
}

/// Bytes of an access to `elements` elements of a row.
fn access(spec: &OperandSpec, elements: u64) -> u64 {
    match spec.shape {
        [Axis::Scalar] => spec.dtype.bytes(),
        [Axis::ScaleLayout] => SCALE_WORD,
        [.., Axis::HalfDim] => elements / 2,
        _ => (elements * spec.dtype.bytes()).min(WIDEST),
    }
}
