//! Adaptive LayerNorm producers: LayerNorm, adaptive (DiT) modulation and FP8 or NVFP4 quantisation in one pass over a row.
//!
//! A DiT block normalises its activations, scales and shifts them, and hands them to a GEMM that reads FP8 or NVFP4. This library
//! does the whole producer side in one kernel: **row → statistics → modulation → bf16 → sink**. Every operator gives the same
//! bytes on every GPU and on the CPU; what those bytes are is a written [contract](mod@contract).
//!
//! ```
//! use adaptive_layernorm_producers::{Broadcast, Cpu, E4m3, Matrix, bf16};
//!
//! let (rows, dim) = (4, 64);
//! let x: Vec<bf16> = (0..rows * dim).map(|i| bf16::from_f32((i % 7) as f32)).collect();
//! let (scale, shift) = (vec![bf16::ZERO; dim], vec![bf16::ZERO; dim]);
//! let mut out = vec![E4m3::default(); rows * dim];
//!
//! let modulation = Broadcast { scale: &scale, shift: &shift };
//! Cpu.ada_layer_norm_quant_fp8_bf16(Matrix::new(&x, rows, dim), modulation, &[0.025], 1e-5, &mut out)?;
//! # Ok::<(), adaptive_layernorm_producers::Error>(())
//! ```
//!
//! # Operators
//! [`Operator`] lists them. Each is a method of [`Cpu`] and, with the feature `cuda`, of `Producers`, named as in the original
//! package; `run` is the same by parts:
//!
//! | modulation | bf16 | FP8 | AWQ, FP8 | NVFP4 |
//! |---|---|---|---|---|
//! | [`NoAffine`] | | x | | x |
//! | [`Broadcast`] | | x | x | x |
//! | [`PerToken`] | | x | | |
//! | [`PerTokenTable`] | x | x | | x |
//! | [`BroadcastFp8`] | | x | | x |
//!
//! The sinks are [`struct@Bf16`], [`Fp8`], [`AwqFp8`] and [`Nvfp4`] (by one of three [recipes](Nvfp4Recipe)). The twelfth operator,
//! [`adaln_modulation6_bf16`](Cpu::adaln_modulation6_bf16), makes the scales and shifts themselves.
//!
//! # Features
//! * `cuda`: the launch, through `cust`; off by default, since it links the CUDA driver.
//! * `cudarc`: `cuda`, and launches on the streams and memory of `cudarc`.
//! * `cli`: the program `adaln`.
//!
//! # Reading order
//! [`operator`] (the catalogue), `operand` (typed operands), `check` (what is verified before anything runs), [`reference`](mod@reference)
//! (contract.md as code), `cpu`, then [`images`] and the launch; [`formats`] and [`compare`] are for those who look at outputs, [`named`] for
//! programs that learn the operator at run time.
#![deny(unsafe_code)]

#[cfg(feature = "cuda")]
mod arguments;
mod backend;
mod check;
pub mod compare;
pub mod contract;
mod convert;
mod cpu;
mod element;
mod error;
pub mod formats;
pub mod images;
#[cfg(feature = "cuda")]
mod kernels;
#[cfg(feature = "cuda")]
mod launch;
mod methods;
pub mod named;
mod operand;
pub mod operator;
#[cfg(feature = "cuda")]
mod producers;
mod recipe;
pub mod reference;
#[cfg(feature = "cuda")]
mod staged;
#[cfg(feature = "cuda")]
mod stream;

pub use backend::{Backend, Reference};
pub use check::{MAX_ROWS, Sizes};
pub use cpu::Cpu;
pub use element::{DType, Element};
pub use error::{Error, ParseError, Result};
pub use formats::E4m3;
pub use half::bf16;
pub use operand::{
    Absent, AwqFp8, Bf16, Broadcast, BroadcastFp8, Device, DeviceView, DeviceViewMut, Extent, Fp8, Host, Input, Matrix,
    Modulation, Mut, NoAffine, Nvfp4, OptionalInput, Output, PerToken, PerTokenTable, Ref, Sink, SixWay, Space, View,
};
#[cfg(feature = "cudarc")]
pub use operand::{Lent, LentMut, lend, lend_mut};
pub use operator::{ModulationKind, Operator, SinkKind};
#[cfg(feature = "cuda")]
pub use producers::Producers;
pub use recipe::Nvfp4Recipe;
#[cfg(feature = "cuda")]
pub use staged::Staged;
#[cfg(feature = "cuda")]
pub use stream::{LaunchStream, RawStream};
