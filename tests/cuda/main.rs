//! The GPU gives the CPU's bytes. Needs a GPU and the feature `cuda`.
//!
//! Without a GPU every test prints that it was skipped and passes; `ADALN_REQUIRE_GPU=1` makes that a failure. The program
//! finds its fixtures wherever it is run (`ADALN_FIXTURES`), so it can be built elsewhere against a stub of libcuda. Under
//! compute-sanitizer, `ADALN_SANITIZER=1` takes fewer cases.
#![cfg(feature = "cuda")]

#[path = "../support/mod.rs"]
mod support;

#[cfg(feature = "cudarc")]
mod cudarc;
mod device_call;
mod faults;
mod gpu;
mod graph;
mod large;
mod overlap;
mod parity;
mod run_time;
