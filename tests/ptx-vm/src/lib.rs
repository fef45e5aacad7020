//! A PTX virtual machine: runs kernels on the CPU, thread by thread, and checks what hardware does not.
//!
//! ```
//! use ptx_vm::{Launch, Memory, Module, Schedule};
//!
//! let module = Module::parse(
//!     ".version 8.1
//!      .target sm_90
//!      .address_size 64
//!      .visible .entry twice(.param .u64 in, .param .u64 out) {
//!          .reg .b32 %r<3>;
//!          .reg .b64 %rd<4>;
//!          ld.param.u64 %rd1, [in];
//!          ld.param.u64 %rd2, [out];
//!          mov.u32 %r1, %tid.x;
//!          mul.wide.u32 %rd3, %r1, 4;
//!          add.u64 %rd1, %rd1, %rd3;
//!          add.u64 %rd2, %rd2, %rd3;
//!          ld.global.u32 %r2, [%rd1];
//!          shl.b32 %r2, %r2, 1;
//!          st.global.u32 [%rd2], %r2;
//!          ret;
//!      }",
//! )?;
//! let mut memory = Memory::new();
//! let input = memory.input([1u32, 2, 3, 4].map(u32::to_le_bytes).concat());
//! let output = memory.output(16, 0xEE);
//! let launch = Launch::new(&module, "twice").block(4).arg(input).arg(output).schedule(Schedule::Random(7));
//! let report = launch.run(&mut memory)?;
//! memory.check_written(output)?;
//! assert_eq!(memory.bytes(output), [2u32, 4, 6, 8].map(u32::to_le_bytes).concat());
//! assert_eq!(report.count("st.global"), 4);
//!
//! // One thread too many is not a silent overrun:
//! let error = launch.block(5).run(&mut memory).unwrap_err();
//! let fault = error.fault().expect("a fault of the kernel");
//! assert_eq!((fault.thread, fault.line), ([4, 0, 0], 13));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What it promises
//! - **Semantics by the PTX ISA document.** Every instruction is defined in one place under `isa`, with the section named. Results
//!   are exact to the bit: round-to-nearest f32 and f64 by the host's IEEE operations, everything else by integers rounded once.
//!   What is not defined there is a [`ParseError`] with its line. So are `.approx` and `.ftz`: they have no exact definition.
//! - **Stricter than hardware.** Out-of-bounds and misaligned accesses, uninitialised registers and bytes, races within a block and
//!   across the grid, barriers reached by part of a block, absent lanes, outputs written twice: each is a [`FaultKind`] with thread,
//!   line and address, and each is found under every [`Schedule`], because it follows from the order that barriers give, not from
//!   luck.
//! - **Deterministic.** A launch with the same inputs and schedule gives the same bytes, the same report and the same fault,
//!   whatever the number of host cores.
//!
//! # What it does not do
//! Time, caches, texture, clusters, bulk and tensor copies, tensor cores, recursion, dynamic parallelism. Fences and atomics synchronise
//! nothing here: data handed from block to block through a flag is reported as a race.
//!
//! # Why not an existing crate
//! crates.io had these when this was written: `ptoxide` 0.1.0 runs PTX, but knows loads, stores, moves, `add`, `sub`, `mul`, `and`,
//! `or`, `not`, `neg`, `shl`, `setp`, branches, calls and barriers; no shuffles, no `cvt` beyond plain widths, no `fma`, no packed types,
//! no vector accesses, `todo!` on the rest. `ptx-parser` 0.1 and `ptx-90-parser` 0.5 parse and do not execute. None checks races.
//!
//! # Reading order
//! `text` (to a syntax tree), `lower` (to a `program`), `isa` (what instructions mean, over `soft` for exact arithmetic), `memory` (spaces and
//! who touched what), `exec` (blocks, threads, barriers, warps).
#![forbid(unsafe_code)]

mod error;
mod exec;
mod isa;
mod layout;
mod lower;
mod memory;
mod module;
mod program;
mod soft;
mod text;
mod ty;

pub use error::{Access, Fault, FaultKind, LaunchError, ParseError, ParseErrorKind, RaceKind, Space, Unwritten};
pub use exec::{Argument, Dim3, Launch, Report, Schedule};
pub use memory::{Buffer, Handle, Memory};
pub use module::{Entry, EntryParameter, Module};
