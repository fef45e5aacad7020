//! What is checked before anything is read or written, and the only place where sizes are multiplied.
//!
//! The catalogue says which axes an operand has; the call says how large they are. Every operand of a call, in host or device
//! memory, passes the same checks: length, null, alignment, end of the address space, overlap.
use crate::contract::sum_tree::MAX_DIM;
use crate::error::{Error, Result};
use crate::formats::swizzled_sf_size;
use crate::operand::{Extent, Matrix, Modulation, Ref, Sink, SixWay, Space, View};
use crate::operator::{Axis, OperandSpec, Operator, SinkKind};
use half::bf16;

/// Most rows of a call: a grid has fewer than 2^31 blocks, and NVFP4's padding rows need blocks too.
pub const MAX_ROWS: u32 = (1 << 31) - 128;

/// Most operands of an operator.
const MAX_OPERANDS: usize = 9;

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

/// An operand of a call.
#[derive(Clone, Copy)]
struct Listed {
    name: &'static str,
    extent: Extent,
    output: bool,
}

/// The operands of a call, without allocating.
#[derive(Default)]
pub(crate) struct OperandList {
    operands: [Option<Listed>; MAX_OPERANDS],
    len: usize,
}

impl OperandList {
    pub(crate) fn input(&mut self, name: &'static str, extent: Extent) {
        self.push(Listed { name, extent, output: false });
    }

    pub(crate) fn output(&mut self, name: &'static str, extent: Extent) {
        self.push(Listed { name, extent, output: true });
    }

    fn push(&mut self, operand: Listed) {
        self.operands[self.len] = Some(operand);
        self.len += 1;
    }

    fn iter(&self) -> impl Iterator<Item = Listed> {
        self.operands.iter().flatten().copied()
    }
}

/// Checks a call of a row operator.
pub(crate) fn row_operator<S: Space>(
    x: &Matrix<Ref<'_, bf16, S>>,
    modulation: &Modulation<'_, S>,
    sink: &Sink<'_, S>,
) -> Result<Sizes> {
    let (modulation_kind, sink_kind) = (modulation.kind(), sink.kind());
    let operator = Operator::of(modulation_kind, sink_kind)
        .ok_or(Error::NoSuchOperator { modulation: modulation_kind, sink: sink_kind })?;
    let (dim, rows) = (dim(operator, "x", x.dim)?, rows(operator, "x", x.rows)?);
    let mut sizes = Sizes { operator, rows, dim, chunks: 0 };
    if let Modulation::PerTokenTable(table) = modulation {
        sizes.chunks = chunks(sizes, table.table.extent().len)?;
        chunk_index(sizes, "shift_idx", table.shift_idx)?;
        chunk_index(sizes, "scale_idx", table.scale_idx)?;
    }
    if let Sink::Nvfp4(sink) = sink
        && sink.global_scale.is_some()
    {
        global_scale(operator, sink.recipe)?;
    }
    let mut list = OperandList::default();
    list.input("x", x.data.extent());
    modulation.list(&mut list);
    sink.list(&mut list);
    operands(sizes, &list)?;
    Ok(sizes)
}

/// Checks a call of modulation6.
pub(crate) fn six_way<S: Space>(parts: &SixWay<'_, S>) -> Result<Sizes> {
    let operator = Operator::AdalnModulation6Bf16;
    let dim = dim(
        operator,
        "layer_modulation",
        whole(operator, "layer_modulation", parts.layer_modulation.extent().len, 6)?,
    )?;
    let params = parts.adaln_params.extent().len;
    let rows = rows(operator, "adaln_params", whole(operator, "adaln_params", params, 6 * u64::from(dim))?)?;
    let sizes = Sizes { operator, rows, dim, chunks: 0 };
    let mut list = OperandList::default();
    parts.list(&mut list);
    operands(sizes, &list)?;
    Ok(sizes)
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
fn chunks(sizes: Sizes, table: usize) -> Result<u32> {
    let Sizes { operator, dim, .. } = sizes;
    let chunks = whole(operator, "table", table, u64::from(dim))?;
    if chunks == 0 {
        return Err(Error::NotWhole { operator, operand: "table", expected: u64::from(dim), got: table });
    }
    // A kernel steps over a row of temb with 32 bits.
    let pitch = product(&[chunks as u64, u64::from(dim), 2]);
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

fn chunk_index(Sizes { operator, chunks, .. }: Sizes, operand: &'static str, got: u32) -> Result<()> {
    if got < chunks { Ok(()) } else { Err(Error::ChunkIndex { operator, operand, expected: chunks, got }) }
}

/// Whether the recipe reads a global scale.
fn global_scale(operator: Operator, recipe: crate::Nvfp4Recipe) -> Result<()> {
    let expected = crate::Nvfp4Recipe::TransformerEngine;
    if recipe.takes_global_scale() { Ok(()) } else { Err(Error::GlobalScale { operator, expected, got: recipe }) }
}

/// A length in units of `divisor`.
fn whole(operator: Operator, operand: &'static str, got: usize, divisor: u64) -> Result<usize> {
    let remainder = got as u64 % divisor;
    if remainder != 0 {
        return Err(Error::NotWhole { operator, operand, expected: divisor, got });
    }
    // Not larger than `got`.
    Ok((got as u64 / divisor) as usize)
}

/// Checks every operand by itself, then outputs against all others.
fn operands(sizes: Sizes, list: &OperandList) -> Result<()> {
    for operand in list.iter() {
        one(sizes, operand)?;
    }
    for (index, first) in list.iter().enumerate() {
        for second in list.iter().skip(index + 1) {
            let (a, b) = (touched(sizes, first), touched(sizes, second));
            let meet = !a.is_empty() && !b.is_empty() && a.start < b.end && b.start < a.end;
            if meet && (first.output || second.output) {
                // An output is named first; of two outputs, the later one.
                let (output, other) = if second.output { (second, first) } else { (first, second) };
                return Err(Error::Overlap { operator: sizes.operator, operand: output.name, other: other.name });
            }
        }
    }
    Ok(())
}

fn one(sizes: Sizes, Listed { name: operand, extent, .. }: Listed) -> Result<()> {
    let operator = sizes.operator;
    let Extent { dtype, address, len } = extent;
    length(sizes, operand, len)?;
    if len > 0 && address == 0 {
        return Err(Error::Null { operator, operand, got: len });
    }
    if !address.is_multiple_of(dtype.bytes()) {
        return Err(Error::Misaligned { operator, operand, expected: dtype.bytes(), got: address });
    }
    let end = product(&[len as u64, dtype.bytes()]).and_then(|bytes| address.checked_add(bytes));
    match end {
        Some(_) => Ok(()),
        None => Err(Error::Overflow {
            operator,
            operand,
            expected: u64::MAX,
            got: format!("{len} x {} bytes from {address:#x} on", dtype.bytes()),
        }),
    }
}

/// Whether an operand has as many elements as its axes say.
fn length(sizes: Sizes, operand: &'static str, got: usize) -> Result<()> {
    let operator = sizes.operator;
    let Some(spec) = operator.operand(operand) else { return Ok(()) };
    if spec.shape == [Axis::Scalar] {
        return if got == 1 { Ok(()) } else { Err(Error::Scalar { operator, operand, got }) };
    }
    let expected = elements(sizes, spec)?;
    if spec.shape == [Axis::ScaleLayout] {
        return if got as u64 >= expected { Ok(()) } else { Err(Error::TooShort { operator, operand, expected, got }) };
    }
    if got as u64 == expected { Ok(()) } else { Err(Error::Length { operator, operand, expected, got }) }
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
            expected: usize::MAX as u64,
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
        Axis::ScaleLayout => swizzled_sf_size(rows, dim).ok_or_else(|| Error::Overflow {
            operator,
            operand: "sf_swizzled",
            expected: usize::MAX as u64,
            got: format!("the scale layout of {rows} x {dim}"),
        })? as u64,
    })
}

/// The addresses a call may touch; only the needed part of a larger scale buffer. Called after [`one`].
fn touched(sizes: Sizes, Listed { name, extent, .. }: Listed) -> std::ops::Range<u64> {
    let used = sizes.operator.operand(name).and_then(|spec| elements(sizes, spec).ok()).unwrap_or(extent.len as u64);
    let bytes = used.saturating_mul(extent.dtype.bytes());
    extent.address..extent.address.saturating_add(bytes)
}

/// The product, unless it overflows.
fn product(factors: &[u64]) -> Option<u64> {
    factors.iter().try_fold(1u64, |product, factor| product.checked_mul(*factor))
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
