//! The modifiers of an opcode, taken one by one; what is left over is unsupported.

use crate::error::ParseErrorKind;
use crate::soft::Round;
use crate::ty::Ty;

/// Modifiers not yet taken, in order.
pub(crate) struct Mods<'a> {
    opcode: &'a str,
    rest: Vec<&'a str>,
}

impl<'a> Mods<'a> {
    /// Splits an opcode into its name and modifiers.
    pub(crate) fn split(opcode: &'a str) -> (&'a str, Self) {
        let mut parts = opcode.split('.');
        let name = parts.next().unwrap_or(opcode);
        (name, Self { opcode, rest: parts.collect() })
    }

    /// The error for a form that is not defined.
    pub(crate) fn unsupported(&self) -> ParseErrorKind {
        ParseErrorKind::UnsupportedInstruction(self.opcode.to_owned())
    }

    /// Takes a modifier if it is there.
    pub(crate) fn take(&mut self, modifier: &str) -> bool {
        match self.rest.iter().position(|m| *m == modifier) {
            Some(at) => {
                self.rest.remove(at);
                true
            }
            None => false,
        }
    }

    /// Takes one modifier of a table.
    pub(crate) fn take_from<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        let (at, value) = self
            .rest
            .iter()
            .enumerate()
            .find_map(|(at, m)| table.iter().find(|(name, _)| name == m).map(|(_, value)| (at, *value)))?;
        self.rest.remove(at);
        Some(value)
    }

    /// As [`Mods::take_from`], but the modifier must be there.
    pub(crate) fn require_from<T: Copy>(&mut self, table: &[(&str, T)]) -> Result<T, ParseErrorKind> {
        self.take_from(table).ok_or_else(|| self.unsupported())
    }

    /// The rounding mode, if there is one.
    pub(crate) fn round(&mut self) -> Option<Round> {
        self.take_from(&[("rn", Round::Nearest), ("rz", Round::Zero), ("rm", Round::Down), ("rp", Round::Up)])
    }

    /// Takes the last modifier, which must be a type.
    pub(crate) fn ty(&mut self) -> Result<Ty, ParseErrorKind> {
        let ty = self.rest.last().and_then(|name| Ty::named(name)).ok_or_else(|| self.unsupported())?;
        self.rest.pop();
        Ok(ty)
    }

    /// Fails if a modifier is left.
    pub(crate) fn done(&self) -> Result<(), ParseErrorKind> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.unsupported()) }
    }
}
