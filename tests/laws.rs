//! Laws of the contract that relate whole outputs to each other, on the reference and on the CPU.
mod support;

use adaptive_layernorm_producers::formats::{e2m1, scale_layout, swizzled_sf_size, unpack};
use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
use adaptive_layernorm_producers::operator::{Axis, SinkKind};
use adaptive_layernorm_producers::reference::{e4m3::static_scale, nvfp4};
use adaptive_layernorm_producers::{Backend, E4m3, Nvfp4Recipe, Operator};
use half::bf16;
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use support::random::{Kind, Problem, problems};
use support::{backends, bf16s, bytes, e4m3, tries};

fn run(backend: &dyn Backend, call: &Call, inputs: &Tensors) -> Result<Tensors, TestCaseError> {
    call.run(backend, inputs).map_err(|error| TestCaseError::fail(error.to_string()))
}

/// Row `r` of every tensor whose first axis is R.
fn row_of(problem: &Problem, inputs: &Tensors, r: usize) -> Tensors {
    let cut = |(name, tensor): (&String, &Tensor)| {
        let spec = problem.call.operator.operand(name).unwrap();
        let mut tensor = tensor.clone();
        if spec.shape[0] == Axis::Rows {
            let size = tensor.data.to_le_bytes().len() / problem.rows;
            let bytes = tensor.data.to_le_bytes()[r * size..][..size].to_vec();
            tensor =
                Tensor { shape: [&[1], &tensor.shape[1..]].concat(), data: Data::from_le_bytes(spec.dtype, &bytes) };
        }
        (name.clone(), tensor)
    };
    inputs.iter().map(cut).collect()
}

/// What an output holds for row `r`: codes, and the scale bytes in column order.
fn output_row(problem: &Problem, outputs: &Tensors, rows: usize, r: usize) -> Vec<Vec<u8>> {
    let of_tensor = |(name, tensor): (&String, &Tensor)| {
        if name == "sf_swizzled" {
            let scales = unpack::unswizzle(bytes(tensor), rows as u32, problem.dim as u32).unwrap();
            let columns = problem.dim / 16;
            return scales[r * columns..][..columns].iter().map(|scale| scale.to_bits()).collect();
        }
        let all = tensor.data.to_le_bytes();
        all[r * all.len() / rows..][..all.len() / rows].to_vec()
    };
    outputs.iter().map(of_tensor).collect()
}

proptest! {
    #![proptest_config(tries(200))]

    #[test]
    fn a_row_does_not_depend_on_the_others(problem in problems(8, 600)) {
        let inputs = problem.inputs();
        for (name, backend) in backends() {
            let batch = run(backend, &problem.call, &inputs)?;
            for r in 0..problem.rows {
                let alone = run(backend, &problem.call, &row_of(&problem, &inputs, r))?;
                let (alone, batch) = (output_row(&problem, &alone, 1, 0), output_row(&problem, &batch, problem.rows, r));
                prop_assert_eq!(alone, batch, "{} row {}", name, r);
            }
        }
    }

    #[test]
    fn broadcast_is_per_token_with_repeated_rows(problem in problems(6, 400)) {
        let broadcast = Problem { call: Call { eps: problem.call.eps, ..Call::new(Operator::AdaLayerNormQuantFp8Bf16) }, dim: problem.dim.next_multiple_of(2), ..problem };
        let inputs = broadcast.inputs();
        let mut repeated = inputs.clone();
        for name in ["scale", "shift"] {
            let values = bf16s(&inputs[name]).repeat(broadcast.rows);
            repeated.insert(name.into(), Tensor::new([broadcast.rows, broadcast.dim], values));
        }
        let per_token = Call { operator: Operator::AdaLayerNormQuantFp8PtokBf16, ..broadcast.call };
        for (name, backend) in backends() {
            prop_assert_eq!(run(backend, &broadcast.call, &inputs)?, run(backend, &per_token, &repeated)?, "{}", name);
        }
    }

    #[test]
    fn a_table_with_zero_temb_is_broadcast(problem in problems(6, 400), recipe in prop::sample::select(Nvfp4Recipe::ALL.to_vec())) {
        let problem = Problem { dim: problem.dim.next_multiple_of(16), kind: Kind::Wide, ..problem };
        for (operator, table, recipe) in [
            (Operator::AdaLayerNormQuantFp8Bf16, Operator::AdaLayerNormQuantFp8PtokTableBf16, None),
            (Operator::AdaLayerNormQuantNvfp4SwizzledBf16, Operator::AdaLayerNormQuantNvfp4SwizzledPtokTableBf16, Some(recipe)),
        ] {
            let broadcast = Problem { call: Call { recipe, eps: problem.call.eps, ..Call::new(operator) }, ..problem };
            let inputs = broadcast.inputs();
            for (name, backend) in backends() {
                let expected = run(backend, &broadcast.call, &inputs)?;
                let got = run(backend, &Call { operator: table, ..broadcast.call }, &as_table(&broadcast, &inputs))?;
                prop_assert_eq!(expected, got, "{}", name);
            }
        }
    }

    #[test]
    fn no_affine_is_zero_modulation_but_for_the_sign_of_zero(problem in problems(6, 400), recipe in prop::sample::select(Nvfp4Recipe::ALL.to_vec())) {
        let problem = Problem { dim: problem.dim.next_multiple_of(16), ..problem };
        for (operator, broadcast, recipe) in [
            (Operator::LayerNormNoAffineQuantFp8StaticBf16, Operator::AdaLayerNormQuantFp8Bf16, None),
            (Operator::LayerNormNoAffineQuantNvfp4SwizzledBf16, Operator::AdaLayerNormQuantNvfp4SwizzledBf16, Some(recipe)),
        ] {
            let plain = Problem { call: Call { recipe, eps: problem.call.eps, ..Call::new(operator) }, ..problem };
            let mut inputs = plain.inputs();
            for (name, backend) in backends() {
                let expected = run(backend, &plain.call, &inputs)?;
                for name in ["scale", "shift"] {
                    inputs.insert(name.into(), Tensor::new([plain.dim], vec![bf16::ZERO; plain.dim]));
                }
                let got = run(backend, &Call { operator: broadcast, ..plain.call }, &inputs)?;
                prop_assert_eq!(without_negative_zero(&expected), without_negative_zero(&got), "{}", name);
            }
        }
    }

    #[test]
    fn fused_is_unfused(problem in problems(6, 400), recipe in prop::sample::select(Nvfp4Recipe::ALL.to_vec()), act_scale in 1e-3f32..10.0) {
        let problem = Problem { dim: problem.dim.next_multiple_of(16), ..problem };
        let bf16_call = Call { operator: Operator::AdaLayerNormPtokTableBf16, recipe: None, ..problem.call };
        let unfused = Problem { call: bf16_call, ..problem };
        let mut inputs = unfused.inputs();
        inputs.insert("act_scale".into(), Tensor::new([1], vec![act_scale]));
        for (name, backend) in backends() {
            let outputs = run(backend, &bf16_call, &inputs)?;
            let v = bf16s(&outputs["out"]);
            let fp8 = run(backend, &Call { operator: Operator::AdaLayerNormQuantFp8PtokTableBf16, ..bf16_call }, &inputs)?;
            let expected: Vec<E4m3> = v.iter().map(|v| static_scale(v.to_f32(), act_scale)).collect();
            prop_assert_eq!(e4m3(&fp8["out"]), expected, "{}", name);
            let operator = Operator::AdaLayerNormQuantNvfp4SwizzledPtokTableBf16;
            let nvfp4 = run(backend, &Call { operator, recipe: Some(recipe), ..bf16_call }, &inputs)?;
            let (packed, scales) = quantise(recipe, v);
            prop_assert_eq!(bytes(&nvfp4["packed"]), packed, "{}", name);
            let got = unpack::unswizzle(bytes(&nvfp4["sf_swizzled"]), problem.rows as u32, problem.dim as u32).unwrap();
            prop_assert_eq!(got.iter().map(|scale| scale.to_bits()).collect::<Vec<_>>(), scales, "{}", name);
        }
    }

    #[test]
    fn awq_is_a_column_factor_before_fp8(problem in problems(6, 400)) {
        let call = Call { eps: problem.call.eps, ..Call::new(Operator::AwqAdaLayerNormQuantFp8Bf16) };
        let problem = Problem { call, dim: problem.dim.next_multiple_of(16), ..problem };
        let inputs = problem.inputs();
        let (inv_s, act_scale) = (bf16s(&inputs["inv_s"]), inputs["act_scale"].clone());
        let Data::F32(act_scale) = act_scale.data else { unreachable!() };
        for (name, backend) in backends() {
            // v by the bf16 sink, through the table form.
            let table = Call { operator: Operator::AdaLayerNormPtokTableBf16, recipe: None, ..problem.call };
            let v = run(backend, &table, &as_table(&problem, &inputs))?;
            let product = |(i, v): (usize, &bf16)| static_scale(v.to_f32() * inv_s[i % problem.dim].to_f32(), act_scale[0]);
            let expected: Vec<E4m3> = bf16s(&v["out"]).iter().enumerate().map(product).collect();
            let got = run(backend, &problem.call, &inputs)?;
            // The table's shift is a sum, in which −0 has become +0.
            let codes = |codes: &[E4m3]| codes.iter().map(|code| if code.to_bits() == 0x80 { 0 } else { code.to_bits() }).collect::<Vec<_>>();
            prop_assert_eq!(codes(e4m3(&got["out"])), codes(&expected), "{}", name);
        }
    }

    #[test]
    fn a_nan_in_x_makes_its_row_nan_and_no_other(problem in problems(5, 400), nan in any::<prop::sample::Index>(), bits in 0x7f81u16..0x8000, negative: bool) {
        let problem = Problem { kind: Kind::Normal, ..problem };
        prop_assume!(problem.call.operator != Operator::AdalnModulation6Bf16);
        let inputs = problem.inputs();
        let mut poisoned = inputs.clone();
        let nan = nan.index(problem.rows * problem.dim);
        let Some(Data::Bf16(x)) = poisoned.get_mut("x").map(|x| &mut x.data) else { unreachable!() };
        x[nan] = bf16::from_bits(bits | u16::from(negative) << 15);
        for (name, backend) in backends() {
            let (clean, got) = (run(backend, &problem.call, &inputs)?, run(backend, &problem.call, &poisoned)?);
            for r in 0..problem.rows {
                let (clean, got) = (output_row(&problem, &clean, problem.rows, r), output_row(&problem, &got, problem.rows, r));
                if r == nan / problem.dim {
                    let codes = match problem.call.operator.sink() {
                        SinkKind::Bf16 | SinkKind::SixBf16 => vec![[0xff, 0x7f].repeat(problem.dim)],
                        SinkKind::Fp8 | SinkKind::AwqFp8 => vec![vec![0x7f; problem.dim]],
                        SinkKind::Nvfp4 => vec![vec![0x77; problem.dim / 2], vec![0x7f; problem.dim / 16]],
                    };
                    prop_assert_eq!(got, codes, "{}", name);
                } else {
                    prop_assert_eq!(got, clean, "{} row {}", name, r);
                }
            }
        }
    }

    #[test]
    fn every_pad_byte_is_zero_and_nothing_behind_the_layout_is_touched(problem in problems(300, 200), spare in 0..600usize) {
        prop_assume!(problem.call.operator.sink() == SinkKind::Nvfp4);
        let inputs = problem.inputs();
        let (rows, dim) = (problem.rows as u32, problem.dim as u32);
        let size = swizzled_sf_size(rows, dim).unwrap();
        for (name, backend) in backends() {
            let mut outputs = problem.call.allocate(&inputs).unwrap();
            outputs.insert("sf_swizzled".into(), Tensor::new([size + spare], vec![0xffu8; size + spare]));
            problem.call.run_into(backend, &inputs, &mut outputs).unwrap();
            for (at, byte) in bytes(&outputs["sf_swizzled"]).iter().enumerate() {
                let is_real = scale_layout::position(at as u64, dim).is_some_and(|(r, c)| r < u64::from(rows) && c < dim / 16);
                prop_assert!(at >= size || is_real || *byte == 0, "{}: pad byte {} is {:#x}", name, at, byte);
                prop_assert!(at < size || *byte == 0xff, "{}: byte {} behind the layout is {:#x}", name, at, byte);
            }
        }
    }

    #[test]
    fn the_layout_is_a_bijection(rows in 1..700u32, columns in 1..40u32) {
        let dim = columns * 16;
        let size = swizzled_sf_size(rows, dim).unwrap() as u64;
        let padded_rows = u64::from(rows.next_multiple_of(128));
        let mut seen = vec![false; size as usize];
        for row in 0..padded_rows {
            for column in 0..columns.next_multiple_of(4) {
                let at = scale_layout::offset(row as u32, column, dim);
                prop_assert!(at < size && !seen[at as usize]);
                seen[at as usize] = true;
                prop_assert_eq!(scale_layout::position(at, dim), Some((row, column)));
            }
        }
        prop_assert!(seen.iter().all(|seen| *seen), "every byte has a place");
    }

    #[test]
    fn unpacked_values_are_near_the_modulated_rows(problem in problems(4, 200)) {
        let call = Call { eps: 1e-5, ..Call::new(Operator::AdaLayerNormQuantNvfp4SwizzledPtokTableBf16) }.with_recipe(Nvfp4Recipe::TransformerEngine);
        let problem = Problem { call, dim: problem.dim.next_multiple_of(16), chunks: 2, kind: Kind::Normal, ..problem };
        let mut inputs = problem.inputs();
        inputs.remove("global_scale");
        let v = run(&adaptive_layernorm_producers::Cpu, &Call { operator: Operator::AdaLayerNormPtokTableBf16, recipe: None, ..problem.call }, &inputs)?;
        let outputs = run(&adaptive_layernorm_producers::Cpu, &problem.call, &inputs)?;
        let values = unpack::unpack_nvfp4(bytes(&outputs["packed"]), bytes(&outputs["sf_swizzled"]), problem.rows as u32, problem.dim as u32, None).unwrap();
        for (block, values) in bf16s(&v["out"]).chunks(16).zip(values.chunks(16)) {
            let amax = block.iter().fold(0.0f32, |amax, v| amax.max(v.to_f32().abs()));
            for (v, value) in block.iter().zip(values) {
                // Half of the widest gap (4 to 6) of a scale that is within a sixteenth of amax/6.
                prop_assert!((v.to_f32() - value).abs() <= amax / 6.0 * 1.0625 + 1e-2, "{} became {}", v, value);
            }
        }
    }
}

/// The operands of a table-form operator that stand for a broadcast modulation: zero temb, shift in chunk 0, scale in chunk 1.
fn as_table(problem: &Problem, inputs: &Tensors) -> Tensors {
    let (rows, dim) = (problem.rows, problem.dim);
    let table =
        ["shift", "scale"].iter().flat_map(|name| bf16s(&inputs[*name]).iter().map(|v| v.to_f32())).collect::<Vec<_>>();
    let mut inputs = inputs.clone();
    inputs.insert("temb".into(), Tensor::new([rows, 2, dim], vec![bf16::ZERO; rows * 2 * dim]));
    inputs.insert("table".into(), Tensor::new([2, dim], table));
    inputs
}

/// Codes of −0 as codes of +0: e4m3 0x80, e2m1 8.
fn without_negative_zero(outputs: &Tensors) -> Vec<Vec<u8>> {
    let of_tensor = |(name, tensor): (&String, &Tensor)| -> Vec<u8> {
        let positive = |nibble: u8| if nibble == 8 { 0 } else { nibble };
        match name.as_str() {
            "out" => tensor.data.to_le_bytes().iter().map(|code| if *code == 0x80 { 0 } else { *code }).collect(),
            "packed" => bytes(tensor).iter().flat_map(|byte| e2m1::split(*byte)).map(positive).collect(),
            _ => tensor.data.to_le_bytes(),
        }
    };
    outputs.iter().map(of_tensor).collect()
}

/// Packed codes and scales of modulated rows, one block after the other.
fn quantise(recipe: Nvfp4Recipe, v: &[bf16]) -> (Vec<u8>, Vec<u8>) {
    let mut packed = vec![0; v.len() / 2];
    let blocks = v.chunks_exact(16).zip(packed.chunks_exact_mut(8));
    let scales = blocks.map(|(block, packed)| nvfp4::block(recipe, None, block, packed)).collect();
    (packed, scales)
}

#[test]
fn layout_by_hand() {
    // 64 columns of scales (D = 1024): 16 groups of four, 8192 bytes a tile of 128 rows.
    let by_hand = [
        (0, 0, 0),
        (0, 3, 3),
        (0, 4, 512),
        (1, 0, 16),
        (31, 0, 496),
        (31, 3, 499),
        (32, 0, 4),
        (32, 3, 7),
        (32, 4, 516),
        (63, 0, 500),
        (64, 0, 8),
        (127, 0, 508),
        (127, 3, 511),
        (127, 63, 15 * 512 + 511),
        (128, 0, 8192),
        (128, 4, 8192 + 512),
        (160, 5, 8192 + 512 + 4 + 1),
    ];
    for (row, column, offset) in by_hand {
        assert_eq!(scale_layout::offset(row, column, 1024), offset, "row {row}, column {column}");
    }
    let sizes =
        [(1, 16, 512), (128, 64, 512), (129, 64, 1024), (128, 80, 1024), (0, 64, 0), (2520, 3072, 20 * 48 * 512)];
    for (rows, dim, size) in sizes {
        assert_eq!(swizzled_sf_size(rows, dim), Some(size), "{rows} x {dim}");
    }
}

#[test]
fn no_rows_do_nothing() {
    for call in support::calls() {
        for (name, backend) in backends() {
            let problem = Problem { call, rows: 0, dim: 16, chunks: 2, kind: Kind::Normal, seed: 1 };
            let outputs = call.run(backend, &problem.inputs()).unwrap();
            assert!(outputs.values().all(|tensor| tensor.data.is_empty()), "{name} {}", call.operator);
        }
    }
}
