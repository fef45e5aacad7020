//! What a name means: registers, variables, labels, special registers.

use std::collections::HashMap;

use super::Lower;
use crate::error::ParseErrorKind;
use crate::program::{Slot, Special};
use crate::text::ast::StateSpace;
use crate::text::parser::Failure;
use crate::ty::Ty;

/// The names of one `{ }`.
#[derive(Default)]
pub(super) struct Scope(HashMap<String, Symbol>);

/// A declared name.
#[derive(Clone, Debug)]
pub(super) enum Symbol {
    Register {
        ty: Ty,
        slot: Slot,
    },
    /// `%r<100>`; slots are made on first use.
    Family {
        ty: Ty,
        count: u32,
        slots: HashMap<u32, Slot>,
    },
    /// A variable with an address in its own space.
    Address {
        space: StateSpace,
        address: u64,
    },
    /// A `.global` or `.const` variable, whose address the launch puts into the slot.
    Buffer {
        slot: Slot,
    },
    DynamicShared {
        slot: Slot,
    },
    Label(u32),
    Targets(Vec<String>),
}

impl Lower<'_> {
    pub(super) fn declare(&mut self, name: &str, symbol: Symbol, line: u32) -> Result<(), Failure> {
        let scope = self.scopes.last_mut().map(|scope| scope.0.insert(name.to_owned(), symbol));
        match scope {
            Some(None) => Ok(()),
            _ => Err(Failure { line, kind: ParseErrorKind::Redeclared(name.to_owned()) }),
        }
    }

    /// The innermost declaration of a name that is not a register family.
    pub(super) fn find(&self, name: &str) -> Option<Symbol> {
        self.scopes.iter().rev().find_map(|scope| scope.0.get(name)).cloned()
    }

    /// A new register slot.
    pub(super) fn new_slot(&mut self, name: &str) -> Slot {
        let slot = Slot::try_from(self.program.slots).unwrap_or(Slot::MAX);
        self.program.slots += 1;
        self.program.slot_names.push(name.to_owned());
        slot
    }

    /// The slot of a constant.
    pub(super) fn constant(&mut self, value: u64) -> Slot {
        if let Some(slot) = self.constants.get(&value) {
            return *slot;
        }
        let slot = self.new_slot("(constant)");
        self.constants.insert(value, slot);
        self.program.constants.push((slot, value));
        slot
    }

    /// The slot and type of a register or special register.
    pub(super) fn register_slot(&mut self, name: &str) -> Result<(Slot, Ty), ParseErrorKind> {
        for depth in (0..self.scopes.len()).rev() {
            if let Some(Symbol::Register { ty, slot }) = self.scopes[depth].0.get(name) {
                return Ok((*slot, *ty));
            }
            if let Some(found) = self.family_slot(depth, name) {
                return Ok(found);
            }
        }
        let special = special(name).ok_or_else(|| unknown(name))?;
        Ok((self.special_slot(special, name), Ty::U(32)))
    }

    fn family_slot(&mut self, depth: usize, name: &str) -> Option<(Slot, Ty)> {
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[stem.len()..];
        if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
            return None;
        }
        let number: u32 = digits.parse().ok()?;
        let Some(Symbol::Family { ty, count, slots }) = self.scopes[depth].0.get(stem) else { return None };
        if number >= *count {
            return None;
        }
        let ty = *ty;
        if let Some(slot) = slots.get(&number) {
            return Some((*slot, ty));
        }
        let slot = self.new_slot(name);
        if let Some(Symbol::Family { slots, .. }) = self.scopes[depth].0.get_mut(stem) {
            slots.insert(number, slot);
        }
        Some((slot, ty))
    }

    fn special_slot(&mut self, special: Special, name: &str) -> Slot {
        if let Some(slot) = self.specials.get(&special) {
            return *slot;
        }
        let slot = self.new_slot(name);
        self.specials.insert(special, slot);
        self.program.specials.push((slot, special));
        slot
    }
}

fn unknown(name: &str) -> ParseErrorKind {
    if name.starts_with('%') && special_without_value(name) {
        return ParseErrorKind::UnsupportedInstruction(format!("special register {name} has no defined value here"));
    }
    ParseErrorKind::UnknownName(name.to_owned())
}

/// Special registers whose value depends on the machine or the moment.
fn special_without_value(name: &str) -> bool {
    const NAMES: [&str; 9] =
        ["%clock", "%globaltimer", "%smid", "%nsmid", "%gridid", "%pm", "%envreg", "%cluster", "%is_explicit_cluster"];
    NAMES.iter().any(|known| name.starts_with(known))
}

fn special(name: &str) -> Option<Special> {
    let (stem, axis) = match name.rsplit_once('.') {
        Some((stem, "x")) => (stem, 0),
        Some((stem, "y")) => (stem, 1),
        Some((stem, "z")) => (stem, 2),
        _ => return scalar_special(name),
    };
    Some(match stem {
        "%tid" => Special::Tid(axis),
        "%ntid" => Special::Ntid(axis),
        "%ctaid" => Special::Ctaid(axis),
        "%nctaid" => Special::Nctaid(axis),
        _ => return None,
    })
}

fn scalar_special(name: &str) -> Option<Special> {
    Some(match name {
        "%laneid" => Special::Lane,
        "%warpid" => Special::Warp,
        "%nwarpid" => Special::Warps,
        "%lanemask_eq" => Special::MaskEq,
        "%lanemask_lt" => Special::MaskLt,
        "%lanemask_le" => Special::MaskLe,
        "%lanemask_gt" => Special::MaskGt,
        "%lanemask_ge" => Special::MaskGe,
        "%dynamic_smem_size" => Special::DynamicShared,
        _ => return None,
    })
}
