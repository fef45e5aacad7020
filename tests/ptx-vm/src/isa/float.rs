//! Floating-Point Instructions on `.f32`, `.f64` and the packed `.f32x2`.
//!
//! Round-to-nearest uses the host's IEEE operations, every other rounding exact arithmetic ([`crate::soft`]). Nothing is
//! flushed to zero: `.ftz` and `.approx` have no place here and are refused. NaN results are canonical.

use super::Decoded;
use super::mods::Mods;
use crate::lower::Operands;
use crate::program::{F1, F2, F3, Op};
use crate::soft::{self, F32, F64, Format, Round};
use crate::ty::Ty;

/// A type the host can compute with.
pub(super) trait Real {
    const FORMAT: &'static Format;
    fn add(a: u64, b: u64) -> u64;
    fn mul(a: u64, b: u64) -> u64;
    fn div(a: u64, b: u64) -> u64;
    fn sqrt(a: u64) -> u64;
    fn fma(a: u64, b: u64, c: u64) -> u64;
}

pub(super) struct Single;
pub(super) struct Double;

/// The f32 in the low half of a register.
#[allow(clippy::cast_possible_truncation, reason = "an f32 register holds 32 bits")]
pub(super) fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}
fn from_single(value: f32) -> u64 {
    u64::from(if value.is_nan() { 0x7FFF_FFFF } else { value.to_bits() })
}
pub(super) fn double(bits: u64) -> f64 {
    f64::from_bits(bits)
}
fn from_double(value: f64) -> u64 {
    if value.is_nan() { F64.nan.unwrap_or(0) } else { value.to_bits() }
}

macro_rules! real {
    ($name:ident, $format:ident, $to:ident, $from:ident) => {
        impl Real for $name {
            const FORMAT: &'static Format = &$format;
            fn add(a: u64, b: u64) -> u64 {
                $from($to(a) + $to(b))
            }
            fn mul(a: u64, b: u64) -> u64 {
                $from($to(a) * $to(b))
            }
            fn div(a: u64, b: u64) -> u64 {
                $from($to(a) / $to(b))
            }
            fn sqrt(a: u64) -> u64 {
                $from($to(a).sqrt())
            }
            fn fma(a: u64, b: u64, c: u64) -> u64 {
                $from($to(a).mul_add($to(b), $to(c)))
            }
        }
    };
}
real!(Single, F32, single, from_single);
real!(Double, F64, double, from_double);

const fn mode(code: u8) -> Round {
    match code {
        0 => Round::Nearest,
        1 => Round::Zero,
        2 => Round::Down,
        _ => Round::Up,
    }
}

/// "Floating Point Instructions: add"
fn add<T: Real, const R: u8>(a: u64, b: u64) -> u64 {
    if R == 0 { T::add(a, b) } else { soft::add(a, b, T::FORMAT, mode(R)) }
}
/// "Floating Point Instructions: sub"
fn sub<T: Real, const R: u8>(a: u64, b: u64) -> u64 {
    add::<T, R>(a, b ^ T::FORMAT.sign(true))
}
/// "Floating Point Instructions: mul"
fn mul<T: Real, const R: u8>(a: u64, b: u64) -> u64 {
    if R == 0 { T::mul(a, b) } else { soft::mul(a, b, T::FORMAT, mode(R)) }
}
/// "Floating Point Instructions: div", `.rnd` forms
fn div<T: Real, const R: u8>(a: u64, b: u64) -> u64 {
    if R == 0 { T::div(a, b) } else { soft::div(a, b, T::FORMAT, mode(R)) }
}
/// "Floating Point Instructions: rcp", `.rnd` forms
fn rcp<T: Real, const R: u8>(a: u64) -> u64 {
    div::<T, R>(T::FORMAT.one(), a)
}
/// "Floating Point Instructions: sqrt", `.rnd` forms
fn sqrt<T: Real, const R: u8>(a: u64) -> u64 {
    if R == 0 { T::sqrt(a) } else { soft::sqrt(a, T::FORMAT, mode(R)) }
}
/// "Floating Point Instructions: fma"
fn fma<T: Real, const R: u8>(a: u64, b: u64, c: u64) -> u64 {
    if R == 0 { T::fma(a, b, c) } else { soft::fma(a, b, c, T::FORMAT, mode(R)) }
}
/// "Floating Point Instructions: abs". The ISA leaves a NaN's payload open; an H200 gives the canonical NaN.
fn abs<T: Real>(a: u64) -> u64 {
    super::half::canonical(a & T::FORMAT.magnitude_mask(), T::FORMAT)
}
/// "Floating Point Instructions: neg"; NaN as `abs`.
fn neg<T: Real>(a: u64) -> u64 {
    super::half::canonical(a ^ T::FORMAT.sign(true), T::FORMAT)
}
/// "Floating Point Instructions: copysign": the sign of `a`, the magnitude of `b`.
fn copysign<T: Real>(a: u64, b: u64) -> u64 {
    (a & T::FORMAT.sign(true)) | (b & T::FORMAT.magnitude_mask())
}
/// `.sat`: clamped to 0.0 to 1.0, NaN to +0.0.
fn saturate(a: u64) -> u64 {
    let value = single(a);
    if value.is_nan() || value <= 0.0 { 0 } else { from_single(value.min(1.0)) }
}
/// "Floating Point Instructions: min": a NaN operand loses against a number, -0.0 is below +0.0.
fn min<T: Real>(a: u64, b: u64) -> u64 {
    super::half::extreme(a, b, T::FORMAT, false, false)
}
/// "Floating Point Instructions: max"
fn max<T: Real>(a: u64, b: u64) -> u64 {
    super::half::extreme(a, b, T::FORMAT, true, false)
}
/// `.NaN`: a NaN operand wins.
fn min_nan<T: Real>(a: u64, b: u64) -> u64 {
    super::half::extreme(a, b, T::FORMAT, false, true)
}
fn max_nan<T: Real>(a: u64, b: u64) -> u64 {
    super::half::extreme(a, b, T::FORMAT, true, true)
}
/// `.xorsign.abs`: of the magnitudes, with the exclusive or of the signs.
fn xorsign(a: u64, b: u64, f: F2) -> u64 {
    super::half::xorsign(a, b, &F32, f)
}

/// Both halves of an `.f32x2`.
fn pair2(a: u64, b: u64, f: F2) -> u64 {
    let low = 0xFFFF_FFFF;
    f(a & low, b & low) | f(a >> 32, b >> 32) << 32
}
fn pair3(a: u64, b: u64, c: u64, f: F3) -> u64 {
    let low = 0xFFFF_FFFF;
    f(a & low, b & low, c & low) | f(a >> 32, b >> 32, c >> 32) << 32
}

/// The function of a generic name for the type and the rounding mode at hand.
macro_rules! by {
    (@ $round:expr, $f:ident, $t:ident) => {
        match $round {
            Round::Nearest => $f::<$t, 0>,
            Round::Zero => $f::<$t, 1>,
            Round::Down => $f::<$t, 2>,
            Round::Up => $f::<$t, 3>,
        }
    };
    ($round:expr, $ty:expr, $f:ident) => {
        if $ty == Ty::F64 { by!(@ $round, $f, Double) } else { by!(@ $round, $f, Single) }
    };
}
macro_rules! of {
    ($ty:expr, $f:ident) => {
        if $ty == Ty::F64 { $f::<Double> } else { $f::<Single> }
    };
}

pub(super) fn decode(name: &str, ty: Ty, mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    if matches!(name, "min" | "max") && ty == Ty::F32 && operands.count() == 4 {
        return extreme_of_three(name, mods, operands);
    }
    let round = mods.round();
    let saturates = ty == Ty::F32 && mods.take("sat");
    let (mut a, mut b, mut c) = (None, None, None);
    match unary(name, ty, round) {
        Some(f) => a = Some(f),
        None => match binary(name, ty, round, saturates, &mut mods) {
            Some(f) => b = Some(f),
            None => c = Some(ternary(name, ty, round, saturates).ok_or_else(|| mods.unsupported())?),
        },
    }
    mods.done()?;
    if saturates && (a.is_some() || !matches!(name, "add" | "sub" | "mul" | "fma" | "mad")) {
        return Err(mods.unsupported());
    }
    let d = operands.destination(0, ty)?;
    emit(d, ty, operands, (a, b, c))
}

/// Fills in the sources that the function takes.
fn emit(d: u32, ty: Ty, mut operands: Operands<'_, '_>, f: (Option<F1>, Option<F2>, Option<F3>)) -> Decoded {
    let a = operands.source(1, ty)?;
    if let Some(f) = f.0 {
        operands.expect(2)?;
        return Ok(Op::Unary { f, d, a });
    }
    let b = operands.source(2, ty)?;
    if let Some(f) = f.1 {
        operands.expect(3)?;
        return Ok(Op::Binary { f, d, a, b });
    }
    operands.expect(4)?;
    let c = operands.source(3, ty)?;
    f.2.map(|f| Op::Ternary { f, d, a, b, c })
        .ok_or_else(|| crate::error::ParseErrorKind::Operand("no such form".into()))
}

fn unary(name: &str, ty: Ty, round: Option<Round>) -> Option<F1> {
    Some(match (name, round) {
        ("rcp", Some(round)) => by!(round, ty, rcp),
        ("sqrt", Some(round)) => by!(round, ty, sqrt),
        ("abs", None) => of!(ty, abs),
        ("neg", None) => of!(ty, neg),
        _ => return None,
    })
}

/// An absent rounding modifier on `add`, `sub` and `mul` means `.rn`.
fn binary(name: &str, ty: Ty, round: Option<Round>, saturates: bool, mods: &mut Mods<'_>) -> Option<F2> {
    let default = round.unwrap_or(Round::Nearest);
    if matches!(name, "min" | "max") && round.is_none() {
        return extreme(name, ty, mods);
    }
    if saturates {
        return match (name, default) {
            ("add", Round::Nearest) => Some(|a, b| saturate(add::<Single, 0>(a, b))),
            ("sub", Round::Nearest) => Some(|a, b| saturate(sub::<Single, 0>(a, b))),
            ("mul", Round::Nearest) => Some(|a, b| saturate(mul::<Single, 0>(a, b))),
            _ => None,
        };
    }
    Some(match name {
        "add" => by!(default, ty, add),
        "sub" => by!(default, ty, sub),
        "mul" => by!(default, ty, mul),
        "div" => by!(round?, ty, div),
        "copysign" if round.is_none() => of!(ty, copysign),
        _ => return None,
    })
}

fn ternary(name: &str, ty: Ty, round: Option<Round>, saturates: bool) -> Option<F3> {
    match (name, saturates) {
        ("fma" | "mad", false) => Some(by!(round?, ty, fma)),
        ("fma" | "mad", true) if round == Some(Round::Nearest) => Some(|a, b, c| saturate(fma::<Single, 0>(a, b, c))),
        _ => None,
    }
}

fn extreme(name: &str, ty: Ty, mods: &mut Mods<'_>) -> Option<F2> {
    let nan = ty == Ty::F32 && mods.take("NaN");
    let xor = ty == Ty::F32 && mods.take("xorsign") && mods.take("abs");
    Some(match (name == "max", nan, xor) {
        (false, false, false) => of!(ty, min),
        (true, false, false) => of!(ty, max),
        (false, true, false) => min_nan::<Single>,
        (true, true, false) => max_nan::<Single>,
        (false, false, true) => |a, b| xorsign(a, b, min::<Single>),
        (true, false, true) => |a, b| xorsign(a, b, max::<Single>),
        (false, true, true) => |a, b| xorsign(a, b, min_nan::<Single>),
        (true, true, true) => |a, b| xorsign(a, b, max_nan::<Single>),
    })
}

/// `min d, a, b, c` and `max d, a, b, c` of `.f32` (PTX ISA 8.8), the second of two steps.
fn extreme_of_three(name: &str, mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let nan = mods.take("NaN");
    mods.done()?;
    let f: F3 = match (name == "max", nan) {
        (false, false) => |a, b, c| min::<Single>(min::<Single>(a, b), c),
        (true, false) => |a, b, c| max::<Single>(max::<Single>(a, b), c),
        (false, true) => |a, b, c| min_nan::<Single>(min_nan::<Single>(a, b), c),
        (true, true) => |a, b, c| max_nan::<Single>(max_nan::<Single>(a, b), c),
    };
    let d = operands.destination(0, Ty::F32)?;
    emit(d, Ty::F32, operands, (None, None, Some(f)))
}

/// `add`, `sub`, `mul` and `fma` on `.f32x2`: two independent f32 operations.
pub(super) fn decode_pair(name: &str, mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    macro_rules! paired {
        ($round:expr, $f:ident, $pair:ident, $($x:ident)*) => {
            match $round {
                Round::Nearest => |$($x),*| $pair($($x,)* $f::<Single, 0>),
                Round::Zero => |$($x),*| $pair($($x,)* $f::<Single, 1>),
                Round::Down => |$($x),*| $pair($($x,)* $f::<Single, 2>),
                Round::Up => |$($x),*| $pair($($x,)* $f::<Single, 3>),
            }
        };
    }
    let round = mods.round();
    let default = round.unwrap_or(Round::Nearest);
    mods.done()?;
    let two: Option<F2> = match name {
        "add" => Some(paired!(default, add, pair2, a b)),
        "sub" => Some(paired!(default, sub, pair2, a b)),
        "mul" => Some(paired!(default, mul, pair2, a b)),
        _ => None,
    };
    let three: Option<F3> = match (name, round) {
        ("fma", Some(round)) => Some(paired!(round, fma, pair3, a b c)),
        _ => None,
    };
    if two.is_none() && three.is_none() {
        return Err(mods.unsupported());
    }
    let d = operands.destination(0, Ty::F32x2)?;
    emit(d, Ty::F32x2, operands, (None, two, three))
}
