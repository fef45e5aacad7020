//! Items 15 to 17: batches, many rows, odd addresses.
use crate::statistics::layer_norm;
use crate::support::random::Random;
use crate::support::{bytes, calls};
use crate::{Sinks, each_backend, problem};
use adaptive_layernorm_producers::formats::{scale_layout, swizzled_sf_size};
use adaptive_layernorm_producers::named::{Data, Tensor};
use adaptive_layernorm_producers::{E4m3, Nvfp4Recipe};
use half::bf16;

/// Item 15: the same row alone and in batches around the sizes where launches change.
#[test]
fn rows_are_the_same_in_every_batch() {
    each_backend(|Sinks(backend)| {
        for call in calls() {
            let dim = 48;
            let alone = problem(call, 1, dim, 15).inputs();
            let expected = call.run(backend, &alone).unwrap();
            for rows in [255, 257, 1024, 1025] {
                // The same row everywhere.
                let repeat = |(name, tensor): (&String, &Tensor)| {
                    let spec = call.operator.operand(name).unwrap();
                    let mut tensor = tensor.clone();
                    if spec.shape[0] == adaptive_layernorm_producers::operator::Axis::Rows {
                        tensor.shape[0] = rows;
                        tensor.data = Data::from_le_bytes(spec.dtype, &tensor.data.to_le_bytes().repeat(rows));
                    }
                    (name.clone(), tensor)
                };
                let outputs = call.run(backend, &alone.iter().map(repeat).collect()).unwrap();
                for (name, tensor) in outputs.iter().filter(|(name, _)| *name != "sf_swizzled") {
                    let row = expected[name].data.to_le_bytes();
                    assert!(
                        tensor.data.to_le_bytes().chunks(row.len()).all(|got| got == row),
                        "{} {rows}",
                        call.operator
                    );
                }
                if let Some(scales) = outputs.get("sf_swizzled") {
                    for r in 0..rows as u32 {
                        let at = |r, c| scale_layout::offset(r, c, dim as u32) as usize;
                        let same = (0..3).all(|c| bytes(scales)[at(r, c)] == bytes(&expected["sf_swizzled"])[at(0, c)]);
                        assert!(same, "{} row {r} of {rows}", call.operator);
                    }
                }
            }
        }
    });
}

/// Item 16: no rows, and more rows than a grid dimension of 16 bits.
#[test]
fn more_rows_than_65535() {
    each_backend(|Sinks(backend)| {
        let rows = 70_001;
        let x: Vec<bf16> =
            (0..rows * 2).map(|i| bf16::from_f32(if i % 2 == 0 { -1.0 } else { 1.0 + (i / 2) as f32 })).collect();
        let v = layer_norm(backend, &x, rows, 0.0);
        // Two values are always one deviation to both sides of their mean.
        for (r, row) in v.as_chunks::<2>().0.iter().enumerate() {
            assert!((row[0].to_f32() + 1.0).abs() < 0.01 && (row[1].to_f32() - 1.0).abs() < 0.01, "row {r}: {row:?}");
        }
    });
}

/// Item 17: operands at odd element offsets.
#[test]
fn odd_offsets_change_nothing() {
    use adaptive_layernorm_producers::{Broadcast, Cpu, Matrix, Nvfp4};
    let (rows, dim) = (3, 80);
    let mut random = Random(17);
    let mut values = |len: usize| (0..len).map(|_| bf16::from_f32(random.normal())).collect::<Vec<_>>();
    let (x, scale, shift) = (values(rows * dim), values(dim), values(dim));
    let shifted = |v: &[bf16]| [&[bf16::NAN; 1], v].concat();
    let (x1, scale1, shift1) = (shifted(&x), shifted(&scale), shifted(&shift));
    let (mut out, mut out1) = (vec![E4m3::default(); rows * dim], vec![E4m3::NAN; rows * dim + 1]);
    let aligned = Broadcast { scale: &scale, shift: &shift };
    let odd = Broadcast { scale: &scale1[1..], shift: &shift1[1..] };
    Cpu.ada_layer_norm_quant_fp8_bf16(Matrix::new(&x, rows, dim), aligned, &[0.1], 1e-5, &mut out).unwrap();
    Cpu.ada_layer_norm_quant_fp8_bf16(Matrix::new(&x1[1..], rows, dim), odd, &[0.1], 1e-5, &mut out1[1..]).unwrap();
    assert_eq!((out.as_slice(), E4m3::NAN), (&out1[1..], out1[0]));

    let size = swizzled_sf_size(rows as u32, dim as u32).unwrap();
    let (mut packed, mut sf) = (vec![0; rows * dim / 2], vec![0; size]);
    let (mut packed1, mut sf1) = (vec![0; rows * dim / 2 + 1], vec![0; size + 3]);
    let recipe = Nvfp4Recipe::FlashRtSm110;
    let sink = Nvfp4::new(recipe, &mut packed, &mut sf);
    Cpu.ada_layer_norm_quant_nvfp4_swizzled_bf16(Matrix::new(&x, rows, dim), aligned, 1e-5, sink).unwrap();
    let sink = Nvfp4::new(recipe, &mut packed1[1..], &mut sf1[3..]);
    Cpu.ada_layer_norm_quant_nvfp4_swizzled_bf16(Matrix::new(&x1[1..], rows, dim), odd, 1e-5, sink).unwrap();
    assert_eq!((packed.as_slice(), sf.as_slice()), (&packed1[1..], &sf1[3..]));
}
