//! Sum, product, fused multiply-add, quotient and square root.

use super::{Exact, Format, Round, Value, decode, encode};

/// `a + b`.
pub(crate) fn add(a: u64, b: u64, format: &Format, mode: Round) -> u64 {
    encode(sum(decode(a, format), decode(b, format), mode), format, mode, false)
}

/// `a * b`.
pub(crate) fn mul(a: u64, b: u64, format: &Format, mode: Round) -> u64 {
    encode(product(decode(a, format), decode(b, format)), format, mode, false)
}

/// `a * b + c` with one rounding.
pub(crate) fn fma(a: u64, b: u64, c: u64, format: &Format, mode: Round) -> u64 {
    let product = product(decode(a, format), decode(b, format));
    encode(sum(product, decode(c, format), mode), format, mode, false)
}

/// `a / b`.
pub(crate) fn div(a: u64, b: u64, format: &Format, mode: Round) -> u64 {
    encode(quotient(decode(a, format), decode(b, format)), format, mode, false)
}

/// The square root of `a`.
pub(crate) fn sqrt(a: u64, format: &Format, mode: Round) -> u64 {
    encode(root(decode(a, format)), format, mode, false)
}

fn sum(a: Value, b: Value, mode: Round) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Infinite { negative: x }, Value::Infinite { negative: y }) if x != y => Value::Nan,
        (Value::Infinite { .. }, _) => a,
        (_, Value::Infinite { .. }) => b,
        (Value::Finite(a), Value::Finite(b)) => Value::Finite(finite_sum(a, b, mode)),
    }
}

fn finite_sum(a: Exact, b: Exact, mode: Round) -> Exact {
    if a.mantissa == 0 && b.mantissa == 0 {
        let negative = if a.negative == b.negative { a.negative } else { mode == Round::Down };
        return Exact { negative, mantissa: 0, exponent: 0 };
    }
    if a.mantissa == 0 || b.mantissa == 0 {
        return if a.mantissa == 0 { b } else { a };
    }
    let (a, b) = (leading_at_125(a), leading_at_125(b));
    let (high, low) = if a.exponent >= b.exponent { (a, b) } else { (b, a) };
    let low_mantissa = shift_jammed(low.mantissa, high.exponent.abs_diff(low.exponent));
    let exponent = high.exponent;
    if high.negative == low.negative {
        return Exact { negative: high.negative, mantissa: high.mantissa + low_mantissa, exponent };
    }
    match high.mantissa.cmp(&low_mantissa) {
        std::cmp::Ordering::Equal => Exact { negative: mode == Round::Down, mantissa: 0, exponent: 0 },
        std::cmp::Ordering::Greater => {
            Exact { negative: high.negative, mantissa: high.mantissa - low_mantissa, exponent }
        }
        std::cmp::Ordering::Less => Exact { negative: low.negative, mantissa: low_mantissa - high.mantissa, exponent },
    }
}

/// The same number with its leading bit at position 125: operands of at most 106 bits keep 20 zero bits below, so that a sum
/// that cancels loses nothing, and one that does not cancel keeps far more bits than any format rounds to.
fn leading_at_125(x: Exact) -> Exact {
    let up = x.mantissa.leading_zeros().saturating_sub(2);
    Exact { mantissa: x.mantissa << up, exponent: x.exponent - up.cast_signed(), ..x }
}

/// Shifts right and keeps "something was lost" in the lowest bit, which is all that rounding needs to know.
fn shift_jammed(mantissa: u128, by: u32) -> u128 {
    let kept = mantissa.checked_shr(by).unwrap_or(0);
    let lost = kept.checked_shl(by).unwrap_or(0) != mantissa;
    kept | u128::from(lost)
}

fn product(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
        (Value::Infinite { negative: x }, other) | (other, Value::Infinite { negative: x }) => match other {
            Value::Finite(f) if f.mantissa == 0 => Value::Nan,
            Value::Finite(f) => Value::Infinite { negative: x != f.negative },
            Value::Infinite { negative: y } => Value::Infinite { negative: x != y },
            Value::Nan => Value::Nan,
        },
        (Value::Finite(a), Value::Finite(b)) => Value::Finite(Exact {
            negative: a.negative != b.negative,
            mantissa: a.mantissa * b.mantissa,
            exponent: a.exponent + b.exponent,
        }),
    }
}

fn quotient(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value::Nan, _) | (_, Value::Nan) | (Value::Infinite { .. }, Value::Infinite { .. }) => Value::Nan,
        (Value::Infinite { negative }, Value::Finite(b)) => Value::Infinite { negative: negative != b.negative },
        (Value::Finite(a), Value::Infinite { negative }) => {
            Value::Finite(Exact { negative: a.negative != negative, mantissa: 0, exponent: 0 })
        }
        (Value::Finite(a), Value::Finite(b)) => finite_quotient(a, b),
    }
}

fn finite_quotient(a: Exact, b: Exact) -> Value {
    let negative = a.negative != b.negative;
    match (a.mantissa, b.mantissa) {
        (0, 0) => Value::Nan,
        (_, 0) => Value::Infinite { negative },
        (0, _) => Value::Finite(Exact { negative, mantissa: 0, exponent: 0 }),
        _ => {
            let a = leading_at_125(a);
            let rest = u128::from(!a.mantissa.is_multiple_of(b.mantissa));
            let mantissa = (a.mantissa / b.mantissa) | rest;
            Value::Finite(Exact { negative, mantissa, exponent: a.exponent - b.exponent })
        }
    }
}

fn root(a: Value) -> Value {
    match a {
        Value::Finite(x) if x.mantissa == 0 => a,
        Value::Infinite { negative: false } => a,
        Value::Nan | Value::Infinite { negative: true } | Value::Finite(Exact { negative: true, .. }) => Value::Nan,
        Value::Finite(x) => {
            let x = leading_at_125(x);
            let odd = x.exponent.rem_euclid(2);
            let mantissa = x.mantissa << odd;
            let root = mantissa.isqrt();
            let rest = u128::from(root * root != mantissa);
            Value::Finite(Exact { negative: false, mantissa: root << 1 | rest, exponent: (x.exponent - odd) / 2 - 1 })
        }
    }
}
