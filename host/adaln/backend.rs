//! What runs the operators: `--backend`.
use crate::cpu::CpuEngine;
use crate::failure::{Failure, Outcome};
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::{Nvfp4Recipe, Result};
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
    /// The PTX of --target in a virtual machine: the bytes of that GPU without it, slowly (`cargo run --release -p adaln-vm`)
    PtxVm,
}

/// `--backend` and what goes with it.
#[derive(Clone, Debug, clap::Args)]
pub struct BackendArgs {
    /// What runs the operators
    #[arg(long, value_enum, default_value = "auto", value_name = "BACKEND")]
    pub backend: Name,
    /// Whose PTX the backend ptx-vm runs, such as sm_110a [default: sm_80]
    #[arg(long, value_name = "SM")]
    pub target: Option<String>,
}

impl BackendArgs {
    /// Makes the backend ready.
    pub fn open(&self) -> Outcome<Box<dyn Engine>> {
        if let (Some(target), false) = (&self.target, self.backend == Name::PtxVm) {
            return Err(Failure::input(format!(
                "--target {target} is for --backend ptx-vm only; add that or leave it out"
            )));
        }
        match self.backend {
            Name::Cpu => Ok(Box::new(CpuEngine)),
            Name::Auto => Ok(gpu().unwrap_or_else(|_| Box::new(CpuEngine))),
            Name::Cuda => gpu(),
            Name::PtxVm => ptx_vm(self.target.as_deref().unwrap_or("sm_80")),
        }
    }

    /// Makes the backend ready if its times are worth measuring.
    pub fn open_to_measure(&self) -> Outcome<Box<dyn Engine>> {
        if self.backend == Name::PtxVm {
            return Err(Failure::input("the times of ptx-vm say nothing of a GPU; take --backend cpu or cuda"));
        }
        self.open()
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

#[cfg(feature = "ptx-vm")]
fn ptx_vm(target: &str) -> Outcome<Box<dyn Engine>> {
    Ok(Box::new(crate::ptx_vm::PtxVm::open(target)?))
}

#[cfg(not(feature = "ptx-vm"))]
fn ptx_vm(target: &str) -> Outcome<Box<dyn Engine>> {
    Err(Failure::input(format!(
        "this build has no ptx-vm to run {target} on; in the repository, `cargo run --release -p adaln-vm --` stands for an adaln that has it"
    )))
}

/// A backend that is ready, and what a command wants of it beside running.
pub trait Engine {
    /// Its name in tables.
    fn name(&self) -> &'static str;

    /// Its name and what it runs on, for people.
    fn description(&self) -> String;

    /// The NVFP4 recipe to take when none is asked for.
    fn native_recipe(&self) -> Nvfp4Recipe;

    /// Runs the call on host memory, into outputs that exist.
    fn run_into(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors) -> Result<()>;

    /// Runs the call at least once into `outputs` and gives the time of one run on operands that are where the backend wants them.
    fn time(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors) -> Outcome<Duration>;

    /// The same for a benchmark: beside a copy that moves as many bytes, under each condition the backend knows, or the first of them.
    fn measure(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors, which: Which) -> Outcome<Vec<Measured>>;
}

/// Which conditions are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Each.
    All,
    /// The first, which is the one that a bandwidth means something for.
    First,
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
