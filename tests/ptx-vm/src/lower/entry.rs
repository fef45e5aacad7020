//! An entry from its parameters to its resolved branches.

use std::collections::HashMap;

use super::scope::{Scope, Symbol};
use super::{CALL_DEPTH, Lower};
use crate::error::ParseErrorKind;
use crate::layout;
use crate::program::{Inst, ModuleBuffer, NO_GUARD, Op, Parameter, Program, Slot};
use crate::text::ast::{Function, Module, StateSpace, Statement, Variable};
use crate::text::parser::Failure;

/// Lowers one entry of the module.
pub(crate) fn lower_entry(module: &Module, entry: &Function, body: &[Statement]) -> Result<Program, Failure> {
    let program = Program {
        name: entry.name.clone(),
        required_threads: entry.required_threads,
        maximum_threads: entry.maximum_threads,
        ..Program::default()
    };
    let mut lower = Lower {
        module,
        program,
        scopes: vec![Scope::default()],
        constants: HashMap::new(),
        specials: HashMap::new(),
        labels: Vec::new(),
        returns: Vec::with_capacity(CALL_DEPTH),
        carry: None,
        sink: None,
        dynamic_slots: Vec::new(),
    };
    lower.module_variables()?;
    lower.scopes.push(Scope::default());
    for parameter in &entry.parameters {
        lower.entry_parameter(parameter)?;
    }
    lower.scope(body)?;
    lower.emit(Inst { guard: NO_GUARD, negated: false, op: Op::Exit }, entry.line, "(end of function)");
    lower.resolve_labels(entry)?;
    lower.place_dynamic_shared();
    Ok(lower.program)
}

impl Lower<'_> {
    fn module_variables(&mut self) -> Result<(), Failure> {
        let module = self.module;
        for variable in &module.variables {
            self.variable(variable)?;
        }
        Ok(())
    }

    fn entry_parameter(&mut self, parameter: &Variable) -> Result<(), Failure> {
        self.variable(parameter)?;
        let Some(Symbol::Address { address, .. }) = self.find(&parameter.name) else { return Ok(()) };
        self.program.parameters.push(Parameter {
            name: parameter.name.clone(),
            bytes: parameter.bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0),
            align: parameter.align,
            address,
        });
        Ok(())
    }

    /// Registers a `.global` or `.const` variable; its address is known at launch.
    pub(super) fn module_buffer(&mut self, variable: &Variable) -> Slot {
        let mut bytes = variable.initial.clone().unwrap_or_default();
        bytes.resize(variable.bytes.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0), 0);
        let slot = self.new_slot(&variable.name);
        let read_only = variable.space == StateSpace::Const;
        self.program.buffers.push(ModuleBuffer { bytes, align: variable.align, read_only, slot });
        slot
    }

    /// An unsized `.extern .shared` array; all of them share one place behind the static variables.
    pub(super) fn dynamic_shared(&mut self, variable: &Variable) -> Result<(), Failure> {
        let slot = self.new_slot(&variable.name);
        self.program.dynamic_shared = Some(self.program.dynamic_shared.unwrap_or(1).max(variable.align));
        self.declare(&variable.name, Symbol::DynamicShared { slot }, variable.line)?;
        self.dynamic_slots.push(slot);
        Ok(())
    }

    /// Turns the recorded alignment into an address, now that all static variables have theirs.
    fn place_dynamic_shared(&mut self) {
        let Some(align) = self.program.dynamic_shared else { return };
        let address = layout::place(&mut self.program.shared, 0, align);
        self.program.dynamic_shared = address;
        let address = address.unwrap_or(0);
        self.program.constants.extend(self.dynamic_slots.iter().map(|slot| (*slot, address)));
    }

    fn resolve_labels(&mut self, entry: &Function) -> Result<(), Failure> {
        let labels = &self.labels;
        let resolve = |label: u32| usize::try_from(label).ok().and_then(|label| labels.get(label).copied().flatten());
        let missing = || Failure { line: entry.line, kind: ParseErrorKind::UnknownName("a branch target".into()) };
        for inst in &mut self.program.code {
            if let Op::Jump { target } = &mut inst.op {
                *target = resolve(*target).ok_or_else(missing)?;
            }
        }
        for target in &mut self.program.targets {
            *target = resolve(*target).ok_or_else(missing)?;
        }
        Ok(())
    }
}
