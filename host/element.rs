//! Element types of the operands.
use crate::formats::E4m3;
use half::bf16;
use std::fmt;

/// The dtype of an operand, as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DType {
    /// [`half::bf16`].
    Bf16,
    /// `f32`.
    F32,
    /// [`E4m3`].
    E4m3,
    /// `u8`: packed e2m1 codes, or scale bytes in their layout.
    U8,
}

impl DType {
    /// Bytes of an element, which is also its alignment.
    pub const fn bytes(self) -> u64 {
        match self {
            Self::F32 => 4,
            Self::Bf16 => 2,
            Self::E4m3 | Self::U8 => 1,
        }
    }

    /// The name in error texts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::E4m3 => "e4m3",
            Self::U8 => "u8",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A type that operands are made of: [`bf16`], `f32`, [`E4m3`], `u8`.
pub trait Element: sealed::Sealed + Copy + fmt::Debug + Send + Sync + 'static {
    /// The same as a value.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),*) => {
        $(
            impl sealed::Sealed for $type {}
            impl Element for $type {
                const DTYPE: DType = DType::$dtype;
            }
        )*
    };
}

elements!(bf16 => Bf16, f32 => F32, E4m3 => E4m3, u8 => U8);
