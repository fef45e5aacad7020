//! The blocks of a launch.
//!
//! Blocks run in batches, in parallel, each on its own view of the buffers; views are merged in the order of blocks. A kernel
//! whose atomics make the order of blocks visible runs one block at a time.

use rayon::prelude::*;

use super::block::{Block, Finished};
use super::launch::Options;
use super::report::Report;
use crate::error::{Fault, FaultKind, LaunchError};
use crate::layout;
use crate::memory::grid::{Grid, GridRace};
use crate::memory::{Memory, Role, Stored, block::party};
use crate::module::Module;
use crate::program::{Program, Slot};

/// Blocks that run before their views are merged: enough for any host, little enough memory.
const BATCH: u32 = 64;

/// Sums over blocks.
struct Totals {
    counts: Vec<u64>,
    barriers: u64,
    warp_operations: u64,
}

pub(super) fn run(
    module: &Module,
    program: &Program,
    arguments: &[Vec<u8>],
    options: Options,
    memory: &mut Memory,
) -> Result<Report, LaunchError> {
    let own = memory.buffers.len();
    let addresses = add_module_buffers(program, memory);
    let done = run_blocks(module, program, arguments, options, (memory, &addresses));
    memory.buffers.truncate(own);
    let totals = done?;
    Ok(Report::new(program, &totals.counts, totals.barriers, totals.warp_operations))
}

/// `.global` and `.const` variables start anew with every launch.
fn add_module_buffers(program: &Program, memory: &mut Memory) -> Vec<(Slot, u64)> {
    let mut addresses = Vec::new();
    for buffer in &program.buffers {
        let address = layout::buffer_address(memory.buffers.len(), buffer.align);
        memory.buffers.push(Stored {
            address,
            bytes: buffer.bytes.clone(),
            role: if buffer.read_only { Role::Input } else { Role::Scratch },
            initialised: None,
            written: None,
        });
        addresses.push((buffer.slot, address));
    }
    addresses
}

fn run_blocks(
    module: &Module,
    program: &Program,
    arguments: &[Vec<u8>],
    options: Options,
    (memory, addresses): (&mut Memory, &[(Slot, u64)]),
) -> Result<Totals, LaunchError> {
    let blocks = u32::try_from(options.grid.volume()).unwrap_or(u32::MAX);
    let batch = if program.ordered { 1 } else { BATCH };
    let mut totals = Totals { counts: vec![0; program.code.len()], barriers: 0, warp_operations: 0 };
    let mut grid = Grid::default();
    let mut first = 0;
    while first < blocks {
        let range = first..blocks.min(first.saturating_add(batch));
        first = range.end;
        let view: &Memory = memory;
        let run_one = |block: u32| {
            let place = options.place(block);
            Block::new(program, view, (arguments, addresses), place, options).run(block)
        };
        let finished: Vec<Result<Finished, _>> = if batch == 1 {
            range.clone().map(run_one).collect()
        } else {
            range.clone().into_par_iter().map(run_one).collect()
        };
        for (block, result) in range.zip(finished) {
            let finished = result.map_err(|fault| Box::new(module.quote(fault)))?;
            totals.add(&finished);
            grid.merge(block, &finished.overlay, memory, options.equal_writes)
                .map_err(|race| Box::new(module.quote(race_fault(program, options, block, race))))?;
        }
    }
    Ok(totals)
}

impl Totals {
    fn add(&mut self, finished: &Finished) {
        for (total, count) in self.counts.iter_mut().zip(&finished.counts) {
            *total += count;
        }
        self.barriers += finished.barriers;
        self.warp_operations += finished.warp_operations;
    }
}

fn race_fault(program: &Program, options: Options, block: u32, race: GridRace) -> Fault {
    let later = party(program, options.place(block), race.later);
    let other = party(program, options.place(race.earlier.0), race.earlier.1);
    Fault {
        block: later.block,
        thread: later.thread,
        line: later.line,
        text: String::new(),
        kind: FaultKind::Race { space: crate::error::Space::Global, address: race.address, kind: race.kind, other },
    }
}
