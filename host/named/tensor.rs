//! Tensors in host memory whose dtype is a value.
use crate::element::{DType, Element};
use crate::formats::E4m3;
use half::bf16;
use std::collections::BTreeMap;

/// Tensors under the names of contract.md.
pub type Tensors = BTreeMap<String, Tensor>;

/// A contiguous, row-major tensor.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// Axes, outermost first; empty for a scalar.
    pub shape: Vec<usize>,
    /// The elements.
    pub data: Data,
}

/// Elements of one of the four types.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// bf16
    Bf16(Vec<bf16>),
    /// f32
    F32(Vec<f32>),
    /// e4m3
    E4m3(Vec<E4m3>),
    /// Packed codes or scale bytes.
    U8(Vec<u8>),
}

impl Tensor {
    /// A tensor of a shape.
    pub fn new(shape: impl Into<Vec<usize>>, data: impl Into<Data>) -> Self {
        Self { shape: shape.into(), data: data.into() }
    }
}

impl Data {
    /// The element type.
    pub const fn dtype(&self) -> DType {
        match self {
            Self::Bf16(_) => DType::Bf16,
            Self::F32(_) => DType::F32,
            Self::E4m3(_) => DType::E4m3,
            Self::U8(_) => DType::U8,
        }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        match self {
            Self::Bf16(data) => data.len(),
            Self::F32(data) => data.len(),
            Self::E4m3(data) => data.len(),
            Self::U8(data) => data.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `len` zeros.
    pub fn zeros(dtype: DType, len: usize) -> Self {
        match dtype {
            DType::Bf16 => Self::Bf16(vec![bf16::ZERO; len]),
            DType::F32 => Self::F32(vec![0.0; len]),
            DType::E4m3 => Self::E4m3(vec![E4m3::default(); len]),
            DType::U8 => Self::U8(vec![0; len]),
        }
    }

    /// The elements' bytes, little-endian: what is compared, hashed and stored.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        match self {
            Self::Bf16(data) => data.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Self::F32(data) => data.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Self::E4m3(data) => data.iter().map(|v| v.to_bits()).collect(),
            Self::U8(data) => data.clone(),
        }
    }

    /// Elements from their little-endian bytes; a trailing part of an element is ignored.
    pub fn from_le_bytes(dtype: DType, bytes: &[u8]) -> Self {
        match dtype {
            DType::Bf16 => Self::Bf16(bytes.as_chunks().0.iter().map(|v| bf16::from_le_bytes(*v)).collect()),
            DType::F32 => Self::F32(bytes.as_chunks().0.iter().map(|v| f32::from_le_bytes(*v)).collect()),
            DType::E4m3 => Self::E4m3(bytes.iter().map(|v| E4m3::from_bits(*v)).collect()),
            DType::U8 => Self::U8(bytes.to_vec()),
        }
    }
}

/// An element type that [`Data`] can hold.
pub(super) trait Held: Element {
    fn slice(data: &Data) -> Option<&[Self]>;
    fn slice_mut(data: &mut Data) -> Option<&mut [Self]>;
}

macro_rules! held {
    ($($element:ty => $variant:ident),*) => {
        $(
            impl From<Vec<$element>> for Data {
                fn from(data: Vec<$element>) -> Self {
                    Self::$variant(data)
                }
            }

            impl Held for $element {
                fn slice(data: &Data) -> Option<&[Self]> {
                    match data {
                        Data::$variant(data) => Some(data),
                        _ => None,
                    }
                }

                fn slice_mut(data: &mut Data) -> Option<&mut [Self]> {
                    match data {
                        Data::$variant(data) => Some(data),
                        _ => None,
                    }
                }
            }
        )*
    };
}

held!(bf16 => Bf16, f32 => F32, E4m3 => E4m3, u8 => U8);
