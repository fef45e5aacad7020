//! e2m1: the 4-bit codes of NVFP4.
//!
//! A nibble is `sign << 3 | code`; byte `j` of a row holds element `2j` in its low nibble and `2j + 1` in its high nibble.

/// Magnitudes of the codes 0 to 7.
pub const MAGNITUDES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

/// Value of a nibble; the high four bits are ignored.
///
/// ```
/// assert_eq!(adaptive_layernorm_producers::formats::e2m1::decode(0xD), -3.0);
/// ```
pub const fn decode(nibble: u8) -> f32 {
    let magnitude = MAGNITUDES[(nibble & 7) as usize];
    if nibble & 8 == 0 { magnitude } else { -magnitude }
}

/// Nibble nearest to `value`, ties to the even code; saturates at ±6, NaN gives 7, the sign of zero is kept.
///
/// This is `cvt.rn.satfinite.e2m1x2.f32` of the GPU and what the `TransformerEngine` recipe rounds with.
#[inline(always)]
pub const fn encode(value: f32) -> u8 {
    if value.is_nan() {
        return 7;
    }
    let y = value.abs();
    // Exact ties: 0.25 and 0.75 .. 5; "to even" makes every second bound inclusive.
    let code = (y > 0.25) as u8
        + (y >= 0.75) as u8
        + (y > 1.25) as u8
        + (y >= 1.75) as u8
        + (y > 2.5) as u8
        + (y >= 3.5) as u8
        + (y > 5.0) as u8;
    code | if value.is_sign_negative() { 8 } else { 0 }
}

/// The two nibbles of a packed byte, element `2j` first.
pub const fn split(byte: u8) -> [u8; 2] {
    [byte & 0xf, byte >> 4]
}

/// Position of a nibble among the values in order; both zeros are 0.
pub const fn ordinal(nibble: u8) -> i32 {
    let code = (nibble & 7) as i32;
    if nibble & 8 == 0 { code } else { -code }
}
