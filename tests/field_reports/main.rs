//! What went wrong elsewhere with kernels of this family, item by item: tests/README.md maps items to tests.
//!
//! Every value here was worked out by hand or in f64, not by the code under test. `Sinks` quantises chosen values: on a constant
//! row the normalised value is 0, so the modulated row is the shift, whatever it is.
#[path = "../support/mod.rs"]
mod support;

mod blocks;
mod rounding;
mod shapes;
mod statistics;

use adaptive_layernorm_producers::formats::{e2m1, scale_layout};
use adaptive_layernorm_producers::named::{Call, Tensor, Tensors};
use adaptive_layernorm_producers::operator::SinkKind;
use adaptive_layernorm_producers::{Backend, Nvfp4Recipe, Operator};
use half::bf16;
use support::random::{Kind, Problem};
use support::{backends, bytes, calls, e4m3};

/// Quantises chosen values on a backend.
struct Sinks<'a>(&'a dyn Backend);

impl Sinks<'_> {
    /// Inputs whose modulated rows are `v`, −0 included: n = 0 and `1 + scale = −1`.
    fn inputs(v: &[f32]) -> Tensors {
        let dim = v.len();
        let filled = |value: f32| Tensor::new([dim], vec![bf16::from_f32(value); dim]);
        let shift = v.iter().map(|v| bf16::from_f32(*v)).collect::<Vec<_>>();
        let x = Tensor::new([1, dim], vec![bf16::from_f32(3.0); dim]);
        [("x", x), ("scale", filled(-2.0)), ("shift", Tensor::new([dim], shift))]
            .map(|(name, tensor)| (name.into(), tensor))
            .into()
    }

    fn fp8(&self, v: &[f32], act_scale: f32) -> Vec<u8> {
        let mut inputs = Self::inputs(v);
        inputs.insert("act_scale".into(), Tensor::new([1], vec![act_scale]));
        let outputs = Call::new(Operator::AdaLayerNormQuantFp8Bf16).run(self.0, &inputs).unwrap();
        e4m3(&outputs["out"]).iter().map(|code| code.to_bits()).collect()
    }

    /// Scale bytes of the blocks, and one nibble for each value.
    fn nvfp4(&self, recipe: Nvfp4Recipe, v: &[f32]) -> (Vec<u8>, Vec<u8>) {
        self.nvfp4_scaled(recipe, v, None)
    }

    fn nvfp4_scaled(&self, recipe: Nvfp4Recipe, v: &[f32], global_scale: Option<f32>) -> (Vec<u8>, Vec<u8>) {
        let mut inputs = Self::inputs(v);
        if let Some(global_scale) = global_scale {
            inputs.insert("global_scale".into(), Tensor::new([1], vec![global_scale]));
        }
        let call = Call::new(Operator::AdaLayerNormQuantNvfp4SwizzledBf16).with_recipe(recipe);
        let outputs = call.run(self.0, &inputs).unwrap();
        let scale = |c| bytes(&outputs["sf_swizzled"])[scale_layout::offset(0, c, v.len() as u32) as usize];
        let nibbles = bytes(&outputs["packed"]).iter().flat_map(|byte| e2m1::split(*byte)).collect();
        ((0..v.len() as u32 / 16).map(scale).collect(), nibbles)
    }
}

/// A block that starts with these values and goes on with zeros.
fn block(values: &[f32]) -> Vec<f32> {
    let mut block = values.to_vec();
    block.resize(16, 0.0);
    block
}

fn each_backend(test: impl Fn(Sinks<'_>)) {
    for (name, backend) in backends() {
        println!("on {name}");
        test(Sinks(backend));
    }
}

fn nvfp4_calls() -> impl Iterator<Item = Call> {
    calls().into_iter().filter(|call| call.operator.sink() == SinkKind::Nvfp4)
}

fn problem(call: Call, rows: usize, dim: usize, seed: u64) -> Problem {
    Problem { call, rows, dim, chunks: 2, kind: Kind::Normal, seed }
}
