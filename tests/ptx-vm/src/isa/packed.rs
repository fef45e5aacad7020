//! Two 16-bit integers, or two f32, side by side in one register.

use super::Decoded;
use super::float;
use super::mods::Mods;
use crate::lower::Operands;
use crate::program::{F2, Op};
use crate::ty::Ty;

/// Signed halves of a register.
fn signed(a: u64) -> [i32; 2] {
    let word = a & 0xFFFF_FFFF;
    [half(word), half(word >> 16)].map(i32::from)
}
#[allow(clippy::cast_possible_truncation, reason = "the low 16 bits are the half")]
fn half(a: u64) -> i16 {
    (a as u16).cast_signed()
}
fn unsigned(a: u64) -> [i32; 2] {
    signed(a).map(|x| x & 0xFFFF)
}
fn join(halves: [i32; 2]) -> u64 {
    let [low, high] = halves.map(|x| u64::from(x.cast_unsigned() & 0xFFFF));
    low | high << 16
}
fn zip(a: [i32; 2], b: [i32; 2], f: impl Fn(i32, i32) -> i32) -> u64 {
    join([f(a[0], b[0]), f(a[1], b[1])])
}

/// "Integer Arithmetic Instructions: add, sub, min, max", types `.u16x2` and `.s16x2`.
fn function(name: &str, ty: Ty, mods: &mut Mods<'_>) -> Option<F2> {
    let relu = ty == Ty::S16x2 && mods.take("relu");
    Some(match (name, ty) {
        ("min", Ty::S16x2) if relu => |a, b| zip(signed(a), signed(b), |x, y| x.min(y).max(0)),
        ("max", Ty::S16x2) if relu => |a, b| zip(signed(a), signed(b), |x, y| x.max(y).max(0)),
        _ if relu => return None,
        ("add", _) => |a, b| zip(signed(a), signed(b), |x, y| x + y),
        ("sub", _) => |a, b| zip(signed(a), signed(b), |x, y| x - y),
        ("min", Ty::S16x2) => |a, b| zip(signed(a), signed(b), i32::min),
        ("max", Ty::S16x2) => |a, b| zip(signed(a), signed(b), i32::max),
        ("min", Ty::U16x2) => |a, b| zip(unsigned(a), unsigned(b), i32::min),
        ("max", Ty::U16x2) => |a, b| zip(unsigned(a), unsigned(b), i32::max),
        _ => return None,
    })
}

pub(super) fn decode(name: &str, ty: Ty, mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    if ty == Ty::F32x2 {
        return float::decode_pair(name, mods, operands);
    }
    let f = function(name, ty, &mut mods).ok_or_else(|| mods.unsupported())?;
    mods.done()?;
    operands.expect(3)?;
    Ok(Op::Binary { f, d: operands.destination(0, ty)?, a: operands.source(1, ty)?, b: operands.source(2, ty)? })
}
