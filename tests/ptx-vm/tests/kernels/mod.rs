//! The project's kernels in the machine: their PTX (`images`), ways to launch an operator (`launches`), and the launch (`call`).
#![allow(dead_code, reason = "every test program uses a part of it")]

pub mod call;
pub mod images;
pub mod launches;
pub mod sharp;

/// What tests/ of the repository share: problems from a seed, the list of calls.
#[path = "../../../support/mod.rs"]
pub mod support;

use adaptive_layernorm_producers::Reference;
use adaptive_layernorm_producers::named::Tensors;
use call::{VmCall, run};
use launches::{Alignment, Entry, launches};
use ptx_vm::{Module, Schedule};
use support::first_difference;
use support::random::Problem;

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
        let call = VmCall { call, inputs, expected, alignment, schedule };
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
            for launch in launches(problem.call, problem.rows, problem.dim, *alignment) {
                let done = self.run(module, &launch, *alignment, schedule);
                done.map_err(|what| format!("{} {problem:?} {what}", module.target()))?;
                count += 1;
            }
        }
        Ok(count)
    }
}
