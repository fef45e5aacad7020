//! Calls, inlined: the callee's parameters are names for the caller's `.param` variables.

use super::scope::{Scope, Symbol};
use super::{CALL_DEPTH, Lower};
use crate::error::ParseErrorKind;
use crate::program::{Inst, NO_GUARD, Op};
use crate::text::ast::{Instruction, Operand, Variable};

impl Lower<'_> {
    /// `call{.uni} (ret), name, (args);` (PTX ISA, "Control Flow Instructions: call").
    pub(super) fn call(&mut self, instruction: &Instruction) -> Result<(), ParseErrorKind> {
        let unsupported = |what: &str| ParseErrorKind::UnsupportedInstruction(format!("call {what}"));
        let (results, name, arguments) =
            call_parts(&instruction.operands).ok_or_else(|| unsupported("of this form"))?;
        let module = self.module;
        let callee = module.functions.iter().find(|f| f.name == name && !f.entry && f.body.is_some());
        let callee = callee.ok_or_else(|| ParseErrorKind::UnknownName(name.to_owned()))?;
        if self.returns.len() >= CALL_DEPTH {
            return Err(unsupported("that recurses"));
        }
        if callee.results.len() != results.len() || callee.parameters.len() != arguments.len() {
            return Err(ParseErrorKind::Operand("the number of arguments differs from the declaration".into()));
        }
        let mut bound = self.bind(&callee.results, results)?;
        bound.extend(self.bind(&callee.parameters, arguments)?);
        let end = self.new_label();
        self.inline(callee.body.as_deref().unwrap_or_default(), bound, end).map_err(|failure| failure.kind)?;
        self.reach(end);
        self.emit(Inst { guard: NO_GUARD, negated: false, op: Op::Nothing }, instruction.line, &instruction.opcode);
        Ok(())
    }

    /// Pairs formal names with the caller's `.param` variables.
    fn bind(&self, formal: &[Variable], actual: &[Operand]) -> Result<Vec<(String, Symbol)>, ParseErrorKind> {
        let bind_one = |(formal, actual): (&Variable, &Operand)| match actual {
            Operand::Name(name) => match self.find(name) {
                Some(symbol @ Symbol::Address { .. }) => Ok((formal.name.clone(), symbol)),
                _ => {
                    Err(ParseErrorKind::UnsupportedInstruction(format!("call argument {name}, not a .param variable")))
                }
            },
            _ => Err(ParseErrorKind::UnsupportedInstruction("call argument that is not a .param variable".into())),
        };
        formal.iter().zip(actual).map(bind_one).collect()
    }

    /// Lowers the body where only module names and the bound parameters are visible.
    fn inline(
        &mut self,
        body: &[crate::text::ast::Statement],
        bound: Vec<(String, Symbol)>,
        end: u32,
    ) -> Result<(), crate::text::parser::Failure> {
        let hidden = self.scopes.split_off(1);
        self.scopes.push(Scope::default());
        for (name, symbol) in bound {
            self.declare(&name, symbol, 0)?;
        }
        self.returns.push(end);
        let done = self.scope(body);
        self.returns.pop();
        self.scopes.truncate(1);
        self.scopes.extend(hidden);
        done
    }
}

/// Results, callee and arguments of the forms that a call may have.
fn call_parts(operands: &[Operand]) -> Option<(&[Operand], &str, &[Operand])> {
    match operands {
        [Operand::Name(name)] => Some((&[], name, &[])),
        [Operand::Name(name), Operand::List(arguments)] => Some((&[], name, arguments)),
        [Operand::List(results), Operand::Name(name)] => Some((results, name, &[])),
        [Operand::List(results), Operand::Name(name), Operand::List(arguments)] => Some((results, name, arguments)),
        _ => None,
    }
}
