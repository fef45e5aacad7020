//! From the syntax tree to a [`Program`]: names become slots and addresses, calls are inlined, labels become indices.
//!
//! Reading order: this file (functions and statements), `scope` (what names mean), `operands` (what instructions ask for).

mod call;
mod entry;
mod operands;
mod scope;

use std::collections::HashMap;

pub(crate) use operands::Operands;
use scope::{Scope, Symbol};

use crate::error::ParseErrorKind;
use crate::isa;
use crate::program::{Inst, NO_GUARD, Op, Program, Slot, Special};
use crate::text::ast::{Instruction, Module, StateSpace, Statement, Variable};
use crate::text::parser::Failure;

pub(crate) use entry::lower_entry;

/// Calls deeper than this are taken for recursion, which inlining cannot express.
const CALL_DEPTH: usize = 32;

/// The work on one entry.
pub(crate) struct Lower<'m> {
    module: &'m Module,
    program: Program,
    scopes: Vec<Scope>,
    constants: HashMap<u64, Slot>,
    specials: HashMap<Special, Slot>,
    /// Instruction index of each label, once reached.
    labels: Vec<Option<u32>>,
    /// Where `ret` goes in the functions being inlined; empty in the entry itself.
    returns: Vec<u32>,
    /// Carry flag and sink, made on first use.
    carry: Option<Slot>,
    sink: Option<Slot>,
    /// Slots that take the address of the dynamic shared array.
    dynamic_slots: Vec<Slot>,
}

impl Lower<'_> {
    /// Declares the labels of a scope, so that branches may go forward, then lowers its statements.
    fn scope(&mut self, statements: &[Statement]) -> Result<(), Failure> {
        self.scopes.push(Scope::default());
        for statement in statements {
            match statement {
                Statement::Label { name, line } => {
                    let label = self.new_label();
                    self.declare(name, Symbol::Label(label), *line)?;
                }
                Statement::Targets { name, labels, line } => {
                    self.declare(name, Symbol::Targets(labels.clone()), *line)?;
                }
                _ => {}
            }
        }
        for statement in statements {
            self.statement(statement)?;
        }
        self.scopes.pop();
        Ok(())
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Failure> {
        match statement {
            Statement::Scope(inner) => self.scope(inner),
            Statement::Registers { ty, name, count, line } => {
                let symbol = match count {
                    Some(count) => Symbol::Family { ty: *ty, count: *count, slots: HashMap::new() },
                    None => Symbol::Register { ty: *ty, slot: self.new_slot(name) },
                };
                self.declare(name, symbol, *line)
            }
            Statement::Variable(variable) => self.variable(variable),
            Statement::Label { name, line } => {
                let Some(Symbol::Label(label)) = self.find(name) else {
                    return Err(Failure { line: *line, kind: ParseErrorKind::UnknownName(name.clone()) });
                };
                self.reach(label);
                Ok(())
            }
            Statement::Targets { .. } => Ok(()),
            Statement::Instruction(instruction) => {
                self.instruction(instruction).map_err(|kind| Failure { line: instruction.line, kind })
            }
        }
    }

    /// Gives a variable its place.
    fn variable(&mut self, variable: &Variable) -> Result<(), Failure> {
        let fail = |kind| Failure { line: variable.line, kind };
        let extents = match variable.space {
            StateSpace::Shared => &mut self.program.shared,
            StateSpace::Local => &mut self.program.local,
            StateSpace::Param => &mut self.program.param,
            StateSpace::Global | StateSpace::Const => {
                let slot = self.module_buffer(variable);
                return self.declare(&variable.name, Symbol::Buffer { slot }, variable.line);
            }
        };
        let unsupported = || fail(ParseErrorKind::UnsupportedDeclaration(variable.name.clone()));
        if variable.initial.is_some() {
            return Err(unsupported());
        }
        let Some(bytes) = variable.bytes else {
            return self.dynamic_shared(variable);
        };
        let address = crate::layout::place(extents, bytes, variable.align).ok_or_else(unsupported)?;
        self.declare(&variable.name, Symbol::Address { space: variable.space, address }, variable.line)
    }

    fn instruction(&mut self, instruction: &Instruction) -> Result<(), ParseErrorKind> {
        let (guard, negated) = match &instruction.guard {
            Some((name, negated)) => (self.register(name, crate::ty::Ty::Pred)?, *negated),
            None => (NO_GUARD, false),
        };
        if instruction.opcode == "call" || instruction.opcode.starts_with("call.") {
            if guard != NO_GUARD {
                return Err(ParseErrorKind::UnsupportedInstruction("a guarded call".into()));
            }
            return self.call(instruction);
        }
        let op = match (instruction.opcode.as_str(), self.returns.last()) {
            ("ret" | "ret.uni", Some(&label)) => Op::Jump { target: label },
            _ => isa::decode(instruction, self)?,
        };
        self.emit(Inst { guard, negated, op }, instruction.line, &instruction.opcode);
        Ok(())
    }

    fn emit(&mut self, inst: Inst, line: u32, opcode: &str) {
        self.program.code.push(inst);
        self.program.sites.push((line, opcode.to_owned()));
    }

    fn new_label(&mut self) -> u32 {
        self.labels.push(None);
        u32::try_from(self.labels.len() - 1).unwrap_or(u32::MAX)
    }

    /// The label stands before the next instruction.
    fn reach(&mut self, label: u32) {
        let here = u32::try_from(self.program.code.len()).ok();
        if let Some(place) = usize::try_from(label).ok().and_then(|label| self.labels.get_mut(label)) {
            *place = here;
        }
    }
}
