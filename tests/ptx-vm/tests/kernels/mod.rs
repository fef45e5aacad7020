//! The project's kernels in the machine, compared with the reference; `adaln-vm` has their PTX and launches them.
#![allow(dead_code, reason = "every test program uses a part of it")]

pub mod sharp;

/// What tests/ of the repository share: problems from a seed, the list of calls.
#[path = "../../../support/mod.rs"]
pub mod support;

use adaln_vm::call::{VmCall, run};
use adaln_vm::images::text;
use adaln_vm::launches::{Alignment, Entry, launches};
use adaptive_layernorm_producers::Reference;
use adaptive_layernorm_producers::named::Tensors;
use ptx_vm::{Module, Schedule};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use support::first_difference;
use support::random::Problem;

/// The parsed PTX of a target, once a process.
pub fn module(target: &str) -> Arc<Module> {
    static MODULES: Mutex<BTreeMap<String, Arc<Module>>> = Mutex::new(BTreeMap::new());
    let mut modules = MODULES.lock().unwrap_or_else(PoisonError::into_inner);
    let parse = || {
        let text = text(target).unwrap_or_else(|error| panic!("{error}"));
        Arc::new(Module::parse(&text).unwrap_or_else(|error| panic!("{target}: {error}")))
    };
    Arc::clone(modules.entry(target.to_owned()).or_insert_with(parse))
}

/// A problem with its inputs and the reference's outputs.
pub struct Case {
    pub problem: Problem,
    pub inputs: Tensors,
    pub expected: Tensors,
}

impl Case {
    pub fn new(problem: Problem) -> Self {
        Self::with_inputs(problem, problem.inputs())
    }

    pub fn with_inputs(problem: Problem, inputs: Tensors) -> Self {
        let expected = problem.call.run(&Reference, &inputs).unwrap_or_else(|error| panic!("{problem:?}: {error}"));
        Self { problem, inputs, expected }
    }

    /// Runs one launch and compares every byte; what is wrong, in words.
    pub fn run(&self, module: &Module, launch: &Entry, alignment: Alignment, schedule: Schedule) -> Result<(), String> {
        let (call, inputs, expected) = (self.problem.call, &self.inputs, &self.expected);
        let call = VmCall { call, inputs, like: expected, alignment, schedule };
        let outputs =
            run(module, launch, &call).map_err(|error| format!("{launch}, {alignment:?}, {schedule:?}: {error}"))?;
        match first_difference(&self.expected, &outputs) {
            Some(difference) => Err(format!("{launch}, {alignment:?}, {schedule:?}: {difference}")),
            None => Ok(()),
        }
    }

    /// Runs every launch that fits; gives their number.
    pub fn run_all(&self, module: &Module, alignments: &[Alignment], schedule: Schedule) -> Result<usize, String> {
        let problem = &self.problem;
        let mut count = 0;
        for alignment in alignments {
            for launch in problem_launches(problem, *alignment) {
                let done = self.run(module, &launch, *alignment, schedule);
                done.map_err(|what| format!("{} {problem:?} {what}", module.target()))?;
                count += 1;
            }
        }
        Ok(count)
    }
}

/// Every launch of a problem that fits its shape.
pub fn problem_launches(problem: &Problem, alignment: Alignment) -> Vec<Entry> {
    let (rows, dim) = (u32::try_from(problem.rows).expect("R"), u32::try_from(problem.dim).expect("D"));
    launches(&problem.call, rows, dim, alignment)
}
