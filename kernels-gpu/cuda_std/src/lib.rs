//! Device library: the part of `cuda_std` that the kernels use, over rustc's own NVPTX backend.
//!
//! The published `cuda_std` 0.2.2 (2022) only builds with `rustc_codegen_nvvm`, which needs LLVM 7 and a 2021 nightly; no
//! toolchain that exists today can compile it. This path crate keeps its module and function names and its signatures
//! (`thread::thread_idx_x`, `thread::sync_threads`, `warp::lane_id`, ..) for exactly what the kernels use,
//! so kernel code reads as Rust-CUDA users expect, and moving back to the published crate is a change of one line.
//!
//! Reading order: `thread` (where am I, barrier), `warp` (shuffles), `shared` (shared memory).
//! On any other target than `nvptx64` the crate is empty.
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(stdarch_nvptx, asm_experimental_arch, link_llvm_intrinsics))]
#![cfg_attr(target_arch = "nvptx64", allow(internal_features))]

#[cfg(target_arch = "nvptx64")]
pub mod shared;
#[cfg(target_arch = "nvptx64")]
pub mod thread;
#[cfg(target_arch = "nvptx64")]
pub mod warp;
