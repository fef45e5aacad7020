//! Rounding of rationals: the pattern below, the pattern above, and which is nearer. Shares nothing with the machine.

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};

/// A format: width of the mantissa, exponent bias, and the pattern of the largest finite magnitude.
#[derive(Clone, Copy)]
pub struct Form {
    pub bits: u32,
    pub mantissa: u32,
    pub bias: i32,
    pub max: u64,
    pub infinity: Option<u64>,
}

pub const F64: Form =
    Form { bits: 64, mantissa: 52, bias: 1023, max: 0x7FEF_FFFF_FFFF_FFFF, infinity: Some(0x7FF0 << 48) };
pub const F32: Form = Form { bits: 32, mantissa: 23, bias: 127, max: 0x7F7F_FFFF, infinity: Some(0x7F80_0000) };
pub const F16: Form = Form { bits: 16, mantissa: 10, bias: 15, max: 0x7BFF, infinity: Some(0x7C00) };
pub const BF16: Form = Form { bits: 16, mantissa: 7, bias: 127, max: 0x7F7F, infinity: Some(0x7F80) };
pub const E5M2: Form = Form { bits: 8, mantissa: 2, bias: 15, max: 0x7B, infinity: Some(0x7C) };
pub const E4M3: Form = Form { bits: 8, mantissa: 3, bias: 7, max: 0x7E, infinity: None };
pub const E2M1: Form = Form { bits: 4, mantissa: 1, bias: 1, max: 7, infinity: None };

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Nearest,
    Zero,
    Down,
    Up,
}

pub const MODES: [(&str, Mode); 4] = [("rn", Mode::Nearest), ("rz", Mode::Zero), ("rm", Mode::Down), ("rp", Mode::Up)];

fn power(exponent: i64) -> BigRational {
    let power = BigInt::one() << exponent.unsigned_abs();
    let (numerator, denominator) = if exponent < 0 { (BigInt::one(), power) } else { (power, BigInt::one()) };
    BigRational::new_raw(numerator, denominator)
}

impl Form {
    pub fn sign_bit(self) -> u64 {
        1 << (self.bits - 1)
    }

    pub fn is_nan(self, bits: u64) -> bool {
        bits & !self.sign_bit() > self.infinity.unwrap_or(self.max)
    }

    pub fn is_infinite(self, bits: u64) -> bool {
        self.infinity == Some(bits & !self.sign_bit())
    }

    pub fn is_finite(self, bits: u64) -> bool {
        bits & !self.sign_bit() <= self.max
    }

    /// The value of a finite pattern.
    pub fn value(self, bits: u64) -> BigRational {
        let value = self.value_of_magnitude(bits & !self.sign_bit());
        if bits & self.sign_bit() != 0 { -value } else { value }
    }

    /// The magnitude pattern at or below a magnitude: the one with the same leading bit, then a step if it is above.
    fn below(self, magnitude: &BigRational) -> u64 {
        let bits = |n: &BigInt| i64::try_from(n.bits()).unwrap();
        let leading = bits(magnitude.numer()) - bits(magnitude.denom());
        // 2^(leading-1) < magnitude < 2^(leading+1)
        let lowest = 1 - i64::from(self.bias);
        let exponent = [leading, leading - 1].into_iter().find(|e| power(*e) <= *magnitude).unwrap().max(lowest);
        let steps = (magnitude / power(exponent - i64::from(self.mantissa))).to_integer();
        let pattern = steps + (BigInt::from(exponent - lowest) << self.mantissa);
        u64::try_from(pattern).unwrap_or(u64::MAX).min(self.max)
    }

    /// Rounds a value that is not zero. `saturate`: to the largest number instead of infinity.
    pub fn round(self, value: &BigRational, mode: Mode, saturate: bool) -> u64 {
        let negative = value.is_negative();
        let magnitude = value.abs();
        let below = self.below(&magnitude);
        let remainder = &magnitude - self.value_of_magnitude(below);
        let sign = if negative { self.sign_bit() } else { 0 };
        if remainder.is_zero() {
            return sign | below;
        }
        // One step above the largest number stands for what would come next if the exponent went on.
        let step = self.value_of_magnitude(below + 1) - self.value_of_magnitude(below);
        let twice = remainder * BigRational::from(BigInt::from(2));
        let up = match mode {
            Mode::Nearest => twice > step || (twice == step && below & 1 == 1),
            Mode::Zero => false,
            Mode::Down => negative,
            Mode::Up => !negative,
        };
        let above = if below < self.max { below + 1 } else { self.infinity.filter(|_| !saturate).unwrap_or(self.max) };
        sign | if up { above } else { below }
    }

    fn value_of_magnitude(self, magnitude: u64) -> BigRational {
        let (exponent, fraction) = (magnitude >> self.mantissa, magnitude & ((1 << self.mantissa) - 1));
        let significand = if exponent == 0 { fraction } else { fraction + (1 << self.mantissa) };
        let scale = i64::try_from(exponent.max(1)).unwrap() - i64::from(self.bias) - i64::from(self.mantissa);
        BigRational::from(BigInt::from(significand)) * power(scale)
    }
}
