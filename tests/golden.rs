//! Agreement with recorded outputs of the original kernels and of TransformerEngine (contract section 5).
mod support;

use adaptive_layernorm_producers::compare::{self, Nvfp4Output};
use adaptive_layernorm_producers::named::{Call, Tensor, Tensors};
use adaptive_layernorm_producers::{Nvfp4Recipe, Operator};
use std::collections::BTreeSet;
use support::golden::{RECORDED, call, check, inputs};
use support::{Case, ORIGINAL, backends, bf16s, bytes, cases, recordings_are_left_out};

#[test]
fn every_output_of_the_original_kernels() {
    if recordings_are_left_out() {
        return;
    }
    let mut seen = BTreeSet::new();
    for (backend_name, backend) in backends() {
        let (mut compared, mut differing) = (0, 0);
        for case in cases(ORIGINAL) {
            for recorded in &RECORDED {
                let suffix = if recorded.recipe.is_some() { ".packed" } else { "" };
                if !case.tensors.contains_key(&format!("out.{}{suffix}", recorded.output)) {
                    // The original has no NVFP4 for a D that is no multiple of 16.
                    assert!(
                        recorded.recipe.is_some() && case.fact::<u32>("dim") % 16 != 0,
                        "{} {}",
                        case.name,
                        recorded.output
                    );
                    continue;
                }
                let what = format!("{backend_name} {} {}", case.name, recorded.output);
                let outputs = call(&case, recorded).run(backend, &inputs(&case, recorded)).unwrap();
                let counts = check(&what, &case, recorded, &outputs);
                (compared, differing) = (compared + counts.0, differing + counts.1);
                seen.insert((case.name.clone(), recorded.output));
            }
        }
        println!("{backend_name}: {compared} codes compared with the original, {differing} differ");
        assert!(differing <= 8, "{backend_name}: {differing}");
    }
    assert_eq!(seen.len(), recorded_outputs(), "every recorded output was compared");
}

/// Outputs in the file, a pair of packed codes and scales counting once.
fn recorded_outputs() -> usize {
    let of_case =
        |case: Case| case.tensors.keys().filter(|name| name.starts_with("out.") && !name.ends_with(".sf")).count();
    cases(ORIGINAL).into_iter().map(of_case).sum()
}

#[test]
fn every_output_of_transformer_engine() {
    if recordings_are_left_out() {
        return;
    }
    for (backend_name, backend) in backends() {
        for case in cases("te_nvfp4_golden.safetensors") {
            let operator = Operator::AdaLayerNormQuantNvfp4SwizzledBf16;
            let call =
                Call { eps: case.fact("eps"), ..Call::new(operator) }.with_recipe(Nvfp4Recipe::TransformerEngine);
            let input = |name: &str| (name.to_owned(), case.tensor(&format!("in.{name}")).clone());
            let inputs: Tensors = ["x", "scale", "shift", "global_scale"].map(input).into();
            let outputs = call.run(backend, &inputs).unwrap();
            let (packed, sf) = (case.tensor("out.packed"), case.tensor("out.sf"));
            let expected = Nvfp4Output { packed: bytes(packed), sf_swizzled: bytes(sf) };
            let got = Nvfp4Output { packed: bytes(&outputs["packed"]), sf_swizzled: bytes(&outputs["sf_swizzled"]) };
            let report = compare::nvfp4(expected, got, case.fact("rows"), case.fact("dim")).unwrap();
            assert!(report.agrees_with_original(), "{backend_name} {}: {report:?}", case.name);
            assert_eq!(report.dirty_padding, 0);
        }
    }
}

#[test]
fn the_modulated_rows_that_transformer_engine_was_given() {
    if recordings_are_left_out() {
        return;
    }
    for (backend_name, backend) in backends() {
        for case in cases("te_nvfp4_golden.safetensors") {
            // Broadcast modulation in bf16: the table form with zero temb, the table holding scale and shift.
            let (rows, dim): (usize, usize) = (case.fact("rows"), case.fact("dim"));
            let table: Vec<f32> = ["in.shift", "in.scale"]
                .iter()
                .flat_map(|n| bf16s(case.tensor(n)).iter().map(|v| v.to_f32()))
                .collect();
            let mut inputs = Tensors::new();
            inputs.insert("x".into(), case.tensor("in.x").clone());
            inputs.insert("temb".into(), Tensor::new([rows, 2, dim], vec![half::bf16::ZERO; rows * 2 * dim]));
            inputs.insert("table".into(), Tensor::new([2, dim], table));
            let call = Call { eps: case.fact("eps"), ..Call::new(Operator::AdaLayerNormPtokTableBf16) };
            let outputs = call.run(backend, &inputs).unwrap();
            let report = compare::bf16(bf16s(case.tensor("v")), bf16s(&outputs["out"])).unwrap();
            // v was recorded from another order of summation.
            assert!(report.agrees_with_original(), "{backend_name} {}: {report:?}", case.name);
        }
    }
}
