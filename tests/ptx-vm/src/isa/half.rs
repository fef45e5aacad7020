//! Half Precision Floating-Point Instructions: `.f16`, `.bf16` and the packed `.f16x2`, `.bf16x2`.
//!
//! Every operation is exact arithmetic rounded once to the format; NaN results are canonical (0x7FFF).

use super::Decoded;
use super::mods::Mods;
use crate::lower::Operands;
use crate::program::{F1, F2, F3, Op};
use crate::soft::{self, BF16, F16, Format, Round};
use crate::ty::Ty;

/// `min`/`max` of any format: a NaN loses against a number unless `nan_wins`; two NaNs give the canonical one; -0.0 < +0.0.
pub(super) fn extreme(a: u64, b: u64, format: &Format, largest: bool, nan_wins: bool) -> u64 {
    let canonical = format.nan.unwrap_or(format.max);
    match (is_nan(a, format), is_nan(b, format)) {
        (true, true) => canonical,
        (true, false) | (false, true) if nan_wins => canonical,
        (true, false) => b,
        (false, true) => a,
        (false, false) if (order(a, format) < order(b, format)) == largest => b,
        (false, false) => a,
    }
}

fn is_nan(bits: u64, format: &Format) -> bool {
    bits & format.magnitude_mask() > format.infinity.unwrap_or(format.max)
}

/// Orders patterns as the numbers they stand for, -0.0 before +0.0.
fn order(bits: u64, format: &Format) -> i128 {
    let magnitude = i128::from(bits & format.magnitude_mask());
    if bits >> (format.bits - 1) & 1 == 1 { -magnitude - 1 } else { magnitude }
}

/// A 16-bit format, by name.
trait Half {
    const FORMAT: &'static Format;
}
struct Bf;
struct Hf;
impl Half for Bf {
    const FORMAT: &'static Format = &BF16;
}
impl Half for Hf {
    const FORMAT: &'static Format = &F16;
}

/// "Half Precision Floating Point Instructions: add"
fn add<T: Half>(a: u64, b: u64) -> u64 {
    soft::add(a, b, T::FORMAT, Round::Nearest)
}
/// "Half Precision Floating Point Instructions: sub"
fn sub<T: Half>(a: u64, b: u64) -> u64 {
    add::<T>(a, b ^ T::FORMAT.sign(true))
}
/// "Half Precision Floating Point Instructions: mul"
fn mul<T: Half>(a: u64, b: u64) -> u64 {
    soft::mul(a, b, T::FORMAT, Round::Nearest)
}
/// "Half Precision Floating Point Instructions: fma"
fn fma<T: Half>(a: u64, b: u64, c: u64) -> u64 {
    soft::fma(a, b, c, T::FORMAT, Round::Nearest)
}
/// `fma.relu`: negative results become 0, NaN canonical.
fn fma_relu<T: Half>(a: u64, b: u64, c: u64) -> u64 {
    relu(fma::<T>(a, b, c), T::FORMAT)
}
/// `.relu`: negative results become +0.
pub(super) fn relu(bits: u64, format: &Format) -> u64 {
    if bits >> (format.bits - 1) & 1 == 1 { 0 } else { bits }
}
/// "Half Precision Floating Point Instructions: abs". The ISA leaves a NaN's payload open; an H200 gives the canonical NaN.
fn abs<T: Half>(a: u64) -> u64 {
    canonical(a & 0x7FFF, T::FORMAT)
}
/// "Half Precision Floating Point Instructions: neg"; NaN as `abs`.
fn neg<T: Half>(a: u64) -> u64 {
    canonical(a ^ 0x8000, T::FORMAT)
}
/// The canonical NaN for every NaN.
pub(super) fn canonical(bits: u64, format: &Format) -> u64 {
    if is_nan(bits, format) { format.nan.unwrap_or(format.max) } else { bits }
}
/// `.xorsign.abs` around a minimum or maximum: of the magnitudes, with the exclusive or of the signs; a NaN stays canonical.
pub(super) fn xorsign(a: u64, b: u64, format: &Format, f: F2) -> u64 {
    let magnitude = f(a & format.magnitude_mask(), b & format.magnitude_mask());
    if is_nan(magnitude, format) { magnitude } else { magnitude | ((a ^ b) & format.sign(true)) }
}
/// "Half Precision Floating Point Instructions: min"
fn min<T: Half>(a: u64, b: u64) -> u64 {
    extreme(a, b, T::FORMAT, false, false)
}
/// "Half Precision Floating Point Instructions: max"
fn max<T: Half>(a: u64, b: u64) -> u64 {
    extreme(a, b, T::FORMAT, true, false)
}
/// `.NaN`: a NaN operand wins.
fn min_nan<T: Half>(a: u64, b: u64) -> u64 {
    extreme(a, b, T::FORMAT, false, true)
}
fn max_nan<T: Half>(a: u64, b: u64) -> u64 {
    extreme(a, b, T::FORMAT, true, true)
}
/// `.xorsign.abs`: of the magnitudes, with the exclusive or of the signs.
fn min_xor<T: Half>(a: u64, b: u64) -> u64 {
    xorsign(a, b, T::FORMAT, min::<T>)
}
fn max_xor<T: Half>(a: u64, b: u64) -> u64 {
    xorsign(a, b, T::FORMAT, max::<T>)
}
fn min_nan_xor<T: Half>(a: u64, b: u64) -> u64 {
    xorsign(a, b, T::FORMAT, min_nan::<T>)
}
fn max_nan_xor<T: Half>(a: u64, b: u64) -> u64 {
    xorsign(a, b, T::FORMAT, max_nan::<T>)
}

/// Low and high half of a packed register.
pub(super) fn halves(a: u64) -> [u64; 2] {
    [a & 0xFFFF, a >> 16 & 0xFFFF]
}

/// The scalar function, or the function that applies it to both halves.
macro_rules! lift {
    ($ty:expr, $f:ident, $($x:ident)+) => {
        match $ty {
            Ty::F16 => $f::<Hf>,
            Ty::Bf16 => $f::<Bf>,
            Ty::F16x2 => |$($x),+| {
                $(let $x = halves($x);)+
                $f::<Hf>($($x[0]),+) | $f::<Hf>($($x[1]),+) << 16
            },
            _ => |$($x),+| {
                $(let $x = halves($x);)+
                $f::<Bf>($($x[0]),+) | $f::<Bf>($($x[1]),+) << 16
            },
        }
    };
}

fn unary(name: &str, ty: Ty) -> Option<F1> {
    Some(match name {
        "abs" => lift!(ty, abs, a),
        "neg" => lift!(ty, neg, a),
        _ => return None,
    })
}

fn binary(name: &str, ty: Ty, mods: &mut Mods<'_>) -> Option<F2> {
    if matches!(name, "add" | "sub" | "mul") {
        mods.take("rn");
    }
    let bounds = matches!(name, "min" | "max");
    let nan = bounds && mods.take("NaN");
    let xor = bounds && mods.take("xorsign") && mods.take("abs");
    Some(match (name, nan, xor) {
        ("add", ..) => lift!(ty, add, a b),
        ("sub", ..) => lift!(ty, sub, a b),
        ("mul", ..) => lift!(ty, mul, a b),
        ("min", false, false) => lift!(ty, min, a b),
        ("max", false, false) => lift!(ty, max, a b),
        ("min", true, false) => lift!(ty, min_nan, a b),
        ("max", true, false) => lift!(ty, max_nan, a b),
        ("min", false, true) => lift!(ty, min_xor, a b),
        ("max", false, true) => lift!(ty, max_xor, a b),
        ("min", true, true) => lift!(ty, min_nan_xor, a b),
        ("max", true, true) => lift!(ty, max_nan_xor, a b),
        _ => return None,
    })
}

/// `fma` needs its rounding modifier; `.rn` is the only one.
fn ternary(name: &str, ty: Ty, mods: &mut Mods<'_>) -> Option<F3> {
    if name != "fma" || !mods.take("rn") {
        return None;
    }
    Some(if mods.take("relu") { lift!(ty, fma_relu, a b c) } else { lift!(ty, fma, a b c) })
}

pub(super) fn decode(name: &str, ty: Ty, mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let d = operands.destination(0, ty)?;
    if let Some(f) = unary(name, ty) {
        mods.done()?;
        operands.expect(2)?;
        return Ok(Op::Unary { f, d, a: operands.source(1, ty)? });
    }
    let (a, b) = (operands.source(1, ty)?, operands.source(2, ty)?);
    if let Some(f) = binary(name, ty, &mut mods) {
        mods.done()?;
        operands.expect(3)?;
        return Ok(Op::Binary { f, d, a, b });
    }
    let f = ternary(name, ty, &mut mods).ok_or_else(|| mods.unsupported())?;
    mods.done()?;
    operands.expect(4)?;
    Ok(Op::Ternary { f, d, a, b, c: operands.source(3, ty)? })
}
