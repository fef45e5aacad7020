//! How much two outputs differ, in the terms of the original package's validation policy.
//!
//! For FP8 it asks for "p99 of |difference| = 0 and only a tiny count of adjacent code differences"; for NVFP4 for equal bytes.
//! A [`Report`] has these figures and more, so that users can put their own pipeline beside this library;
//! [`Report::agrees_with_original`] applies contract section 5. Outputs of this library on two backends must simply be equal.
use crate::convert::to_u64;
use crate::error::{Error, Result};
use crate::formats::{E4m3, e2m1, unpack};
use half::bf16;

/// What differs between two outputs of the same operator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// Values compared.
    pub values: usize,
    /// Values whose codes are not the same bits (NaN of any payload are the same code, +0 and −0 are not).
    pub differing: usize,
    /// Largest distance between two codes in the order of their values, adjacent codes being 1 apart and the two zeros 0. NaN against a number
    /// is [`u32::MAX`].
    pub largest_distance: u32,
    /// 99th percentile of |difference| of the decoded values.
    pub p99: f32,
    /// Largest |difference| of the decoded values; NaN if one side only has a NaN.
    pub max_abs: f32,
    /// Cosine of the angle between the decoded values; 1 when both are all zero.
    pub cosine: f64,
}

/// What differs between two NVFP4 outputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nvfp4Report {
    /// The codes, decoded with their own block scales; `differing` and `largest_distance` are those of the 4-bit codes.
    pub codes: Report,
    /// The scale bytes of real rows and columns.
    pub scales: Report,
    /// Packed bytes that differ in blocks whose scale bytes are not both 0.
    pub differing_packed: usize,
    /// Padding bytes of the second output's scale layout that are not 0.
    pub dirty_padding: usize,
}

impl Report {
    /// Contract section 5 for FP8: at most adjacent codes, p99 of 0, at most `max(8, n/100000)` differing codes.
    pub fn agrees_with_original(&self) -> bool {
        self.largest_distance <= 1 && self.p99 == 0.0 && self.differing <= (self.values / 100_000).max(8)
    }

    /// Whether every code is the same.
    pub const fn is_equal(&self) -> bool {
        self.differing == 0
    }
}

impl Nvfp4Report {
    /// Contract section 5 for NVFP4: scale bytes and packed bytes equal, blocks of scale byte 0 aside.
    pub const fn agrees_with_original(&self) -> bool {
        self.scales.is_equal() && self.differing_packed == 0
    }
}

/// Compares FP8 outputs.
///
/// ```
/// use adaptive_layernorm_producers::{E4m3, compare};
/// let (a, b) = ([0x38, 0x40].map(E4m3::from_bits), [0x38, 0x41].map(E4m3::from_bits));
/// let report = compare::fp8(&a, &b)?;
/// assert_eq!((report.differing, report.largest_distance), (1, 1));
/// # Ok::<(), adaptive_layernorm_producers::Error>(())
/// ```
///
/// # Errors
/// [`Error::CompareLength`].
pub fn fp8(expected: &[E4m3], got: &[E4m3]) -> Result<Report> {
    same_length(expected.len(), got.len())?;
    let code = |v: &E4m3| Code {
        bits: if v.is_nan() { 0x7f } else { v.to_bits().into() },
        ordinal: v.ordinal(),
        value: v.to_f32(),
    };
    Ok(report(expected.iter().map(code), got.iter().map(code)))
}

/// Compares bf16 outputs.
///
/// # Errors
/// [`Error::CompareLength`].
pub fn bf16(expected: &[bf16], got: &[bf16]) -> Result<Report> {
    same_length(expected.len(), got.len())?;
    let code = |v: &bf16| {
        let magnitude = i32::from(v.to_bits() & 0x7fff);
        let ordinal = if v.is_sign_negative() { -magnitude } else { magnitude };
        let bits = if v.is_nan() { 0x7fff } else { v.to_bits() };
        Code { bits, ordinal: (!v.is_nan()).then_some(ordinal), value: v.to_f32() }
    };
    Ok(report(expected.iter().map(code), got.iter().map(code)))
}

/// An NVFP4 output: packed codes and swizzled scales.
#[derive(Clone, Copy, Debug)]
pub struct Nvfp4Output<'a> {
    /// u8 `[rows, dim/2]`.
    pub packed: &'a [u8],
    /// At least [`swizzled_sf_size`](crate::formats::swizzled_sf_size) bytes.
    pub sf_swizzled: &'a [u8],
}

/// Compares NVFP4 outputs of `rows` x `dim`, with no global scale applied.
///
/// # Errors
/// A `dim` that is not a positive multiple of 16, or a buffer of the wrong length.
pub fn nvfp4(expected: Nvfp4Output<'_>, got: Nvfp4Output<'_>, rows: u32, dim: u32) -> Result<Nvfp4Report> {
    let values = |output: Nvfp4Output<'_>| unpack::unpack_nvfp4(output.packed, output.sf_swizzled, rows, dim, None);
    let scales = |output: Nvfp4Output<'_>| unpack::unswizzle(output.sf_swizzled, rows, dim);
    let nibbles =
        |output: Nvfp4Output<'_>| -> Vec<u8> { output.packed.iter().flat_map(|byte| e2m1::split(*byte)).collect() };
    let codes = |output| -> Result<Vec<Code>> {
        let code = |(nibble, value): (&u8, f32)| Code {
            bits: u16::from(*nibble),
            ordinal: Some(e2m1::ordinal(*nibble)),
            value,
        };
        Ok(nibbles(output).iter().zip(values(output)?).map(code).collect())
    };
    let (expected_scales, got_scales) = (scales(expected)?, scales(got)?);
    let blocks = expected.packed.chunks(8).zip(got.packed.chunks(8)).zip(expected_scales.iter().zip(&got_scales));
    let counted = blocks.filter(|(_, (a, b))| a.to_bits() != 0 || b.to_bits() != 0);
    let differing = counted.map(|((a, b), _)| a.iter().zip(b).filter(|(a, b)| a != b).count()).sum();
    Ok(Nvfp4Report {
        codes: report(codes(expected)?.into_iter(), codes(got)?.into_iter()),
        scales: fp8(&expected_scales, &got_scales)?,
        differing_packed: differing,
        dirty_padding: dirty_padding(got.sf_swizzled, rows, dim),
    })
}

/// Bytes of the layout's padding that are not 0.
fn dirty_padding(sf_swizzled: &[u8], rows: u32, dim: u32) -> usize {
    let size = crate::formats::swizzled_sf_size(rows, dim).unwrap_or(0).min(sf_swizzled.len());
    let is_padding = |at: usize| {
        let position = crate::formats::scale_layout::position(to_u64(at), dim);
        position.is_some_and(|(row, column)| row >= u64::from(rows) || column >= dim / 16)
    };
    (0..size).filter(|at| sf_swizzled[*at] != 0 && is_padding(*at)).count()
}

/// A code: what must be equal, where it stands among the values, and its value.
#[derive(Clone, Copy)]
struct Code {
    bits: u16,
    ordinal: Option<i32>,
    value: f32,
}

impl Code {
    fn distance(self, other: Self) -> u32 {
        match (self.ordinal, other.ordinal) {
            (Some(a), Some(b)) => a.abs_diff(b),
            (None, None) => 0,
            (Some(_), None) | (None, Some(_)) => u32::MAX,
        }
    }

    /// |difference| of the values: 0 for equal infinities and for two NaN, NaN for one.
    fn difference(self, other: Self) -> f32 {
        let both_nan = self.value.is_nan() && other.value.is_nan();
        if self.value == other.value || both_nan { 0.0 } else { (self.value - other.value).abs() }
    }
}

fn report(expected: impl Iterator<Item = Code> + Clone, got: impl Iterator<Item = Code> + Clone) -> Report {
    let pairs = expected.zip(got);
    let mut differences: Vec<f32> = pairs.clone().map(|(a, b)| a.difference(b)).collect();
    differences.sort_unstable_by(f32::total_cmp);
    let values = differences.len();
    let dot = |pick: fn(&(Code, Code)) -> (f32, f32)| -> f64 {
        pairs.clone().map(|pair| pick(&pair)).map(|(a, b)| f64::from(a) * f64::from(b)).sum()
    };
    let squares = dot(|(a, _)| (a.value, a.value)) * dot(|(_, b)| (b.value, b.value));
    Report {
        values,
        differing: pairs.clone().filter(|(a, b)| a.bits != b.bits).count(),
        largest_distance: pairs.clone().map(|(a, b)| a.distance(b)).max().unwrap_or(0),
        // The smallest difference that at least 99 of 100 values do not exceed.
        p99: differences.get((values * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0),
        max_abs: differences.last().copied().unwrap_or(0.0),
        cosine: if squares == 0.0 { 1.0 } else { dot(|(a, b)| (a.value, b.value)) / squares.sqrt() },
    }
}

fn same_length(expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::CompareLength { expected, got }) }
}
