//! What runs the operators: `--backend`.
use crate::failure::{Failure, Outcome};
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::{Backend, Cpu, Nvfp4Recipe};
use clap::ValueEnum;
use std::time::{Duration, Instant};

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
}

struct CpuEngine;

impl Engine for CpuEngine {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn description(&self) -> String {
        format!("cpu, {} threads", rayon::current_num_threads())
    }

    fn backend(&self) -> &dyn Backend {
        &Cpu
    }

    fn native_recipe(&self) -> Nvfp4Recipe {
        Nvfp4Recipe::TransformerEngine
    }

    /// The median of a few runs; fewer where they are long.
    fn time(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors) -> Outcome<Duration> {
        const ENOUGH: Duration = Duration::from_millis(30);
        const MOST: usize = 9;
        // The first run touches the outputs' pages and warms the caches.
        call.run_into(&Cpu, inputs, outputs)?;
        let (mut times, begin) = (Vec::new(), Instant::now());
        while times.is_empty() || times.len() < MOST && begin.elapsed() < ENOUGH {
            let begin = Instant::now();
            call.run_into(&Cpu, inputs, outputs)?;
            times.push(begin.elapsed());
        }
        times.sort_unstable();
        Ok(times[times.len() / 2])
    }
}
