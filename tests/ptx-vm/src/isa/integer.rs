//! Integer Arithmetic Instructions, and Extended-Precision Integer Arithmetic Instructions.

use super::Decoded;
use super::mods::Mods;
use crate::lower::Operands;
use crate::program::{F1, F2, F3, FChecked, FMany, Op};
use crate::ty::Ty;

/// A width and signedness of integers held in the low bits of a register.
pub(super) trait Int {
    const BITS: u32;
    const SIGNED: bool;

    fn mask() -> u64 {
        u64::MAX >> (64 - Self::BITS)
    }
    /// The value of a register.
    fn value(bits: u64) -> i128 {
        let low = bits & Self::mask();
        if Self::SIGNED {
            i128::from((low << (64 - Self::BITS)).cast_signed() >> (64 - Self::BITS))
        } else {
            i128::from(low)
        }
    }
    /// The low bits of a value: arithmetic wraps around.
    #[allow(clippy::cast_possible_truncation, reason = "keeping the low 64 bits is the point")]
    fn wrap(value: i128) -> u64 {
        value.cast_unsigned() as u64 & Self::mask()
    }
    fn lowest() -> i128 {
        if Self::SIGNED { -(1 << (Self::BITS - 1)) } else { 0 }
    }
    fn highest() -> i128 {
        if Self::SIGNED { (1 << (Self::BITS - 1)) - 1 } else { (1 << Self::BITS) - 1 }
    }
}

macro_rules! ints {
    ($($name:ident $bits:literal $signed:literal),*) => { $(
        pub(super) struct $name;
        impl Int for $name {
            const BITS: u32 = $bits;
            const SIGNED: bool = $signed;
        }
    )* };
}
ints!(U16 16 false, U32 32 false, U64 64 false, S16 16 true, S32 32 true, S64 64 true);

/// The function of a generic name for the integer type at hand.
macro_rules! for_type {
    ($ty:expr, $f:ident) => {
        match $ty {
            Ty::U(16) => $f::<U16>,
            Ty::U(32) => $f::<U32>,
            Ty::U(64) => $f::<U64>,
            Ty::S(16) => $f::<S16>,
            Ty::S(32) => $f::<S32>,
            _ => $f::<S64>,
        }
    };
}
pub(super) use for_type;

/// "Integer Arithmetic Instructions: add"
fn add<T: Int>(a: u64, b: u64) -> u64 {
    a.wrapping_add(b) & T::mask()
}
/// "Integer Arithmetic Instructions: sub"
fn sub<T: Int>(a: u64, b: u64) -> u64 {
    a.wrapping_sub(b) & T::mask()
}
/// "add.sat.s32": clamped to the type's range.
fn add_sat<T: Int>(a: u64, b: u64) -> u64 {
    T::wrap((T::value(a) + T::value(b)).clamp(T::lowest(), T::highest()))
}
/// "sub.sat.s32"
fn sub_sat<T: Int>(a: u64, b: u64) -> u64 {
    T::wrap((T::value(a) - T::value(b)).clamp(T::lowest(), T::highest()))
}
/// "Integer Arithmetic Instructions: mul", `.lo`
fn mul_lo<T: Int>(a: u64, b: u64) -> u64 {
    a.wrapping_mul(b) & T::mask()
}
/// `mul.hi`
fn mul_hi<T: Int>(a: u64, b: u64) -> u64 {
    T::wrap((T::value(a).wrapping_mul(T::value(b))) >> T::BITS)
}
/// u64 products need all 128 bits unsigned.
fn mul_hi_u64(a: u64, b: u64) -> u64 {
    U64::wrap(((u128::from(a) * u128::from(b)) >> 64).cast_signed())
}
/// `mul.wide`: twice the width.
#[allow(clippy::cast_possible_truncation, reason = "a product of 32-bit values fits 64 bits")]
fn mul_wide<T: Int>(a: u64, b: u64) -> u64 {
    let product = (T::value(a) * T::value(b)).cast_unsigned() as u64;
    if T::BITS == 16 { product & 0xFFFF_FFFF } else { product }
}
/// "Integer Arithmetic Instructions: mad", `.lo`
fn mad_lo<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    mul_lo::<T>(a, b).wrapping_add(c) & T::mask()
}
/// `mad.hi`
fn mad_hi<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    high::<T>(a, b).wrapping_add(c) & T::mask()
}
/// `mad.wide`
fn mad_wide<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    let sum = mul_wide::<T>(a, b).wrapping_add(c);
    if T::BITS == 16 { sum & 0xFFFF_FFFF } else { sum }
}
/// `mad.hi.sat.s32`
fn mad_hi_sat<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    add_sat::<T>(high::<T>(a, b), c)
}
fn high<T: Int>(a: u64, b: u64) -> u64 {
    if T::BITS == 64 && !T::SIGNED { mul_hi_u64(a, b) } else { mul_hi::<T>(a, b) }
}
/// "Integer Arithmetic Instructions: div"; by zero it is unspecified.
fn div<T: Int>(s: [u64; 4]) -> Option<u64> {
    T::value(s[0]).checked_div(T::value(s[1])).map(T::wrap)
}
/// "Integer Arithmetic Instructions: rem"; by zero it is unspecified.
fn rem<T: Int>(s: [u64; 4]) -> Option<u64> {
    T::value(s[0]).checked_rem(T::value(s[1])).map(T::wrap)
}
/// "Integer Arithmetic Instructions: abs"
fn abs<T: Int>(a: u64) -> u64 {
    T::wrap(T::value(a).abs())
}
/// "Integer Arithmetic Instructions: neg"
fn neg<T: Int>(a: u64) -> u64 {
    T::wrap(-T::value(a))
}
/// "Integer Arithmetic Instructions: min"
fn min<T: Int>(a: u64, b: u64) -> u64 {
    T::wrap(T::value(a).min(T::value(b)))
}
/// "Integer Arithmetic Instructions: max"
fn max<T: Int>(a: u64, b: u64) -> u64 {
    T::wrap(T::value(a).max(T::value(b)))
}
/// `.relu`: negative results become 0.
fn min_relu<T: Int>(a: u64, b: u64) -> u64 {
    T::wrap(T::value(a).min(T::value(b)).max(0))
}
fn max_relu<T: Int>(a: u64, b: u64) -> u64 {
    T::wrap(T::value(a).max(T::value(b)).max(0))
}
/// "Integer Arithmetic Instructions: sad"
fn sad<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    T::wrap((T::value(a) - T::value(b)).abs() + T::value(c))
}
/// "Integer Arithmetic Instructions: mul24", the low 32 bits of the product of the low 24 bits.
fn mul24_lo<T: Int>(a: u64, b: u64) -> u64 {
    T::wrap(low24::<T>(a) * low24::<T>(b))
}
/// `mul24.hi`: bits 47 to 16.
fn mul24_hi<T: Int>(a: u64, b: u64) -> u64 {
    T::wrap((low24::<T>(a) * low24::<T>(b)) >> 16)
}
/// "Integer Arithmetic Instructions: mad24"
fn mad24_lo<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    mul24_lo::<T>(a, b).wrapping_add(c) & T::mask()
}
fn mad24_hi<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    mul24_hi::<T>(a, b).wrapping_add(c) & T::mask()
}
fn low24<T: Int>(a: u64) -> i128 {
    let low = i128::from(a & 0xFF_FFFF);
    if T::SIGNED && low >> 23 == 1 { low - (1 << 24) } else { low }
}

/// `add.cc`, `addc`, `addc.cc`: sources a, b, carry in; results sum, carry out.
fn add_carry<T: Int>(s: [u64; 4]) -> [u64; 2] {
    let sum = u128::from(s[0]) + u128::from(s[1]) + u128::from(s[2]);
    [T::wrap(sum.cast_signed()), u64::from(sum >> T::BITS != 0)]
}
/// `sub.cc`, `subc`, `subc.cc`: the carry flag holds the borrow.
fn sub_borrow<T: Int>(s: [u64; 4]) -> [u64; 2] {
    let difference = i128::from(s[0]) - i128::from(s[1]) - i128::from(s[2]);
    [T::wrap(difference), u64::from(difference < 0)]
}
/// `mad.lo.cc`, `madc.lo`: sources a, b, c, carry in.
fn mad_lo_carry<T: Int>(s: [u64; 4]) -> [u64; 2] {
    add_carry::<T>([mul_lo::<T>(s[0], s[1]), s[2], s[3], 0])
}
/// `mad.hi.cc`, `madc.hi`
fn mad_hi_carry<T: Int>(s: [u64; 4]) -> [u64; 2] {
    add_carry::<T>([high::<T>(s[0], s[1]), s[2], s[3], 0])
}

pub(super) fn decode(name: &str, ty: Ty, mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    if mods.take("cc") || matches!(name, "addc" | "subc" | "madc") {
        return carrying(name, ty, mods, operands);
    }
    if let Some(f) = unary(name, ty) {
        mods.done()?;
        operands.expect(2)?;
        return Ok(Op::Unary { f, d: operands.destination(0, ty)?, a: operands.source(1, ty)? });
    }
    if matches!(name, "div" | "rem") {
        return division(name, ty, &mods, operands);
    }
    if let Some((f, wide)) = binary(name, ty, &mut mods) {
        mods.done()?;
        operands.expect(3)?;
        let d = operands.destination(0, if wide { double(ty) } else { ty })?;
        return Ok(Op::Binary { f, d, a: operands.source(1, ty)?, b: operands.source(2, ty)? });
    }
    let Some((f, wide)) = ternary(name, ty, &mut mods) else { return Err(mods.unsupported()) };
    mods.done()?;
    operands.expect(4)?;
    let result = if wide { double(ty) } else { ty };
    let d = operands.destination(0, result)?;
    Ok(Op::Ternary { f, d, a: operands.source(1, ty)?, b: operands.source(2, ty)?, c: operands.source(3, result)? })
}

fn division(name: &str, ty: Ty, mods: &Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    mods.done()?;
    operands.expect(3)?;
    let f: FChecked = if name == "div" { for_type!(ty, div) } else { for_type!(ty, rem) };
    let (d, zero) = (operands.destination(0, ty)?, operands.constant(0));
    let s = [operands.source(1, ty)?, operands.source(2, ty)?, zero, zero];
    Ok(Op::Checked { f, d, s, why: "division by zero" })
}

fn unary(name: &str, ty: Ty) -> Option<F1> {
    match name {
        "abs" if ty.is_signed() => Some(for_type!(ty, abs)),
        "neg" if ty.is_signed() => Some(for_type!(ty, neg)),
        _ => None,
    }
}

/// The function and whether its result is twice as wide.
fn binary(name: &str, ty: Ty, mods: &mut Mods<'_>) -> Option<(F2, bool)> {
    let saturates = ty == Ty::S(32) && matches!(name, "add" | "sub") && mods.take("sat");
    let relu = ty == Ty::S(32) && matches!(name, "min" | "max") && mods.take("relu");
    Some((
        match name {
            "add" if saturates => add_sat::<S32>,
            "sub" if saturates => sub_sat::<S32>,
            "min" if relu => min_relu::<S32>,
            "max" if relu => max_relu::<S32>,
            "add" => for_type!(ty, add),
            "sub" => for_type!(ty, sub),
            "min" => for_type!(ty, min),
            "max" => for_type!(ty, max),
            "mul" if mods.take("lo") => for_type!(ty, mul_lo),
            "mul" if mods.take("hi") => for_type!(ty, high),
            "mul" if ty.bits() < 64 && mods.take("wide") => return Some((for_type!(ty, mul_wide), true)),
            "mul24" if ty.bits() == 32 && mods.take("lo") => for_type!(ty, mul24_lo),
            "mul24" if ty.bits() == 32 && mods.take("hi") => for_type!(ty, mul24_hi),
            _ => return None,
        },
        false,
    ))
}

fn ternary(name: &str, ty: Ty, mods: &mut Mods<'_>) -> Option<(F3, bool)> {
    Some((
        match name {
            "mad" if mods.take("lo") => for_type!(ty, mad_lo),
            "mad" if mods.take("hi") => match ty {
                Ty::S(32) if mods.take("sat") => mad_hi_sat::<S32>,
                _ => for_type!(ty, mad_hi),
            },
            "mad" if ty.bits() < 64 && mods.take("wide") => return Some((for_type!(ty, mad_wide), true)),
            "mad24" if ty.bits() == 32 && mods.take("lo") => for_type!(ty, mad24_lo),
            "mad24" if ty.bits() == 32 && mods.take("hi") => for_type!(ty, mad24_hi),
            "sad" => for_type!(ty, sad),
            _ => return None,
        },
        false,
    ))
}

/// The forms that read or write the carry flag.
fn carrying(name: &str, ty: Ty, mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    if ty.bits() < 32 {
        return Err(mods.unsupported());
    }
    let writes = matches!(name, "add" | "sub" | "mad") || mods.take("cc");
    let f: FMany = match name {
        "add" | "addc" => for_type!(ty, add_carry),
        "sub" | "subc" => for_type!(ty, sub_borrow),
        "mad" | "madc" if mods.take("lo") => for_type!(ty, mad_lo_carry),
        "mad" | "madc" if mods.take("hi") => for_type!(ty, mad_hi_carry),
        _ => return Err(mods.unsupported()),
    };
    mods.done()?;
    let zero = operands.constant(0);
    let carry = operands.carry();
    let carry_in = if matches!(name, "addc" | "subc" | "madc") { carry } else { zero };
    let carry_out = if writes { carry } else { operands.sink() };
    let d = [operands.destination(0, ty)?, carry_out];
    let (a, b) = (operands.source(1, ty)?, operands.source(2, ty)?);
    let multiplies = matches!(name, "mad" | "madc");
    operands.expect(if multiplies { 4 } else { 3 })?;
    let s = if multiplies { [a, b, operands.source(3, ty)?, carry_in] } else { [a, b, carry_in, zero] };
    Ok(Op::Many { f, d, s })
}

fn double(ty: Ty) -> Ty {
    match ty {
        Ty::U(bits) => Ty::U(bits * 2),
        Ty::S(bits) => Ty::S(bits * 2),
        other => other,
    }
}
