//! Sorts the arithmetic instructions by type: the same name means different sections of the ISA.

use super::mods::Mods;
use super::{Decoded, float, half, integer, packed};
use crate::lower::Operands;
use crate::ty::Ty;

pub(super) fn decode(name: &str, mut mods: Mods<'_>, operands: Operands<'_, '_>) -> Decoded {
    let ty = mods.ty()?;
    match ty {
        Ty::F32 | Ty::F64 => float::decode(name, ty, mods, operands),
        Ty::F16 | Ty::Bf16 | Ty::F16x2 | Ty::Bf16x2 => half::decode(name, ty, mods, operands),
        Ty::U16x2 | Ty::S16x2 | Ty::F32x2 => packed::decode(name, ty, mods, operands),
        Ty::U(16 | 32 | 64) | Ty::S(16 | 32 | 64) => integer::decode(name, ty, mods, operands),
        _ => Err(mods.unsupported()),
    }
}
