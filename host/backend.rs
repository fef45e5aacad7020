//! One trait for everything that runs operators on host memory, so that one test or one command covers all of it.
use crate::error::Result;
use crate::operand::{Matrix, Modulation, Sink, SixWay};
use crate::{Cpu, reference};
use half::bf16;

/// Something that runs operators on operands in host memory: the CPU, the reference, a GPU with copies, a simulator.
///
/// All backends give the same bytes.
pub trait Backend {
    /// Runs a row operator.
    ///
    /// # Errors
    /// As [`Cpu::run`], and whatever the backend's device reports.
    fn run(&self, x: Matrix<&[bf16]>, modulation: Modulation<'_>, eps: f32, sink: Sink<'_>) -> Result<()>;

    /// Runs modulation6.
    ///
    /// # Errors
    /// As [`Cpu::run_six_way`], and whatever the backend's device reports.
    fn run_six_way(&self, parts: SixWay<'_>) -> Result<()>;
}

impl Backend for Cpu {
    fn run(&self, x: Matrix<&[bf16]>, modulation: Modulation<'_>, eps: f32, sink: Sink<'_>) -> Result<()> {
        Self::run(self, x, modulation, eps, sink)
    }

    fn run_six_way(&self, parts: SixWay<'_>) -> Result<()> {
        Self::run_six_way(self, parts)
    }
}

/// The [`reference`](mod@reference) as a backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reference;

impl Backend for Reference {
    fn run(&self, x: Matrix<&[bf16]>, modulation: Modulation<'_>, eps: f32, sink: Sink<'_>) -> Result<()> {
        reference::run(x, modulation, eps, sink)
    }

    fn run_six_way(&self, parts: SixWay<'_>) -> Result<()> {
        reference::run_six_way(parts)
    }
}
