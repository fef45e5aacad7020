//! "Data Movement and Conversion Instructions: cvt", the one place for every conversion.
//!
//! A conversion is data: formats, rounding, saturation. Each element is decoded to an exact number, rounded once, encoded.
//! Where the ISA demands a rounding modifier, its absence is an error.

use super::Decoded;
use super::compare::format_of;
use super::mods::Mods;
use crate::error::ParseErrorKind;
use crate::lower::Operands;
use crate::program::Op;
use crate::soft::{self, E2M1, E2M3, E3M2, E4M3, E5M2, Format, Round, Value};
use crate::ty::Ty;

/// A `cvt`, as data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conversion {
    from: Side,
    to: Side,
    mode: Round,
    /// `.rni` and its kind: the value becomes integral first.
    integral: Option<Round>,
    saturate: Saturate,
    relu: bool,
    shape: Shape,
    /// Width of the destination register, which a signed result fills.
    register: u32,
}

/// How one element is read or written.
#[derive(Clone, Copy, Debug)]
enum Side {
    Integer { bits: u32, signed: bool },
    Float(&'static Format),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saturate {
    No,
    /// `.satfinite`: to the largest finite number.
    Finite,
    /// `.sat` on a floating-point result: to 0.0 .. 1.0, NaN to +0.0.
    Unit,
}

/// How elements sit in the operands.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// One to one.
    Scalar,
    /// The bits, shifted up: f32 to f32, or bf16 to f32. A NaN keeps its payload, as on an H200.
    Copy(u32),
    /// Operand a to the upper, b to the lower element of this many bits.
    Join(u32),
    /// Two elements of a register to two, with these widths.
    Both { from: u32, to: u32 },
}

impl Conversion {
    /// Converts operands a and b (b only where two registers are joined).
    pub(crate) fn run(&self, a: u64, b: u64) -> u64 {
        match self.shape {
            Shape::Scalar => self.element(a),
            Shape::Copy(shift) => (a << shift) & u64::MAX >> (64 - self.register),
            Shape::Join(bits) => self.element(a) << bits | self.element(b),
            Shape::Both { from, to } => self.element(a >> from) << to | self.element(a),
        }
    }

    fn element(&self, bits: u64) -> u64 {
        let value = match self.from {
            Side::Float(format) => soft::decode(bits, format),
            Side::Integer { bits: width, signed } => {
                let high = bits << (64 - width);
                let value = if signed {
                    i128::from(high.cast_signed() >> (64 - width))
                } else {
                    i128::from(high >> (64 - width))
                };
                return self.integer_to(value);
            }
        };
        match self.to {
            Side::Float(format) => self.rounded(value, format),
            Side::Integer { bits, signed } => self.float_to_integer(value, bits, signed),
        }
    }

    /// Integer to integer keeps the low bits (or clamps with `.sat`); integer to float rounds.
    fn integer_to(&self, value: i128) -> u64 {
        match self.to {
            Side::Float(format) => self.rounded(soft::from_integer(value), format),
            Side::Integer { bits, signed } => {
                let (low, high) = range(bits, signed);
                let value = if self.saturate == Saturate::Unit { value.clamp(low, high) } else { value };
                self.extend(value, bits, signed)
            }
        }
    }

    fn rounded(&self, value: Value, format: &Format) -> u64 {
        let value = self.integral.map_or(value, |mode| soft::to_integral(value, mode));
        let bits = soft::encode(value, format, self.mode, self.saturate == Saturate::Finite);
        let bits = if self.saturate == Saturate::Unit { unit(bits, format) } else { bits };
        if self.relu { super::half::relu(bits, format) } else { bits }
    }

    /// Out of range clamps. NaN gives 0, or the highest bit where source or destination has 64 bits (ISA, `cvt`, "Semantics").
    fn float_to_integer(&self, value: Value, bits: u32, signed: bool) -> u64 {
        let (low, high) = range(bits, signed);
        let wide = bits == 64 || matches!(self.from, Side::Float(format) if format.bits == 64);
        let nan = if wide { 1 << (bits - 1) } else { 0 };
        let integer = soft::to_integer(value, self.integral.unwrap_or(Round::Zero), low, high);
        self.extend(integer.unwrap_or(nan), bits, signed)
    }

    /// Extends an integer of `bits` to the destination register ("Operand Size Exceeding Instruction-Type Size").
    fn extend(&self, value: i128, bits: u32, signed: bool) -> u64 {
        let low = u64::try_from(value & ((1 << bits) - 1)).unwrap_or(0);
        let high = low << (64 - bits);
        let extended = if signed { (high.cast_signed() >> (64 - bits)).cast_unsigned() } else { low };
        extended & u64::MAX >> (64 - self.register)
    }
}

fn range(bits: u32, signed: bool) -> (i128, i128) {
    if signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Clamps a pattern to 0.0 .. 1.0; NaN becomes +0.0.
fn unit(bits: u64, format: &Format) -> u64 {
    let magnitude = bits & format.magnitude_mask();
    let negative = magnitude != bits;
    if negative || magnitude > format.infinity.unwrap_or(format.max) { 0 } else { magnitude.min(format.one()) }
}

fn side(ty: Ty) -> Option<Side> {
    Some(match ty {
        Ty::U(bits) => Side::Integer { bits, signed: false },
        Ty::S(bits) => Side::Integer { bits, signed: true },
        Ty::E4m3x2 => Side::Float(&E4M3),
        Ty::E5m2x2 => Side::Float(&E5M2),
        Ty::E2m1x2 => Side::Float(&E2M1),
        Ty::E2m3x2 => Side::Float(&E2M3),
        Ty::E3m2x2 => Side::Float(&E3M2),
        Ty::F32x2 | Ty::B(_) | Ty::Pred | Ty::U16x2 | Ty::S16x2 => return None,
        _ => Side::Float(format_of(ty)?),
    })
}

/// Width of an element in its packed register.
fn place(ty: Ty) -> u32 {
    ty.bits() / 2
}

fn is_narrow(ty: Ty) -> bool {
    matches!(ty, Ty::E4m3x2 | Ty::E5m2x2 | Ty::E2m1x2 | Ty::E2m3x2 | Ty::E3m2x2)
}

fn is_pair(ty: Ty) -> bool {
    is_narrow(ty) || matches!(ty, Ty::F16x2 | Ty::Bf16x2)
}

/// The modifiers, before they are checked against the types.
struct Modifiers {
    round: Option<Round>,
    integral: Option<Round>,
    sat: bool,
    satfinite: bool,
    relu: bool,
}

fn modifiers(mods: &mut Mods<'_>) -> Result<Modifiers, ParseErrorKind> {
    let integral =
        mods.take_from(&[("rni", Round::Nearest), ("rzi", Round::Zero), ("rmi", Round::Down), ("rpi", Round::Up)]);
    let found = Modifiers {
        round: mods.round(),
        integral,
        sat: mods.take("sat"),
        satfinite: mods.take("satfinite"),
        relu: mods.take("relu"),
    };
    mods.done()?;
    Ok(found)
}

pub(super) fn decode(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let from = mods.ty()?;
    let to = mods.ty()?;
    let modifiers = modifiers(&mut mods)?;
    let (Some(from_side), Some(to_side)) = (side(from), side(to)) else { return Err(mods.unsupported()) };
    let shape =
        shape(to, from).filter(|shape| allowed(to, from, *shape, &modifiers)).ok_or_else(|| mods.unsupported())?;
    let (d, register) = operands.wide_destination(0, to)?;
    let a = operands.wide_source(1, from)?;
    let joins = matches!(shape, Shape::Join(_));
    operands.expect(if joins { 3 } else { 2 })?;
    let b = if joins { operands.wide_source(2, from)? } else { operands.constant(0) };
    let saturate = match (modifiers.satfinite, modifiers.sat) {
        (true, _) => Saturate::Finite,
        (_, true) => Saturate::Unit,
        _ => Saturate::No,
    };
    let shape = bit_copy(to, from, &modifiers).map_or(shape, Shape::Copy);
    let plan = operands.add_conversion(Conversion {
        from: from_side,
        to: to_side,
        mode: modifiers.round.unwrap_or(Round::Nearest),
        integral: modifiers.integral,
        saturate,
        relu: modifiers.relu,
        shape,
        register,
    });
    Ok(Op::Convert { plan, d, a, b })
}

fn shape(to: Ty, from: Ty) -> Option<Shape> {
    match (is_pair(to), is_pair(from)) {
        (false, false) => Some(Shape::Scalar),
        (true, false) if from == Ty::F32 => Some(Shape::Join(place(to))),
        (true, true) if is_narrow(to) != is_narrow(from) => Some(Shape::Both { from: place(from), to: place(to) }),
        _ => None,
    }
}

/// How far the bits move in a conversion that only moves bits.
fn bit_copy(to: Ty, from: Ty, m: &Modifiers) -> Option<u32> {
    match (to, from) {
        _ if m.integral.is_some() || m.sat || m.satfinite || m.relu => None,
        (Ty::F32, Ty::Bf16) => Some(16),
        (to, from) if to == from && to.is_float() => Some(0),
        _ => None,
    }
}

/// The forms that the ISA lists.
fn allowed(to: Ty, from: Ty, shape: Shape, m: &Modifiers) -> bool {
    match shape {
        Shape::Scalar if to.is_float() && from.is_float() => float_to_float(to, from, m),
        Shape::Scalar if to.is_float() => m.round.is_some() && m.integral.is_none() && !m.satfinite && !m.relu,
        Shape::Scalar if from.is_float() => {
            m.integral.is_some() && m.round.is_none() && !m.sat && !m.satfinite && !m.relu
        }
        Shape::Scalar => m.round.is_none() && m.integral.is_none() && !m.satfinite && !m.relu,
        Shape::Join(_) if is_narrow(to) => m.round == Some(Round::Nearest) && m.satfinite && plain(m),
        Shape::Join(_) => matches!(m.round, Some(Round::Nearest | Round::Zero)) && plain(m),
        Shape::Both { .. } if is_narrow(to) => {
            from == Ty::F16x2
                && matches!(to, Ty::E4m3x2 | Ty::E5m2x2)
                && m.round == Some(Round::Nearest)
                && m.satfinite
                && plain(m)
        }
        Shape::Copy(_) => false,
        Shape::Both { .. } => to == Ty::F16x2 && m.round == Some(Round::Nearest) && !m.satfinite && plain(m),
    }
}

fn plain(m: &Modifiers) -> bool {
    m.integral.is_none() && !m.sat
}

fn float_to_float(to: Ty, from: Ty, m: &Modifiers) -> bool {
    let half = |ty| matches!(ty, Ty::F16 | Ty::Bf16);
    if to == from {
        // Same type: an integral rounding, or `.sat`, or a plain copy.
        return m.round.is_none() && !m.satfinite && !m.relu;
    }
    if m.integral.is_some() {
        return false;
    }
    let exact = to.bits() > from.bits();
    if exact {
        return m.round.is_none() && !m.satfinite && !m.relu;
    }
    let narrowing_f32 = from == Ty::F32 && half(to) && matches!(m.round, Some(Round::Nearest | Round::Zero)) && !m.sat;
    let general = m.round.is_some() && !(m.satfinite || m.relu || (to == Ty::Bf16 && m.sat));
    narrowing_f32 || general
}
