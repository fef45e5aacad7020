//! Builds the device crate with rustc's own NVPTX backend, and turns it into audited kernel images.
//!
//! **Why this is a path crate.** The published `cuda_builder` 0.3.0 (2022) drives `rustc_codegen_nvvm`, which needs LLVM 7 and a nightly
//! of 2021 and builds with no current toolchain. rustc has had a working NVPTX backend of its own since. This crate keeps the names
//! and signatures of the published one for the part that is used here, `CudaBuilder::new(path).arch(..).copy_to(..).build()`, so a
//! reader who knows Rust-CUDA knows this code, and two changed lines (this dependency and that of `cuda_std`) would move the kernels to
//! the real pair when it can be built again. What goes beyond it, cubins, the audit and the manifest, has names of its own.
//!
//! Reading order: [`targets`] (which images there are), [`compiler`] and [`ptxas`] (the tools), `compile` (crate to PTX), [`ptx`] and
//! [`audit`] (what an image may contain), `image` (one target), [`manifest`], `staged` (until all are good), [`workspace`] (all of
//! them). The program, `cargo kernels`, is in `main.rs`.
#![forbid(unsafe_code)]

pub mod audit;
pub mod compiler;
pub mod manifest;
pub mod ptx;
pub mod ptxas;
pub mod targets;
pub mod workspace;

mod arch;
mod builder;
mod compile;
#[allow(dead_code, reason = "for its version only")]
#[path = "../../../host/contract/mod.rs"]
mod contract;
#[path = "../../../host/images/digest.rs"]
mod digest;
#[cfg(test)]
mod digest_tests;
mod error;
mod image;
mod parallel;
mod staged;

pub use arch::NvvmArch;
pub use builder::CudaBuilder;
pub use error::{CudaBuilderError, Result};
