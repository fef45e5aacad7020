//! The CPU as a backend of the program.
use crate::backend::{Engine, Measured, Which};
use crate::demo;
use crate::failure::{Failure, Outcome};
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::{Cpu, Nvfp4Recipe, Result};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};
use std::time::{Duration, Instant};

/// Rows in parallel on rayon's threads.
pub struct CpuEngine;

impl Engine for CpuEngine {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn description(&self) -> String {
        format!("cpu, {} threads", rayon::current_num_threads())
    }

    fn native_recipe(&self) -> Nvfp4Recipe {
        Nvfp4Recipe::TransformerEngine
    }

    fn run_into(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors) -> Result<()> {
        call.run_into(&Cpu, inputs, outputs)
    }

    fn time(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors) -> Outcome<Duration> {
        median(Duration::from_millis(30), || Ok(call.run_into(&Cpu, inputs, outputs)?))
    }

    fn measure(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors, _: Which) -> Outcome<Vec<Measured>> {
        const LONG: Duration = Duration::from_millis(300);
        let time = median(LONG, || Ok(call.run_into(&Cpu, inputs, outputs)?))?;
        let half = (demo::bytes(inputs) + demo::bytes(outputs)) / 2;
        let (from, mut to) = (filled(call, half, 1)?, filled(call, half, 0)?);
        let copy = median(LONG, || {
            copy(&from, &mut to);
            Ok(())
        })?;
        Ok(vec![Measured { condition: "hot", time, copy }])
    }
}

/// So many bytes, or a sentence where there is no memory for them.
fn filled(call: &Call, bytes: u64, value: u8) -> Outcome<Vec<u8>> {
    let full = |_| {
        let operator = call.operator;
        Failure::input(format!(
            "{operator}: the copy beside it needs {bytes} bytes more of memory; choose a smaller shape"
        ))
    };
    // No more than the operands, which are in memory.
    let len = bytes as usize;
    let mut all = Vec::new();
    all.try_reserve_exact(len).map_err(full)?;
    all.resize(len, value);
    Ok(all)
}

/// The median of runs that take `enough` together, after one that touches the pages and warms the caches.
fn median(enough: Duration, mut run: impl FnMut() -> Outcome) -> Outcome<Duration> {
    const MOST: usize = 101;
    run()?;
    let (mut times, begin) = (Vec::new(), Instant::now());
    while times.is_empty() || times.len() < MOST && begin.elapsed() < enough {
        let begin = Instant::now();
        run()?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    Ok(times[times.len() / 2])
}

/// A copy by all threads.
fn copy(from: &[u8], to: &mut [u8]) {
    const PIECE: usize = 1 << 18;
    to.par_chunks_mut(PIECE).zip(from.par_chunks(PIECE)).for_each(|(to, from)| to.copy_from_slice(from));
}
