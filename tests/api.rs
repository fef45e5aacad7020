//! Every precondition has its own error, which names operator, operand, expected and got, and leaves the outputs alone.
//!
//! Errors that only device views can show (null, alignment, overlap, address space) are tested in host/check/tests.rs.
mod support;

use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
use adaptive_layernorm_producers::operator::{Axis, ModulationKind, OperandSpec, SinkKind};
use adaptive_layernorm_producers::{
    Backend, Broadcast, Cpu, DType, E4m3, Error, Fp8, MAX_ROWS, Matrix, Modulation, Nvfp4, Nvfp4Recipe, Operator,
    PerToken, PerTokenTable, Sink, SixWay, compare,
    formats::{unpack, unpack_nvfp4},
};
use half::bf16;
use proptest::prelude::*;
use support::random::{Kind, Problem, Random};
use support::{backends, calls, tries};

const FP8: Operator = Operator::AdaLayerNormQuantFp8Bf16;
const ZEROS: [bf16; 64] = [bf16::ZERO; 64];

/// Runs AdaLN to FP8 on zeros, with slices of the given lengths.
fn ada_fp8(
    rows: usize,
    dim: usize,
    x: usize,
    scale: usize,
    shift: usize,
    act_scale: &[f32],
    out: usize,
) -> Result<(), Error> {
    let modulation = Broadcast { scale: &ZEROS[..scale], shift: &ZEROS[..shift] };
    let mut codes = vec![E4m3::NAN; out];
    let result =
        Cpu.ada_layer_norm_quant_fp8_bf16(Matrix::new(&ZEROS[..x], rows, dim), modulation, act_scale, 1e-5, &mut codes);
    assert!(result.is_ok() || codes.iter().all(|code| *code == E4m3::NAN), "a refused call wrote something");
    result
}

#[test]
fn dims() {
    let at = |dim| ada_fp8(1, dim, dim.min(64), dim.min(64), dim.min(64), &[1.0], dim.min(64));
    assert_eq!(at(8), Ok(()));
    assert_eq!(at(0), Err(Error::DimZero { operator: FP8, operand: "x", expected: 2 }));
    assert_eq!(at(7), Err(Error::DimOdd { operator: FP8, operand: "x", got: 7 }));
    for got in [(1 << 24) + 2, 1 << 40, usize::MAX] {
        assert_eq!(at(got), Err(Error::DimTooLarge { operator: FP8, operand: "x", expected: 1 << 24, got }));
    }
    let operator = Operator::LayerNormNoAffineQuantNvfp4SwizzledBf16;
    let (mut packed, mut sf) = ([0; 12], [0; 512]);
    let sink = Nvfp4::new(Nvfp4Recipe::FlashRtSm110, &mut packed, &mut sf);
    let result = Cpu.layer_norm_no_affine_quant_nvfp4_swizzled_bf16(Matrix::new(&ZEROS[..24], 1, 24), 1e-5, sink);
    assert_eq!(result, Err(Error::DimNotMultiple { operator, operand: "x", expected: 16, got: 24 }));
}

#[test]
fn rows() {
    assert_eq!(ada_fp8(0, 8, 0, 8, 8, &[1.0], 0), Ok(()));
    for got in [MAX_ROWS as usize + 1, 1 << 32, usize::MAX] {
        let error = Error::TooManyRows { operator: FP8, operand: "x", expected: MAX_ROWS, got };
        assert_eq!(ada_fp8(got, 8, 0, 8, 8, &[1.0], 0), Err(error));
    }
    // No row, but a D that is wrong all the same.
    assert_eq!(ada_fp8(0, 7, 0, 7, 7, &[1.0], 0), Err(Error::DimOdd { operator: FP8, operand: "x", got: 7 }));
}

#[test]
fn lengths() {
    let length = |operand, expected, got| Err(Error::Length { operator: FP8, operand, expected, got });
    assert_eq!(ada_fp8(2, 8, 16, 8, 8, &[1.0], 16), Ok(()));
    assert_eq!(ada_fp8(2, 8, 15, 8, 8, &[1.0], 16), length("x", 16, 15));
    assert_eq!(ada_fp8(2, 8, 17, 8, 8, &[1.0], 16), length("x", 16, 17));
    assert_eq!(ada_fp8(2, 8, 16, 7, 8, &[1.0], 16), length("scale", 8, 7));
    assert_eq!(ada_fp8(2, 8, 16, 8, 16, &[1.0], 16), length("shift", 8, 16));
    assert_eq!(ada_fp8(2, 8, 16, 8, 8, &[1.0], 15), length("out", 16, 15));
    let scalar = |got| Err(Error::Scalar { operator: FP8, operand: "act_scale", got });
    assert_eq!(ada_fp8(2, 8, 16, 8, 8, &[1.0, 2.0], 16), scalar(2));
    assert_eq!(ada_fp8(2, 8, 16, 8, 8, &[], 16), scalar(0));
}

/// Every operand of every operator, one element short and one too long: an error that names it, and untouched outputs.
#[test]
fn every_operand_of_every_operator_has_its_length_checked() {
    for call in calls() {
        let problem = Problem { call, rows: 3, dim: 32, chunks: 2, kind: Kind::Normal, seed: 4 };
        let mut inputs = problem.inputs();
        if call.recipe == Some(Nvfp4Recipe::TransformerEngine) {
            inputs.insert("global_scale".into(), Tensor::new([1], vec![1.0f32]));
        }
        let outputs = call.allocate(&inputs).unwrap();
        let specs = call.operator.inputs().chain(call.operator.outputs());
        for spec in specs.filter(|spec| inputs.contains_key(spec.name) || outputs.contains_key(spec.name)) {
            for longer in [false, true] {
                check_length(&call, spec, longer, inputs.clone(), outputs.clone());
            }
        }
    }
}

fn check_length(call: &Call, spec: &OperandSpec, longer: bool, mut inputs: Tensors, mut outputs: Tensors) {
    // The typed call must refuse it, whatever the shapes say: the named one would see the shape first.
    let tensor = inputs.get_mut(spec.name).or(outputs.get_mut(spec.name)).unwrap();
    resize(tensor, longer);
    let accepted = longer && spec.shape == [Axis::ScaleLayout];
    for (name, backend) in backends() {
        let mut outputs = outputs.clone();
        let before = outputs.clone();
        match call.run_into(backend, &inputs, &mut outputs) {
            Ok(()) => assert!(accepted, "{name} {} took a wrong {}", call.operator, spec.name),
            Err(error) => {
                let text = error.to_string();
                assert!(!accepted && text.contains(spec.name) && text.contains(call.operator.name()), "{text}");
                assert_eq!(before, outputs, "{name} {}: a refused call wrote something", call.operator);
            }
        }
    }
}

fn resize(tensor: &mut Tensor, longer: bool) {
    fn one<T: Copy>(data: &mut Vec<T>, longer: bool) {
        let len = data.len() + usize::from(longer) * 2 - 1;
        data.resize(len, data[0]);
    }
    match &mut tensor.data {
        Data::Bf16(data) => one(data, longer),
        Data::F32(data) => one(data, longer),
        Data::E4m3(data) => one(data, longer),
        Data::U8(data) => one(data, longer),
    }
}

#[test]
fn modulation6_lengths() {
    let operator = Operator::AdalnModulation6Bf16;
    let run = |params: usize, modulation: usize, out: [usize; 6]| {
        let mut buffers = out.map(|len| vec![bf16::ZERO; len]);
        Cpu.adaln_modulation6_bf16(&vec![0.0; params], &vec![0.0; modulation], buffers.each_mut())
    };
    assert_eq!(run(36, 18, [6; 6]), Ok(()));
    assert_eq!(run(0, 18, [0; 6]), Ok(()));
    let not_whole = |operand, expected, got| Err(Error::NotWhole { operator, operand, expected, got });
    assert_eq!(run(36, 17, [6; 6]), not_whole("layer_modulation", 6, 17));
    assert_eq!(run(35, 18, [6; 6]), not_whole("adaln_params", 18, 35));
    assert_eq!(run(0, 0, [0; 6]), Err(Error::DimZero { operator, operand: "layer_modulation", expected: 1 }));
    let length = Error::Length { operator, operand: "out3", expected: 6, got: 5 };
    assert_eq!(run(36, 18, [6, 6, 6, 5, 6, 6]), Err(length));
}

#[test]
fn chunks() {
    let operator = Operator::AdaLayerNormPtokTableBf16;
    let run = |temb: usize, table: usize, shift_idx, scale_idx| {
        let (temb, table) = (&ZEROS[..temb], vec![0.0; table]);
        let mut out = [bf16::ZERO; 8];
        let modulation = PerTokenTable { temb, table: table.as_slice(), shift_idx, scale_idx };
        Cpu.ada_layer_norm_ptok_table_bf16(Matrix::new(&ZEROS[..8], 2, 4), modulation, 1e-5, &mut out)
    };
    assert_eq!(run(24, 12, 2, 0), Ok(()));
    let chunk = |operand, got| Err(Error::ChunkIndex { operator, operand, expected: 3, got });
    assert_eq!(run(24, 12, 3, 0), chunk("shift_idx", 3));
    assert_eq!(run(24, 12, 0, 3), chunk("scale_idx", 3));
    assert_eq!(run(24, 12, 0, u32::MAX), chunk("scale_idx", u32::MAX));
    let not_whole = |got| Err(Error::NotWhole { operator, operand: "table", expected: 4, got });
    assert_eq!(run(24, 11, 0, 0), not_whole(11));
    assert_eq!(run(0, 0, 0, 0), not_whole(0));
    assert_eq!(run(16, 12, 0, 0), Err(Error::Length { operator, operand: "temb", expected: 24, got: 16 }));
}

#[test]
fn recipes_and_global_scales() {
    let operator = Operator::AdaLayerNormQuantNvfp4SwizzledBf16;
    let run = |recipe, global_scale: Option<&[f32]>| {
        let (mut packed, mut sf) = ([0; 8], [0; 512]);
        let sink = Nvfp4 { recipe, global_scale, packed: &mut packed, sf_swizzled: &mut sf };
        let modulation = Broadcast { scale: &ZEROS[..16], shift: &ZEROS[..16] };
        Cpu.ada_layer_norm_quant_nvfp4_swizzled_bf16(Matrix::new(&ZEROS[..16], 1, 16), modulation, 1e-5, sink)
    };
    for recipe in Nvfp4Recipe::ALL {
        assert_eq!(run(recipe, None), Ok(()));
        let expected = Nvfp4Recipe::TransformerEngine;
        let error = Error::GlobalScale { operator, expected, got: recipe };
        assert_eq!(run(recipe, Some(&[1.0])), if recipe == expected { Ok(()) } else { Err(error) });
    }
    let scalar = Error::Scalar { operator, operand: "global_scale", got: 2 };
    assert_eq!(run(Nvfp4Recipe::TransformerEngine, Some(&[1.0, 1.0])), Err(scalar));

    let inputs = Problem { call: Call::new(FP8), rows: 1, dim: 16, chunks: 1, kind: Kind::Normal, seed: 1 }.inputs();
    let got = Nvfp4Recipe::FlashRtSm110;
    let without_sink = Error::RecipeWithoutSink { operator: FP8, sink: SinkKind::Fp8, got };
    assert_eq!(Call::new(FP8).with_recipe(got).run(&Cpu, &inputs), Err(without_sink));
    assert_eq!(Call::new(operator).run(&Cpu, &inputs), Err(Error::RecipeMissing { operator }));
}

#[test]
fn pairs_outside_the_catalogue() {
    let (mut packed, mut sf) = ([0; 8], [0; 512]);
    let modulation = PerToken { scale: &ZEROS[..16], shift: &ZEROS[..16] };
    let sink = Nvfp4::new(Nvfp4Recipe::FlashRtSm110, &mut packed, &mut sf);
    let result = Cpu.run(Matrix::new(&ZEROS[..16], 1, 16), modulation, 1e-5, sink);
    assert_eq!(result, Err(Error::NoSuchOperator { modulation: ModulationKind::PerToken, sink: SinkKind::Nvfp4 }));
}

/// A backend of another crate, whose device breaks.
struct Broken;

impl Backend for Broken {
    fn run(&self, _: Matrix<&[bf16]>, _: Modulation<'_>, _: f32, _: Sink<'_>) -> Result<(), Error> {
        Err(Error::Backend { operator: FP8, message: "the fuse has blown".into() })
    }

    fn run_six_way(&self, _: SixWay<'_>) -> Result<(), Error> {
        Ok(())
    }
}

#[test]
fn what_a_backend_reports_comes_through() {
    let error = Call::new(FP8).run(&Broken, &named()).unwrap_err();
    assert!(matches!(&error, Error::Backend { operator: FP8, .. }), "{error:?}");
    assert_eq!(error.to_string(), "ada_layer_norm_quant_fp8_bf16: the fuse has blown");
}

#[test]
fn the_composed_form_is_the_method() {
    let x: Vec<bf16> = (0..64).map(|i| bf16::from_f32((i * 7 % 13) as f32)).collect();
    let modulation = Broadcast { scale: &x[..16], shift: &x[16..32] };
    let (mut by_method, mut by_parts) = ([E4m3::NAN; 64], [E4m3::NAN; 64]);
    Cpu.ada_layer_norm_quant_fp8_bf16(Matrix::new(&x, 4, 16), modulation, &[0.3], 1e-5, &mut by_method).unwrap();
    Cpu.run(Matrix::new(&x, 4, 16), modulation, 1e-5, Fp8 { act_scale: &[0.3], out: &mut by_parts }).unwrap();
    assert_eq!(by_method, by_parts);
}

/// Inputs of AdaLN to FP8 by name, 3 x 16.
fn named() -> Tensors {
    Problem { call: Call::new(FP8), rows: 3, dim: 16, chunks: 1, kind: Kind::Normal, seed: 1 }.inputs()
}

fn with(name: &str, tensor: Tensor) -> Result<Tensors, Error> {
    let mut inputs = named();
    inputs.insert(name.into(), tensor);
    Call::new(FP8).run(&Cpu, &inputs)
}

#[test]
fn named_operands() {
    let mut inputs = named();
    inputs.remove("shift");
    let missing = Error::Missing { operator: FP8, operand: "shift", expected: DType::Bf16 };
    assert_eq!(Call::new(FP8).run(&Cpu, &inputs), Err(missing));

    let dtype = Error::DType { operator: FP8, operand: "scale", expected: DType::Bf16, got: "f32".into() };
    assert_eq!(with("scale", Tensor::new([16], vec![0.0f32; 16])), Err(dtype));

    let shape = |operand, expected: &str, got: &[usize]| {
        Err(Error::Shape { operator: FP8, operand, expected: expected.into(), got: got.to_vec() })
    };
    let zeros = |shape: &[usize]| Tensor::new(shape, vec![bf16::ZERO; shape.iter().product()]);
    assert_eq!(with("scale", zeros(&[8])), shape("scale", "[D=16]", &[8]));
    assert_eq!(with("scale", zeros(&[1, 16])), shape("scale", "[D=16]", &[1, 16]));
    assert_eq!(with("x", zeros(&[16])), shape("x", "[R, D]", &[16]));
    assert_eq!(with("act_scale", Tensor::new([2], vec![1.0f32; 2])), shape("act_scale", "[] or [1]", &[2]));
    // A shape that does not belong to the data, and one whose product overflows.
    let lying = Tensor { shape: vec![3, 16], data: Data::Bf16(vec![bf16::ZERO; 47]) };
    assert_eq!(with("x", lying), Err(Error::Length { operator: FP8, operand: "x", expected: 48, got: 47 }));
    let huge = Tensor { shape: vec![usize::MAX, usize::MAX, 16], data: Data::Bf16(vec![]) };
    assert!(matches!(with("x", huge), Err(Error::Shape { operand: "x", .. })));
    // Leading axes are rows.
    assert_eq!(with("x", zeros(&[3, 2, 16])).unwrap()["out"].shape, [3, 2, 16]);
    assert!(with("act_scale", Tensor::new([], vec![1.0f32])).is_ok());
}

#[test]
fn names_come_back_and_others_are_refused() {
    for operator in Operator::ALL {
        assert_eq!(operator.name().parse(), Ok(operator));
        assert_eq!(Operator::of(operator.modulation(), operator.sink()), Some(operator));
    }
    for recipe in Nvfp4Recipe::ALL {
        assert_eq!(recipe.name().parse(), Ok(recipe));
    }
    let text = "layer_norm".parse::<Operator>().unwrap_err().to_string();
    assert!(text.contains("\"layer_norm\"") && text.contains("adaln_modulation6_bf16"), "{text}");
    let text = "SM110".parse::<Nvfp4Recipe>().unwrap_err().to_string();
    assert!(text.contains("flashrt-sm110, flashrt-sm120, transformer-engine"), "{text}");
}

#[test]
fn the_catalogue_has_every_operator_once_with_unique_operands() {
    assert_eq!(Operator::ALL.len(), 12);
    for (i, operator) in Operator::ALL.into_iter().enumerate() {
        assert!(Operator::ALL[..i].iter().all(|other| other.name() != operator.name()));
        let names: Vec<_> = operator.inputs().chain(operator.outputs()).map(|operand| operand.name).collect();
        assert!(names.iter().all(|name| names.iter().filter(|other| *other == name).count() == 1), "{operator}");
    }
}

#[test]
fn recipes_native_to_gpus() {
    let native = [
        ((8, 0), Nvfp4Recipe::TransformerEngine),
        ((9, 0), Nvfp4Recipe::TransformerEngine),
        ((10, 0), Nvfp4Recipe::TransformerEngine),
        ((11, 0), Nvfp4Recipe::FlashRtSm110),
        ((12, 0), Nvfp4Recipe::FlashRtSm120),
        ((13, 0), Nvfp4Recipe::TransformerEngine),
    ];
    for (capability, recipe) in native {
        assert_eq!(Nvfp4Recipe::native_to(capability), recipe, "{capability:?}");
    }
}

#[test]
fn unpacking_divides_by_the_global_scale() {
    let mut scales = [0; 512];
    scales[0] = 0x40; // 2
    // Codes 1 and 7 are 0.5 and 6.
    let values = unpack_nvfp4(&[0x71; 8], &scales, 1, 16, Some(4.0)).unwrap();
    assert_eq!(values[..2], [0.25, 3.0]);
    assert_eq!(unpack_nvfp4(&[0xf9; 8], &scales, 1, 16, None).unwrap()[..2], [-1.0, -12.0]);
}

/// Contract section 3.3: g is clamped to 2^-118 and the largest f32 before anything else; NaN and what is not positive count as 2^-118.
#[test]
fn unpacking_keeps_the_global_scale_within_its_limits() {
    let mut scales = [0; 512];
    scales[0] = 0x38; // 1
    let first = |g: f32| unpack_nvfp4(&[0x02; 8], &scales, 1, 16, Some(g)).unwrap()[0];
    for g in [0.0, -0.0, -3.0, f32::NAN, 1e-40, 2f32.powi(-118), f32::NEG_INFINITY] {
        assert_eq!(first(g), 2f32.powi(118), "{g:e}");
    }
    assert_eq!(first(f32::INFINITY), 1.0 / f32::MAX);
}

/// The decoded value is code · e4m3 in every recipe, though FlashRtSm120 quantises with other values for bytes below 8.
#[test]
fn unpacking_decodes_scale_bytes_as_e4m3_whatever_the_recipe() {
    let dim = 16;
    // amax/6 = 2^-8 is byte 2 of e4m3; FlashRtSm120 knows no byte from 2 to 7 and takes 1 for 1.125 · 2^-7.
    let v = 6.0 / 256.0;
    let x: Vec<bf16> = (0..dim).map(|i| bf16::from_f32(if i % 2 == 0 { 1.0 } else { -1.0 })).collect();
    let modulation = Broadcast { scale: &vec![bf16::from_f32(v - 1.0); dim], shift: &vec![bf16::ZERO; dim] };
    let unpacked = |recipe| {
        let (mut packed, mut sf) = (vec![0; 8], vec![0; 512]);
        let sink = Nvfp4::new(recipe, &mut packed, &mut sf);
        Cpu.ada_layer_norm_quant_nvfp4_swizzled_bf16(Matrix::new(&x, 1, dim), modulation, 0.0, sink).unwrap();
        (sf[0], packed[0] & 0xf, unpack_nvfp4(&packed, &sf, 1, 16, None).unwrap()[0])
    };
    assert_eq!(unpacked(Nvfp4Recipe::FlashRtSm110), (2, 7, v));
    assert_eq!(unpacked(Nvfp4Recipe::TransformerEngine), (2, 7, v));
    // 6/256 / (1.125/128) = 2.67: code 3, the value 1.5; read back with 2^-9.
    assert_eq!(unpacked(Nvfp4Recipe::FlashRtSm120), (1, 3, 1.5 / 512.0));
}

#[test]
fn unpacking_checks_its_buffers() {
    assert_eq!(unpack_nvfp4(&[0; 8], &[0; 512], 1, 0, None), Err(Error::LayoutDim { got: 0 }));
    assert_eq!(unpack_nvfp4(&[0; 8], &[0; 512], 1, 24, None), Err(Error::LayoutDim { got: 24 }));
    let length = |operand, expected, got| Err(Error::LayoutLength { operand, expected, got });
    assert_eq!(unpack_nvfp4(&[0; 7], &[0; 512], 1, 16, None), length("packed", 8, 7));
    assert_eq!(unpack_nvfp4(&[0; 8], &[0; 511], 1, 16, None), length("sf_swizzled", 512, 511));
    assert!(unpack::unswizzle(&[], u32::MAX, u32::MAX - 15).is_err());
    assert_eq!(unpack_nvfp4(&[], &[], 0, 16, None), Ok(vec![]));
    assert_eq!(compare::fp8(&[E4m3::MAX], &[]), Err(Error::CompareLength { expected: 1, got: 0 }));
}

/// A tensor of any dtype and a small, often wrong shape.
fn any_tensor() -> impl Strategy<Value = Tensor> {
    let dtypes = prop::sample::select(vec![DType::Bf16, DType::F32, DType::E4m3, DType::U8]);
    let axes = prop::collection::vec(prop::sample::select(vec![0usize, 1, 2, 3, 6, 16, 32, 17, usize::MAX]), 0..5);
    (dtypes, axes, 0..200usize, any::<bool>()).prop_map(|(dtype, shape, len, honest)| {
        let product =
            shape.iter().try_fold(1usize, |product, axis| product.checked_mul(*axis)).filter(|len| *len < 1 << 16);
        let len = if honest { product.unwrap_or(len) } else { len };
        Tensor { shape, data: Data::zeros(dtype, len) }
    })
}

proptest! {
    #![proptest_config(tries(3000))]

    /// Whatever the operands are, a call ends with outputs or an error.
    #[test]
    fn no_operands_make_a_call_panic(
        call in prop::sample::select(calls()),
        replaced in prop::collection::vec((any::<prop::sample::Index>(), any_tensor()), 0..4),
        out in prop::option::of(any_tensor()),
        rows in 0..4usize,
        seed: u64,
    ) {
        let problem = Problem { call, rows, dim: 32, chunks: 2, kind: Random(seed).pick(&Kind::ALL), seed };
        let mut inputs = problem.inputs();
        let names: Vec<String> = call.operator.inputs().map(|spec| spec.name.to_owned()).collect();
        for (index, tensor) in replaced {
            inputs.insert(index.get(&names).clone(), tensor);
        }
        for (_, backend) in backends() {
            if let Ok(mut outputs) = call.allocate(&inputs) {
                if let (Some(out), Some(first)) = (&out, call.operator.outputs().next()) {
                    outputs.insert(first.name.into(), out.clone());
                }
                let _ = call.run_into(backend, &inputs, &mut outputs);
            }
        }
    }
}
