//! The program `adaln` as its users see it: files, text and exit codes.
mod diff;
mod golden;
mod program;
mod refusals;
mod results;
#[path = "../support/mod.rs"]
mod support;
mod vectors;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_adaln");
