//! Items 12 to 14: mean and variance of every kind of row.
use crate::support::random::Random;
use crate::support::{bf16s, e4m3};
use crate::{Sinks, each_backend};
use adaptive_layernorm_producers::named::{Call, Tensor, Tensors};
use adaptive_layernorm_producers::{Backend, Operator};
use half::bf16;

/// The row (x − mean)/sqrt(var + eps) in f64.
fn normalised(x: &[bf16], eps: f64) -> Vec<f64> {
    let x: Vec<f64> = x.iter().map(|x| f64::from(x.to_f32())).collect();
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
    x.iter().map(|x| (x - mean) / (variance + eps).sqrt()).collect()
}

/// LayerNorm in bf16: the table form with zeros.
pub(crate) fn layer_norm(backend: &dyn Backend, x: &[bf16], rows: usize, eps: f32) -> Vec<bf16> {
    let dim = x.len() / rows;
    let mut inputs = Tensors::new();
    inputs.insert("x".into(), Tensor::new([rows, dim], x.to_vec()));
    inputs.insert("temb".into(), Tensor::new([rows, 1, dim], vec![bf16::ZERO; rows * dim]));
    inputs.insert("table".into(), Tensor::new([1, dim], vec![0.0f32; dim]));
    let call = Call { eps, shift_idx: 0, scale_idx: 0, ..Call::new(Operator::AdaLayerNormPtokTableBf16) };
    bf16s(&call.run(backend, &inputs).unwrap()["out"]).to_vec()
}

/// Item 12: rows far from zero; a variance from E[x²] − mean² is 0 or negative here.
#[test]
fn variance_takes_two_passes() {
    let outlier = |usual: f32, one: f32| {
        let mut x = vec![bf16::from_f32(usual); 5120];
        x[1234] = bf16::from_f32(one);
        x
    };
    let mut random = Random(12);
    let offset: Vec<bf16> = (0..5120).map(|_| bf16::from_f32(1000.0 + 8.0 * random.normal())).collect();
    each_backend(|Sinks(backend)| {
        for x in [outlier(256.0, 258.0), outlier(300.0, 302.0), outlier(8192.0, 8256.0), offset.clone()] {
            let expected = normalised(&x, 1e-5);
            for (v, expected) in layer_norm(backend, &x, 1, 1e-5).iter().zip(expected) {
                // bf16 has 8 bits; the mean has an error of half an ulp, 2^-24 of itself, in units of the deviation.
                let tolerance = expected.abs() / 256.0 + 1e-3;
                assert!((f64::from(v.to_f32()) - expected).abs() <= tolerance, "{v} for {expected}");
            }
        }
    });
}

/// Item 13: a constant row is exactly the shift, with the smallest eps, for any D.
#[test]
fn constant_rows_are_the_shift() {
    each_backend(|Sinks(backend)| {
        let mut random = Random(13);
        for dim in [2, 6, 10, 48, 96, 1000, 1152, 3000, 3072, 5120, 12_290] {
            for value in [0.1f32, -300.0, 1e-30, 1e30, 0.0, 77.0] {
                let table: Vec<f32> = (0..2 * dim).map(|_| bf16::from_f32(random.normal()).to_f32()).collect();
                let mut inputs = Tensors::new();
                inputs.insert("x".into(), Tensor::new([1, dim], vec![bf16::from_f32(value); dim]));
                inputs.insert("temb".into(), Tensor::new([1, 2, dim], vec![bf16::ZERO; 2 * dim]));
                inputs.insert("table".into(), Tensor::new([2, dim], table.clone()));
                let call = Call { eps: 1e-12, ..Call::new(Operator::AdaLayerNormPtokTableBf16) };
                let outputs = call.run(backend, &inputs).unwrap();
                for (v, shift) in bf16s(&outputs["out"]).iter().zip(&table) {
                    assert_eq!(v.to_f32(), *shift, "D {dim}, x {value}");
                }
            }
        }
    });
}

/// Item 14: odd and large D, against f64.
#[test]
fn every_dim_is_right() {
    let dims = [2, 6, 14, 30, 770, 1000, 1152, 1538, 3074, 3584, 5376, 6146, 12_288, 16_384, 16_400, 65_536, 100_002];
    each_backend(|Sinks(backend)| {
        let mut random = Random(14);
        for dim in dims {
            let x: Vec<bf16> = (0..2 * dim).map(|_| bf16::from_f32(random.normal() * 3.0 + 1.0)).collect();
            let v = layer_norm(backend, &x, 2, 1e-5);
            let expected = x.chunks(dim).flat_map(|row| normalised(row, 1e-5));
            for (v, expected) in v.iter().zip(expected) {
                let error = (f64::from(v.to_f32()) - expected).abs();
                assert!(error <= expected.abs() / 256.0 + 1e-5, "D {dim}: {v} for {expected}");
            }
            let mut inputs = Tensors::new();
            inputs.insert("x".into(), Tensor::new([2, dim], x));
            inputs.insert("act_scale".into(), Tensor::new([], vec![0.03125f32]));
            let fp8 = Call::new(Operator::LayerNormNoAffineQuantFp8StaticBf16).run(backend, &inputs).unwrap();
            for (code, v) in e4m3(&fp8["out"]).iter().zip(&v) {
                let q = v.to_f32() * 32.0;
                // Half a step of three mantissa bits, or of the subnormals.
                assert!((code.to_f32() - q).abs() <= q.abs() / 16.0 + 2f32.powi(-10), "D {dim}: {code} for {q}");
            }
        }
    });
}
