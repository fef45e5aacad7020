//! bf16, e4m3 and their conversions, in few instructions.
#[cfg(hardware_e4m3)]
use crate::ptx;

/// Lower bf16 of a word as f32: exact.
#[inline(always)]
pub fn low(word: u32) -> f32 {
    f32::from_bits(word << 16)
}

/// Upper bf16 of a word as f32: exact.
#[inline(always)]
pub fn high(word: u32) -> f32 {
    f32::from_bits(word & 0xffff_0000)
}

/// Eight bf16 as f32.
#[inline(always)]
pub fn widen(words: [u32; 4]) -> [f32; 8] {
    let [a, b, c, d] = words;
    [low(a), high(a), low(b), high(b), low(c), high(c), low(d), high(d)]
}

/// Four f32 to four e4m3, `a` lowest: nearest even, saturating, NaN to 0x7F.
#[cfg(hardware_e4m3)]
pub use ptx::e4m3x4;

/// Four f32 to four e4m3, `a` lowest: nearest even, saturating, NaN to 0x7F.
#[cfg(not(hardware_e4m3))]
#[inline(always)]
pub fn e4m3x4(a: f32, b: f32, c: f32, d: f32) -> u32 {
    e4m3(a) | e4m3(b) << 8 | e4m3(c) << 16 | e4m3(d) << 24
}

/// One f32 to e4m3: nearest even, saturating, NaN to 0x7F.
#[cfg(hardware_e4m3)]
#[inline(always)]
pub fn e4m3(value: f32) -> u32 {
    ptx::e4m3(value) as u32
}

/// One f32 to e4m3 without the conversion instruction.
///
/// Normal codes: round the f32 bits to 3 mantissa bits, ties to even, and rebias by 120. Subnormal codes (below 2^-6):
/// adding 2^14, whose last bit is worth 2^-9, lets the adder round to the code.
#[cfg(not(hardware_e4m3))]
#[inline(always)]
pub fn e4m3(value: f32) -> u32 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // 448 is the largest code; the comparison as integers also catches infinities, NaN is put back below.
    let saturated = if magnitude > 0x43e0_0000 { 0x43e0_0000 } else { magnitude };
    let normal = (saturated + 0x7_ffff + (saturated >> 20 & 1)).wrapping_sub(120 << 23) >> 20;
    let subnormal = (f32::from_bits(saturated) + 16384.0).to_bits() & 0xf;
    let code = if saturated < 0x3c80_0000 { subnormal } else { normal };
    if magnitude > 0x7f80_0000 { 0x7f } else { code | bits >> 24 & 0x80 }
}

/// Value of a non-negative e4m3 byte (not NaN), exact: its bits are an f32 too small by 2^120.
#[inline(always)]
pub fn decode_magnitude(byte: u32) -> f32 {
    const TWO_TO_120: f32 = f32::from_bits((127 + 120) << 23);
    f32::from_bits(byte << 20) * TWO_TO_120
}

/// Four e4m3 as f32.
#[cfg(hardware_e4m3)]
#[inline(always)]
pub fn decode_four(word: u32) -> [f32; 4] {
    let a = ptx::f16x2_from_e4m3x2(word as u16);
    let b = ptx::f16x2_from_e4m3x2((word >> 16) as u16);
    [
        ptx::f32_from_f16(a as u16),
        ptx::f32_from_f16((a >> 16) as u16),
        ptx::f32_from_f16(b as u16),
        ptx::f32_from_f16((b >> 16) as u16),
    ]
}

/// Four e4m3 as f32.
#[cfg(not(hardware_e4m3))]
#[inline(always)]
pub fn decode_four(word: u32) -> [f32; 4] {
    [decode(word & 0xff), decode(word >> 8 & 0xff), decode(word >> 16 & 0xff), decode(word >> 24)]
}

#[cfg(not(hardware_e4m3))]
#[inline(always)]
fn decode(byte: u32) -> f32 {
    let magnitude = decode_magnitude(byte & 0x7f).to_bits();
    let magnitude = if byte & 0x7f == 0x7f { 0x7fff_ffff } else { magnitude };
    f32::from_bits(magnitude | (byte & 0x80) << 24)
}
