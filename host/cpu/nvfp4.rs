//! The NVFP4 sink of a row.
use crate::contract::swizzle::BLOCK;
use crate::formats::E4m3;
use crate::recipe::Nvfp4Recipe;

const WIDTH: usize = BLOCK as usize;

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
        // Bounds as in the reference: no product overflows between them.
        let g = global_scale.unwrap_or(1.0).max(SMALLEST_GLOBAL_SCALE).min(f32::MAX);
        Self { recipe, encode: g * ONE_SIXTH, decode: 1.0 / g }
    }
}

const ONE_SIXTH: f32 = 1.0 / 6.0;
/// 2^-118
const SMALLEST_GLOBAL_SCALE: f32 = f32::from_bits((127 - 118) << 23);

/// Quantises a row.
#[inline(always)]
pub(super) fn row(recipe: Recipe, v: &[f32], packed: &mut [u8], scales: &mut [u8]) {
    let (blocks, _) = v.as_chunks::<WIDTH>();
    let (bytes, _) = packed.as_chunks_mut::<{ WIDTH / 2 }>();
    // Each recipe gets a loop of its own.
    match recipe.recipe {
        Nvfp4Recipe::FlashRtSm110 => {
            each_block(blocks, bytes, scales, |amax| e4m3(amax / 6.0), inverse, |v, inv| sm110(v * inv));
        }
        Nvfp4Recipe::FlashRtSm120 => {
            each_block(blocks, bytes, scales, rounded_up, inverse_sm120, |v, inv| sm120(v * inv));
        }
        Nvfp4Recipe::TransformerEngine => {
            let inverse = |byte| (1.0 / (E4m3::from_bits(byte).to_f32() * recipe.decode)).min(f32::MAX);
            each_block(blocks, bytes, scales, |amax| e4m3(amax * recipe.encode), inverse, |v, inv| to_even(v * inv));
        }
    }
}

#[inline(always)]
fn each_block(
    blocks: &[[f32; WIDTH]],
    packed: &mut [[u8; WIDTH / 2]],
    scales: &mut [u8],
    scale_byte: impl Fn(f32) -> u8,
    inverse: impl Fn(u8) -> f32,
    nibble: impl Fn(f32, f32) -> u32,
) {
    for ((v, packed), scale) in blocks.iter().zip(packed).zip(scales) {
        // Magnitudes of bf16 order like their bits, NaN above infinity.
        let amax = v.iter().fold(0, |amax, v| amax.max(v.to_bits() & 0x7fff_ffff));
        if amax > 0x7f80_0000 {
            (*scale, *packed) = (0x7f, [0x77; WIDTH / 2]);
            continue;
        }
        let byte = scale_byte(f32::from_bits(amax));
        if byte == 0 {
            (*scale, *packed) = (0, [0; WIDTH / 2]);
            continue;
        }
        let inv = inverse(byte);
        let nibbles = v.map(|v| nibble(v, inv));
        *scale = byte;
        for (byte, pair) in packed.iter_mut().zip(nibbles.as_chunks::<2>().0) {
            *byte = (pair[0] | pair[1] << 4) as u8;
        }
    }
}

#[inline(always)]
fn e4m3(value: f32) -> u8 {
    E4m3::from_f32(value).to_bits()
}

#[inline(always)]
fn inverse(byte: u8) -> f32 {
    1.0 / E4m3::from_bits(byte).to_f32()
}

/// FlashRT's SM120 scale byte: `amax/6` rounded up, at least 1 unless 0.
#[inline(always)]
fn rounded_up(amax: f32) -> u8 {
    let x = amax / 6.0;
    let k = ((x.to_bits() + 0xf_ffff) >> 20).saturating_sub(960).clamp(1, 0x7e);
    if x == 0.0 {
        0
    } else if k < 8 {
        1
    } else {
        k as u8
    }
}

/// `1/dec120(byte)`.
#[inline(always)]
fn inverse_sm120(byte: u8) -> f32 {
    // The code's exponent and mantissa are an f32's, 120 exponents lower.
    1.0 / f32::from_bits((u32::from(byte) << 20) + (120 << 23))
}

/// Ties toward zero; the sign bit where y is below zero.
#[inline(always)]
fn sm110(y: f32) -> u32 {
    let a = y.abs();
    let above = |bound: f32| u32::from(a > bound);
    let code = above(0.25) + above(0.75) + above(1.25) + above(1.75) + above(2.5) + above(3.5) + above(5.0);
    code | u32::from(y < 0.0) << 3
}

/// Ties away from zero, without 4 and 5; the sign bit where y is below zero.
#[inline(always)]
fn sm120(y: f32) -> u32 {
    let a = y.abs();
    let from = |bound: f32| u32::from(a >= bound);
    // At 3 the code jumps from 3 to 6.
    let code = from(0.25) + from(0.75) + from(1.5) + 3 * from(3.0) + from(5.0);
    code | u32::from(y < 0.0) << 3
}

/// Ties to even; the sign bit of y.
#[inline(always)]
fn to_even(y: f32) -> u32 {
    let a = y.abs();
    let above = |bound: f32| u32::from(a > bound);
    let from = |bound: f32| u32::from(a >= bound);
    let code = above(0.25) + from(0.75) + above(1.25) + from(1.75) + above(2.5) + from(3.5) + above(5.0);
    code | y.to_bits() >> 28 & 8
}
