//! bf16, e4m3 and their conversions, in few instructions.
#[cfg(hardware_e4m3)]
use crate::ptx;
#[cfg(not(hardware_e4m3))]
use core::hint::select_unpredictable;

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
/// The adder rounds: to a sum of 2^20 times the power of two below the value, whose last bit is worth a step of the codes there,
/// or of 2^14 for subnormal codes. The same lines as the host's `E4m3::from_f32`.
#[cfg(not(hardware_e4m3))]
#[inline(always)]
pub fn e4m3(value: f32) -> u32 {
    const INFINITY: u32 = 0xff << 23;
    const LARGEST: u32 = 448.0_f32.to_bits();
    const SMALLEST_NORMAL: u32 = 0.015625_f32.to_bits();
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Compared as integers, so infinities and NaN saturate as well; NaN is put back at the end.
    let saturated = magnitude.min(LARGEST);
    let exponent = (saturated & INFINITY).max(SMALLEST_NORMAL);
    let magic = exponent + (20 << 23);
    let steps = (f32::from_bits(saturated) + f32::from_bits(magic)).to_bits() - magic;
    let code = steps + (exponent >> 20) - (SMALLEST_NORMAL >> 20);
    // A branch for each element otherwise.
    select_unpredictable(magnitude > INFINITY, 0x7f, code | bits >> 24 & 0x80)
}

/// Value of a non-negative e4m3 byte (not NaN), exact: its bits are an f32 too small by 2^120.
#[inline(always)]
pub const fn decode_magnitude(byte: u32) -> f32 {
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
