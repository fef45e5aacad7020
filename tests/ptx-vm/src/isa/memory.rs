//! "Data Movement and Conversion Instructions: ld, st, prefetch", "Parallel Synchronization Instructions: atom, red".

use super::Decoded;
use super::integer::{Int, S32, S64, U32, U64};
use super::mods::Mods;
use crate::error::ParseErrorKind;
use crate::lower::Operands;
use crate::program::{Access, AccessSpace, F3, Op};
use crate::ty::Ty;

/// The new value of an atomic, from the old value and the operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AtomicOp(pub(crate) F3);

const SPACES: [(&str, AccessSpace); 9] = [
    ("global", AccessSpace::Global),
    ("const", AccessSpace::Global),
    ("shared", AccessSpace::Shared),
    ("shared::cta", AccessSpace::Shared),
    ("local", AccessSpace::Local),
    ("param", AccessSpace::Param),
    ("param::entry", AccessSpace::Param),
    ("param::func", AccessSpace::Param),
    ("generic", AccessSpace::Generic),
];

/// Hints that change no value: cache operators, eviction priorities, prefetch sizes.
const HINTS: [&str; 21] = [
    "ca",
    "cg",
    "cs",
    "lu",
    "cv",
    "wb",
    "wt",
    "L1::evict_normal",
    "L1::evict_unchanged",
    "L1::evict_first",
    "L1::evict_last",
    "L1::no_allocate",
    "L2::evict_normal",
    "L2::evict_first",
    "L2::evict_last",
    "L2::64B",
    "L2::128B",
    "L2::256B",
    "unified",
    "weak",
    "volatile",
];

fn take_hints(mods: &mut Mods<'_>) {
    for hint in HINTS {
        mods.take(hint);
    }
}

/// Takes a memory order that makes the access strong, with its scope. A cluster is more than this machine has.
fn take_strong(mods: &mut Mods<'_>) -> bool {
    let strong = ["relaxed", "acquire", "release", "acq_rel"].iter().any(|order| mods.take(order));
    for scope in ["cta", "gpu", "sys"] {
        mods.take(scope);
    }
    strong
}

pub(super) fn decode(name: &str, mut mods: Mods<'_>, operands: Operands<'_, '_>) -> Decoded {
    match name {
        "ld" => load(mods, operands),
        "st" => store(mods, operands),
        "atom" | "red" => atomic(name == "atom", mods, operands),
        "prefetch" => {
            mods.take_from(&SPACES);
            let _ = mods.take("L1") || mods.take("L2");
            mods.done()?;
            operands.expect(1)?;
            Ok(Op::Nothing)
        }
        _ => Err(mods.unsupported()),
    }
}

/// Type, space and elements common to loads and stores.
struct Form {
    ty: Ty,
    space: AccessSpace,
    elements: u32,
    strong: bool,
    non_coherent: bool,
}

fn form(mods: &mut Mods<'_>, loads: bool) -> Result<Form, ParseErrorKind> {
    let ty = mods.ty()?;
    let non_coherent = loads && mods.take("nc");
    let constant = mods.take("const");
    let space = mods.take_from(&SPACES).unwrap_or(if constant { AccessSpace::Global } else { AccessSpace::Generic });
    let elements = mods.take_from(&[("v2", 2), ("v4", 4), ("v8", 8)]).unwrap_or(1);
    let strong = take_strong(mods);
    take_hints(mods);
    mods.done()?;
    let size = ty.bits() * elements;
    let scalar = matches!(ty, Ty::B(8 | 16 | 32 | 64) | Ty::U(_) | Ty::S(_) | Ty::F32 | Ty::F64);
    let wide = size <= 128 || (size == 256 && space == AccessSpace::Global && ty.bits() >= 32);
    if !scalar || !wide || (constant && !loads) || (non_coherent && space != AccessSpace::Global) {
        return Err(mods.unsupported());
    }
    Ok(Form { ty, space, elements, strong, non_coherent })
}

impl Form {
    fn access(&self, operands: &mut Operands<'_, '_>, index: usize, sign_to: u32) -> Result<Access, ParseErrorKind> {
        if self.strong {
            operands.mark_ordered();
        }
        Ok(Access {
            bytes: u8::try_from(self.ty.bytes()).unwrap_or(0),
            sign_to: u8::try_from(sign_to).unwrap_or(0),
            strong: self.strong,
            non_coherent: self.non_coherent,
            ..operands.address(index, self.space)?
        })
    }

    fn check(&self, count: u32, mods: &Mods<'_>) -> Result<(), ParseErrorKind> {
        if count == self.elements { Ok(()) } else { Err(mods.unsupported()) }
    }
}

/// `ld`: elements are zero- or sign-extended to their registers.
fn load(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let form = form(&mut mods, true)?;
    operands.expect(2)?;
    let (to, width) = operands.destinations(0, form.ty, true)?;
    form.check(to.count, &mods)?;
    let access = form.access(&mut operands, 1, if form.ty.is_signed() { width } else { 0 })?;
    Ok(Op::Load { access, to })
}

/// `st`: the low bits of wider registers are stored.
fn store(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let form = form(&mut mods, false)?;
    operands.expect(2)?;
    let from = operands.sources(1, form.ty, true)?;
    form.check(from.count, &mods)?;
    let access = form.access(&mut operands, 0, 0)?;
    Ok(Op::Store { access, from })
}

/// `atom d, [a], b{, c}` and `red [a], b`. Floating-point additions are refused: their result depends on the order, and on
/// global memory they flush subnormals.
fn atomic(returns: bool, mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let ty = mods.ty()?;
    let space = mods.take_from(&SPACES).unwrap_or(AccessSpace::Generic);
    take_strong(&mut mods);
    let f = function(&mut mods, ty, returns)?;
    mods.done()?;
    if matches!(space, AccessSpace::Local | AccessSpace::Param) {
        return Err(mods.unsupported());
    }
    let at = usize::from(returns);
    let d = if returns { operands.destination(0, ty)? } else { operands.sink() };
    let b = operands.source(at + 1, ty)?;
    let swaps = operands.count() == at + 3;
    let c = if swaps { operands.source(at + 2, ty)? } else { b };
    if swaps != f.1 || operands.count() != at + 2 + usize::from(f.1) {
        return Err(mods.unsupported());
    }
    operands.mark_ordered();
    let bytes = u8::try_from(ty.bytes()).unwrap_or(0);
    let access = Access { bytes, strong: true, ..operands.address(at, space)? };
    Ok(Op::Atomic { access, op: AtomicOp(f.0), d, b, c })
}

/// The operation and whether it takes a third operand.
fn function(mods: &mut Mods<'_>, ty: Ty, returns: bool) -> Result<(F3, bool), ParseErrorKind> {
    let bits = matches!(ty, Ty::B(32 | 64));
    if returns && bits && mods.take("cas") {
        return Ok((|old, b, c| if old == b { c } else { old }, true));
    }
    if returns && bits && mods.take("exch") {
        return Ok((|_, b, _| b, false));
    }
    let logic: [(&str, F3); 3] = [("and", |a, b, _| a & b), ("or", |a, b, _| a | b), ("xor", |a, b, _| a ^ b)];
    let found = match ty {
        Ty::B(32 | 64) => mods.take_from(&logic),
        Ty::U(32) => mods.take_from(&integer::<U32>()).or_else(|| mods.take_from(&wrapping())),
        Ty::U(64) => mods.take_from(&integer::<U64>()),
        Ty::S(32) => mods.take_from(&integer::<S32>()),
        Ty::S(64) => mods.take_from(&integer::<S64>()[1..]),
        _ => None,
    };
    found.map(|f| (f, false)).ok_or_else(|| mods.unsupported())
}

fn integer<T: Int>() -> [(&'static str, F3); 3] {
    [
        ("add", |a, b, _| T::wrap(T::value(a) + T::value(b))),
        ("min", |a, b, _| T::wrap(T::value(a).min(T::value(b)))),
        ("max", |a, b, _| T::wrap(T::value(a).max(T::value(b)))),
    ]
}

/// `.inc` and `.dec` of `.u32`.
fn wrapping() -> [(&'static str, F3); 2] {
    [
        ("inc", |old, limit, _| if old >= limit { 0 } else { old + 1 }),
        ("dec", |old, limit, _| if old == 0 || old > limit { limit } else { old - 1 }),
    ]
}
