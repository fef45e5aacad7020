//! The recorded outputs of the original kernels and the calls that make them.
use super::{Case, bf16s, bytes, e4m3};
use adaptive_layernorm_producers::compare::{self, Nvfp4Output};
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::{Nvfp4Recipe, Operator};

/// One recorded output: its name, the operator and recipe that make it, and inputs that are recorded under another name.
pub struct Recorded {
    pub output: &'static str,
    pub operator: Operator,
    pub recipe: Option<Nvfp4Recipe>,
    pub renamed: &'static [(&'static str, &'static str)],
}

const PER_TOKEN: &[(&str, &str)] = &[("scale", "ptok_scale"), ("shift", "ptok_shift")];
const SIX_WAY: &[(&str, &str)] = &[("adaln_params", "params"), ("layer_modulation", "mod")];

const fn recorded(output: &'static str, operator: Operator, recipe: Option<Nvfp4Recipe>) -> Recorded {
    Recorded { output, operator, recipe, renamed: &[] }
}

const SM110: Option<Nvfp4Recipe> = Some(Nvfp4Recipe::FlashRtSm110);
const SM120: Option<Nvfp4Recipe> = Some(Nvfp4Recipe::FlashRtSm120);

pub const RECORDED: [Recorded; 13] = [
    recorded("ada_fp8", Operator::AdaLayerNormQuantFp8Bf16, None),
    recorded("awq_fp8", Operator::AwqAdaLayerNormQuantFp8Bf16, None),
    recorded("modfp8_fp8", Operator::AdaLayerNormQuantFp8Modfp8Bf16, None),
    Recorded { renamed: PER_TOKEN, ..recorded("ptok_fp8", Operator::AdaLayerNormQuantFp8PtokBf16, None) },
    recorded("ptok_table_fp8", Operator::AdaLayerNormQuantFp8PtokTableBf16, None),
    recorded("ptok_table_bf16", Operator::AdaLayerNormPtokTableBf16, None),
    recorded("ln_fp8", Operator::LayerNormNoAffineQuantFp8StaticBf16, None),
    Recorded { renamed: SIX_WAY, ..recorded("mod6", Operator::AdalnModulation6Bf16, None) },
    recorded("ada_nvfp4_sm110", Operator::AdaLayerNormQuantNvfp4SwizzledBf16, SM110),
    recorded("ada_nvfp4_sm120", Operator::AdaLayerNormQuantNvfp4SwizzledBf16, SM120),
    recorded("ln_nvfp4_sm110", Operator::LayerNormNoAffineQuantNvfp4SwizzledBf16, SM110),
    recorded("modfp8_nvfp4_sm120", Operator::AdaLayerNormQuantNvfp4SwizzledModfp8Bf16, SM120),
    recorded("ptok_table_nvfp4_sm120", Operator::AdaLayerNormQuantNvfp4SwizzledPtokTableBf16, SM120),
];

/// The call's inputs, under the operator's names.
pub fn inputs(case: &Case, recorded: &Recorded) -> Tensors {
    let source =
        |name: &'static str| recorded.renamed.iter().find(|(to, _)| *to == name).map_or(name, |(_, from)| from);
    let given = recorded.operator.inputs().filter(|spec| !spec.optional);
    given.map(|spec| (spec.name.to_owned(), case.tensor(&format!("in.{}", source(spec.name))).clone())).collect()
}

pub fn call(case: &Case, recorded: &Recorded) -> Call {
    Call {
        operator: recorded.operator,
        recipe: recorded.recipe,
        eps: case.fact("eps"),
        shift_idx: case.fact("shift_idx"),
        scale_idx: case.fact("scale_idx"),
    }
}

/// Compares one output with what was recorded; gives the codes compared and those that differ.
pub fn check(what: &str, case: &Case, recorded: &Recorded, outputs: &Tensors) -> (usize, usize) {
    let expected = |suffix: &str| case.tensor(&format!("out.{}{suffix}", recorded.output));
    if recorded.recipe.is_some() {
        let output = |packed, sf| Nvfp4Output { packed: bytes(packed), sf_swizzled: bytes(sf) };
        let (a, b) =
            (output(expected(".packed"), expected(".sf")), output(&outputs["packed"], &outputs["sf_swizzled"]));
        let report = compare::nvfp4(a, b, case.fact("rows"), case.fact("dim")).unwrap();
        assert!(report.agrees_with_original(), "{what}: {report:?}");
        assert_eq!(report.dirty_padding, 0, "{what}");
        return (report.codes.values, report.differing_packed);
    }
    let report = match recorded.operator {
        Operator::AdalnModulation6Bf16 => {
            let all: Vec<_> = outputs.values().flat_map(|out| bf16s(out).iter().copied()).collect();
            let report = compare::bf16(bf16s(expected("")), &all).unwrap();
            assert!(report.is_equal(), "{what}: {report:?}");
            report
        }
        Operator::AdaLayerNormPtokTableBf16 => compare::bf16(bf16s(expected("")), bf16s(&outputs["out"])).unwrap(),
        _ => compare::fp8(e4m3(expected("")), e4m3(&outputs["out"])).unwrap(),
    };
    assert!(report.agrees_with_original(), "{what}: {report:?}");
    (report.values, report.differing)
}
