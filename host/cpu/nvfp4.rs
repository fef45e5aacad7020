//! The NVFP4 sink of a row, in passes that each vectorise: amax of every block, scale byte and its reciprocal, codes, packing.
//!
//! Blocks of NaN and blocks whose scale is 0 go through all passes like the others and are put right at the end; they are rare.
use crate::contract::swizzle::BLOCK;
use crate::convert::to_usize;
use crate::formats::E4m3;
use crate::recipe::Nvfp4Recipe;

const WIDTH: usize = to_usize(BLOCK);
const ONE_SIXTH: f32 = 1.0 / 6.0;
/// 2^-118: bound of the global scale, as in the reference.
const SMALLEST_GLOBAL_SCALE: f32 = f32::from_bits((127 - 118) << 23);
const NOT_A_NUMBER: u8 = 0x7f;

/// A recipe with what it needs to know about the global scale.
#[derive(Clone, Copy)]
pub(super) struct Recipe {
    recipe: Nvfp4Recipe,
    /// `g · fl(1/6)`
    encode: f32,
    /// `1/g`
    decode: f32,
}

impl Recipe {
    #[expect(clippy::manual_clamp, reason = "clamp keeps a NaN")]
    pub fn new(recipe: Nvfp4Recipe, global_scale: Option<f32>) -> Self {
        let g = global_scale.unwrap_or(1.0).max(SMALLEST_GLOBAL_SCALE).min(f32::MAX);
        Self { recipe, encode: g * ONE_SIXTH, decode: 1.0 / g }
    }
}

/// Buffers for one row, reused for the next.
pub(super) struct Blocks {
    /// |v| as the bits of a bf16.
    magnitudes: Vec<u16>,
    /// One a block: amax, then the factor that brings values to the range of the codes.
    factors: Vec<f32>,
    /// One code a value.
    nibbles: Vec<u8>,
}

impl Blocks {
    pub fn new(dim: usize) -> Self {
        Self { magnitudes: vec![0; dim], factors: vec![0.0; dim / WIDTH], nibbles: vec![0; dim] }
    }
}

/// Quantises a row of values that are bf16.
#[inline(always)]
pub(super) fn row(recipe: Recipe, v: &[f32], buffers: &mut Blocks, packed: &mut [u8], scales: &mut [u8]) {
    block_maxima(v, buffers);
    let Recipe { encode, decode, .. } = recipe;
    // Each recipe gets loops of its own.
    match recipe.recipe {
        Nvfp4Recipe::FlashRtSm110 => {
            scale_blocks(buffers, scales, |amax| e4m3(amax / 6.0), |byte| 1.0 / E4m3::from_bits(byte).to_f32());
            choose_codes(v, buffers, ties_toward_zero);
        }
        Nvfp4Recipe::FlashRtSm120 => {
            scale_blocks(buffers, scales, rounded_up, inverse_sm120);
            choose_codes(v, buffers, without_four_and_five);
        }
        Nvfp4Recipe::TransformerEngine => {
            let inverse = |byte| (1.0 / (E4m3::from_bits(byte).to_f32() * decode)).min(f32::MAX);
            scale_blocks(buffers, scales, |amax| e4m3(amax * encode), inverse);
            choose_codes(v, buffers, ties_to_even);
        }
    }
    for (byte, [low, high]) in packed.iter_mut().zip(buffers.nibbles.as_chunks::<2>().0) {
        *byte = low | high << 4;
    }
    put_right(packed, scales);
}

/// amax of every block. Magnitudes of bf16 order like their bits, NaN above infinity.
#[inline(always)]
fn block_maxima(v: &[f32], Blocks { magnitudes, factors, .. }: &mut Blocks) {
    for (magnitude, v) in magnitudes.iter_mut().zip(v) {
        *magnitude = (v.to_bits() >> 16) as u16 & 0x7fff;
    }
    for (amax, block) in factors.iter_mut().zip(magnitudes.as_chunks::<WIDTH>().0) {
        let bits = block.iter().fold(0, |amax: u16, magnitude| amax.max(*magnitude));
        *amax = f32::from_bits(u32::from(bits) << 16);
    }
}

/// Scale byte of every block, and the factor in place of amax.
#[inline(always)]
fn scale_blocks(buffers: &mut Blocks, scales: &mut [u8], scale: impl Fn(f32) -> u8, inverse: impl Fn(u8) -> f32) {
    for (factor, byte) in buffers.factors.iter_mut().zip(scales) {
        let amax = *factor;
        *byte = if amax.is_nan() { NOT_A_NUMBER } else { scale(amax) };
        *factor = inverse(*byte);
    }
}

#[inline(always)]
fn choose_codes(v: &[f32], Blocks { factors, nibbles, .. }: &mut Blocks, code: impl Fn(f32) -> u32) {
    let blocks = nibbles.as_chunks_mut::<WIDTH>().0.iter_mut().zip(v.as_chunks::<WIDTH>().0);
    for ((nibbles, v), factor) in blocks.zip(factors) {
        for (nibble, v) in nibbles.iter_mut().zip(v) {
            // A nibble.
            *nibble = code(v * *factor) as u8;
        }
    }
}

/// Codes of blocks that have no scale: 0, or 7 for NaN.
#[inline(always)]
fn put_right(packed: &mut [u8], scales: &[u8]) {
    for (codes, byte) in packed.as_chunks_mut::<{ WIDTH / 2 }>().0.iter_mut().zip(scales) {
        match *byte {
            0 => codes.fill(0),
            NOT_A_NUMBER => codes.fill(0x77),
            _ => {}
        }
    }
}

#[inline(always)]
fn e4m3(value: f32) -> u8 {
    E4m3::from_f32(value).to_bits()
}

/// FlashRT's SM120 scale byte: `amax/6` rounded up, at least 1 unless 0.
#[inline(always)]
fn rounded_up(amax: f32) -> u8 {
    let x = amax / 6.0;
    let k = ((x.to_bits() + 0xf_ffff) >> 20).saturating_sub(960).min(0x7e);
    let at_least_1 = if k < 8 { 1 } else { k };
    if x == 0.0 { 0 } else { at_least_1 as u8 }
}

/// `1/dec120(byte)`.
#[inline(always)]
fn inverse_sm120(byte: u8) -> f32 {
    // The code's exponent and mantissa are an f32's, 120 exponents lower.
    1.0 / f32::from_bits((u32::from(byte) << 20) + (120 << 23))
}

/// FlashRT's SM110 codes; the sign bit where y is below zero.
#[inline(always)]
fn ties_toward_zero(y: f32) -> u32 {
    let a = y.abs();
    let above = |bound: f32| u32::from(a > bound);
    let code = above(0.25) + above(0.75) + above(1.25) + above(1.75) + above(2.5) + above(3.5) + above(5.0);
    code | u32::from(y < 0.0) << 3
}

/// FlashRT's SM120 codes, ties away from zero; the sign bit where y is below zero.
#[inline(always)]
fn without_four_and_five(y: f32) -> u32 {
    let a = y.abs();
    let from = |bound: f32| u32::from(a >= bound);
    // At 3 the code jumps from 3 to 6.
    let code = from(0.25) + from(0.75) + from(1.5) + 3 * from(3.0) + from(5.0);
    code | u32::from(y < 0.0) << 3
}

/// TransformerEngine's codes; the sign bit of y.
///
/// The code curve is concave and piecewise linear: the smallest of `2y`, `y + 2`, `y/2 + 4` and 7, each rounded to an integer by the
/// adder, since 2^23 has a last bit worth 1.
#[inline(always)]
fn ties_to_even(y: f32) -> u32 {
    const MAGIC: f32 = 8_388_608.0;
    let a = y.abs();
    let low = a.mul_add(2.0, MAGIC).to_bits().min((a + (MAGIC + 2.0)).to_bits());
    let high = a.mul_add(0.5, MAGIC + 4.0).to_bits().min((MAGIC + 7.0).to_bits());
    low.min(high) & 7 | y.to_bits() >> 28 & 8
}
