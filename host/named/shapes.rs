//! Sizes of a call from the shapes of its operands.
use super::{Tensor, Tensors};
use crate::check::{self, Sizes};
use crate::error::{Error, Result};
use crate::operator::{Axis, OperandSpec, Operator};
use std::fmt::Write;

/// R, D and C as far as they are known.
#[derive(Clone, Copy, Default)]
struct Known {
    rows: Option<usize>,
    dim: Option<usize>,
    chunks: Option<usize>,
}

/// Checks presence, dtype and shape of every input and gives the sizes of the call.
pub(super) fn sizes(operator: Operator, inputs: &Tensors) -> Result<Sizes> {
    let mut known = Known::default();
    let mut first = "";
    for spec in operator.inputs() {
        let Some(tensor) = inputs.get(spec.name) else {
            if spec.optional {
                continue;
            }
            return Err(Error::Missing { operator, operand: spec.name, expected: spec.dtype });
        };
        dtype(operator, spec, tensor)?;
        shape(operator, spec, tensor, &mut known)?;
        if first.is_empty() {
            first = spec.name;
        }
    }
    let dim = check::dim(operator, first, known.dim.unwrap_or(0))?;
    let rows = check::rows(operator, first, known.rows.unwrap_or(0))?;
    let chunks = known.chunks.unwrap_or(0);
    let chunks = u32::try_from(chunks).map_err(|_| Error::Overflow {
        operator,
        operand: "table",
        expected: u64::from(u32::MAX),
        got: format!("{chunks} chunks"),
    })?;
    Ok(Sizes { operator, rows, dim, chunks })
}

fn dtype(operator: Operator, spec: &OperandSpec, tensor: &Tensor) -> Result<()> {
    if tensor.data.dtype() == spec.dtype {
        return Ok(());
    }
    let got = tensor.data.dtype().to_string();
    Err(Error::DType { operator, operand: spec.name, expected: spec.dtype, got })
}

/// Matches a shape against the axes from the right; `Rows` takes all axes that are left, at least one.
fn shape(operator: Operator, spec: &OperandSpec, tensor: &Tensor, known: &mut Known) -> Result<()> {
    let (mut left, mut with_this) = (tensor.shape.as_slice(), *known);
    let fits = spec.shape.iter().rev().all(|axis| take(*axis, &mut left, &mut with_this).is_some());
    let elements = tensor.shape.iter().try_fold(1usize, |product, axis| product.checked_mul(*axis));
    let (true, true, Some(elements)) = (fits, left.is_empty(), elements) else {
        let expected = describe(spec, known);
        return Err(Error::Shape { operator, operand: spec.name, expected, got: tensor.shape.clone() });
    };
    if elements != tensor.data.len() {
        let (expected, got) = (elements as u64, tensor.data.len());
        return Err(Error::Length { operator, operand: spec.name, expected, got });
    }
    *known = with_this;
    Ok(())
}

/// Takes the axis off the end of a shape, if it is what is known or nothing is known yet.
fn take(axis: Axis, left: &mut &[usize], known: &mut Known) -> Option<()> {
    let (got, value) = match axis {
        Axis::Rows => {
            let rows = left.iter().try_fold(1usize, |product, axis| product.checked_mul(*axis))?;
            let some = !left.is_empty();
            *left = &[];
            return (some && *known.rows.get_or_insert(rows) == rows).then_some(());
        }
        // A scalar may be [] or [1].
        Axis::Scalar if left.is_empty() => return Some(()),
        Axis::Dim => (&mut known.dim, None),
        Axis::Chunks => (&mut known.chunks, None),
        Axis::Six => (&mut None, Some(6)),
        Axis::Scalar => (&mut None, Some(1)),
        // Outputs only.
        Axis::HalfDim | Axis::ScaleLayout => (&mut None, None),
    };
    let (last, rest) = left.split_last()?;
    *left = rest;
    (*got.get_or_insert(value.unwrap_or(*last)) == *last).then_some(())
}

/// The axes with what the operands before say of them, for an error.
fn describe(spec: &OperandSpec, known: &Known) -> String {
    if spec.shape == [Axis::Scalar] {
        return "[] or [1]".to_owned();
    }
    let mut text = String::from("[");
    for (index, axis) in spec.shape.iter().enumerate() {
        let (name, value) = match axis {
            Axis::Rows => ("R", known.rows),
            Axis::Dim => ("D", known.dim),
            Axis::Chunks => ("C", known.chunks),
            Axis::HalfDim => ("D/2", known.dim.map(|dim| dim / 2)),
            Axis::Six => ("6", None),
            Axis::Scalar => ("1", None),
            Axis::ScaleLayout => ("swizzled_sf_size(R, D)", None),
        };
        let separator = if index == 0 { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{separator}{name}");
        if let Some(value) = value {
            let _ = write!(text, "={value}");
        }
    }
    text + "]"
}
