//! Exact binary arithmetic on bit patterns, rounded once.
//!
//! A finite number is an integer times a power of two ([`Exact`]); every operation is carried out on integers and rounded by
//! the one function [`round`]. It serves f64 down to e2m1 and all four rounding modes, so that no result depends on the
//! host's floating point. (The execution units use the host's `+ - * / sqrt` for round-to-nearest f32 and f64, which are the
//! same IEEE operations; the tests compare both.)

mod arith;
mod format;
mod integral;

pub(crate) use arith::{add, div, fma, mul, sqrt};
pub(crate) use format::{BF16, E2M1, E2M3, E3M2, E4M3, E5M2, F16, F32, F64, Format};
pub(crate) use integral::{from_integer, to_integer, to_integral};

/// Rounding mode of an inexact result (PTX ISA, "Rounding modifiers").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// `.rn`: to nearest, ties to even.
    Nearest,
    /// `.rz`: toward zero.
    Zero,
    /// `.rm`: toward minus infinity.
    Down,
    /// `.rp`: toward plus infinity.
    Up,
}

/// A finite number: `(-1)^negative * mantissa * 2^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    pub negative: bool,
    pub mantissa: u128,
    pub exponent: i32,
}

/// What a bit pattern means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Nan,
    Infinite { negative: bool },
    Finite(Exact),
}

/// The value of `bits` read as a number of `format`.
pub(crate) fn decode(bits: u64, format: &Format) -> Value {
    let negative = bits >> (format.bits - 1) & 1 == 1;
    let magnitude = bits & format.magnitude_mask();
    if magnitude > format.max {
        return if format.infinity == Some(magnitude) { Value::Infinite { negative } } else { Value::Nan };
    }
    let fraction = u128::from(magnitude & ((1 << format.mantissa) - 1));
    let biased = i32::try_from(magnitude >> format.mantissa).unwrap_or(0);
    let hidden = if biased == 0 { 0 } else { 1u128 << format.mantissa };
    let exponent = biased.max(1) - format.bias - format.mantissa.cast_signed();
    Value::Finite(Exact { negative, mantissa: fraction | hidden, exponent })
}

/// The pattern of `value` in `format`: rounded once, NaN canonical. `saturate` replaces infinities and overflow by the largest
/// finite number, and NaN by the largest positive one where the format has no NaN (PTX ISA, `cvt`, `.satfinite`).
pub(crate) fn encode(value: Value, format: &Format, mode: Round, saturate: bool) -> u64 {
    match value {
        Value::Nan => format.nan.unwrap_or(format.max),
        Value::Infinite { negative } => {
            let magnitude = if saturate { format.max } else { format.infinity.unwrap_or(format.max) };
            format.sign(negative) | magnitude
        }
        Value::Finite(exact) => round(exact, format, mode, saturate),
    }
}

/// Rounds an exact number to `format`.
pub(crate) fn round(x: Exact, format: &Format, mode: Round, saturate: bool) -> u64 {
    let sign = format.sign(x.negative);
    if x.mantissa == 0 {
        return sign;
    }
    let leading = x.exponent + 127 - x.mantissa.leading_zeros().cast_signed();
    let lowest = 1 - format.bias;
    let top = leading.max(lowest);
    let quantum = top - format.mantissa.cast_signed();
    let mantissa = shift_rounded(x, quantum, mode);
    // A carry out of the mantissa lands in the exponent field, where it belongs.
    let magnitude = (u128::from((top - lowest).unsigned_abs()) << format.mantissa) + mantissa;
    if magnitude <= u128::from(format.max) {
        return sign | u64::try_from(magnitude).unwrap_or(format.max);
    }
    let away = match mode {
        Round::Nearest => true,
        Round::Zero => false,
        Round::Down => x.negative,
        Round::Up => !x.negative,
    };
    sign | if away && !saturate { format.infinity.unwrap_or(format.max) } else { format.max }
}

/// The integer nearest to `x / 2^quantum` in magnitude, in the direction that `mode` asks for.
pub(crate) fn shift_rounded(x: Exact, quantum: i32, mode: Round) -> u128 {
    let shift = quantum - x.exponent;
    if shift <= 0 {
        return x.mantissa << shift.unsigned_abs();
    }
    let shift = shift.unsigned_abs();
    let kept = x.mantissa.checked_shr(shift).unwrap_or(0);
    let lost = x.mantissa - kept.checked_shl(shift).unwrap_or(0);
    if lost == 0 {
        return kept;
    }
    let up = match mode {
        Round::Nearest => beyond_half(lost, shift, kept),
        Round::Zero => false,
        Round::Down => x.negative,
        Round::Up => !x.negative,
    };
    kept + u128::from(up)
}

/// Ties go to the even neighbour.
fn beyond_half(lost: u128, shift: u32, kept: u128) -> bool {
    match 1u128.checked_shl(shift - 1) {
        Some(half) => lost > half || (lost == half && kept & 1 == 1),
        None => false,
    }
}
