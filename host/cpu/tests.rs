//! Every instruction level gives the bytes of the reference.
use super::dispatch::Level;
use super::row::{RowSink, Scratch, Source};
use super::{fp8, nvfp4};
use crate::formats::E4m3;
use crate::operand::{Broadcast, Matrix, Nvfp4, Sink};
use crate::recipe::Nvfp4Recipe;
use crate::reference;
use half::bf16;

/// Values over many binades, with ties, zeros and specials among them.
fn painted(len: usize) -> Vec<bf16> {
    let specials = [0.0, -0.0, 1.0, -6.0, 3e38, 1e-39].map(bf16::from_f32);
    let value = |i: usize| match i % 11 {
        0 => specials[i / 11 % specials.len()],
        k => bf16::from_f32(((i * 7919 % 1009) as f32 / 64.0 - 8.0) * if k == 5 { 40.0 } else { 1.0 }),
    };
    (0..len).map(value).collect()
}

/// Short rows only where every instruction is interpreted.
const DIMS: &[usize] = if cfg!(miri) { &[16, 144] } else { &[16, 48, 272, 784, 3072] };

#[test]
fn levels_agree_with_the_reference() {
    for &dim in DIMS {
        let mut x = painted(dim);
        for huge in &mut x {
            // The variance must stay finite.
            if huge.to_f32() > 1e30 {
                *huge = bf16::from_f32(500.0);
            }
        }
        let (scale, shift) = (painted(2 * dim)[dim..].to_vec(), painted(3 * dim)[2 * dim..].to_vec());
        let modulation = Broadcast { scale: scale.as_slice(), shift: shift.as_slice() };
        for level in [Level::Avx512, Level::Avx2, Level::Baseline] {
            if !level.is_available() {
                println!("{level:?} is not available here");
                continue;
            }
            let source = Source { x: &x, dim, modulation: modulation.into(), eps: 1e-5 };
            let mut scratch = Scratch::new(dim, true);
            let (mut expected, mut got) = (vec![E4m3::NAN; dim], vec![E4m3::NAN; dim]);
            let sink = crate::Fp8 { act_scale: [0.05].as_slice(), out: expected.as_mut_slice() };
            reference::run(Matrix::new(&x, 1, dim), modulation.into(), 1e-5, Sink::Fp8(sink)).unwrap();
            level.run(source.row(0, RowSink::Fp8 { inv: fp8::inverse(0.05), out: &mut got }, &mut scratch));
            assert_eq!(got, expected, "{level:?}, D {dim}");
            for recipe in Nvfp4Recipe::ALL {
                let (mut expected, mut layout) = (vec![0; dim / 2], vec![0; 512 * dim.div_ceil(64)]);
                let sink =
                    Nvfp4 { recipe, global_scale: None, packed: &mut expected[..], sf_swizzled: &mut layout[..] };
                reference::run(Matrix::new(&x, 1, dim), modulation.into(), 1e-5, Sink::Nvfp4(sink)).unwrap();
                let (mut packed, mut scales) = (vec![0; dim / 2], vec![0; dim / 16]);
                let recipe = nvfp4::Recipe::new(recipe, None);
                let sink = RowSink::Nvfp4 { recipe, packed: &mut packed, scales: &mut scales };
                level.run(source.row(0, sink, &mut scratch));
                assert_eq!(packed, expected, "{level:?}, D {dim}");
            }
        }
    }
}
