//! Adaptive LayerNorm producers: LayerNorm, adaptive (DiT) modulation and FP8 or NVFP4 quantisation in one kernel.
//!
//! A DiT block normalises its activations, scales and shifts them, and hands them to a GEMM that reads FP8 or NVFP4. This library
//! does the whole producer side in one kernel: **row → statistics → modulation → bf16 → sink**. Every operator gives the same
//! bytes on every GPU and on the CPU; what those bytes are is a written [contract](mod@contract).
//!
//! # A DiT block
//! The producers of one block, in front of an FP8 and an NVFP4 GEMM. On a GPU this is the same with a `Producers` in place of [`Cpu`], a
//! stream as the first argument, and device memory.
//!
//! ```
//! use adaptive_layernorm_producers::formats::swizzled_sf_size;
//! use adaptive_layernorm_producers::{Broadcast, Cpu, E4m3, Matrix, Nvfp4, Nvfp4Recipe, bf16};
//!
//! const ROWS: usize = 2; // tokens
//! const DIM: usize = 16;
//! let x = [-1.0, 1.0].repeat(ROWS * DIM / 2); // rows of mean 0 and variance 1
//! let x: Vec<bf16> = x.into_iter().map(bf16::from_f32).collect();
//!
//! // 1. Six scales and shifts: the embedding's projection, f32 [B, S, 6, D] with B = S = 1, plus the layer's own table, f32 [6, D].
//! let adaln_params: Vec<f32> = (0..6 * DIM).map(|i| (i / DIM) as f32 * 0.25).collect(); // chunk k holds k/4
//! let layer_modulation = vec![0.5; 6 * DIM];
//! let mut six = [[bf16::ZERO; DIM]; 6];
//! Cpu.adaln_modulation6_bf16(&adaln_params, &layer_modulation, six.each_mut())?;
//! let [shift_msa, scale_msa, _gate_msa, shift_mlp, scale_mlp, _gate_mlp] = six;
//!
//! // 2. In front of attention: AdaLN to FP8. act_scale comes from calibration, as amax / 448.
//! let act_scale = [0.25];
//! let mut a = [E4m3::default(); ROWS * DIM];
//! let msa = Broadcast { scale: &scale_msa, shift: &shift_msa };
//! Cpu.ada_layer_norm_quant_fp8_bf16(Matrix::new(&x, ROWS, DIM), msa, &act_scale, 1e-5, &mut a)?;
//! assert_eq!([a[0], a[1]].map(E4m3::to_f32), [-5.0, 9.0]); // (±1 · (1 + 0.75) + 0.5) / 0.25
//!
//! // 3. What the GEMM needs: `a` as its e4m3 operand A, row major [R, D]; act_scale as A's scale for the whole tensor (cuBLASLt:
//! //    CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, or B's if it multiplies the other way round). It gives act_scale · w_scale · Σ a · w:
//! let (w, w_scale) = ([E4m3::from_f32(2.0); DIM], 0.5); // one column of an e4m3 weight
//! let sum: f32 = a[..DIM].iter().zip(&w).map(|(a, w)| a.to_f32() * w.to_f32()).sum();
//! assert_eq!(act_scale[0] * w_scale * sum, 8.0); // Σ v = 8 · (-1.25 + 2.25), times a weight of 1
//!
//! // 4. In front of the MLP, after x += gate_msa · attention: AdaLN to NVFP4.
//! let mut packed = [0u8; ROWS * DIM / 2];
//! let mut sf_swizzled = vec![0u8; swizzled_sf_size(ROWS as u32, DIM as u32).unwrap()];
//! let mlp = Broadcast { scale: &scale_mlp, shift: &shift_mlp };
//! let sink = Nvfp4::new(Nvfp4Recipe::TransformerEngine, &mut packed, &mut sf_swizzled);
//! Cpu.ada_layer_norm_quant_nvfp4_swizzled_bf16(Matrix::new(&x, ROWS, DIM), mlp, 1e-5, sink)?;
//! // The GEMM takes `packed` as e2m1 and `sf_swizzled` as its UE4M3 block scales, 16 elements a block, in the layout they have
//! // (cuBLASLt: CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3).
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
#![cfg_attr(docsrs, feature(doc_cfg))] // docs.rs shows which feature an item needs

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
