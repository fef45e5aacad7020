//! What runs the operators: `--backend`.
use crate::cpu::CpuEngine;
use crate::failure::{Failure, Outcome};
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::{Backend, Nvfp4Recipe};
use clap::ValueEnum;
use std::time::Duration;

/// The backends that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// The GPU if there is one and this build can use it, else the CPU
    Auto,
    /// Rows in parallel on the CPU
    Cpu,
    /// The GPU
    Cuda,
    /// The shipped PTX of --target in a virtual machine (slow, for tests)
    PtxVm,
}

/// `--backend` and what goes with it.
#[derive(Clone, Debug, clap::Args)]
pub struct BackendArgs {
    /// What runs the operators
    #[arg(long, value_enum, default_value = "auto", value_name = "BACKEND")]
    pub backend: Name,
    /// Whose PTX the backend ptx-vm runs
    #[arg(long, value_name = "SM", default_value = "sm_80")]
    pub target: String,
}

impl BackendArgs {
    /// Makes the backend ready.
    pub fn open(&self) -> Outcome<Box<dyn Engine>> {
        match self.backend {
            Name::Cpu => Ok(Box::new(CpuEngine)),
            Name::Auto => Ok(gpu().unwrap_or_else(|_| Box::new(CpuEngine))),
            Name::Cuda => gpu(),
            Name::PtxVm => Err(Failure::input(format!(
                "this build has no ptx-vm to run {} on; take --backend cpu or cuda",
                self.target
            ))),
        }
    }
}

#[cfg(feature = "cuda")]
fn gpu() -> Outcome<Box<dyn Engine>> {
    Ok(Box::new(crate::cuda::Gpu::open()?))
}

#[cfg(not(feature = "cuda"))]
fn gpu() -> Outcome<Box<dyn Engine>> {
    Err(Failure::input("this build has no GPU support; build it with `cargo build --release --features cuda`"))
}

/// A backend that is ready, and what a command wants of it beside running.
pub trait Engine {
    /// Its name in tables.
    fn name(&self) -> &'static str;

    /// Its name and what it runs on, for people.
    fn description(&self) -> String;

    /// What runs calls on host memory.
    fn backend(&self) -> &dyn Backend;

    /// The NVFP4 recipe to take when none is asked for.
    fn native_recipe(&self) -> Nvfp4Recipe;

    /// Runs the call at least once into `outputs` and gives the time of one run on operands that are where the backend wants them.
    fn time(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors) -> Outcome<Duration>;

    /// The same for a benchmark: under each condition the backend knows, and beside a copy that moves `bytes`.
    fn measure(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors, bytes: u64) -> Outcome<Vec<Measured>>;
}

/// The time of one run under one condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The condition: `cold` reads from memory, `hot` from whatever cache still holds the operands.
    pub condition: &'static str,
    /// Of the operator.
    pub time: Duration,
    /// Of a copy that reads and writes as many bytes in all.
    pub copy: Duration,
}
