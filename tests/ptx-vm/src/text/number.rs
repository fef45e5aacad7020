//! Integer and floating-point constants (PTX ISA, "Constants").

use crate::error::ParseErrorKind;

/// A constant as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Number {
    Integer(u64),
    /// `0f` and eight hexadecimal digits: the bits of an f32.
    Single(u32),
    /// `0d` and sixteen hexadecimal digits: the bits of an f64.
    Double(u64),
    /// With a point or an exponent.
    Decimal(f64),
}

/// Reads one constant.
pub(crate) fn number(text: &str) -> Result<Number, ParseErrorKind> {
    parse(text).ok_or_else(|| ParseErrorKind::Syntax(format!("a constant, found {text}")))
}

fn parse(text: &str) -> Option<Number> {
    let lower = text.to_ascii_lowercase();
    if let Some(digits) = lower.strip_prefix("0f").filter(|d| d.len() == 8) {
        return u32::from_str_radix(digits, 16).ok().map(Number::Single);
    }
    if let Some(digits) = lower.strip_prefix("0d").filter(|d| d.len() == 16) {
        return u64::from_str_radix(digits, 16).ok().map(Number::Double);
    }
    if lower.contains('.') {
        return lower.parse().ok().map(Number::Decimal);
    }
    let digits = lower.strip_suffix('u').unwrap_or(&lower);
    let (digits, radix) = match (digits.strip_prefix("0x"), digits.strip_prefix("0b")) {
        (Some(hex), _) => (hex, 16),
        (_, Some(binary)) => (binary, 2),
        _ if digits.len() > 1 && digits.starts_with('0') => (&digits[1..], 8),
        _ => (digits, 10),
    };
    u64::from_str_radix(digits, radix).ok().map(Number::Integer)
}
