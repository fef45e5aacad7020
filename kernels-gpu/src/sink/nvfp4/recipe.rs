//! The three NVFP4 recipes (contract section 3.3): scale byte and codes of a chunk.
//!
//! Words pair element k with k + 4. Each short form below is proved equal to the contract over every scale byte and every bf16.
use crate::contract::abi::RowArguments;
use crate::formats::{decode_magnitude, e4m3, high, low};
#[cfg(not(hardware_e2m1))]
use crate::ptx::fma;
use crate::ptx::{self, permute, reciprocal};
use crate::sink::Table;
use core::marker::PhantomData;
use cuda_std::shared::SharedArray;

/// One recipe.
pub trait Recipe {
    /// Device-resident scalars.
    type Constants: Copy;
    /// A chunk of bf16 as [`codes`](Self::codes) wants it.
    type Values: Copy;
    /// What a table has for a scale byte.
    type Entry: Copy;
    /// Whether [`begin`](Self::begin) fills the table in shared memory.
    const TABLE: bool;
    /// Reads the scalars and fills the table.
    fn begin(arguments: &RowArguments, table: Table) -> Self::Constants;
    /// Scale byte of a block whose amax, a bf16, stands in both halves of `amax`; [`NOT_A_NUMBER`] for NaN.
    fn scale_byte(constants: Self::Constants, amax: u32) -> u32;
    /// A chunk, given with and without its signs.
    fn values(words: [u32; 4], magnitudes: [u32; 4]) -> Self::Values;
    /// The entry of a scale byte.
    fn look_up(constants: Self::Constants, byte: u32) -> Self::Entry;
    /// Eight nibbles, element 0 lowest. All are 0 for scale byte 0, and 7 for [`NOT_A_NUMBER`].
    fn codes(entry: Self::Entry, values: Self::Values) -> u32;
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
/// The f32 before it, below 1/6 as it is above.
const ONE_SIXTH_BELOW: f32 = f32::from_bits(ONE_SIXTH.to_bits() - 1);

/// bf16 infinity; what lies above it is NaN.
const INFINITY: u32 = 0x7f80;

/// 2^-118: global scales are clamped to it from below (0, negative and NaN too) and to `f32::MAX` from above, so that no
/// product with a finite amax is NaN.
const SMALLEST_GLOBAL_SCALE: f32 = f32::from_bits((127 - 118) << 23);

/// Ties toward zero; scale byte to nearest.
pub struct FlashRtSm110;

impl Recipe for FlashRtSm110 {
    type Constants = ();
    type Values = SignMagnitude;
    type Entry = [u32; 4];
    const TABLE: bool = false;

    #[inline(always)]
    fn begin(_: &RowArguments, _: Table) {}

    /// The product with `fl(1/6)` gives the byte of `max(amax/6, 1e-12)` for every bf16 amax.
    #[inline(always)]
    fn scale_byte(_: (), amax: u32) -> u32 {
        e4m3(high(amax) * ONE_SIXTH)
    }

    #[inline(always)]
    fn look_up(_: (), byte: u32) -> [u32; 4] {
        Self::LINES.entry(byte)
    }

    #[inline(always)]
    fn values(words: [u32; 4], magnitudes: [u32; 4]) -> SignMagnitude {
        SignMagnitude { magnitudes, signs: signs(negative(words)) }
    }

    /// bf16 are one apart from 128 to 256 and two apart above, and a code is worth twice as much from 4 on: counted from 252, the code
    /// curve is the smallest of `252 + 2y`, `256 + y` and 262, rounded to a bf16. A packed fma forms each line with that one rounding.
    ///
    /// 8 bits of factor are enough: a tie times a scale has 7 bits and v has 8, so what is not a tie is at least 2^-8 away from it. On a
    /// tie the contract's y, the product with a rounded reciprocal, is exact or lies above it, by the scale's mantissa and the tie; the
    /// factors of [`SM110_LINES`] are off to the side that sends each tie its way.
    #[inline(always)]
    fn codes([turn, twice, once, keep]: [u32; 4], SignMagnitude { magnitudes, signs }: SignMagnitude) -> u32 {
        let codes = magnitudes.map(|m| {
            let m = ptx::fma_bf16x2(m, turn, 0);
            let lines = ptx::min_bf16x2(ptx::fma_bf16x2(m, twice, CODE_0), ptx::fma_bf16x2(m, once, CODE_4));
            ptx::min_bf16x2(lines, CODE_7)
        });
        nibbles(codes, signs & keep)
    }
}

/// Four words for every non-negative byte.
///
/// In global memory, but for blocks that stay ([`InShared`]): a block that filled a table in shared memory first, as for [`TransformerEngine`], would spend 40 instructions a thread
/// or wait for a copy (with the codes before these, 4096 rows of 3072 took 14.7 us, and 16.1 and 17.1); at 64 rows the first look-up costs
/// 0.3 us.
#[repr(align(16))]
pub struct Lines([[u32; 4]; 128]);

impl Lines {
    #[inline(always)]
    fn entry(&'static self, byte: u32) -> [u32; 4] {
        // SAFETY: one of the entries, and aligned to it: bytes are below 128.
        unsafe { ptx::load_128(self.0.as_ptr() as u64 + byte as u64 * 16) }
    }
}

impl Lined for FlashRtSm110 {
    const LINES: &'static Lines = &SM110;
}

/// bf16 pairs of what turns v, of the factors of both lines, and the mask of the signs.
static SM110: Lines = {
    let mut table = [[0; 4]; 128];
    let mut byte = 1;
    while byte < NOT_A_NUMBER {
        table[byte as usize] = sm110_entry(byte);
        byte += 1;
    }
    // Infinity or NaN on every line, which the minimum with code 7 takes away.
    table[NOT_A_NUMBER as usize] = [pair(1.0), pair(f32::INFINITY), pair(f32::INFINITY), 0];
    Lines(table)
};

/// For scales from 1 to 1.875: the factors of v, of `2v/s` and of `v/s`. Found by trying all bf16 near them; the last column, which ties go
/// up (`all`: but 0.25), is why.
const SM110_LINES: [[f32; 3]; 8] = [
    [1.0, 1.9921875, 0.99609375],       // none
    [1.0, 1.7734375, 0.88671875],       // none
    [1.0, 1.59375, 0.796875],           // none
    [1.0, 1.453125, 0.7265625],         // none
    [1.0, 1.328125, 0.6640625],         // none
    [1.015625, 1.2109375, 0.60546875],  // 1.75, 3.5
    [1.0234375, 1.1171875, 0.55859375], // 0.75, 1.75, 3.5
    [1.0703125, 0.99609375, 0.5],       // all
];

const fn sm110_entry(byte: u32) -> [u32; 4] {
    let scale = decode_magnitude(byte).to_bits();
    let power = f32::from_bits((254 << 23) - (scale & 0xff << 23));
    let [turn, twice, once] = SM110_LINES[(scale >> 20 & 7) as usize];
    [pair(turn), pair(twice * power), pair(once * power), SIGNS]
}

/// Ties away from zero, codes 4 and 5 never; scale byte rounded up.
pub struct FlashRtSm120;

impl Recipe for FlashRtSm120 {
    type Constants = ();
    type Values = SignMagnitude;
    type Entry = [u32; 4];
    const TABLE: bool = false;

    #[inline(always)]
    fn begin(_: &RowArguments, _: Table) {}

    #[inline(always)]
    fn scale_byte(_: (), amax: u32) -> u32 {
        // A factor below 1/6: amax/6 that is a code stays at it or falls below, what is not one is 2^-9 away.
        let x = high(amax) * ONE_SIXTH_BELOW;
        let rounded = ((x.to_bits() + 0xf_ffff) >> 20) as i32 - 960;
        let amax = amax & 0xffff;
        let least = if amax == 0 { 0 } else { 1 };
        let most = if amax > INFINITY { NOT_A_NUMBER as i32 } else { 0x7e };
        (if rounded < 8 { least } else { rounded.min(most) }) as u32
    }

    #[inline(always)]
    fn look_up(_: (), byte: u32) -> [u32; 4] {
        Self::LINES.entry(byte)
    }

    /// A tie times a scale has 7 bits: with its eighth bit set, every magnitude is beside a tie, and ties are above.
    #[inline(always)]
    fn values(words: [u32; 4], magnitudes: [u32; 4]) -> SignMagnitude {
        SignMagnitude { magnitudes: magnitudes.map(|m| m | 0x0001_0001), signs: signs(negative(words)) }
    }

    /// Codes up to 3 are `min(2y, y + 1, 3)`, codes 6 and 7 `min(y + 4, 7)` as in [`FlashRtSm110`], and a line steep enough to pass all of
    /// them in one step of bf16 at y = 3 chooses.
    #[inline(always)]
    fn codes([twice, once, steep, start]: [u32; 4], SignMagnitude { magnitudes, signs }: SignMagnitude) -> u32 {
        let codes = magnitudes.map(|m| {
            let few = ptx::min_bf16x2(ptx::fma_bf16x2(m, twice, CODE_0), ptx::fma_bf16x2(m, once, CODE_1));
            let many = ptx::min_bf16x2(ptx::fma_bf16x2(m, steep, start), ptx::fma_bf16x2(m, once, CODE_4));
            ptx::max_bf16x2(ptx::min_bf16x2(few, CODE_3), ptx::min_bf16x2(many, CODE_7))
        });
        // Both special bytes have 0 there.
        let signs = if start == 0 { 0 } else { signs };
        nibbles(codes, signs)
    }
}

impl Lined for FlashRtSm120 {
    const LINES: &'static Lines = &SM120;
}

/// bf16 pairs of the factors of `2v/s` and of `v/s`, and of the line that passes 0 just below 3s and every code at 3s.
static SM120: Lines = {
    let mut table = [[0; 4]; 128];
    let mut byte = 1;
    while byte < NOT_A_NUMBER {
        table[byte as usize] = sm120_entry(byte);
        byte += 1;
    }
    table[NOT_A_NUMBER as usize] = [pair(f32::INFINITY), pair(f32::INFINITY), pair(f32::INFINITY), 0];
    Lines(table)
};

const fn sm120_entry(byte: u32) -> [u32; 4] {
    // (1 + (b & 7)/8)·2^((b >> 3) - 7)
    let scale = f32::from_bits((byte << 20) + (120 << 23));
    let three = (3.0 * scale).to_bits();
    let below = f32::from_bits(three - (1 << 16));
    // 2^9 over a step of bf16 at 3s.
    let steep = f32::from_bits((254 << 23) - (three & 0xff << 23)) * 65_536.0;
    [pair(nearest(2.0 / scale)), pair(nearest(1.0 / scale)), pair(steep), pair(-steep * below)]
}

/// A recipe with lines for every byte.
pub trait Lined: Recipe<Constants = (), Entry = [u32; 4]> {
    /// The lines.
    const LINES: &'static Lines;
}

/// A recipe of which a block that stays copies the lines to shared memory once.
pub struct InShared<R>(PhantomData<R>);

impl<R: Lined> Recipe for InShared<R> {
    type Constants = SharedArray;
    type Values = R::Values;
    type Entry = [u32; 4];
    const TABLE: bool = true;

    #[inline(always)]
    fn begin(_: &RowArguments, table: Table) -> SharedArray {
        let mut byte = table.thread;
        while byte < Table::ENTRIES {
            // SAFETY: one of the table's entries, of four words where blocks stay, written by this thread alone.
            unsafe { table.words.write_4(byte * 4, R::LINES.entry(byte).map(f32::from_bits)) };
            byte += table.threads;
        }
        table.words
    }

    #[inline(always)]
    fn scale_byte(_: SharedArray, amax: u32) -> u32 {
        R::scale_byte((), amax)
    }

    #[inline(always)]
    fn look_up(lines: SharedArray, byte: u32) -> [u32; 4] {
        // SAFETY: one of the table's entries; a barrier of the block lies between its write and this read.
        unsafe { lines.read_4(byte * 4) }.map(f32::to_bits)
    }

    #[inline(always)]
    fn values(words: [u32; 4], magnitudes: [u32; 4]) -> R::Values {
        R::values(words, magnitudes)
    }

    #[inline(always)]
    fn codes(entry: [u32; 4], values: R::Values) -> u32 {
        R::codes(entry, values)
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
    /// The factor of v as bits, and the mask of the signs.
    type Entry = [u32; 2];
    const TABLE: bool = true;

    #[inline(always)]
    fn begin(a: &RowArguments, table: Table) -> Self::Constants {
        // SAFETY: the host checked that the global scale, if given, is an f32 in device memory.
        let g = if a.sink_scale == 0 { 1.0 } else { f32::from_bits(unsafe { ptx::load_32(a.sink_scale) }) };
        let g = g.max(SMALLEST_GLOBAL_SCALE).min(f32::MAX);
        let decode = reciprocal(g);
        let entry = |byte| {
            // Times infinity every v is infinity or NaN, of which both become code 7.
            let most = if byte == NOT_A_NUMBER { f32::INFINITY } else { f32::MAX };
            let scale = if byte == NOT_A_NUMBER { 0.0 } else { decode_magnitude(byte) * decode };
            let inv = if byte == 0 { 0.0 } else { reciprocal(scale).min(most) };
            [inv.to_bits(), if byte == 0 || byte == NOT_A_NUMBER { 0 } else { SIGNS }]
        };
        (g * ONE_SIXTH, fill(table, entry))
    }

    #[inline(always)]
    fn scale_byte((encode, _): Self::Constants, amax: u32) -> u32 {
        e4m3(high(amax) * encode)
    }

    #[inline(always)]
    fn look_up((_, table): Self::Constants, byte: u32) -> [u32; 2] {
        // SAFETY: one of the table's entries; the reductions of the row lie between its write and this read.
        unsafe { table.read_2(byte * Table::WORDS) }.map(f32::to_bits)
    }

    #[cfg(hardware_e2m1)]
    #[inline(always)]
    fn values(words: [u32; 4], _: [u32; 4]) -> [u32; 4] {
        words
    }

    #[cfg(hardware_e2m1)]
    #[inline(always)]
    fn codes([inv, keep]: [u32; 2], [a, b, c, d]: [u32; 4]) -> u32 {
        let y = |v: f32| v * f32::from_bits(inv);
        let codes =
            ptx::e2m1x8(y(low(a)), y(low(b)), y(low(c)), y(low(d)), y(high(a)), y(high(b)), y(high(c)), y(high(d)));
        codes & (keep | !SIGNS)
    }

    #[cfg(not(hardware_e2m1))]
    #[inline(always)]
    fn values(words: [u32; 4], magnitudes: [u32; 4]) -> SignMagnitude {
        SignMagnitude { magnitudes, signs: signs(words) }
    }

    /// The lines of [`FlashRtSm110`] in f32, whose numbers are two apart from 2^24 on: the adder rounds each, ties to even, and rounding
    /// commutes with the minimum.
    #[cfg(not(hardware_e2m1))]
    #[inline(always)]
    fn codes([inv, keep]: [u32; 2], SignMagnitude { magnitudes, signs }: SignMagnitude) -> u32 {
        const CODE_4: f32 = 16_777_216.0;
        const CODE_0: f32 = CODE_4 - 4.0;
        let code = |v: f32| {
            let y = v * f32::from_bits(inv);
            fma(y, 2.0, CODE_0).to_bits().min((y + CODE_4).to_bits()).min(CODE_4.to_bits() + 3)
        };
        let low = in_sixteens(magnitudes.map(|m| code(low(m))));
        let high = in_sixteens(magnitudes.map(|m| code(high(m))));
        low + high * 0x1_0000 + CODE_0.to_bits().wrapping_mul(0x1111_1111).wrapping_neg() + (signs & keep)
    }
}

// Codes as bf16 pairs whose bits follow each other: 252 to 255, then 256 to 262 by twos.
const CODE_0: u32 = 0x437c_437c;
const CODE_1: u32 = CODE_0 + 0x0001_0001;
const CODE_3: u32 = CODE_0 + 0x0003_0003;
const CODE_4: u32 = CODE_0 + 0x0004_0004;
const CODE_7: u32 = CODE_0 + 0x0007_0007;

/// The nibbles of eight codes, word k holding those of k and k + 4, and their signs.
#[inline(always)]
fn nibbles([a, b, c, d]: [u32; 4], signs: u32) -> u32 {
    const NONE: u32 = CODE_0.wrapping_mul(0x1111).wrapping_neg();
    in_sixteens([a, b, c, d]) + NONE + signs
}

/// The four numbers as digits to base 16.
#[inline(always)]
fn in_sixteens([a, b, c, d]: [u32; 4]) -> u32 {
    ((d * 16 + c) * 16 + b) * 16 + a
}

/// Both halves of a word a bf16: the value must be one.
const fn pair(value: f32) -> u32 {
    (value.to_bits() >> 16) * 0x0001_0001
}

/// The nearest bf16 of a positive value that is no tie.
const fn nearest(value: f32) -> f32 {
    f32::from_bits((value.to_bits() + 0x8000) & 0xffff_0000)
}

/// Bit 3 of every nibble.
const SIGNS: u32 = 0x8888_8888;

/// Fills the table: an entry for every non-negative byte.
#[inline(always)]
fn fill(table: Table, entry: impl Fn(u32) -> [u32; 2]) -> SharedArray {
    let mut byte = table.thread;
    while byte < Table::ENTRIES {
        // SAFETY: one of the table's entries, written by this thread alone.
        unsafe { table.words.write_2(byte * Table::WORDS, entry(byte).map(f32::from_bits)) };
        byte += table.threads;
    }
    table.words
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
