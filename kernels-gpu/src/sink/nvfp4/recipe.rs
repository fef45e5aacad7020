//! The three NVFP4 recipes (contract section 3.3): scale byte and codes of a chunk.
//!
//! Words pair element k with k + 4. A block whose scale byte is 0 or whose amax is NaN is finished by the caller, so codes
//! may be anything there. Each short form below is proved equal to the contract over every scale byte and every bf16.
use crate::contract::abi::RowArguments;
use crate::formats::{decode_magnitude, e4m3, high, low};
use crate::ptx::{self, fma, permute, reciprocal};
use crate::sink::Table;
use cuda_std::shared::SharedArray;

/// One recipe.
pub trait Recipe {
    /// Device-resident scalars.
    type Constants: Copy;
    /// Whether [`begin`](Self::begin) fills the table.
    const TABLE: bool;
    /// Reads the scalars and fills the table.
    fn begin(arguments: &RowArguments, table: Table) -> Self::Constants;
    /// Scale byte of a block whose amax, a bf16, stands in both halves of `amax`; 0x7F for NaN.
    fn scale_byte(constants: Self::Constants, amax: u32) -> u32;
    /// Eight nibbles, element 0 lowest, of a chunk whose scale byte is neither 0 nor NaN.
    fn codes(constants: Self::Constants, byte: u32, words: [u32; 4], magnitudes: [u32; 4]) -> u32;
}

const ONE_SIXTH: f32 = 1.0 / 6.0;

/// 2^-118: global scales are clamped to it from below (0, negative and NaN too) and to `f32::MAX` from above, so that no
/// product with a finite amax is NaN.
const SMALLEST_GLOBAL_SCALE: f32 = f32::from_bits((127 - 118) << 23);

/// Ties toward zero; scale byte to nearest.
pub struct FlashRtSm110;

impl Recipe for FlashRtSm110 {
    /// `1/dec(byte)` of every byte.
    type Constants = SharedArray;
    const TABLE: bool = true;

    #[inline(always)]
    fn begin(_: &RowArguments, table: Table) -> SharedArray {
        tabulate(table, |byte| reciprocal(decode_magnitude(byte)))
    }

    /// The product with `fl(1/6)` gives the byte of `max(amax/6, 1e-12)` for every bf16 amax.
    #[inline(always)]
    fn scale_byte(_: SharedArray, amax: u32) -> u32 {
        e4m3(high(amax) * ONE_SIXTH)
    }

    /// `y·2^-126` makes e2m1's subnormal (y < 1) an f32 subnormal, so bits 22.. of the f32 are the code; rounding that product
    /// up keeps "just above a tie" above it, and adding one less than half of bit 22 rounds ties toward zero.
    #[inline(always)]
    fn codes(table: SharedArray, byte: u32, words: [u32; 4], magnitudes: [u32; 4]) -> u32 {
        const TWO_TO_MINUS_126: f32 = f32::MIN_POSITIVE;
        const HIGH_HALVES: u32 = 0x7632;
        /// Code 7 and every fraction bit below it.
        const LARGEST: u32 = 0x01ff_01ff;
        let inv = look_up(table, byte);
        let code = |v: f32| ptx::mul_up(v * inv, TWO_TO_MINUS_126).to_bits() + 0x1f_ffff;
        let [a, b, c, d] =
            magnitudes.map(|m| ptx::min_bf16x2(permute(code(low(m)), code(high(m)), HIGH_HALVES), LARGEST));
        let codes = a >> 6 & 0x0007_0007 | b >> 2 & 0x0070_0070 | (c << 2) & 0x0700_0700 | (d << 6) & 0x7000_7000;
        codes | signs(negative(words))
    }
}

/// Ties away from zero, codes 4 and 5 never; scale byte rounded up.
pub struct FlashRtSm120;

impl Recipe for FlashRtSm120 {
    type Constants = ();
    const TABLE: bool = false;

    #[inline(always)]
    fn begin(_: &RowArguments, _: Table) {}

    #[inline(always)]
    fn scale_byte(_: (), amax: u32) -> u32 {
        let amax = high(amax);
        // amax/6, correctly rounded (Markstein).
        let quotient = amax * ONE_SIXTH;
        let x = fma(fma(-quotient, 6.0, amax), ONE_SIXTH, quotient);
        let rounded = ((x.to_bits() + 0xf_ffff) >> 20) as i32 - 960;
        let byte = if rounded < 8 { 1 } else { rounded.min(0x7e) as u32 };
        // Infinity has no remainder (x is NaN, as a number beyond every code); NaN comes first in this ladder.
        if amax.is_nan() {
            0x7f
        } else if amax == 0.0 {
            0
        } else {
            byte
        }
    }

    /// Every threshold times the scale is a bf16, so `v` is compared with it directly, two lanes at a time.
    #[inline(always)]
    fn codes(_: (), byte: u32, words: [u32; 4], magnitudes: [u32; 4]) -> u32 {
        // (1 + (b & 7)/8)·2^((b >> 3) - 7) as bf16, in both halves.
        let scale = ((byte << 4) + (120 << 7)) * 0x0001_0001;
        // Steps of a bf16 exponent: two down, one up, two up.
        let quarter = scale - 0x0100_0100;
        let three_quarters = ptx::fma_bf16x2(scale, 0x3f40_3f40, 0);
        let one_and_a_half = three_quarters + 0x0080_0080;
        let three = three_quarters + 0x0100_0100;
        let five = ptx::fma_bf16x2(scale, 0x40a0_40a0, 0);
        let [a, b, c, d] = magnitudes.map(|m| {
            let above = ptx::at_least_bf16x2(m, three_quarters);
            let high = ptx::at_least_bf16x2(m, three);
            let odd = ptx::at_least_bf16x2(m, quarter) ^ above ^ ptx::at_least_bf16x2(m, one_and_a_half);
            let odd = odd ^ high ^ ptx::at_least_bf16x2(m, five);
            odd & 0x0001_0001 | above & 0x0002_0002 | high & 0x0004_0004
        });
        (a + b * 16) + (c * 256 + d * 4096) | signs(negative(words))
    }
}

/// Ties to even, an optional global scale; scale byte to nearest.
pub struct TransformerEngine;

impl Recipe for TransformerEngine {
    /// `g · fl(1/6)`, and `min(1/(dec(byte)·(1/g)), FLT_MAX)` of every byte.
    type Constants = (f32, SharedArray);
    const TABLE: bool = true;

    #[inline(always)]
    fn begin(a: &RowArguments, table: Table) -> Self::Constants {
        // SAFETY: the host checked that the global scale, if given, is an f32 in device memory.
        let g = if a.sink_scale == 0 { 1.0 } else { f32::from_bits(unsafe { ptx::load_32(a.sink_scale) }) };
        let g = g.max(SMALLEST_GLOBAL_SCALE).min(f32::MAX);
        let decode = reciprocal(g);
        (g * ONE_SIXTH, tabulate(table, |byte| reciprocal(decode_magnitude(byte) * decode).min(f32::MAX)))
    }

    #[inline(always)]
    fn scale_byte((encode, _): Self::Constants, amax: u32) -> u32 {
        e4m3(high(amax) * encode)
    }

    #[cfg(hardware_e2m1)]
    #[inline(always)]
    fn codes((_, table): Self::Constants, byte: u32, [a, b, c, d]: [u32; 4], _: [u32; 4]) -> u32 {
        let inv = look_up(table, byte);
        let y = |v: f32| v * inv;
        ptx::e2m1x8(y(low(a)), y(low(b)), y(low(c)), y(low(d)), y(high(a)), y(high(b)), y(high(c)), y(high(d)))
    }

    /// The code curve is concave and piecewise linear: `min(2y, y + 2, y/2 + 4, 7)`. Each piece is rounded to an integer, ties to
    /// even, by the adder itself (2^23 has a last bit worth 1), and rounding commutes with the minimum.
    #[cfg(not(hardware_e2m1))]
    #[inline(always)]
    fn codes((_, table): Self::Constants, byte: u32, words: [u32; 4], magnitudes: [u32; 4]) -> u32 {
        const MAGIC: f32 = 8_388_608.0;
        const LOW_HALVES: u32 = 0x5410;
        let inv = look_up(table, byte);
        let code = |v: f32| {
            let y = v * inv;
            let pieces = fma(y, 2.0, MAGIC).to_bits().min((y + (MAGIC + 2.0)).to_bits());
            pieces.min(fma(y, 0.5, MAGIC + 4.0).to_bits()).min((MAGIC + 7.0).to_bits())
        };
        let [a, b, c, d] = magnitudes.map(|m| permute(code(low(m)), code(high(m)), LOW_HALVES));
        (a + b * 16) + (c * 256 + d * 4096) | signs(words)
    }
}

/// Fills the table with `value` of every non-negative byte.
#[inline(always)]
fn tabulate(table: Table, value: impl Fn(u32) -> f32) -> SharedArray {
    let mut byte = table.thread;
    while byte < Table::WORDS as u32 {
        // SAFETY: one of the table's words, written by this thread alone.
        unsafe { table.words.write(byte, value(byte)) };
        byte += table.threads;
    }
    table.words
}

/// The tabulated value of a byte below 128.
#[inline(always)]
fn look_up(table: SharedArray, byte: u32) -> f32 {
    // SAFETY: one of the table's words; the reductions of the row lie between its write and this read.
    unsafe { table.read(byte) }
}

/// Words in which −0 is +0, so that their sign bits hold only for values below zero.
#[inline(always)]
fn negative(words: [u32; 4]) -> [u32; 4] {
    const ONE: u32 = 0x3f80_3f80;
    words.map(|w| ptx::fma_bf16x2(w, ONE, 0))
}

/// Sign bits of elements k and k + 4 (bits 15 and 31 of word k) to bit 3 of their nibbles.
#[inline(always)]
fn signs([a, b, c, d]: [u32; 4]) -> u32 {
    /// Bytes 1 and 3 of both words, interleaved: the byte of the pair (2j, 2j + 1) is byte j.
    const SIGN_BYTES: u32 = 0x7351;
    permute(b, d, SIGN_BYTES) & 0x8080_8080 | permute(a, c, SIGN_BYTES) >> 4 & 0x0808_0808
}
