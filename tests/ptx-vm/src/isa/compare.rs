//! Comparison and Selection Instructions, and Half Precision Comparison Instructions.

use super::Decoded;
use super::mods::Mods;
use crate::error::ParseErrorKind;
use crate::lower::Operands;
use crate::program::{F1, F3, Op};
use crate::soft::{BF16, F16, F32, F64, Format};
use crate::ty::Ty;

/// A `set` or `setp`, as data.
#[derive(Clone, Debug)]
pub(crate) struct Comparison {
    kind: Kind,
    test: Test,
    combine: Combine,
    /// `!c`
    negated: bool,
    output: Output,
}

/// How the operands are read.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Unsigned,
    /// Width.
    Signed(u32),
    Float(&'static Format),
    /// Two floats in one register.
    Pair(&'static Format),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Number,
    Nan,
}

/// A relation, and whether it also holds when an operand is NaN.
#[derive(Clone, Copy, Debug)]
struct Test {
    relation: Relation,
    unordered: bool,
}

#[derive(Clone, Copy, Debug)]
enum Combine {
    None,
    And,
    Or,
    Xor,
}

/// What the result looks like.
#[derive(Clone, Copy, Debug)]
enum Output {
    /// Predicates of `setp`.
    Predicates,
    /// One register: this for true.
    Word(u64),
    /// Two halves: this for true in each.
    Halves(u64),
}

impl Comparison {
    /// "Comparison and Selection Instructions: set, setp": the two results for sources a, b and c.
    pub(crate) fn run(&self, a: u64, b: u64, c: u64) -> [u64; 2] {
        let c = (c != 0) != self.negated;
        let (low, high) = match self.kind {
            Kind::Pair(format) => {
                let half = |x: u64, shift: u32| x >> shift & 0xFFFF;
                (float(self.test, half(a, 0), half(b, 0), format), float(self.test, half(a, 16), half(b, 16), format))
            }
            Kind::Float(format) => with_complement(float(self.test, a, b, format)),
            Kind::Unsigned => with_complement(holds(self.test.relation, a, b)),
            Kind::Signed(bits) => {
                let value = |x: u64| (x << (64 - bits)).cast_signed();
                with_complement(holds(self.test.relation, value(a), value(b)))
            }
        };
        let (low, high) = (self.combine.apply(low, c), self.combine.apply(high, c));
        match self.output {
            Output::Predicates => [u64::from(low), u64::from(high)],
            Output::Word(set) => [if low { set } else { 0 }, 0],
            Output::Halves(set) => [(if low { set } else { 0 }) | (if high { set << 16 } else { 0 }), 0],
        }
    }
}

/// `q` of `p|q` takes the complement of the comparison.
fn with_complement(holds: bool) -> (bool, bool) {
    (holds, !holds)
}

impl Combine {
    fn apply(self, t: bool, c: bool) -> bool {
        match self {
            Self::None => t,
            Self::And => t && c,
            Self::Or => t || c,
            Self::Xor => t != c,
        }
    }
}

fn holds<T: PartialOrd>(relation: Relation, a: T, b: T) -> bool {
    match relation {
        Relation::Equal => a == b,
        Relation::NotEqual => a != b,
        Relation::Less => a < b,
        Relation::LessEqual => a <= b,
        Relation::Greater => a > b,
        Relation::GreaterEqual => a >= b,
        Relation::Number => true,
        Relation::Nan => false,
    }
}

/// Patterns compare as sign and magnitude; the two zeros are equal.
fn float(test: Test, a: u64, b: u64, format: &Format) -> bool {
    let limit = format.infinity.unwrap_or(format.max);
    let magnitude = |x: u64| x & format.magnitude_mask();
    if magnitude(a) > limit || magnitude(b) > limit {
        return test.unordered;
    }
    let value = |x: u64| {
        let m = magnitude(x).cast_signed();
        if x >> (format.bits - 1) & 1 == 1 { -m } else { m }
    };
    holds(test.relation, value(a), value(b))
}

/// The format of a floating-point type.
pub(super) fn format_of(ty: Ty) -> Option<&'static Format> {
    Some(match ty {
        Ty::F64 => &F64,
        Ty::F32 | Ty::F32x2 => &F32,
        Ty::F16 | Ty::F16x2 => &F16,
        Ty::Bf16 | Ty::Bf16x2 => &BF16,
        _ => return None,
    })
}

fn kind(ty: Ty) -> Option<Kind> {
    Some(match ty {
        Ty::B(16 | 32 | 64) | Ty::U(16 | 32 | 64) => Kind::Unsigned,
        Ty::S(bits @ (16 | 32 | 64)) => Kind::Signed(bits),
        Ty::F16x2 | Ty::Bf16x2 => Kind::Pair(format_of(ty)?),
        _ => Kind::Float(format_of(ty)?),
    })
}

/// The comparison operators that a type has.
fn test(mods: &mut Mods<'_>, ty: Ty) -> Result<Test, ParseErrorKind> {
    use Relation::{Equal, Greater, GreaterEqual, Less, LessEqual, Nan, NotEqual, Number};
    let ordered =
        [("eq", Equal), ("ne", NotEqual), ("lt", Less), ("le", LessEqual), ("gt", Greater), ("ge", GreaterEqual)];
    let unsigned = [("lo", Less), ("ls", LessEqual), ("hi", Greater), ("hs", GreaterEqual)];
    let unordered = [
        ("equ", Equal),
        ("neu", NotEqual),
        ("ltu", Less),
        ("leu", LessEqual),
        ("gtu", Greater),
        ("geu", GreaterEqual),
        ("nan", Nan),
    ];
    let plain = |relation| Test { relation, unordered: false };
    if let Some(relation) = mods.take_from(&ordered[..if matches!(ty, Ty::B(_)) { 2 } else { 6 }]) {
        return Ok(plain(relation));
    }
    match ty {
        Ty::U(_) => mods.require_from(&unsigned).map(plain),
        Ty::B(_) | Ty::S(_) => Err(mods.unsupported()),
        _ if mods.take("num") => Ok(plain(Number)),
        _ => mods.require_from(&unordered).map(|relation| Test { relation, unordered: true }),
    }
}

pub(super) fn decode(name: &str, mods: Mods<'_>, operands: Operands<'_, '_>) -> Decoded {
    match name {
        "selp" => select(mods, operands),
        "slct" => select_by_sign(mods, operands),
        "testp" => test_property(mods, operands),
        _ => comparison(name, mods, operands),
    }
}

fn comparison(name: &str, mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let source = mods.ty()?;
    let kind = kind(source).ok_or_else(|| mods.unsupported())?;
    let (output, d) = if name == "setp" {
        (Output::Predicates, operands.destination_pair(0, Ty::Pred, Ty::Pred)?)
    } else {
        let result = mods.ty()?;
        let output = set_output(result, source).ok_or_else(|| mods.unsupported())?;
        (output, [operands.destination(0, result)?, operands.sink()])
    };
    let test = test(&mut mods, source)?;
    let combine = mods.take_from(&[("and", Combine::And), ("or", Combine::Or), ("xor", Combine::Xor)]);
    mods.done()?;
    let (c, negated) = if combine.is_some() { operands.predicate(3)? } else { (operands.constant(0), false) };
    operands.expect(if combine.is_some() { 4 } else { 3 })?;
    let (a, b) = (operands.source(1, source)?, operands.source(2, source)?);
    let combine = combine.unwrap_or(Combine::None);
    let plan = operands.add_comparison(Comparison { kind, test, combine, negated, output });
    Ok(Op::Compare { plan, d, a, b, c })
}

/// 1.0 for floating-point results, all ones for integer results; halves where the source is a pair.
fn set_output(result: Ty, source: Ty) -> Option<Output> {
    let pair = matches!(source, Ty::F16x2 | Ty::Bf16x2);
    let short = matches!(source, Ty::F16 | Ty::Bf16);
    Some(match result {
        Ty::F16x2 | Ty::Bf16x2 if result == source => Output::Halves(format_of(result)?.one()),
        Ty::U(32) | Ty::S(32) if pair => Output::Halves(0xFFFF),
        _ if pair => return None,
        Ty::U(32) | Ty::S(32) => Output::Word(0xFFFF_FFFF),
        Ty::U(16) | Ty::S(16) if short => Output::Word(0xFFFF),
        Ty::F32 if !short => Output::Word(F32.one()),
        Ty::F16 | Ty::Bf16 => Output::Word(format_of(result)?.one()),
        _ => return None,
    })
}

/// "Comparison and Selection Instructions: selp"
fn select(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let ty = mods.ty()?;
    mods.done()?;
    operands.expect(4)?;
    if !matches!(ty, Ty::B(16 | 32 | 64) | Ty::U(16 | 32 | 64) | Ty::S(16 | 32 | 64) | Ty::F32 | Ty::F64) {
        return Err(mods.unsupported());
    }
    let (d, a, b) = (operands.destination(0, ty)?, operands.source(1, ty)?, operands.source(2, ty)?);
    Ok(Op::Select { d, a, b, p: operands.source(3, Ty::Pred)? })
}

/// "Comparison and Selection Instructions: slct": `a` where c >= 0, else `b`; a NaN selects `b`.
fn select_by_sign(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let by = mods.ty()?;
    let ty = mods.ty()?;
    mods.done()?;
    operands.expect(4)?;
    let f: F3 = match by {
        Ty::S(32) => |a, b, c| if c >> 31 & 1 == 0 { a } else { b },
        Ty::F32 => |a, b, c| if super::float::single(c) >= 0.0 { a } else { b },
        _ => return Err(mods.unsupported()),
    };
    let (d, a, b) = (operands.destination(0, ty)?, operands.source(1, ty)?, operands.source(2, ty)?);
    Ok(Op::Ternary { f, d, a, b, c: operands.source(3, by)? })
}

/// "Floating Point Instructions: testp"; zeros count as normal.
fn test_property(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let ty = mods.ty()?;
    let table: [(&str, [F1; 2]); 6] = [
        ("finite", [|a| property(a, |v| v.is_finite()), |a| property_double(a, f64::is_finite)]),
        ("infinite", [|a| property(a, |v| v.is_infinite()), |a| property_double(a, f64::is_infinite)]),
        ("number", [|a| property(a, |v| !v.is_nan()), |a| property_double(a, |v| !v.is_nan())]),
        ("notanumber", [|a| property(a, |v| v.is_nan()), |a| property_double(a, f64::is_nan)]),
        (
            "normal",
            [|a| property(a, |v| v.is_normal() || v == 0.0), |a| property_double(a, |v| v.is_normal() || v == 0.0)],
        ),
        ("subnormal", [|a| property(a, |v| v.is_subnormal()), |a| property_double(a, f64::is_subnormal)]),
    ];
    let [single, double] = mods.require_from(&table)?;
    mods.done()?;
    operands.expect(2)?;
    let f = match ty {
        Ty::F32 => single,
        Ty::F64 => double,
        _ => return Err(mods.unsupported()),
    };
    Ok(Op::Unary { f, d: operands.destination(0, Ty::Pred)?, a: operands.source(1, ty)? })
}

fn property(a: u64, test: impl Fn(f32) -> bool) -> u64 {
    u64::from(test(super::float::single(a)))
}
fn property_double(a: u64, test: impl Fn(f64) -> bool) -> u64 {
    u64::from(test(super::float::double(a)))
}
