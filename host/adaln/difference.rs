//! Where two outputs differ first, and how far apart their codes are.
use adaptive_layernorm_producers::E4m3;
use adaptive_layernorm_producers::formats::{e2m1, scale_layout};
use adaptive_layernorm_producers::named::{Data, Tensor, Tensors};
use std::fmt;

/// What the elements of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A value each, rows of `dim`.
    Values {
        /// D.
        dim: usize,
    },
    /// Two e2m1 codes a byte, rows of `dim` codes.
    Codes {
        /// D.
        dim: usize,
    },
    /// Scale bytes in the 128x4 layout.
    Scales {
        /// R.
        rows: usize,
        /// D.
        dim: usize,
    },
}

impl Kind {
    /// The kind of an output of any operator, by its name.
    pub fn of(name: &str, outputs: &Tensors) -> Self {
        let shape = |name: &str| outputs.get(name).and_then(|tensor| tensor.shape.split_last());
        match (name, shape("packed")) {
            ("packed", Some((half, _))) => Self::Codes { dim: 2 * half },
            ("sf_swizzled", Some((half, leading))) => Self::Scales { rows: leading.iter().product(), dim: 2 * half },
            _ => Self::Values { dim: shape(name).map_or(1, |(dim, _)| *dim) },
        }
    }

    /// Elements of a tensor.
    pub fn elements(self, tensor: &Tensor) -> usize {
        match self {
            Self::Codes { .. } => 2 * tensor.data.len(),
            Self::Values { .. } | Self::Scales { .. } => tensor.data.len(),
        }
    }

    /// Row and column of an element; of a scale byte, its row and block column.
    fn place(self, element: usize) -> (u64, u64) {
        match self {
            Self::Values { dim } | Self::Codes { dim } => {
                let dim = dim.max(1);
                ((element / dim) as u64, (element % dim) as u64)
            }
            Self::Scales { dim, .. } => {
                let dim = u32::try_from(dim).unwrap_or(u32::MAX);
                scale_layout::position(element as u64, dim).map_or((0, 0), |(row, column)| (row, column.into()))
            }
        }
    }

    fn is_padding(self, (row, column): (u64, u64)) -> bool {
        match self {
            Self::Values { .. } | Self::Codes { .. } => false,
            Self::Scales { rows, dim } => row >= rows as u64 || column >= dim as u64 / 16,
        }
    }

    fn digits(self, tensor: &Tensor) -> usize {
        match self {
            Self::Codes { .. } => 1,
            Self::Values { .. } | Self::Scales { .. } => 2 * tensor.data.dtype().bytes() as usize,
        }
    }

    /// Bits, value, and position among the values in order of an element.
    pub fn element(self, tensor: &Tensor, at: usize) -> Element {
        let of_e4m3 = |code: E4m3| (u32::from(code.to_bits()), code.to_f32(), code.ordinal());
        let (bits, value, ordinal) = match (&tensor.data, self) {
            (Data::Bf16(data), _) => {
                let bits = data[at].to_bits();
                (bits.into(), data[at].to_f32(), (!data[at].is_nan()).then(|| signed(bits.into(), 15)))
            }
            (Data::F32(data), _) => {
                let bits = data[at].to_bits();
                (bits, data[at], (!data[at].is_nan()).then(|| signed(bits, 31)))
            }
            (Data::E4m3(data), _) => of_e4m3(data[at]),
            (Data::U8(data), Self::Codes { .. }) => {
                let nibble = e2m1::split(data[at / 2])[at % 2];
                (nibble.into(), e2m1::decode(nibble), Some(e2m1::ordinal(nibble)))
            }
            (Data::U8(data), Self::Values { .. } | Self::Scales { .. }) => of_e4m3(E4m3::from_bits(data[at])),
        };
        Element { bits, value, ordinal }
    }
}

/// Sign and magnitude as one number.
const fn signed(bits: u32, sign: u32) -> i32 {
    let magnitude = (bits & ((1 << sign) - 1)) as i32;
    if bits >> sign == 0 { magnitude } else { -magnitude }
}

/// An element of an output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Element {
    /// Its bits.
    pub bits: u32,
    /// What they stand for.
    pub value: f32,
    /// Position among the values in order; none for NaN.
    pub ordinal: Option<i32>,
}

/// The first element of an output that is not the same bits.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Which output.
    pub output: String,
    /// Row; for scale bytes that of the scale.
    pub row: u64,
    /// Column; for scale bytes the block's.
    pub column: u64,
    padding: bool,
    expected: Element,
    got: Element,
    digits: usize,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { output, row, column, padding, expected, got, digits } = self;
        let padding = if *padding { " (padding)" } else { "" };
        write!(f, "{output} at row {row}, column {column}{padding}: ")?;
        let (a, b) = (expected.bits, got.bits);
        write!(f, "expected 0x{a:0digits$x} = {}, got 0x{b:0digits$x} = {}", expected.value, got.value)
    }
}

/// The first difference between outputs of one operator, which have the same names, types and shapes.
pub fn first(expected: &Tensors, got: &Tensors) -> Option<Difference> {
    let in_output = |(name, a): (&String, &Tensor)| between(name, Kind::of(name, expected), a, got.get(name)?);
    expected.iter().find_map(in_output)
}

/// The first difference between two tensors of the same type and shape.
pub fn between(name: &str, kind: Kind, a: &Tensor, b: &Tensor) -> Option<Difference> {
    let differs = |at: &usize| kind.element(a, *at).bits != kind.element(b, *at).bits;
    let at = (0..kind.elements(a)).find(differs)?;
    let (row, column) = kind.place(at);
    Some(Difference {
        output: name.to_owned(),
        row,
        column,
        padding: kind.is_padding((row, column)),
        expected: kind.element(a, at),
        got: kind.element(b, at),
        digits: kind.digits(a),
    })
}
