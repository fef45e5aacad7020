//! The three NVFP4 recipes (contract section 3.3): scale byte and codes of a chunk.
//!
//! Words pair element k with k + 4. Each short form below is proved equal to the contract over every scale byte and every bf16.
use crate::contract::abi::RowArguments;
use crate::formats::{decode_magnitude, e4m3, high, low};
use crate::ptx::{self, fma, permute, reciprocal};
use crate::sink::Table;
use cuda_std::shared::SharedArray;

/// One recipe.
pub trait Recipe {
    /// Device-resident scalars.
    type Constants: Copy;
    /// A chunk of bf16 as [`codes`](Self::codes) wants it.
    type Values: Copy;
    /// Whether [`begin`](Self::begin) fills the table.
    const TABLE: bool;
    /// Reads the scalars and fills the table.
    fn begin(arguments: &RowArguments, table: Table) -> Self::Constants;
    /// Scale byte of a block whose amax, a bf16, stands in both halves of `amax`; [`NOT_A_NUMBER`] for NaN.
    fn scale_byte(constants: Self::Constants, amax: u32) -> u32;
    /// A chunk, given with and without its signs.
    fn values(words: [u32; 4], magnitudes: [u32; 4]) -> Self::Values;
    /// Eight nibbles, element 0 lowest. All are 0 for scale byte 0, and 7 for [`NOT_A_NUMBER`].
    fn codes(constants: Self::Constants, byte: u32, values: Self::Values) -> u32;
}

/// The scale byte of a block that holds a NaN.
const NOT_A_NUMBER: u32 = 0x7f;

/// Magnitudes of a chunk, and its signs as bit 3 of their nibbles.
#[derive(Clone, Copy)]
pub struct SignMagnitude {
    magnitudes: [u32; 4],
    signs: u32,
}

const ONE_SIXTH: f32 = 1.0 / 6.0;

const TWO_TO_MINUS_14: f32 = f32::from_bits((127 - 14) << 23);

/// 2^-118: global scales are clamped to it from below (0, negative and NaN too) and to `f32::MAX` from above, so that no
/// product with a finite amax is NaN.
const SMALLEST_GLOBAL_SCALE: f32 = f32::from_bits((127 - 118) << 23);

/// Ties toward zero; scale byte to nearest.
pub struct FlashRtSm110;

impl Recipe for FlashRtSm110 {
    type Constants = ();
    type Values = SignMagnitude;
    const TABLE: bool = false;

    #[inline(always)]
    fn begin(_: &RowArguments, _: Table) {}

    /// The product with `fl(1/6)` gives the byte of `max(amax/6, 1e-12)` for every bf16 amax.
    #[inline(always)]
    fn scale_byte(_: (), amax: u32) -> u32 {
        e4m3(high(amax) * ONE_SIXTH)
    }

    #[inline(always)]
    fn values(words: [u32; 4], magnitudes: [u32; 4]) -> SignMagnitude {
        SignMagnitude { magnitudes, signs: signs(negative(words)) }
    }

    /// `y·2^-14` makes e2m1's subnormal (y < 1) an f16 subnormal, so bits 9.. of the f16 are the code, and adding one less than
    /// half of bit 9 rounds ties toward zero.
    ///
    /// f16 is enough: a tie times a scale has 7 bits and v has 8, so what is not a tie is 2^-8 away from it, and a unit of f16
    /// (2^-10 for y below 2) tells them apart. On a tie the contract's y, the product with a rounded reciprocal, lies above it
    /// for three mantissas of the scale: with 1.625 for ties 1.75 and 3.5, with 1.875 for all but 0.25, and the table's factor
    /// is larger by what takes just those a unit up; with 1.75 for 0.75, 1.75 and 3.5, which are ties to even.
    #[inline(always)]
    fn codes(_: (), byte: u32, SignMagnitude { magnitudes, signs }: SignMagnitude) -> u32 {
        /// Code 7 and every fraction bit below it.
        const LARGEST: u32 = 0x0fff_0fff;
        // SAFETY: one of the table's entries, and aligned to it.
        let [factor, odd_up, keep, set] = unsafe { ptx::load_128(SM110.0.as_ptr() as u64 + byte as u64 * 16) };
        let factor = f32::from_bits(factor);
        let [a, b, c, d] = magnitudes.map(|m| {
            let y = ptx::f16x2(high(m) * factor, low(m) * factor);
            ptx::min_bf16x2(y + 0x00ff_00ff + (y >> 9 & odd_up), LARGEST)
        });
        let codes = permute(a, c, UPPER_BYTES) >> 1 & 0x0707_0707 | (permute(b, d, UPPER_BYTES) << 3) & 0x7070_7070;
        (codes | signs) & keep | set
    }
}

/// For every non-negative byte: the factor of v, the bits of an f16 pair that make ties of odd codes go up, and the masks of
/// [`Recipe::codes`]'s special bytes.
///
/// In global memory: a block that filled a table in shared memory first, as for [`TransformerEngine`], would spend 40 instructions a thread
/// or wait for a copy. 4096 rows of 3072 take 14.7 us instead of 16.1 or 17.1; at 64 rows the first look-up costs 0.3 us.
#[repr(align(16))]
struct Sm110([[u32; 4]; 128]);

static SM110: Sm110 = {
    let mut table = [[0; 4]; 128];
    let mut byte = 0;
    while byte < 128 {
        table[byte as usize] = sm110_entry(byte);
        byte += 1;
    }
    Sm110(table)
};

const fn sm110_entry(byte: u32) -> [u32; 4] {
    match byte {
        0 => return [0; 4],
        NOT_A_NUMBER => return [0, 0, 0, ALL_SEVEN],
        _ => {}
    }
    let factor = 1.0 / decode_magnitude(byte) * TWO_TO_MINUS_14;
    // Fraction of the decoded scale's mantissa in eighths: byte 7 is 1.75·2^-7, the other subnormals are 1, 1.25 or 1.5.
    let eighths = if byte >= 8 { byte & 7 } else { byte / 7 * 6 };
    // 2^14 times what makes the factor larger.
    let above = match eighths {
        5 => 5,
        7 => 16,
        _ => 0,
    };
    let odd_up = if eighths == 6 { 0x0001_0001 } else { 0 };
    [(factor * f32::from_bits(1.0_f32.to_bits() + (above << 9))).to_bits(), odd_up, u32::MAX, 0]
}

/// Ties away from zero, codes 4 and 5 never; scale byte rounded up.
pub struct FlashRtSm120;

impl Recipe for FlashRtSm120 {
    type Constants = ();
    type Values = SignMagnitude;
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
            NOT_A_NUMBER
        } else if amax == 0.0 {
            0
        } else {
            byte
        }
    }

    #[inline(always)]
    fn values(words: [u32; 4], magnitudes: [u32; 4]) -> SignMagnitude {
        SignMagnitude { magnitudes, signs: signs(negative(words)) }
    }

    /// Every threshold times the scale is a bf16, so `v` is compared with it directly, two lanes at a time.
    #[inline(always)]
    fn codes(_: (), byte: u32, SignMagnitude { magnitudes, signs }: SignMagnitude) -> u32 {
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
        let codes = (a + b * 16) + (c * 256 + d * 4096) | signs;
        let codes = if byte == 0 { 0 } else { codes };
        if byte == NOT_A_NUMBER { ALL_SEVEN } else { codes }
    }
}

/// Ties to even, an optional global scale; scale byte to nearest.
pub struct TransformerEngine;

impl Recipe for TransformerEngine {
    /// `g · fl(1/6)`, and `min(1/(dec(byte)·(1/g)), FLT_MAX)` of every byte.
    type Constants = (f32, SharedArray);
    #[cfg(hardware_e2m1)]
    type Values = [u32; 4];
    #[cfg(not(hardware_e2m1))]
    type Values = SignMagnitude;
    const TABLE: bool = true;

    #[inline(always)]
    fn begin(a: &RowArguments, table: Table) -> Self::Constants {
        // SAFETY: the host checked that the global scale, if given, is an f32 in device memory.
        let g = if a.sink_scale == 0 { 1.0 } else { f32::from_bits(unsafe { ptx::load_32(a.sink_scale) }) };
        let g = g.max(SMALLEST_GLOBAL_SCALE).min(f32::MAX);
        let decode = reciprocal(g);
        let inv = |byte| reciprocal(decode_magnitude(byte) * decode).min(f32::MAX);
        let entry = |byte| {
            let keep = if byte == 0 || byte == NOT_A_NUMBER { 0 } else { u32::MAX };
            [inv(byte).to_bits(), 0, keep, if byte == NOT_A_NUMBER { ALL_SEVEN } else { 0 }]
        };
        (g * ONE_SIXTH, fill(table, entry))
    }

    #[inline(always)]
    fn scale_byte((encode, _): Self::Constants, amax: u32) -> u32 {
        e4m3(high(amax) * encode)
    }

    #[cfg(hardware_e2m1)]
    #[inline(always)]
    fn values(words: [u32; 4], _: [u32; 4]) -> [u32; 4] {
        words
    }

    #[cfg(hardware_e2m1)]
    #[inline(always)]
    fn codes((_, table): Self::Constants, byte: u32, [a, b, c, d]: [u32; 4]) -> u32 {
        let [inv, _, keep, set] = look_up(table, byte);
        let y = |v: f32| v * f32::from_bits(inv);
        let codes =
            ptx::e2m1x8(y(low(a)), y(low(b)), y(low(c)), y(low(d)), y(high(a)), y(high(b)), y(high(c)), y(high(d)));
        codes & keep | set
    }

    #[cfg(not(hardware_e2m1))]
    #[inline(always)]
    fn values(words: [u32; 4], magnitudes: [u32; 4]) -> SignMagnitude {
        SignMagnitude { magnitudes, signs: signs(words) }
    }

    /// The code curve is concave and piecewise linear: `min(2y, y + 2, y/2 + 4, 7)`. Each piece is rounded to an integer, ties to
    /// even, by the adder itself (2^23 has a last bit worth 1), and rounding commutes with the minimum.
    #[cfg(not(hardware_e2m1))]
    #[inline(always)]
    fn codes((_, table): Self::Constants, byte: u32, SignMagnitude { magnitudes, signs }: SignMagnitude) -> u32 {
        const MAGIC: f32 = 8_388_608.0;
        const LOW_HALVES: u32 = 0x5410;
        let [inv, _, keep, set] = look_up(table, byte);
        let code = |v: f32| {
            let y = v * f32::from_bits(inv);
            let pieces = fma(y, 2.0, MAGIC).to_bits().min((y + (MAGIC + 2.0)).to_bits());
            pieces.min(fma(y, 0.5, MAGIC + 4.0).to_bits()).min((MAGIC + 7.0).to_bits())
        };
        let [a, b, c, d] = magnitudes.map(|m| permute(code(low(m)), code(high(m)), LOW_HALVES));
        ((a + b * 16) + (c * 256 + d * 4096) | signs) & keep | set
    }
}

/// Every code of a block that holds a NaN.
const ALL_SEVEN: u32 = 0x7777_7777;

/// Fills the table: an entry for every non-negative byte, of which the last two words are the masks of [`Recipe::codes`]'s special bytes.
#[inline(always)]
fn fill(table: Table, entry: impl Fn(u32) -> [u32; 4]) -> SharedArray {
    let mut byte = table.thread;
    while byte < Table::ENTRIES {
        // SAFETY: one of the table's entries, written by this thread alone.
        unsafe { table.words.write_4(byte * 4, entry(byte).map(f32::from_bits)) };
        byte += table.threads;
    }
    table.words
}

/// The entry of a byte below 128.
#[inline(always)]
fn look_up(table: SharedArray, byte: u32) -> [u32; 4] {
    // SAFETY: one of the table's entries; the reductions of the row lie between its write and this read.
    unsafe { table.read_4(byte * 4) }.map(f32::to_bits)
}

/// Words in which −0 is +0, so that their sign bits hold only for values below zero.
#[inline(always)]
fn negative(words: [u32; 4]) -> [u32; 4] {
    const ONE: u32 = 0x3f80_3f80;
    words.map(|w| ptx::fma_bf16x2(w, ONE, 0))
}

/// Upper bytes of the halves of two words, interleaved: the byte of the pair (2j, 2j + 1) is byte j.
const UPPER_BYTES: u32 = 0x7351;

/// Sign bits of elements k and k + 4 (bits 15 and 31 of word k) to bit 3 of their nibbles.
#[inline(always)]
fn signs([a, b, c, d]: [u32; 4]) -> u32 {
    permute(b, d, UPPER_BYTES) & 0x8080_8080 | permute(a, c, UPPER_BYTES) >> 4 & 0x0808_0808
}
