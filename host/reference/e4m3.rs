//! e4m3 by definition: the list of its values, and the nearest of them (contract section 3.2).
use crate::formats::E4m3;

/// Values of the codes 0 to 126: `m·2^-9`, then `(1 + m/8)·2^(e-7)`.
pub const MAGNITUDES: [f32; 127] = {
    let mut values = [0.0; 127];
    let mut code = 0;
    while code < values.len() {
        let (exponent, mantissa) = (code as i32 / 8, (code % 8) as f32);
        values[code] = if exponent == 0 {
            mantissa * power_of_two(-9)
        } else {
            (1.0 + mantissa / 8.0) * power_of_two(exponent - 7)
        };
        code += 1;
    }
    values
};

const fn power_of_two(exponent: i32) -> f32 {
    let (mut value, mut left) = (1.0, exponent);
    while left != 0 {
        value *= if left > 0 { 2.0 } else { 0.5 };
        left -= left.signum();
    }
    value
}

/// The value of a code.
pub fn decode(code: E4m3) -> f32 {
    let magnitude = match MAGNITUDES.get(usize::from(code.to_bits() & 0x7f)) {
        Some(magnitude) => *magnitude,
        None => return f32::NAN,
    };
    if code.to_bits() & 0x80 == 0 { magnitude } else { -magnitude }
}

/// The nearest code, ties to even; beyond 448 the largest, the sign of zero kept, NaN to `0x7F`.
pub fn encode(value: f32) -> E4m3 {
    if value.is_nan() {
        return E4m3::NAN;
    }
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    E4m3::from_bits(sign | nearest(value.abs()))
}

/// The code nearest to a magnitude.
fn nearest(magnitude: f32) -> u8 {
    // The first code not below the magnitude; past the largest, the largest.
    let above = MAGNITUDES.partition_point(|value| *value < magnitude).min(126);
    let Some(below) = above.checked_sub(1) else { return 0 };
    // Neighbours have few bits: their middle is exact.
    let middle = (MAGNITUDES[below] + MAGNITUDES[above]) / 2.0;
    let code = if magnitude < middle || (magnitude == middle && below % 2 == 0) { below } else { above };
    code as u8
}

/// `e4m3(v · inv)` with `inv = 1 / max(act_scale, 1e-12)`; an act_scale that is NaN counts as 1e-12.
pub fn static_scale(v: f32, act_scale: f32) -> E4m3 {
    let inv = 1.0 / act_scale.max(1e-12);
    encode(v * inv)
}
