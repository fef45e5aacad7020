//! What the caller says about a launch.

use super::geometry::{Dim3, Place};
use super::grid;
use super::report::Report;
use super::schedule::Schedule;
use crate::error::LaunchError;
use crate::memory::{Handle, Memory};
use crate::module::Module;
use crate::program::Program;

/// The bytes of one kernel argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument(Vec<u8>);

macro_rules! argument {
    ($($ty:ty),*) => { $(
        impl From<$ty> for Argument {
            fn from(value: $ty) -> Self {
                Self(value.to_le_bytes().to_vec())
            }
        }
    )* };
}
argument!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64);

impl From<Handle> for Argument {
    fn from(handle: Handle) -> Self {
        handle.address().into()
    }
}

impl From<Vec<u8>> for Argument {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

impl From<&[u8]> for Argument {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

/// A launch: an entry, its geometry, its arguments, and how strict and in which order it runs.
#[derive(Clone, Debug)]
pub struct Launch<'m> {
    module: &'m Module,
    entry: String,
    arguments: Vec<Vec<u8>>,
    pub(super) options: Options,
}

/// Everything but entry and arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    pub grid: Dim3,
    pub block: Dim3,
    pub dynamic_shared: u32,
    pub schedule: Schedule,
    pub step_limit: u64,
    pub equal_writes: bool,
}

/// Instructions that a thread may run unless the caller says otherwise: far beyond any row kernel, half a second of a loop that
/// does not end.
const STEP_LIMIT: u64 = 1 << 24;

impl<'m> Launch<'m> {
    /// One block of one thread, no arguments.
    #[must_use]
    pub fn new(module: &'m Module, entry: &str) -> Self {
        let options = Options {
            grid: 1.into(),
            block: 1.into(),
            dynamic_shared: 0,
            schedule: Schedule::default(),
            step_limit: STEP_LIMIT,
            equal_writes: false,
        };
        Self { module, entry: entry.to_owned(), arguments: Vec::new(), options }
    }

    /// Blocks of the grid.
    #[must_use]
    pub fn grid(mut self, extent: impl Into<Dim3>) -> Self {
        self.options.grid = extent.into();
        self
    }

    /// Threads of a block.
    #[must_use]
    pub fn block(mut self, extent: impl Into<Dim3>) -> Self {
        self.options.block = extent.into();
        self
    }

    /// Adds the next argument: a number, a [`Handle`], or the bytes of a struct (little-endian).
    #[must_use]
    pub fn arg(mut self, argument: impl Into<Argument>) -> Self {
        self.arguments.push(argument.into().0);
        self
    }

    /// Bytes of the unsized `.extern .shared` array.
    #[must_use]
    pub fn dynamic_shared(mut self, bytes: u32) -> Self {
        self.options.dynamic_shared = bytes;
        self
    }

    /// The order in which threads take turns.
    #[must_use]
    pub fn schedule(mut self, schedule: Schedule) -> Self {
        self.options.schedule = schedule;
        self
    }

    /// Most instructions of one thread, 2^24 unless set.
    #[must_use]
    pub fn step_limit(mut self, instructions: u64) -> Self {
        self.options.step_limit = instructions;
        self
    }

    /// Lets unordered threads write a byte if they write the value that it has.
    #[must_use]
    pub fn allow_equal_writes(mut self) -> Self {
        self.options.equal_writes = true;
        self
    }

    /// Runs the entry to the end. Buffers of `memory` change even if it fails, as far as blocks completed.
    ///
    /// # Errors
    /// [`LaunchError`]: what is wrong with the launch, or the first fault of the kernel, in the order of blocks.
    pub fn run(&self, memory: &mut Memory) -> Result<Report, LaunchError> {
        let program = self.module.program(&self.entry).ok_or_else(|| LaunchError::UnknownEntry(self.entry.clone()))?;
        self.check_arguments(program)?;
        self.options.check_geometry(program)?;
        if memory.buffers.len() + program.buffers.len() > crate::layout::MAX_BUFFERS {
            return Err(LaunchError::Geometry("more buffers than there are addresses for".into()));
        }
        grid::run(self.module, program, &self.arguments, self.options, memory)
    }

    fn check_arguments(&self, program: &Program) -> Result<(), LaunchError> {
        let (expected, got) = (program.parameters.len(), self.arguments.len());
        if expected != got {
            return Err(LaunchError::ArgumentCount { entry: self.entry.clone(), expected, got });
        }
        for (index, (parameter, argument)) in program.parameters.iter().zip(&self.arguments).enumerate() {
            if parameter.bytes != argument.len() {
                return Err(LaunchError::ArgumentSize {
                    index,
                    parameter: parameter.name.clone(),
                    expected: parameter.bytes,
                    got: argument.len(),
                });
            }
        }
        Ok(())
    }
}

impl Options {
    /// Limits of every GPU (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability") and of the entry.
    fn check_geometry(&self, program: &Program) -> Result<(), LaunchError> {
        let fail = |what: String| Err(LaunchError::Geometry(what));
        let ([gx, gy, gz], [bx, by, bz]) = (self.grid.0, self.block.0);
        if gx == 0 || gy == 0 || gz == 0 || gx > 0x7FFF_FFFF || gy > 65_535 || gz > 65_535 {
            return fail(format!("grid {gx} x {gy} x {gz}"));
        }
        let threads = self.block.volume();
        if threads == 0 || threads > 1024 || bx > 1024 || by > 1024 || bz > 64 {
            return fail(format!("block {bx} x {by} x {bz}"));
        }
        if self.grid.volume() > u64::from(u32::MAX - 1) {
            return fail("more than 2^32 - 2 blocks".into());
        }
        if let Some(required) = program.required_threads.filter(|required| *required != self.block.0) {
            return fail(format!("the entry requires blocks of {required:?} threads (.reqntid)"));
        }
        if let Some(most) = program.maximum_threads.filter(|most| threads > Dim3(*most).volume()) {
            return fail(format!("the entry allows at most {most:?} threads (.maxntid)"));
        }
        if self.dynamic_shared > 0 && program.dynamic_shared.is_none() {
            return fail("the entry has no unsized shared array".into());
        }
        let shared = crate::layout::span(&program.shared) + u64::from(self.dynamic_shared);
        let private = crate::layout::span(&program.local).max(crate::layout::span(&program.param));
        if private > 512 * 1024 {
            return fail(format!("{private} bytes of local or param memory per thread"));
        }
        if shared > 227 * 1024 + crate::layout::SPACE_BASE + 4096 {
            return fail(format!("{shared} bytes of shared memory"));
        }
        Ok(())
    }

    pub(super) fn place(&self, block: u32) -> Place {
        Place {
            block: self.grid.coordinates(block),
            grid_extent: self.grid,
            block_extent: self.block,
            dynamic_shared: self.dynamic_shared,
        }
    }
}
