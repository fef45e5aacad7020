//! R, D, C and what they multiply to: the only place where sizes meet, always checked.
use crate::contract::sum_tree::MAX_DIM;
use crate::convert::{to_index, to_u64};
use crate::error::{Error, Result};
use crate::formats::swizzled_sf_size;
use crate::operator::{Axis, OperandSpec, Operator};

/// Largest supported R.
pub use crate::contract::geometry::MAX_ROWS;

/// The sizes of a call that passed the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Which operator the parts make.
    pub operator: Operator,
    /// R.
    pub rows: u32,
    /// D.
    pub dim: u32,
    /// C; 0 where there is no table.
    pub chunks: u32,
}

/// D, if the operator works on it.
pub(crate) fn dim(operator: Operator, operand: &'static str, got: usize) -> Result<u32> {
    let divisor = operator.dim_divisor();
    let dim = match u32::try_from(got) {
        Ok(dim) if dim <= MAX_DIM => dim,
        _ => return Err(Error::DimTooLarge { operator, operand, expected: MAX_DIM, got }),
    };
    if dim == 0 {
        return Err(Error::DimZero { operator, operand, expected: divisor });
    }
    match divisor {
        _ if dim.is_multiple_of(divisor) => Ok(dim),
        2 => Err(Error::DimOdd { operator, operand, got }),
        _ => Err(Error::DimNotMultiple { operator, operand, expected: divisor, got }),
    }
}

/// R, if it is not too large.
pub(crate) fn rows(operator: Operator, operand: &'static str, got: usize) -> Result<u32> {
    match u32::try_from(got) {
        Ok(rows) if rows <= MAX_ROWS => Ok(rows),
        _ => Err(Error::TooManyRows { operator, operand, expected: MAX_ROWS, got }),
    }
}

/// C, from the length of table.
pub(super) fn chunks(sizes: Sizes, table: usize) -> Result<u32> {
    let Sizes { operator, dim, .. } = sizes;
    let chunks = whole(operator, "table", table, u64::from(dim))?;
    if chunks == 0 {
        return Err(Error::NotWhole { operator, operand: "table", expected: u64::from(dim), got: table });
    }
    // A kernel steps over a row of temb with 32 bits.
    let pitch = product(&[to_u64(chunks), u64::from(dim), 2]);
    match (u32::try_from(chunks), pitch) {
        (Ok(chunks), Some(pitch)) if pitch <= u64::from(u32::MAX) => Ok(chunks),
        _ => Err(Error::Overflow {
            operator,
            operand: "temb",
            expected: u64::from(u32::MAX),
            got: format!("{chunks} x {dim} x 2 bytes a row"),
        }),
    }
}

/// A length in units of `divisor`.
pub(super) fn whole(operator: Operator, operand: &'static str, got: usize, divisor: u64) -> Result<usize> {
    let remainder = to_u64(got) % divisor;
    if remainder != 0 {
        return Err(Error::NotWhole { operator, operand, expected: divisor, got });
    }
    Ok(to_index(to_u64(got) / divisor))
}

/// Elements that an operand's axes multiply to, if the bytes fit the address space.
pub(crate) fn elements(sizes: Sizes, spec: &OperandSpec) -> Result<u64> {
    let mut factors = [1; 4];
    for (factor, axis) in factors.iter_mut().zip(spec.shape) {
        *factor = axis_length(sizes, *axis)?;
    }
    let elements = product(&factors);
    match elements.and_then(|elements| product(&[elements, spec.dtype.bytes()])) {
        Some(bytes) if usize::try_from(bytes).is_ok() => Ok(bytes / spec.dtype.bytes()),
        _ => Err(Error::Overflow {
            operator: sizes.operator,
            operand: spec.name,
            expected: to_u64(usize::MAX),
            got: format!("{factors:?} elements of {} bytes", spec.dtype.bytes()),
        }),
    }
}

/// The length of one axis.
pub(crate) fn axis_length(Sizes { operator, rows, dim, chunks }: Sizes, axis: Axis) -> Result<u64> {
    Ok(match axis {
        Axis::Rows => u64::from(rows),
        Axis::Dim => u64::from(dim),
        Axis::HalfDim => u64::from(dim / 2),
        Axis::Chunks => u64::from(chunks),
        Axis::Six => 6,
        Axis::Scalar => 1,
        Axis::ScaleLayout => to_u64(swizzled_sf_size(rows, dim).ok_or_else(|| Error::Overflow {
            operator,
            operand: "sf_swizzled",
            expected: to_u64(usize::MAX),
            got: format!("the scale layout of {rows} x {dim}"),
        })?),
    })
}

/// The product, unless it overflows.
pub(super) fn product(factors: &[u64]) -> Option<u64> {
    factors.iter().try_fold(1u64, |product, factor| product.checked_mul(*factor))
}
