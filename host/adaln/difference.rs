//! Where two outputs differ first, in words.
use adaptive_layernorm_producers::E4m3;
use adaptive_layernorm_producers::formats::{e2m1, scale_layout};
use adaptive_layernorm_producers::named::{Data, Tensor, Tensors};
use std::fmt;

/// The first element of an output that is not the same bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Which output.
    pub output: String,
    /// Row; for scale bytes that of the scale.
    pub row: u64,
    /// Column; for scale bytes the block's.
    pub column: u64,
    /// Whether it is padding of the scale layout.
    pub padding: bool,
    /// Bits and value expected.
    pub expected: (u32, f32),
    /// Bits and value found.
    pub got: (u32, f32),
    /// Hexadecimal digits of an element.
    pub digits: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { output, row, column, padding, expected, got, digits } = self;
        let padding = if *padding { " (padding)" } else { "" };
        write!(f, "{output} at row {row}, column {column}{padding}: ")?;
        write!(f, "expected 0x{:0digits$x} = {}, got 0x{:0digits$x} = {}", expected.0, expected.1, got.0, got.1)
    }
}

/// The first difference between outputs of one operator, which have the same names, types and shapes.
pub fn first(expected: &Tensors, got: &Tensors) -> Option<Difference> {
    let dim = dim(expected);
    expected.iter().find_map(|(name, a)| {
        let b = got.get(name)?;
        let element = (0..elements(name, a)).find(|i| bits(name, a, *i).0 != bits(name, b, *i).0)?;
        let (row, column) = place(name, element, dim);
        let padding = name == "sf_swizzled" && (row >= rows(expected) || column >= dim / 16);
        let digits = if name == "packed" { 1 } else { 2 * a.data.dtype().bytes() as usize };
        let (expected, got) = (bits(name, a, element), bits(name, b, element));
        Some(Difference { output: name.clone(), row, column, padding, expected, got, digits })
    })
}

/// D of outputs.
fn dim(outputs: &Tensors) -> u64 {
    let last = |name: &str| outputs.get(name).and_then(|tensor| tensor.shape.last().copied());
    let dim = last("packed").map(|half| half * 2).or_else(|| last("out")).or_else(|| last("out0"));
    dim.unwrap_or(1).max(1) as u64
}

/// R of NVFP4 outputs.
fn rows(outputs: &Tensors) -> u64 {
    let leading = |tensor: &Tensor| tensor.shape.split_last().map_or(1, |(_, leading)| leading.iter().product());
    outputs.get("packed").map_or(0, leading) as u64
}

/// Elements: codes, not bytes, where two share a byte.
fn elements(name: &str, tensor: &Tensor) -> usize {
    if name == "packed" { 2 * tensor.data.len() } else { tensor.data.len() }
}

/// Row and column of an element.
fn place(name: &str, element: usize, dim: u64) -> (u64, u64) {
    if name == "sf_swizzled" {
        let dim = u32::try_from(dim).unwrap_or(u32::MAX);
        return scale_layout::position(element as u64, dim).map_or((0, 0), |(row, column)| (row, column.into()));
    }
    (element as u64 / dim, element as u64 % dim)
}

/// Bits and value of an element.
fn bits(name: &str, tensor: &Tensor, element: usize) -> (u32, f32) {
    match &tensor.data {
        Data::Bf16(data) => (data[element].to_bits().into(), data[element].to_f32()),
        Data::F32(data) => (data[element].to_bits(), data[element]),
        Data::E4m3(data) => (data[element].to_bits().into(), data[element].to_f32()),
        Data::U8(data) if name == "packed" => {
            let nibble = e2m1::split(data[element / 2])[element % 2];
            (nibble.into(), e2m1::decode(nibble))
        }
        Data::U8(data) => (data[element].into(), E4m3::from_bits(data[element]).to_f32()),
    }
}
