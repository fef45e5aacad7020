//! The number formats of PTX, as data.

/// A binary floating-point format: one sign bit, an exponent field, a mantissa field.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Width of a pattern.
    pub bits: u32,
    /// Width of the mantissa field.
    pub mantissa: u32,
    /// Exponent bias.
    pub bias: i32,
    /// Pattern of the largest finite magnitude; everything above is infinity or NaN.
    pub max: u64,
    /// Pattern of +infinity, if the format has one.
    pub infinity: Option<u64>,
    /// The NaN that results are given, if the format has one.
    pub nan: Option<u64>,
}

impl Format {
    pub(crate) const fn magnitude_mask(&self) -> u64 {
        (1 << (self.bits - 1)) - 1
    }

    pub(crate) const fn sign(&self, negative: bool) -> u64 {
        (negative as u64) << (self.bits - 1)
    }

    /// The pattern of 1.0.
    pub(crate) const fn one(&self) -> u64 {
        self.bias.unsigned_abs() as u64 * (1 << self.mantissa)
    }

    const fn ieee(bits: u32, mantissa: u32, nan: u64) -> Self {
        let infinity = ((1 << (bits - 1 - mantissa)) - 1) << mantissa;
        let bias = (1 << (bits - 2 - mantissa)) - 1;
        Self { bits, mantissa, bias, max: infinity - 1, infinity: Some(infinity), nan: Some(nan) }
    }
}

/// binary64. PTX leaves the sign and payload of a double NaN open (an H200 keeps those of an operand); here every NaN result is
/// this quiet NaN.
pub(crate) static F64: Format = Format::ieee(64, 52, 0x7FF8_0000_0000_0000);
/// binary32; NaN results are 0x7FFFFFFF (PTX ISA, "Floating-point instructions"; CUDA C++ Programming Guide, floating-point standard).
pub(crate) static F32: Format = Format::ieee(32, 23, 0x7FFF_FFFF);
/// binary16; canonical NaN 0x7FFF (PTX ISA, half-precision `min`, `fma`).
pub(crate) static F16: Format = Format::ieee(16, 10, 0x7FFF);
/// bfloat16; canonical NaN 0x7FFF.
pub(crate) static BF16: Format = Format::ieee(16, 7, 0x7FFF);
/// e5m2; NaN 0x7F (PTX ISA, "Alternate floating-point data formats").
pub(crate) static E5M2: Format = Format::ieee(8, 2, 0x7F);
/// e4m3: no infinity, 0x7F and 0xFF are NaN, 448 is the largest number.
pub(crate) static E4M3: Format = Format { bits: 8, mantissa: 3, bias: 7, max: 0x7E, infinity: None, nan: Some(0x7F) };
/// e2m1: neither infinity nor NaN, 6 is the largest number.
pub(crate) static E2M1: Format = Format { bits: 4, mantissa: 1, bias: 1, max: 0x7, infinity: None, nan: None };
/// e3m2: neither infinity nor NaN, 28 is the largest number.
pub(crate) static E3M2: Format = Format { bits: 6, mantissa: 2, bias: 3, max: 0x1F, infinity: None, nan: None };
/// e2m3: neither infinity nor NaN, 7.5 is the largest number.
pub(crate) static E2M3: Format = Format { bits: 6, mantissa: 3, bias: 1, max: 0x1F, infinity: None, nan: None };
