//! What is checked before anything is read or written.
//!
//! The catalogue says which axes an operand has; the call says how large they are. Every operand of a call, in host or device
//! memory, passes the same checks: length, null, alignment, end of the address space, overlap.
#[cfg(feature = "cuda")]
mod alignment;
mod list;
mod sizes;
#[cfg(test)]
mod tests;

pub(crate) use list::OperandList;
pub use sizes::{MAX_ROWS, Sizes};
pub(crate) use sizes::{axis_length, dim, elements, rows};

use crate::convert::to_u64;
use crate::error::{Error, Result};
use crate::operand::{Extent, Matrix, Modulation, Ref, Sink, SixWay, Space, View};
use crate::operator::{Axis, ModulationKind, Operator, SinkKind};
use half::bf16;
use list::{Listed, MAX_OPERANDS};
use sizes::{chunks, product, whole};
use std::ops::Range;

/// A call of a row operator that passed the checks; only [`row_operator`] makes one.
pub(crate) struct CheckedRows<'x, 'm, 's, S: Space> {
    sizes: Sizes,
    parts: RowParts<'x, 'm, 's, S>,
}

/// What a row operator works on.
pub(crate) struct RowParts<'x, 'm, 's, S: Space> {
    pub x: Matrix<Ref<'x, bf16, S>>,
    pub modulation: Modulation<'m, S>,
    pub sink: Sink<'s, S>,
}

/// A call of modulation6 that passed the checks; only [`six_way`] makes one.
pub(crate) struct CheckedSixWay<'a, S: Space> {
    sizes: Sizes,
    parts: SixWay<'a, S>,
}

/// Checks a call of a row operator.
pub(crate) fn row_operator<'x, 'm, 's, S: Space>(
    x: Matrix<Ref<'x, bf16, S>>,
    modulation: Modulation<'m, S>,
    sink: Sink<'s, S>,
) -> Result<CheckedRows<'x, 'm, 's, S>> {
    let (modulation_kind, sink_kind) = (modulation.kind(), sink.kind());
    let operator = Operator::of(modulation_kind, sink_kind)
        .ok_or(Error::NoSuchOperator { modulation: modulation_kind, sink: sink_kind })?;
    let (dim, rows) = (dim(operator, "x", x.dim)?, rows(operator, "x", x.rows)?);
    let mut sizes = Sizes { operator, rows, dim, chunks: 0 };
    if let Modulation::PerTokenTable(table) = &modulation {
        sizes.chunks = chunks(sizes, table.table.extent().len)?;
        chunk_index(sizes, "shift_idx", table.shift_idx)?;
        chunk_index(sizes, "scale_idx", table.scale_idx)?;
    }
    if let Sink::Nvfp4(sink) = &sink
        && sink.global_scale.is_some()
    {
        global_scale(operator, sink.recipe)?;
    }
    let parts = RowParts { x, modulation, sink };
    operands(sizes, &parts.list())?;
    Ok(CheckedRows { sizes, parts })
}

/// Checks a call of modulation6.
pub(crate) fn six_way<S: Space>(parts: SixWay<'_, S>) -> Result<CheckedSixWay<'_, S>> {
    let operator = Operator::AdalnModulation6Bf16;
    let (modulation, params) = (parts.layer_modulation.extent().len, parts.adaln_params.extent().len);
    let dim = dim(operator, "layer_modulation", whole(operator, "layer_modulation", modulation, 6)?)?;
    let rows = rows(operator, "adaln_params", whole(operator, "adaln_params", params, 6 * u64::from(dim))?)?;
    let sizes = Sizes { operator, rows, dim, chunks: 0 };
    operands(sizes, &parts.list())?;
    Ok(CheckedSixWay { sizes, parts })
}

impl<'x, 'm, 's, S: Space> CheckedRows<'x, 'm, 's, S> {
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    #[cfg(feature = "cuda")]
    pub fn parts(&self) -> &RowParts<'x, 'm, 's, S> {
        &self.parts
    }

    pub fn into_parts(self) -> RowParts<'x, 'm, 's, S> {
        self.parts
    }
}

impl<'a, S: Space> CheckedSixWay<'a, S> {
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    #[cfg(feature = "cuda")]
    pub fn parts(&self) -> &SixWay<'a, S> {
        &self.parts
    }

    pub fn into_parts(self) -> SixWay<'a, S> {
        self.parts
    }
}

impl<S: Space> RowParts<'_, '_, '_, S> {
    fn list(&self) -> OperandList {
        let mut list = OperandList::default();
        list.input("x", self.x.data.extent());
        self.modulation.list(&mut list);
        self.sink.list(&mut list);
        list
    }
}

/// The parameters of a call beside its tensors (for programs that learn them at run time).
///
/// # Errors
/// [`Error::ChunkIndex`], [`Error::GlobalScale`].
pub(crate) fn parameters(sizes: Sizes, call: &crate::named::Call, has_global_scale: bool) -> Result<()> {
    if sizes.operator.modulation() == ModulationKind::PerTokenTable {
        chunk_index(sizes, "shift_idx", call.shift_idx)?;
        chunk_index(sizes, "scale_idx", call.scale_idx)?;
    }
    match call.recipe {
        Some(recipe) if has_global_scale => global_scale(sizes.operator, recipe),
        _ => Ok(()),
    }
}

fn chunk_index(Sizes { operator, chunks, .. }: Sizes, operand: &'static str, got: u32) -> Result<()> {
    if got < chunks { Ok(()) } else { Err(Error::ChunkIndex { operator, operand, expected: chunks, got }) }
}

/// Whether the recipe reads a global scale.
fn global_scale(operator: Operator, recipe: crate::Nvfp4Recipe) -> Result<()> {
    let expected = crate::Nvfp4Recipe::TransformerEngine;
    if recipe.takes_global_scale() { Ok(()) } else { Err(Error::GlobalScale { operator, expected, got: recipe }) }
}

/// Checks every operand by itself, then outputs against all others.
fn operands(sizes: Sizes, list: &OperandList) -> Result<()> {
    // The addresses the call may touch.
    let mut touched = [const { 0..0 }; MAX_OPERANDS];
    for (range, operand) in touched.iter_mut().zip(list.iter()) {
        *range = one(sizes, operand)?;
    }
    let all = || list.iter().zip(&touched).filter(|(_, range)| !range.is_empty());
    for (index, (first, a)) in all().enumerate() {
        for (second, b) in all().skip(index + 1) {
            if (first.output || second.output) && a.start < b.end && b.start < a.end {
                // An output is named first; of two outputs, the later one.
                let (output, other) = if second.output { (second, first) } else { (first, second) };
                return Err(Error::Overlap { operator: sizes.operator, operand: output.name, other: other.name });
            }
        }
    }
    Ok(())
}

/// Checks one operand; gives the addresses it stands for, of a larger scale buffer only the needed part.
fn one(sizes: Sizes, Listed { name: operand, extent, .. }: Listed) -> Result<Range<u64>> {
    let operator = sizes.operator;
    let Extent { dtype, address, len } = extent;
    let used = length(sizes, operand, len)?;
    if len > 0 && address == 0 {
        return Err(Error::Null { operator, operand, got: len });
    }
    if !address.is_multiple_of(dtype.bytes()) {
        return Err(Error::Misaligned { operator, operand, expected: dtype.bytes(), got: address });
    }
    let end = |len: u64| product(&[len, dtype.bytes()]).and_then(|bytes| address.checked_add(bytes));
    match (end(used), end(to_u64(len))) {
        (Some(end), Some(_)) => Ok(address..end),
        _ => Err(Error::Overflow {
            operator,
            operand,
            expected: u64::MAX,
            got: format!("{len} x {} bytes from {address:#x} on", dtype.bytes()),
        }),
    }
}

/// The elements that an operand's axes say, if it has them.
fn length(sizes: Sizes, operand: &'static str, got: usize) -> Result<u64> {
    let operator = sizes.operator;
    let Some(spec) = operator.operand(operand) else { return Ok(to_u64(got)) };
    let expected = elements(sizes, spec)?;
    match spec.shape {
        [Axis::Scalar] if got != 1 => Err(Error::Scalar { operator, operand, got }),
        [Axis::ScaleLayout] if to_u64(got) < expected => Err(Error::TooShort { operator, operand, expected, got }),
        [Axis::ScaleLayout] => Ok(expected),
        _ if to_u64(got) != expected => Err(Error::Length { operator, operand, expected, got }),
        _ => Ok(expected),
    }
}

/// Whether recipe and operator go together (for programs that learn both at run time).
///
/// # Errors
/// [`Error::RecipeWithoutSink`], [`Error::RecipeMissing`].
pub(crate) fn recipe(operator: Operator, recipe: Option<crate::Nvfp4Recipe>) -> Result<()> {
    match (operator.sink(), recipe) {
        (SinkKind::Nvfp4, None) => Err(Error::RecipeMissing { operator }),
        (SinkKind::Nvfp4, Some(_)) | (_, None) => Ok(()),
        (sink, Some(got)) => Err(Error::RecipeWithoutSink { operator, sink, got }),
    }
}
