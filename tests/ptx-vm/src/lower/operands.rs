//! What an instruction may ask of its operands.

use super::Lower;
use super::scope::Symbol;
use crate::error::ParseErrorKind;
use crate::layout::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::program::{Access, AccessSpace, Slot, Slots};
use crate::text::ast::{Instruction, Operand, StateSpace};
use crate::text::number::Number;
use crate::ty::Ty;

type Found<T> = Result<T, ParseErrorKind>;

/// The operands of one instruction, with the means to resolve them.
pub(crate) struct Operands<'l, 'm> {
    lower: &'l mut Lower<'m>,
    operands: &'l [Operand],
}

fn wrong<T>(what: impl Into<String>) -> Found<T> {
    Err(ParseErrorKind::Operand(what.into()))
}

impl<'l, 'm> Operands<'l, 'm> {
    pub(crate) fn new(lower: &'l mut Lower<'m>, instruction: &'l Instruction) -> Self {
        Self { lower, operands: &instruction.operands }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.operands.len()
    }

    /// Fails unless there are exactly `count`.
    pub(crate) fn expect(&self, count: usize) -> Found<()> {
        if self.operands.len() == count { Ok(()) } else { wrong(format!("{count} operands expected")) }
    }

    fn get(&self, index: usize) -> Found<&'l Operand> {
        self.operands.get(index).ok_or_else(|| ParseErrorKind::Operand(format!("operand {} is missing", index + 1)))
    }

    /// A source of exactly the type's width, or a constant of the type.
    pub(crate) fn source(&mut self, index: usize, ty: Ty) -> Found<Slot> {
        let operand = self.get(index)?;
        self.lower.source(operand, ty, false)
    }

    /// A source register that may be wider than the type (`st`, `cvt`).
    pub(crate) fn wide_source(&mut self, index: usize, ty: Ty) -> Found<Slot> {
        let operand = self.get(index)?;
        self.lower.source(operand, ty, true)
    }

    /// A destination of exactly the type's width.
    pub(crate) fn destination(&mut self, index: usize, ty: Ty) -> Found<Slot> {
        let operand = self.get(index)?;
        self.lower.destination(operand, ty, false).map(|(slot, _)| slot)
    }

    /// A destination register that may be wider than the type, and its width (`ld`, `cvt`).
    pub(crate) fn wide_destination(&mut self, index: usize, ty: Ty) -> Found<(Slot, u32)> {
        let operand = self.get(index)?;
        self.lower.destination(operand, ty, true)
    }

    /// `d|p`: both; or `d` alone and the sink.
    pub(crate) fn destination_pair(&mut self, index: usize, first: Ty, second: Ty) -> Found<[Slot; 2]> {
        match self.get(index)? {
            Operand::Pair(a, b) => {
                Ok([self.lower.destination(a, first, false)?.0, self.lower.destination(b, second, false)?.0])
            }
            single => Ok([self.lower.destination(single, first, false)?.0, self.sink()]),
        }
    }

    /// A predicate source and whether it is negated.
    pub(crate) fn predicate(&mut self, index: usize) -> Found<(Slot, bool)> {
        match self.get(index)? {
            Operand::Not(name) => Ok((self.lower.register(name, Ty::Pred)?, true)),
            operand => Ok((self.lower.source(operand, Ty::Pred, false)?, false)),
        }
    }

    /// A constant operand's value.
    pub(crate) fn immediate(&self, index: usize) -> Found<u64> {
        match self.get(index)? {
            Operand::Constant { number: Number::Integer(value), negative: false } => Ok(*value),
            _ => wrong("a constant expected"),
        }
    }

    /// The slot of a constant.
    pub(crate) fn constant(&mut self, value: u64) -> Slot {
        self.lower.constant(value)
    }

    /// A slot for results that nobody wants.
    pub(crate) fn sink(&mut self) -> Slot {
        self.lower.sink_slot()
    }

    /// The carry flag (PTX ISA, "Extended-Precision Integer Arithmetic Instructions").
    pub(crate) fn carry(&mut self) -> Slot {
        if self.lower.carry.is_none() {
            self.lower.carry = Some(self.lower.new_slot("CC.CF"));
        }
        self.lower.carry.unwrap_or(0)
    }

    /// A label's number.
    pub(crate) fn label(&self, index: usize) -> Found<u32> {
        match self.get(index)? {
            Operand::Name(name) => self.lower.label(name),
            _ => wrong("a label expected"),
        }
    }

    /// The labels of a `.branchtargets` list, as a range of the program's targets.
    pub(crate) fn targets(&mut self, index: usize) -> Found<Slots> {
        let Operand::Name(name) = self.get(index)? else { return wrong("a target list expected") };
        let Some(Symbol::Targets(names)) = self.lower.find(name) else { return wrong("a target list expected") };
        let first = u32::try_from(self.lower.program.targets.len()).unwrap_or(0);
        for name in &names {
            let label = self.lower.label(name)?;
            self.lower.program.targets.push(label);
        }
        Ok(Slots { first, count: u32::try_from(names.len()).unwrap_or(0) })
    }

    /// Whether the operand is a `{..}` vector.
    pub(crate) fn is_vector(&self, index: usize) -> bool {
        matches!(self.operands.get(index), Some(Operand::Vector(_)))
    }

    /// Elements of a vector operand, or the single operand.
    fn elements(&self, index: usize) -> Found<&'l [Operand]> {
        Ok(match self.get(index)? {
            Operand::Vector(elements) => elements,
            single => std::slice::from_ref(single),
        })
    }

    /// The sources of a vector (or of a scalar, as a vector of one).
    pub(crate) fn sources(&mut self, index: usize, ty: Ty, wide: bool) -> Found<Slots> {
        let slots: Found<Vec<Slot>> =
            self.elements(index)?.iter().map(|operand| self.lower.source(operand, ty, wide)).collect();
        Ok(self.lower.pool(&slots?))
    }

    /// The destinations of a vector (or of a scalar), and the width of their registers.
    pub(crate) fn destinations(&mut self, index: usize, ty: Ty, wide: bool) -> Found<(Slots, u32)> {
        let found: Found<Vec<(Slot, u32)>> =
            self.elements(index)?.iter().map(|operand| self.lower.destination(operand, ty, wide)).collect();
        let found = found?;
        let width = found.iter().map(|(_, width)| *width).max().unwrap_or(0);
        let slots: Vec<Slot> = found.into_iter().map(|(slot, _)| slot).collect();
        Ok((self.lower.pool(&slots), width))
    }

    /// The type of the registers of a vector operand: the first that is a register.
    pub(crate) fn element_type(&mut self, index: usize) -> Found<(Ty, usize)> {
        let elements = self.elements(index)?;
        for operand in elements {
            if let Operand::Name(name) = operand {
                let (_, ty) = self.lower.register_slot(name)?;
                return Ok((ty, elements.len()));
            }
        }
        wrong("a vector with a register expected")
    }

    /// An address operand in a state space.
    pub(crate) fn address(&mut self, index: usize, space: AccessSpace) -> Found<Access> {
        let Operand::Address { base, offset } = self.get(index)? else { return wrong("an address expected") };
        let base = self.lower.address_base(base, space)?;
        let access = Access { space, base, offset: *offset, bytes: 0, sign_to: 0, non_coherent: false, strong: false };
        Ok(access)
    }

    /// Adds a conversion to the program's table.
    pub(crate) fn add_conversion(&mut self, conversion: crate::isa::convert::Conversion) -> u32 {
        self.lower.program.conversions.push(conversion);
        u32::try_from(self.lower.program.conversions.len() - 1).unwrap_or(u32::MAX)
    }

    /// Adds a comparison to the program's table.
    pub(crate) fn add_comparison(&mut self, comparison: crate::isa::compare::Comparison) -> u32 {
        self.lower.program.comparisons.push(comparison);
        u32::try_from(self.lower.program.comparisons.len() - 1).unwrap_or(u32::MAX)
    }

    /// Remembers that the order of blocks can be seen.
    pub(crate) fn mark_ordered(&mut self) {
        self.lower.program.ordered = true;
    }
}

impl Lower<'_> {
    pub(super) fn sink_slot(&mut self) -> Slot {
        if self.sink.is_none() {
            self.sink = Some(self.new_slot("_"));
        }
        self.sink.unwrap_or(0)
    }

    pub(super) fn pool(&mut self, slots: &[Slot]) -> Slots {
        let first = u32::try_from(self.program.pool.len()).unwrap_or(0);
        self.program.pool.extend_from_slice(slots);
        Slots { first, count: u32::try_from(slots.len()).unwrap_or(0) }
    }

    pub(super) fn label(&self, name: &str) -> Found<u32> {
        match self.find(name) {
            Some(Symbol::Label(label)) => Ok(label),
            _ => Err(ParseErrorKind::UnknownName(name.to_owned())),
        }
    }

    /// A register of exactly this width.
    pub(super) fn register(&mut self, name: &str, ty: Ty) -> Found<Slot> {
        let (slot, found) = self.register_slot(name)?;
        if found.bits() == ty.bits() { Ok(slot) } else { wrong(format!("{name} is not {} bits wide", ty.bits())) }
    }

    fn source(&mut self, operand: &Operand, ty: Ty, wide: bool) -> Found<Slot> {
        match operand {
            Operand::Constant { number, negative } => constant_bits(*number, *negative, ty).map(|v| self.constant(v)),
            Operand::Name(name) => match self.find(name) {
                Some(Symbol::Address { address, .. }) if ty.bits() >= 32 => Ok(self.constant(address)),
                Some(Symbol::Buffer { slot } | Symbol::DynamicShared { slot }) if ty.bits() >= 32 => Ok(slot),
                None if name == "WARP_SZ" => Ok(self.constant(32)),
                _ if wide => self.wide_register(name, ty).map(|(slot, _)| slot),
                _ => self.register(name, ty),
            },
            _ => wrong("a register or a constant expected"),
        }
    }

    fn destination(&mut self, operand: &Operand, ty: Ty, wide: bool) -> Found<(Slot, u32)> {
        match operand {
            Operand::Sink => Ok((self.sink_slot(), ty.bits())),
            Operand::Name(name) if name.starts_with('%') && self.is_special(name) => wrong("a register expected"),
            Operand::Name(name) if wide => self.wide_register(name, ty),
            Operand::Name(name) => Ok((self.register(name, ty)?, ty.bits())),
            _ => wrong("a register expected"),
        }
    }

    fn is_special(&mut self, name: &str) -> bool {
        self.register_slot(name).is_ok_and(|(slot, _)| self.specials.values().any(|special| *special == slot))
    }

    fn wide_register(&mut self, name: &str, ty: Ty) -> Found<(Slot, u32)> {
        let (slot, found) = self.register_slot(name)?;
        if found != Ty::Pred && found.bits() >= ty.bits() {
            return Ok((slot, found.bits()));
        }
        wrong(format!("{name} is narrower than {} bits", ty.bits()))
    }

    fn address_base(&mut self, base: &Operand, space: AccessSpace) -> Found<Slot> {
        match base {
            Operand::Name(name) => match self.find(name) {
                Some(Symbol::Address { space: of, address }) => self.variable_address(of, address, space),
                Some(Symbol::Buffer { slot }) => Ok(slot),
                Some(Symbol::DynamicShared { slot }) if space == AccessSpace::Shared => Ok(slot),
                _ => self.wide_register(name, Ty::B(32)).map(|(slot, _)| slot),
            },
            Operand::Constant { number, negative } => {
                constant_bits(*number, *negative, Ty::B(64)).map(|value| self.constant(value))
            }
            _ => wrong("a register, a variable or a constant expected"),
        }
    }

    /// A variable named in an address: its own space's address, or its generic one where the access is generic.
    fn variable_address(&mut self, of: StateSpace, address: u64, space: AccessSpace) -> Found<Slot> {
        let value = match (of, space) {
            (StateSpace::Shared, AccessSpace::Shared)
            | (StateSpace::Local, AccessSpace::Local)
            | (StateSpace::Param, AccessSpace::Param) => address,
            (StateSpace::Shared, AccessSpace::Generic) => SHARED_WINDOW + address,
            (StateSpace::Local, AccessSpace::Generic) => LOCAL_WINDOW + address,
            _ => return wrong("the variable lies in another state space"),
        };
        Ok(self.constant(value))
    }
}

/// A constant as bits of a type; it must fit.
fn constant_bits(number: Number, negative: bool, ty: Ty) -> Found<u64> {
    let bits = ty.bits();
    if bits > 64 {
        return wrong("a constant of more than 64 bits");
    }
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    match (number, ty) {
        (Number::Integer(value), _) if !ty.is_float() && ty != Ty::Pred => {
            let fits = if negative { value <= 1 << (bits - 1) } else { value <= mask };
            let value = if negative { value.wrapping_neg() } else { value };
            if fits { Ok(value & mask) } else { wrong(format!("constant does not fit {bits} bits")) }
        }
        // A compiler writes "true" as -1.
        (Number::Integer(value @ (0 | 1)), Ty::Pred) => Ok(value),
        (Number::Single(single), Ty::F32 | Ty::B(32)) if !negative => Ok(u64::from(single)),
        (Number::Double(double), Ty::F64 | Ty::B(64)) if !negative => Ok(double),
        (Number::Decimal(value), Ty::F64) => Ok(if negative { -value } else { value }.to_bits()),
        #[allow(clippy::cast_possible_truncation, reason = "the ISA converts decimal constants to the operand's type")]
        (Number::Decimal(value), Ty::F32) => Ok(u64::from((if negative { -value } else { value } as f32).to_bits())),
        _ => wrong("a constant of another type"),
    }
}
