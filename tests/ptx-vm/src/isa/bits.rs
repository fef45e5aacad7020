//! Logic and Shift Instructions, and the bit-field instructions of the integer section.

use super::Decoded;
use super::integer::{Int, S16, S32, S64, U16, U32, U64, for_type};
use super::mods::Mods;
use crate::lower::Operands;
use crate::program::{F1, F2, F3, Op};
use crate::ty::Ty;

/// "Logic and Shift Instructions: shl": amounts beyond the width give 0.
fn shl<T: Int>(a: u64, b: u64) -> u64 {
    if b >= u64::from(T::BITS) { 0 } else { a << b & T::mask() }
}
/// "Logic and Shift Instructions: shr": amounts are clamped to the width; signed types fill with the sign.
fn shr<T: Int>(a: u64, b: u64) -> u64 {
    let by = b.min(u64::from(T::BITS));
    T::wrap(T::value(a) >> by)
}
fn not<T: Int>(a: u64) -> u64 {
    !a & T::mask()
}
/// "Logic and Shift Instructions: cnot": 1 for 0, else 0.
fn cnot(a: u64) -> u64 {
    u64::from(a == 0)
}
/// "Integer Arithmetic Instructions: popc"
fn popc(a: u64) -> u64 {
    u64::from(a.count_ones())
}
/// "Integer Arithmetic Instructions: clz"
fn clz<T: Int>(a: u64) -> u64 {
    u64::from((a & T::mask()).leading_zeros() - (64 - T::BITS))
}
/// "Integer Arithmetic Instructions: brev"
fn brev<T: Int>(a: u64) -> u64 {
    a.reverse_bits() >> (64 - T::BITS)
}
/// "Integer Arithmetic Instructions: bfind": position of the highest bit that differs from the sign.
fn bfind<T: Int>(a: u64) -> u64 {
    let value = T::value(a);
    let bits = if value < 0 { !value } else { value };
    if bits == 0 { 0xFFFF_FFFF } else { u64::from(127 - bits.leading_zeros()) }
}
fn bfind_shift<T: Int>(a: u64) -> u64 {
    let at = bfind::<T>(a);
    if at == 0xFFFF_FFFF { at } else { u64::from(T::BITS - 1) - at }
}
/// "Integer Arithmetic Instructions: bfe". Position and length are restricted to 0..255; of larger ones the 32-bit forms use
/// the low 8 bits, as the ISA's pseudocode does, but the 64-bit forms of an H200 do not, so there they have no result.
fn bfe<T: Int>(a: u64, b: u64, c: u64) -> u64 {
    let (position, length) = (b & 0xFF, c & 0xFF);
    if length == 0 {
        return 0;
    }
    let width = u64::from(T::BITS);
    // Bits beyond the top read as the field's sign, which is what an arithmetic shift of the whole value gives.
    let shifted = if T::SIGNED { T::value(a) >> position.min(width) } else { i128::from(shl_right(a, position)) };
    if length >= width {
        return T::wrap(shifted);
    }
    let field = shifted & ((1 << length) - 1);
    let negative = T::SIGNED && field >> (length - 1) & 1 == 1;
    T::wrap(if negative { field - (1 << length) } else { field })
}
fn shl_right(a: u64, by: u64) -> u64 {
    if by >= 64 { 0 } else { a >> by }
}
fn bfe_64<T: Int>(s: [u64; 4]) -> Option<u64> {
    (s[1] <= 255 && s[2] <= 255).then(|| bfe::<T>(s[0], s[1], s[2]))
}
/// "Integer Arithmetic Instructions: bfi": inserts `a` into `b`; position and length as for `bfe`.
fn bfi_64(s: [u64; 4]) -> Option<u64> {
    (s[2] <= 255 && s[3] <= 255).then(|| bfi::<U64>(s)[0])
}
fn bfi<T: Int>(s: [u64; 4]) -> [u64; 2] {
    let (position, length) = (s[2] & 0xFF, s[3] & 0xFF);
    let ones = if length >= 64 { u64::MAX } else { (1 << length) - 1 };
    let mask = if position >= u64::from(T::BITS) { 0 } else { ones << position & T::mask() };
    let field = if position >= 64 { 0 } else { s[0] << position };
    [(s[1] & !mask) | (field & mask), 0]
}
/// "Integer Arithmetic Instructions: szext"
fn szext<T: Int, const CLAMP: bool>(a: u64, b: u64) -> u64 {
    let bits = b & 31;
    if b >= 32 && CLAMP {
        return a;
    }
    let low = a & ((1 << bits) - 1);
    let negative = T::SIGNED && bits > 0 && low >> (bits - 1) & 1 == 1;
    if negative { (low | u64::MAX << bits) & 0xFFFF_FFFF } else { low }
}
/// "Integer Arithmetic Instructions: bmsk": `b` ones from position `a`.
fn bmsk<const CLAMP: bool>(a: u64, b: u64) -> u64 {
    let (position, width) = if CLAMP { (a.min(32), b.min(32)) } else { (a & 31, b & 31) };
    (((1 << width) - 1) << position) & 0xFFFF_FFFF
}
/// "Logic and Shift Instructions: lop3": bit by bit, the look-up table's bit `abc`.
fn lop3(s: [u64; 4]) -> [u64; 2] {
    let [a, b, c, table] = s;
    let pick = |index: u64| if table >> index & 1 == 1 { u64::MAX } else { 0 };
    let word = (0..8).fold(0, |word, index| {
        let side = |x: u64, bit: u64| if index >> bit & 1 == 1 { x } else { !x };
        word | (side(a, 2) & side(b, 1) & side(c, 0) & pick(index))
    });
    [word & 0xFFFF_FFFF, 0]
}
/// "Logic and Shift Instructions: shf": funnel shift of `b:a`.
fn shf<const LEFT: bool, const CLAMP: bool>(a: u64, b: u64, c: u64) -> u64 {
    let by = if CLAMP { c.min(32) } else { c & 31 };
    let both = b << 32 | a;
    if LEFT { (u128::from(both) << by >> 32) as u64 & 0xFFFF_FFFF } else { both >> by & 0xFFFF_FFFF }
}
/// "Data Movement and Conversion Instructions: prmt", the generic form: four selectors, bit 3 replicates the sign.
fn prmt(a: u64, b: u64, c: u64) -> u64 {
    permute(a, b, [c & 15, c >> 4 & 15, c >> 8 & 15, c >> 12 & 15])
}
fn permute(a: u64, b: u64, selectors: [u64; 4]) -> u64 {
    let both = b << 32 | a;
    let byte = |selector: u64| {
        let byte = both >> (8 * (selector & 7)) & 0xFF;
        match (selector & 8 != 0, byte & 0x80 != 0) {
            (false, _) => byte,
            (true, sign) => 0xFF * u64::from(sign),
        }
    };
    (0..4u32).zip(selectors).fold(0, |word, (place, selector)| word | byte(selector) << (8 * place))
}
/// The special modes of `prmt`: the two low bits of `c` choose a row of the ISA's table.
fn prmt_mode<const MODE: usize>(a: u64, b: u64, c: u64) -> u64 {
    let s = c & 3;
    let selectors = match MODE {
        0 => [0, 1, 2, 3].map(|i| s + i),                              // f4e
        1 => [0, 7, 6, 5].map(|i| (s + i) & 7),                        // b4e
        2 => [s; 4],                                                   // rc8
        3 => [0, 1, 2, 3].map(|i| i.max(s)),                           // ecl
        4 => [0, 1, 2, 3].map(|i| i.min(s)),                           // ecr
        _ => [0, 1, 0, 1].map(|i| if s & 1 == 0 { i } else { 2 + i }), // rc16
    };
    permute(a, b, selectors)
}

pub(super) fn decode(name: &str, mut mods: Mods<'_>, operands: Operands<'_, '_>) -> Decoded {
    match name {
        "prmt" => return byte_permute(mods, operands),
        "shf" => return funnel(mods, operands),
        "szext" | "bmsk" => return masks(name, mods, operands),
        _ => {}
    }
    let ty = mods.ty()?;
    match name {
        "and" | "or" | "xor" | "not" if ty == Ty::Pred || matches!(ty, Ty::B(16 | 32 | 64)) => {
            logic(name, ty, mods, operands)
        }
        "cnot" if matches!(ty, Ty::B(16 | 32 | 64)) => one(cnot, ty, ty, mods, operands),
        "shl" if matches!(ty, Ty::B(16 | 32 | 64)) => shift(for_type!(unsigned(ty), shl), ty, mods, operands),
        "shr" if matches!(ty, Ty::B(16 | 32 | 64) | Ty::U(16 | 32 | 64) | Ty::S(16 | 32 | 64)) => {
            let ty_of = if ty.is_signed() { ty } else { unsigned(ty) };
            shift(for_type!(ty_of, shr), ty, mods, operands)
        }
        "popc" if matches!(ty, Ty::B(32 | 64)) => one(popc, Ty::U(32), ty, mods, operands),
        "clz" if matches!(ty, Ty::B(32 | 64)) => one(for_type!(unsigned(ty), clz), Ty::U(32), ty, mods, operands),
        "brev" if matches!(ty, Ty::B(32 | 64)) => one(for_type!(unsigned(ty), brev), ty, ty, mods, operands),
        "bfind" if is_word(ty) => {
            let shifts = mods.take("shiftamt");
            let f: F1 = if shifts { for_type!(ty, bfind_shift) } else { for_type!(ty, bfind) };
            one(f, Ty::U(32), ty, mods, operands)
        }
        "bfe" if is_word(ty) => fields(ty, mods, operands),
        "bfi" | "lop3" => four(name, ty, mods, operands),
        _ => Err(mods.unsupported()),
    }
}

/// Why a 64-bit field has no result.
const FIELD: &str = "bit field position or length above 255";

fn is_word(ty: Ty) -> bool {
    matches!(ty, Ty::U(32 | 64) | Ty::S(32 | 64))
}

fn unsigned(ty: Ty) -> Ty {
    Ty::U(ty.bits())
}

fn one(f: F1, result: Ty, ty: Ty, mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    mods.done()?;
    operands.expect(2)?;
    Ok(Op::Unary { f, d: operands.destination(0, result)?, a: operands.source(1, ty)? })
}

/// "Logic and Shift Instructions: and, or, xor, not"
fn logic(name: &str, ty: Ty, mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    if name == "not" {
        let f: F1 = if ty == Ty::Pred { cnot } else { for_type!(unsigned(ty), not) };
        return one(f, ty, ty, mods, operands);
    }
    mods.done()?;
    operands.expect(3)?;
    let f: F2 = match name {
        "and" => |a, b| a & b,
        "or" => |a, b| a | b,
        _ => |a, b| a ^ b,
    };
    Ok(Op::Binary { f, d: operands.destination(0, ty)?, a: operands.source(1, ty)?, b: operands.source(2, ty)? })
}

/// The amount is always a 32-bit operand.
fn shift(f: F2, ty: Ty, mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    mods.done()?;
    operands.expect(3)?;
    let d = operands.destination(0, ty)?;
    Ok(Op::Binary { f, d, a: operands.source(1, ty)?, b: operands.source(2, Ty::U(32))? })
}

fn fields(ty: Ty, mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    mods.done()?;
    operands.expect(4)?;
    let (d, a) = (operands.destination(0, ty)?, operands.source(1, ty)?);
    let (b, c) = (operands.source(2, Ty::U(32))?, operands.source(3, Ty::U(32))?);
    let zero = operands.constant(0);
    Ok(match ty {
        Ty::U(64) => Op::Checked { f: bfe_64::<U64>, d, s: [a, b, c, zero], why: FIELD },
        Ty::S(64) => Op::Checked { f: bfe_64::<S64>, d, s: [a, b, c, zero], why: FIELD },
        Ty::S(_) => Op::Ternary { f: bfe::<S32>, d, a, b, c },
        _ => Op::Ternary { f: bfe::<U32>, d, a, b, c },
    })
}

/// `bfi f, a, b, c, d` and `lop3 d, a, b, c, table`
fn four(name: &str, ty: Ty, mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    mods.done()?;
    operands.expect(5)?;
    let d = [operands.destination(0, ty)?, operands.sink()];
    let (a, b) = (operands.source(1, ty)?, operands.source(2, ty)?);
    if name == "lop3" && ty == Ty::B(32) {
        let table = operands.immediate(4)?;
        return Ok(Op::Many { f: lop3, d, s: [a, b, operands.source(3, ty)?, operands.constant(table)] });
    }
    let s = [a, b, operands.source(3, Ty::U(32))?, operands.source(4, Ty::U(32))?];
    match (name, ty) {
        ("bfi", Ty::B(32)) => Ok(Op::Many { f: bfi::<U32>, d, s }),
        ("bfi", Ty::B(64)) => Ok(Op::Checked { f: bfi_64, d: d[0], s, why: FIELD }),
        _ => Err(mods.unsupported()),
    }
}

fn three_words(f: F3, mut operands: Operands<'_, '_>) -> Decoded {
    operands.expect(4)?;
    let ty = Ty::B(32);
    let (d, a, b) = (operands.destination(0, ty)?, operands.source(1, ty)?, operands.source(2, ty)?);
    Ok(Op::Ternary { f, d, a, b, c: operands.source(3, ty)? })
}

fn byte_permute(mut mods: Mods<'_>, operands: Operands<'_, '_>) -> Decoded {
    let modes: [(&str, F3); 6] = [
        ("f4e", prmt_mode::<0>),
        ("b4e", prmt_mode::<1>),
        ("rc8", prmt_mode::<2>),
        ("ecl", prmt_mode::<3>),
        ("ecr", prmt_mode::<4>),
        ("rc16", prmt_mode::<5>),
    ];
    if !mods.take("b32") {
        return Err(mods.unsupported());
    }
    let f = mods.take_from(&modes).unwrap_or(prmt);
    mods.done()?;
    three_words(f, operands)
}

fn funnel(mut mods: Mods<'_>, operands: Operands<'_, '_>) -> Decoded {
    let ty = mods.ty()?;
    let left = mods.require_from(&[("l", true), ("r", false)])?;
    let clamp = mods.require_from(&[("clamp", true), ("wrap", false)])?;
    mods.done()?;
    if ty != Ty::B(32) {
        return Err(mods.unsupported());
    }
    let f: F3 = match (left, clamp) {
        (true, true) => shf::<true, true>,
        (true, false) => shf::<true, false>,
        (false, true) => shf::<false, true>,
        (false, false) => shf::<false, false>,
    };
    three_words(f, operands)
}

fn masks(name: &str, mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let ty = mods.ty()?;
    let clamp = mods.require_from(&[("clamp", true), ("wrap", false)])?;
    mods.done()?;
    operands.expect(3)?;
    let f: F2 = match (name, ty, clamp) {
        ("szext", Ty::U(32), true) => szext::<U32, true>,
        ("szext", Ty::U(32), false) => szext::<U32, false>,
        ("szext", Ty::S(32), true) => szext::<S32, true>,
        ("szext", Ty::S(32), false) => szext::<S32, false>,
        ("bmsk", Ty::B(32), true) => bmsk::<true>,
        ("bmsk", Ty::B(32), false) => bmsk::<false>,
        _ => return Err(mods.unsupported()),
    };
    Ok(Op::Binary { f, d: operands.destination(0, ty)?, a: operands.source(1, ty)?, b: operands.source(2, Ty::U(32))? })
}
