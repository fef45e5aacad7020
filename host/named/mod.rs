//! Operands by name, for programs that learn the operator at run time: a command line, a test over the whole catalogue.
//!
//! A [`Call`] says which operator and its parameters, [`Tensors`] hold the operands under the names of contract.md; dtypes and
//! shapes are checked like everything else.
//!
//! ```
//! use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
//! use adaptive_layernorm_producers::{Cpu, E4m3, Operator, bf16};
//! let mut inputs = Tensors::new();
//! inputs.insert("x".into(), Tensor::new([1, 2], [-1.0, 1.0].map(bf16::from_f32).to_vec()));
//! inputs.insert("act_scale".into(), Tensor::new([], vec![0.5f32]));
//! let call = Call::new(Operator::LayerNormNoAffineQuantFp8StaticBf16);
//! let outputs = call.run(&Cpu, &inputs)?;
//! assert_eq!(outputs["out"].data, Data::E4m3([-2.0, 2.0].map(E4m3::from_f32).to_vec()));
//! # Ok::<(), adaptive_layernorm_producers::Error>(())
//! ```
mod call;
mod shapes;
mod tensor;

pub use call::Call;
pub use tensor::{Data, Tensor, Tensors};
