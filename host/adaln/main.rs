//! `adaln`: the library's operators on a command line.
//!
//! Reading order: `cli` (the commands), `backend` (what runs them), `run`, `demo`, `check`, `bench`, `diff`, `accuracy`,
//! `vectors`, `info`, `manual` (one file or folder a command);
//! `tensor_file` (safetensors in and out), `inputs` (random operands), `exact` and `dequantise` (the error against float64),
//! `table` (what is printed).
//!
//! Results go to stdout, everything else to stderr. Exit codes: 0 all is well, 1 a check failed, 2 wrong usage or bad input.
#![deny(unsafe_code)]

mod accuracy;
mod backend;
mod bench;
mod check;
mod cli;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod demo;
mod dequantise;
mod diff;
mod difference;
mod exact;
mod failure;
mod info;
mod inputs;
mod manual;
#[cfg(feature = "ptx-vm")]
mod ptx_vm;
mod run;
mod seed_shapes;
mod table;
mod tensor_file;
mod ui;
mod vectors;
mod verify;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::Cli::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            ui::error(&failure);
            failure.exit_code()
        }
    }
}
