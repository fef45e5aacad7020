//! "Data Movement and Conversion Instructions: mov, cvta, isspacep".

use super::Decoded;
use super::mods::Mods;
use crate::layout::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, resolve};
use crate::lower::Operands;
use crate::program::{AccessSpace, F1, Op};
use crate::ty::Ty;

pub(super) fn decode(name: &str, mods: Mods<'_>, operands: Operands<'_, '_>) -> Decoded {
    match name {
        "cvta" => convert_address(mods, operands),
        "isspacep" => in_space(mods, operands),
        _ => copy(mods, operands),
    }
}

/// `mov`: a copy, or a packing of a vector into a register, or the reverse.
fn copy(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let ty = mods.ty()?;
    mods.done()?;
    operands.expect(2)?;
    if operands.is_vector(0) || operands.is_vector(1) {
        return pack(ty, &mods, operands);
    }
    if !matches!(ty, Ty::Pred | Ty::B(16 | 32 | 64) | Ty::U(16 | 32 | 64) | Ty::S(16 | 32 | 64) | Ty::F32 | Ty::F64) {
        return Err(mods.unsupported());
    }
    Ok(Op::Move { d: operands.destination(0, ty)?, a: operands.source(1, ty)? })
}

/// `mov.b32 d, {a, b}` and `mov.b32 {d, e}, a`: element 0 is the lowest.
fn pack(ty: Ty, mods: &Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let vector = usize::from(operands.is_vector(1));
    let (element, count) = operands.element_type(vector)?;
    let elements = u32::try_from(count).unwrap_or(0);
    if !matches!(ty, Ty::B(16 | 32 | 64))
        || element.bits() * elements != ty.bits()
        || element.bits() < 8
        || elements < 2
    {
        return Err(mods.unsupported());
    }
    if vector == 1 {
        let parts = operands.sources(1, Ty::B(element.bits()), false)?;
        return Ok(Op::Pack { d: operands.destination(0, ty)?, parts, bits: element.bits() });
    }
    let (parts, _) = operands.destinations(0, Ty::B(element.bits()), false)?;
    Ok(Op::Unpack { a: operands.source(1, ty)?, parts, bits: element.bits() })
}

/// `cvta.space` to a generic address, `cvta.to.space` from one. Global addresses are generic addresses.
fn convert_address(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let ty = mods.ty()?;
    let to = mods.take("to");
    let space = mods.require_from(&[
        ("global", None),
        ("const", None),
        ("shared", Some(SHARED_WINDOW)),
        ("shared::cta", Some(SHARED_WINDOW)),
        ("local", Some(LOCAL_WINDOW)),
        ("param", Some(PARAM_WINDOW)),
        ("param::entry", Some(PARAM_WINDOW)),
    ])?;
    mods.done()?;
    operands.expect(2)?;
    if ty != Ty::U(64) {
        return Err(mods.unsupported());
    }
    let d = operands.destination(0, ty)?;
    let a = operands.source(1, ty)?;
    Ok(match space {
        None => Op::Move { d, a },
        Some(window) => {
            let b = operands.constant(window);
            Op::Binary { f: if to { u64::wrapping_sub } else { u64::wrapping_add }, d, a, b }
        }
    })
}

/// `isspacep.space p, a`
fn in_space(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let f: F1 = mods.require_from(&[
        ("global", (|a| is(a, AccessSpace::Global)) as F1),
        ("shared", |a| is(a, AccessSpace::Shared)),
        ("shared::cta", |a| is(a, AccessSpace::Shared)),
        ("local", |a| is(a, AccessSpace::Local)),
    ])?;
    mods.done()?;
    operands.expect(2)?;
    Ok(Op::Unary { f, d: operands.destination(0, Ty::Pred)?, a: operands.source(1, Ty::U(64))? })
}

fn is(address: u64, space: AccessSpace) -> u64 {
    u64::from(resolve(address).0 == space)
}
