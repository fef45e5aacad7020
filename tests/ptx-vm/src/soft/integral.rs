//! Between integers and numbers.

use super::{Exact, Round, Value, shift_rounded};

/// An integer as an exact number.
pub(crate) fn from_integer(value: i128) -> Value {
    Value::Finite(Exact { negative: value < 0, mantissa: value.unsigned_abs(), exponent: 0 })
}

/// Rounds to an integer and clamps it to `low..=high`. `None` for NaN.
pub(crate) fn to_integer(value: Value, mode: Round, low: i128, high: i128) -> Option<i128> {
    let exact = match value {
        Value::Nan => return None,
        Value::Infinite { negative } => return Some(if negative { low } else { high }),
        Value::Finite(exact) => exact,
    };
    let bits = 128 - exact.mantissa.leading_zeros().cast_signed();
    if exact.mantissa != 0 && bits + exact.exponent > 100 {
        return Some(if exact.negative { low } else { high });
    }
    let magnitude = i128::try_from(shift_rounded(exact, 0, mode)).unwrap_or(i128::MAX);
    Some(if exact.negative { -magnitude } else { magnitude }.clamp(low, high))
}

/// Rounds to an integral number; the sign survives in a zero.
pub(crate) fn to_integral(value: Value, mode: Round) -> Value {
    match value {
        Value::Finite(x) if x.exponent < 0 => {
            Value::Finite(Exact { mantissa: shift_rounded(x, 0, mode), exponent: 0, ..x })
        }
        other => other,
    }
}
