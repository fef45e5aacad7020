//! NVFP4: one scale byte and 16 codes of a block (contract section 3.3).
use super::e4m3;
use crate::formats::E4m3;
use crate::recipe::Nvfp4Recipe;
use half::bf16;

/// Quantises 16 values into 8 bytes of codes; gives the scale byte.
pub fn block(recipe: Nvfp4Recipe, global_scale: Option<f32>, v: &[bf16], packed: &mut [u8]) -> u8 {
    let v: Vec<f32> = v.iter().map(|v| v.to_f32()).collect();
    let (byte, nibbles) = scale_and_nibbles(recipe, effective_global_scale(global_scale), &v);
    for (byte, pair) in packed.iter_mut().zip(nibbles.chunks_exact(2)) {
        *byte = pair[0] | pair[1] << 4;
    }
    byte
}

/// The global scale a block is quantised with: 1 when absent, kept within 2^-118 to the largest f32.
///
/// Within these bounds no product below overflows or loses its sign; a NaN, a negative scale or 0 counts as the lower bound,
/// as act_scale does with 1e-12.
pub fn effective_global_scale(global_scale: Option<f32>) -> f32 {
    global_scale.unwrap_or(1.0).max(2f32.powi(-118)).min(f32::MAX)
}

fn scale_and_nibbles(recipe: Nvfp4Recipe, g: f32, v: &[f32]) -> (u8, Vec<u8>) {
    if v.iter().any(|v| v.is_nan()) {
        return (0x7f, vec![7; v.len()]);
    }
    let amax = v.iter().fold(0.0, |amax: f32, v| amax.max(v.abs()));
    let byte = scale_byte(recipe, g, amax);
    let nibble = |v: &f32| if byte == 0 { 0 } else { nibble(recipe, g, byte, *v) };
    (byte, v.iter().map(nibble).collect())
}

/// The scale byte of a block without NaN.
pub fn scale_byte(recipe: Nvfp4Recipe, g: f32, amax: f32) -> u8 {
    match recipe {
        Nvfp4Recipe::FlashRtSm110 => e4m3::encode((amax / 6.0).max(1e-12)).to_bits(),
        Nvfp4Recipe::FlashRtSm120 => rounded_up(amax / 6.0),
        Nvfp4Recipe::TransformerEngine => e4m3::encode(amax * (g * (1.0 / 6.0))).to_bits(),
    }
}

/// The smallest e4m3 code not below `x`; at least 1 unless `x` is 0, at most `0x7E`.
fn rounded_up(x: f32) -> u8 {
    if x == 0.0 {
        return 0;
    }
    let k = ((x.to_bits() + 0xf_ffff) >> 20) as i32 - 960;
    match k {
        ..8 => 1,
        127.. => 0x7e,
        k => k as u8,
    }
}

/// The value FlashRT's SM120 kernels take a scale byte for: like a normal e4m3 number, below 8 too.
pub fn decode_sm120(byte: u8) -> f32 {
    (1.0 + f32::from(byte & 7) / 8.0) * 2f32.powi(i32::from(byte >> 3) - 7)
}

/// The factor that brings a value to the range of the codes; the byte is not 0.
pub fn inverse_scale(recipe: Nvfp4Recipe, g: f32, byte: u8) -> f32 {
    match recipe {
        Nvfp4Recipe::FlashRtSm110 => 1.0 / e4m3::decode(E4m3::from_bits(byte)),
        Nvfp4Recipe::FlashRtSm120 => 1.0 / decode_sm120(byte),
        Nvfp4Recipe::TransformerEngine => {
            let decoded = e4m3::decode(E4m3::from_bits(byte)) * (1.0 / g);
            (1.0 / decoded).min(f32::MAX)
        }
    }
}

/// The code of a value, its sign in bit 3; the byte is not 0 and the value not NaN.
pub fn nibble(recipe: Nvfp4Recipe, g: f32, byte: u8, v: f32) -> u8 {
    let y = v * inverse_scale(recipe, g, byte);
    let below_zero = if y < 0.0 { 8 } else { 0 };
    match recipe {
        Nvfp4Recipe::FlashRtSm110 => ties_toward_zero(y.abs()) | below_zero,
        Nvfp4Recipe::FlashRtSm120 => without_four_and_five(y.abs()) | below_zero,
        Nvfp4Recipe::TransformerEngine => ties_to_even(y.abs()) | if y.is_sign_negative() { 8 } else { 0 },
    }
}

/// Code of a magnitude, ties toward zero.
pub fn ties_toward_zero(y: f32) -> u8 {
    match y {
        ..=0.25 => 0,
        ..=0.75 => 1,
        ..=1.25 => 2,
        ..=1.75 => 3,
        ..=2.5 => 4,
        ..=3.5 => 5,
        ..=5.0 => 6,
        _ => 7,
    }
}

/// Code of a magnitude as FlashRT's SM120 kernels choose it: ties away from zero, never 4 or 5.
pub fn without_four_and_five(y: f32) -> u8 {
    match y {
        ..0.25 => 0,
        ..0.75 => 1,
        ..1.5 => 2,
        ..3.0 => 3,
        ..5.0 => 6,
        _ => 7,
    }
}

/// Code of a magnitude, ties to the even code.
pub fn ties_to_even(y: f32) -> u8 {
    match y {
        ..=0.25 => 0,
        ..0.75 => 1,
        ..=1.25 => 2,
        ..1.75 => 3,
        ..=2.5 => 4,
        ..3.5 => 5,
        ..=5.0 => 6,
        _ => 7,
    }
}
