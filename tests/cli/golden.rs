//! `adaln run` against recorded outputs of the original kernels.
use crate::program::{ADA_FP8, Folder, backends, run, run_on, small};
use crate::support::{self, ORIGINAL, bf16s, bytes, cases, e4m3, fixture};
use adaptive_layernorm_producers::compare::{self, Nvfp4Output};
use adaptive_layernorm_producers::named::Tensors;
use adaptive_layernorm_producers::operator::ModulationKind;
use adaptive_layernorm_producers::{Nvfp4Recipe, Operator, bf16};
use std::fs;

/// The options that give a golden case to an operator.
fn golden_options(case: &support::Case, operator: Operator, renamed: &[(&str, &str)]) -> Vec<String> {
    let mut options = Vec::new();
    for spec in operator.inputs().filter(|spec| !spec.optional) {
        let source = renamed.iter().find(|(to, _)| *to == spec.name).map_or(spec.name, |(_, from)| from);
        options.extend(["--bind".to_owned(), format!("{}={}.in.{source}", spec.name, case.name)]);
    }
    let facts: &[(&str, &str)] = match operator.modulation() {
        ModulationKind::SixWay => &[],
        ModulationKind::PerTokenTable => {
            &[("--eps", "eps"), ("--shift-idx", "shift_idx"), ("--scale-idx", "scale_idx")]
        }
        _ => &[("--eps", "eps")],
    };
    for (option, fact) in facts.iter().copied() {
        options.extend([option.to_owned(), case.facts[fact].clone()]);
    }
    options
}

/// Runs a golden case through the program.
fn run_golden(
    backend: &str,
    case: &support::Case,
    operator: Operator,
    renamed: &[(&str, &str)],
    recipe: Option<Nvfp4Recipe>,
) -> Tensors {
    let folder = Folder::new();
    let mut options = golden_options(case, operator, renamed);
    if let Some(recipe) = recipe {
        options.extend(["--recipe".to_owned(), recipe.to_string()]);
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let (input, output) = (fixture(ORIGINAL), folder.text("out.safetensors"));
    run_on(backend, operator.name(), input.to_str().unwrap(), &output, &options).success();
    assert_eq!(folder.files(), ["out.safetensors"]);
    folder.read("out.safetensors")
}

#[test]
fn run_reproduces_every_golden_fp8() {
    if support::recordings_are_left_out() {
        return;
    }
    let per_token: &[(&str, &str)] = &[("scale", "ptok_scale"), ("shift", "ptok_shift")];
    let recorded = [
        ("ada_fp8", Operator::AdaLayerNormQuantFp8Bf16, &[][..]),
        ("awq_fp8", Operator::AwqAdaLayerNormQuantFp8Bf16, &[]),
        ("modfp8_fp8", Operator::AdaLayerNormQuantFp8Modfp8Bf16, &[]),
        ("ptok_fp8", Operator::AdaLayerNormQuantFp8PtokBf16, per_token),
        ("ptok_table_fp8", Operator::AdaLayerNormQuantFp8PtokTableBf16, &[]),
        ("ln_fp8", Operator::LayerNormNoAffineQuantFp8StaticBf16, &[]),
    ];
    for backend in backends() {
        let mut compared = 0;
        for case in cases(ORIGINAL) {
            for (output, operator, renamed) in recorded {
                let got = run_golden(backend, &case, operator, renamed, None);
                let expected = case.tensor(&format!("out.{output}"));
                assert_eq!(got["out"].shape, expected.shape, "{backend} {} {output}", case.name);
                let report = compare::fp8(e4m3(expected), e4m3(&got["out"])).unwrap();
                assert!(report.agrees_with_original(), "{backend} {} {output}: {report:?}", case.name);
                compared += 1;
            }
        }
        assert_eq!(compared, 60, "ten cases of six outputs");
    }
}

#[test]
fn run_reproduces_bf16_nvfp4_and_modulation6() {
    if support::recordings_are_left_out() {
        return;
    }
    for backend in backends() {
        other_sinks(backend);
    }
}

fn other_sinks(backend: &str) {
    let case = cases(ORIGINAL).swap_remove(0);
    let table = run_golden(backend, &case, Operator::AdaLayerNormPtokTableBf16, &[], None);
    assert!(
        compare::bf16(bf16s(case.tensor("out.ptok_table_bf16")), bf16s(&table["out"])).unwrap().agrees_with_original()
    );

    let renamed = [("adaln_params", "params"), ("layer_modulation", "mod")];
    let six = run_golden(backend, &case, Operator::AdalnModulation6Bf16, &renamed, None);
    assert_eq!(six.keys().collect::<Vec<_>>(), ["out0", "out1", "out2", "out3", "out4", "out5"]);
    let six: Vec<bf16> = six.values().flat_map(|tensor| bf16s(tensor).to_vec()).collect();
    assert!(compare::bf16(bf16s(case.tensor("out.mod6")), &six).unwrap().is_equal());

    let sm110 = Some(Nvfp4Recipe::FlashRtSm110);
    let got = run_golden(backend, &case, Operator::AdaLayerNormQuantNvfp4SwizzledBf16, &[], sm110);
    let output = |packed, sf| Nvfp4Output { packed: bytes(packed), sf_swizzled: bytes(sf) };
    let expected = output(case.tensor("out.ada_nvfp4_sm110.packed"), case.tensor("out.ada_nvfp4_sm110.sf"));
    let got = output(&got["packed"], &got["sf_swizzled"]);
    assert!(
        compare::nvfp4(expected, got, case.fact("rows"), case.fact("dim")).unwrap().agrees_with_original(),
        "{}",
        case.name
    );
}

#[test]
fn the_same_call_gives_the_same_file() {
    let folder = Folder::new();
    let input = folder.write("in.safetensors", &small());
    for output in ["a", "b"] {
        run(ADA_FP8, &input, &folder.text(output), &[]).success();
    }
    assert_eq!(fs::read(folder.path("a")).unwrap(), fs::read(folder.path("b")).unwrap());
}
