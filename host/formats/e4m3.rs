//! e4m3: the FP8 format of weights, activations and NVFP4 block scales.

/// An 8-bit float: sign, 4 exponent bits (bias 7), 3 mantissa bits; no infinity, `0x7F` and `0xFF` are NaN.
///
/// Largest value 448 (`0x7E`), smallest normal 2^-6 (`0x08`), subnormals are multiples of 2^-9. The same memory as a `u8`, which
/// `bytemuck` casts slices to and from; equality compares the code, so two NaN are equal and the two zeros are not.
///
/// ```
/// use adaptive_layernorm_producers::E4m3;
/// assert_eq!(E4m3::from_f32(1.0), E4m3::from_bits(0x38));
/// assert_eq!(E4m3::from_f32(1e9).to_f32(), 448.0);
/// assert_eq!(bytemuck::cast_slice::<E4m3, u8>(&[E4m3::MAX, E4m3::NAN]), [0x7e, 0x7f]);
/// ```
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, bytemuck::Pod, bytemuck::Zeroable)]
pub struct E4m3(u8);

impl E4m3 {
    /// 448, the largest finite value.
    pub const MAX: Self = Self(0x7e);
    /// The NaN that conversions give.
    pub const NAN: Self = Self(0x7f);

    /// The value with this code.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// The code.
    pub const fn to_bits(self) -> u8 {
        self.0
    }

    /// Whether the code is one of the two NaN.
    pub const fn is_nan(self) -> bool {
        self.0 & 0x7f == 0x7f
    }

    /// Rounds to nearest, ties to even; saturates to ±448 (infinities too), keeps subnormals and −0; NaN gives [`E4m3::NAN`].
    ///
    /// This is `cvt.rn.satfinite.e4m3x2.f32` of the GPU, without a branch, so loops over it vectorise.
    #[inline(always)]
    pub const fn from_f32(value: f32) -> Self {
        let bits = value.to_bits();
        let magnitude = bits & 0x7fff_ffff;
        // Compared as integers, so infinities and NaN saturate as well; NaN is put back at the end.
        let saturated = if magnitude > LARGEST { LARGEST } else { magnitude };
        // 2^20 times the power of two below the value, or below 2^-6 for subnormal codes: its last bit is worth a step of the codes
        // there, so the adder rounds to steps, ties to even.
        let exponent = saturated & INFINITY;
        let exponent = if exponent > SMALLEST_NORMAL { exponent } else { SMALLEST_NORMAL };
        let magic = exponent + (20 << 23);
        let steps = (f32::from_bits(saturated) + f32::from_bits(magic)).to_bits() - magic;
        let code = steps + (exponent >> 20) - (SMALLEST_NORMAL >> 20);
        let signed = code | bits >> 24 & 0x80;
        Self(if magnitude > INFINITY { 0x7f } else { signed as u8 })
    }

    /// The value, exactly; NaN for the two NaN codes.
    #[inline(always)]
    pub const fn to_f32(self) -> f32 {
        if self.is_nan() {
            return f32::NAN;
        }
        // The code's bits, moved to an f32's place, are too small by 2^120 and may be an f32 subnormal: one exact product.
        let magnitude = f32::from_bits(((self.0 & 0x7f) as u32) << 20) * f32::from_bits((127 + 120) << 23);
        f32::from_bits(magnitude.to_bits() | ((self.0 & 0x80) as u32) << 24)
    }

    /// Position among the codes in order of value: neighbours differ by 1, −0 and +0 are both 0; none for NaN.
    pub const fn ordinal(self) -> Option<i32> {
        if self.is_nan() {
            return None;
        }
        let magnitude = (self.0 & 0x7f) as i32;
        Some(if self.0 & 0x80 == 0 { magnitude } else { -magnitude })
    }
}

/// Bits of 448.
const LARGEST: u32 = 0x43e0_0000;
/// Bits of 2^-6.
const SMALLEST_NORMAL: u32 = 0x3c80_0000;
/// Bits of infinity.
const INFINITY: u32 = 0x7f80_0000;

impl From<E4m3> for f32 {
    fn from(value: E4m3) -> f32 {
        value.to_f32()
    }
}

impl std::fmt::Display for E4m3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_f32().fmt(f)
    }
}
