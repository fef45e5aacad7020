//! What went wrong elsewhere with kernels of this family, item by item: tests/README.md maps items to tests.
//!
//! Every value here was worked out by hand or in f64, not by the code under test. `Sinks` quantises chosen values: on a constant
//! row the normalised value is 0, so the modulated row is the shift, whatever it is.
mod support;

use adaptive_layernorm_producers::formats::{e2m1, scale_layout, swizzled_sf_size, unpack_nvfp4};
use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
use adaptive_layernorm_producers::operator::SinkKind;
use adaptive_layernorm_producers::{Backend, E4m3, Nvfp4Recipe, Operator};
use half::bf16;
use support::random::{Kind, Problem, Random};
use support::{backends, bf16s, bytes, calls, e4m3};

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

/// Items 1 and 2: a scale buffer full of 0xFF, R no multiple of 128, D/16 no multiple of 4.
#[test]
fn dirty_scale_buffers_are_padded_with_zeros() {
    let shapes = [(1, 16), (60, 48), (129, 80), (130, 272), (2520, 64), (128, 64), (127, 16), (3, 3072)];
    each_backend(|Sinks(backend)| {
        for (rows, dim) in shapes {
            for call in nvfp4_calls() {
                let inputs = problem(call, rows, dim, 1).inputs();
                let clean = call.run(backend, &inputs).unwrap();
                let mut dirty = call.allocate(&inputs).unwrap();
                let size = swizzled_sf_size(rows as u32, dim as u32).unwrap();
                dirty.insert("sf_swizzled".into(), Tensor::new([size], vec![0xffu8; size]));
                call.run_into(backend, &inputs, &mut dirty).unwrap();
                assert_eq!(clean, dirty, "{} {rows} x {dim}", call.operator);
                // ceil(R/128) · ceil(K/4) · 512 bytes, of which R·K are scales, here never 0 but for whole zero blocks.
                let real = bytes(&dirty["sf_swizzled"]).iter().filter(|byte| **byte != 0).count();
                assert!(real <= rows * dim / 16, "{} {rows} x {dim}", call.operator);
            }
        }
    });
}

/// Item 3: NaN in some rows.
#[test]
fn nan_rows_leave_the_others_alone() {
    each_backend(|Sinks(backend)| {
        for call in calls().into_iter().filter(|call| call.operator != Operator::AdalnModulation6Bf16) {
            let problem = problem(call, 9, 96, 3);
            let clean = problem.inputs();
            let mut poisoned = clean.clone();
            let Some(Data::Bf16(x)) = poisoned.get_mut("x").map(|x| &mut x.data) else { unreachable!() };
            for (row, column) in [(0, 0), (4, 95), (8, 50)] {
                x[row * 96 + column] = bf16::NAN;
            }
            let (clean, poisoned) = (call.run(backend, &clean).unwrap(), call.run(backend, &poisoned).unwrap());
            for (name, tensor) in clean.iter().filter(|(name, _)| *name != "sf_swizzled") {
                let (a, b) = (tensor.data.to_le_bytes(), poisoned[name].data.to_le_bytes());
                for r in [1, 2, 3, 5, 6, 7] {
                    let size = a.len() / 9;
                    assert_eq!(a[r * size..][..size], b[r * size..][..size], "{} row {r}", call.operator);
                }
            }
            if let Some(scales) = clean.get("sf_swizzled") {
                for (at, (a, b)) in bytes(scales).iter().zip(bytes(&poisoned["sf_swizzled"])).enumerate() {
                    let (r, c) = scale_layout::position(at as u64, 96).unwrap();
                    let expected = if [0, 4, 8].contains(&r) && c < 6 { 0x7f } else { *a };
                    assert_eq!(*b, expected, "{} row {r}", call.operator);
                }
            }
        }
    });
}

/// Item 4: a block of zeros among others, and a row of nothing but zeros.
#[test]
fn zero_blocks_have_scale_0_and_codes_0() {
    each_backend(|sinks| {
        for recipe in Nvfp4Recipe::ALL {
            let v = [block(&[6.0]), vec![0.0; 16], vec![-0.0; 16], block(&[-3.0])].concat();
            let (scales, nibbles) = sinks.nvfp4(recipe, &v);
            assert_eq!(scales[1..3], [0, 0], "{recipe}");
            assert_eq!(nibbles[16..48], [0; 32], "{recipe}");
            // 6/6 = 1 and 3/6 = 0.5 in e4m3.
            assert_eq!((scales[0], scales[3]), (0x38, 0x30), "{recipe}");
            assert_eq!((nibbles[0], nibbles[48]), (7, 15), "{recipe}");
            let (scales, nibbles) = sinks.nvfp4(recipe, &[0.0; 64]);
            assert_eq!((scales, nibbles), (vec![0; 4], vec![0; 64]), "{recipe}");
        }
        assert_eq!(sinks.fp8(&[0.0; 16], 0.1), [0; 16]);
    });
}

/// Item 5: amax/6 below half of 2^-9, the smallest subnormal.
#[test]
fn blocks_too_small_for_a_scale_are_zero() {
    // 6·2^-10 is the tie between 0 and 2^-9: to even, 0. The next bf16 above it gets the byte 1.
    let tie = 6.0 / 1024.0;
    let above = bf16::from_bits(bf16::from_f32(tie).to_bits() + 1).to_f32();
    each_backend(|sinks| {
        for recipe in [Nvfp4Recipe::FlashRtSm110, Nvfp4Recipe::TransformerEngine] {
            for small in [tie, 0.005, 1e-6, 1e-30, 1e-38, 1e-40] {
                let (scales, nibbles) = sinks.nvfp4(recipe, &block(&[small, -small]));
                assert_eq!((scales, nibbles), (vec![0], vec![0; 16]), "{recipe} {small:e}");
            }
            let (scales, nibbles) = sinks.nvfp4(recipe, &block(&[above, -above]));
            // above/2^-9 = 3.02: code 5, the value 3.
            assert_eq!((scales[0], &nibbles[..2]), (1, &[5, 13][..]), "{recipe}");
        }
        // FlashRT's SM120 rounds up: anything but 0 gets at least the byte 1.
        let (scales, _) = sinks.nvfp4(Nvfp4Recipe::FlashRtSm120, &block(&[1e-30]));
        assert_eq!(scales, [1]);
    });
}

/// Item 6: subnormal scale bytes.
#[test]
fn scale_bytes_below_8_are_multiples_of_2_to_the_minus_9() {
    each_backend(|sinks| {
        for recipe in [Nvfp4Recipe::FlashRtSm110, Nvfp4Recipe::TransformerEngine] {
            for k in 1..=7u8 {
                let amax = 6.0 * f32::from(k) / 512.0;
                let v = block(&[amax, -amax / 2.0]);
                let (scales, nibbles) = sinks.nvfp4(recipe, &v);
                assert_eq!(scales, [k], "{recipe}");
                assert_eq!(nibbles[..2], [7, 13], "{recipe}");
                let packed: Vec<u8> = nibbles.as_chunks::<2>().0.iter().map(|[low, high]| low | high << 4).collect();
                let mut layout = vec![0; 512];
                layout[0] = scales[0];
                assert_eq!(unpack_nvfp4(&packed, &layout, 1, 16, None).unwrap(), v, "{recipe}");
            }
        }
    });
}

/// Item 7: infinities in a block.
#[test]
fn infinite_blocks_saturate() {
    let v = block(&[f32::INFINITY, f32::NEG_INFINITY, 448.0 * 2.0, -448.0, 1.0, 0.0]);
    each_backend(|sinks| {
        for (recipe, two) in
            [(Nvfp4Recipe::FlashRtSm110, 4), (Nvfp4Recipe::FlashRtSm120, 3), (Nvfp4Recipe::TransformerEngine, 4)]
        {
            let (scales, nibbles) = sinks.nvfp4(recipe, &v);
            assert_eq!(scales, [0x7e], "{recipe}");
            // ±Inf, 2 and −1 in units of 448, and values far below.
            assert_eq!(nibbles[..6], [7, 15, two, 8 + 2, 0, 0], "{recipe}");
            let (scales, nibbles) = sinks.nvfp4(recipe, &block(&[f32::NAN, -1.0, f32::INFINITY]));
            assert_eq!((scales, nibbles), (vec![0x7f], vec![7; 16]), "{recipe}");
        }
    });
}

/// Item 8: FP8 at and above its largest value.
#[test]
fn fp8_saturates_and_nan_is_nan() {
    let v = [448.0, 464.0, 466.0, 1000.0, f32::INFINITY, 432.0, 440.0, 1.0];
    let negative = v.map(|v: f32| -v);
    each_backend(|sinks| {
        // 432 is the middle of 416 and 448: to the even code 0x7E; 1 is 0x38.
        assert_eq!(sinks.fp8(&v, 1.0), [0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0x7e, 0x38]);
        assert_eq!(sinks.fp8(&negative, 1.0), [0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xfe, 0xb8]);
        assert_eq!(sinks.fp8(&[f32::NAN, 1.0, -f32::NAN, -0.0], 1.0), [0x7f, 0x38, 0x7f, 0x80]);
    });
}

/// Item 9: exact ties of e4m3.
#[test]
fn e4m3_ties_go_to_the_even_code() {
    // Middles of neighbours: (m + 1/2)/8 above each power of two, and odd multiples of 2^-10 below 2^-6.
    let normal = (-6..=8).flat_map(|e| (0..8).map(move |m| (e, m))).filter(|pair| *pair < (8, 6));
    let normal = normal.map(|(e, m)| ((1.0 + (m as f32 + 0.5) / 8.0) * 2f32.powi(e), ((e + 7) * 8 + m) as u8));
    let subnormal = (0..8u8).map(|k| ((f32::from(k) + 0.5) / 512.0, k));
    let ties: Vec<(f32, u8)> = subnormal.chain(normal).collect();
    let v: Vec<f32> = ties.iter().map(|(v, _)| *v).collect();
    let expected: Vec<u8> = ties.iter().map(|(_, below)| below + below % 2).collect();
    each_backend(|sinks| {
        assert_eq!(sinks.fp8(&v, 1.0), expected);
        // The same ties, scaled by a power of two.
        let doubled: Vec<f32> = v.iter().map(|v| v * 4.0).collect();
        assert_eq!(sinks.fp8(&doubled, 4.0), expected);
    });
}

/// Item 9: exact ties of e2m1, in every recipe, at scale 1 and at other powers of two.
#[test]
fn e2m1_ties_go_where_the_recipe_says() {
    let ties = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0];
    let expected = [
        (Nvfp4Recipe::FlashRtSm110, [0, 1, 2, 3, 4, 5, 6, 7]),
        (Nvfp4Recipe::FlashRtSm120, [1, 2, 2, 3, 3, 6, 7, 7]),
        (Nvfp4Recipe::TransformerEngine, [0, 2, 2, 4, 4, 6, 6, 7]),
    ];
    each_backend(|sinks| {
        for (recipe, codes) in expected {
            for (factor, byte) in [(1.0, 0x38), (2.0, 0x40), (1.0 / 64.0, 0x08), (256.0, 0x78)] {
                let v = ties.iter().chain(&ties.map(|v: f32| -v)).map(|v| v * factor).collect::<Vec<_>>();
                let (scales, nibbles) = sinks.nvfp4(recipe, &v);
                assert_eq!(scales, [byte], "{recipe}");
                assert_eq!(nibbles[..8], codes, "{recipe} times {factor}");
                // A negative value of code 0 keeps its sign where it is below zero.
                assert_eq!(nibbles[8..], codes.map(|code| code | 8), "{recipe} times {factor}");
            }
        }
    });
}

/// Item 9: y is a product with the rounded reciprocal. 1/1.875 rounds up, so 1.25, 2.5 and 5 times 1.875 land above their ties;
/// a division would land on them.
#[test]
fn y_is_formed_with_the_rounded_reciprocal() {
    let v = block(&[11.25, 2.34375, 4.6875, 9.375]);
    each_backend(|sinks| {
        for recipe in [Nvfp4Recipe::FlashRtSm110, Nvfp4Recipe::TransformerEngine] {
            let (scales, nibbles) = sinks.nvfp4(recipe, &v);
            assert_eq!(scales, [0x3f], "{recipe}");
            assert_eq!(nibbles[..4], [7, 3, 5, 7], "{recipe}");
        }
    });
}

/// The sign of zero: only TransformerEngine's recipe keeps it.
#[test]
fn negative_zero_is_kept_by_transformer_engine_only() {
    each_backend(|sinks| {
        for (recipe, code) in
            [(Nvfp4Recipe::FlashRtSm110, 0), (Nvfp4Recipe::FlashRtSm120, 0), (Nvfp4Recipe::TransformerEngine, 8)]
        {
            let (_, nibbles) = sinks.nvfp4(recipe, &block(&[6.0, -0.0]));
            assert_eq!(nibbles[1], code, "{recipe}");
        }
    });
}

/// FlashRT's SM120 scale is the next e4m3 above, never NaN: amax 2000 would be 0x7F there.
#[test]
fn sm120_scales_are_rounded_up_and_saturate() {
    // 6.5/6 = 1.0833 → 1.125 (0x39); 6 → 1 (0x38); 2000/6 = 333 → 352 (0x7B); 6·448 → 448; beyond → 448.
    let cases = [(6.5, 0x39), (6.0, 0x38), (2000.0, 0x7b), (2688.0, 0x7e), (3000.0, 0x7e), (3e38, 0x7e), (0.01, 1)];
    each_backend(|sinks| {
        for (amax, byte) in cases {
            assert_eq!(sinks.nvfp4(Nvfp4Recipe::FlashRtSm120, &block(&[amax])).0, [byte], "{amax}");
        }
    });
}

/// Global scales, sensible and not: what cannot be a scale counts as 2^-118, infinity as the largest f32.
#[test]
fn every_global_scale_gives_defined_bytes() {
    let recipe = Nvfp4Recipe::TransformerEngine;
    let v = block(&[6.0, -3.0, 0.5, -0.0]);
    each_backend(|sinks| {
        let scaled = |g| sinks.nvfp4_scaled(recipe, &v, g);
        assert_eq!(scaled(Some(1.0)), scaled(None));
        // 6·4/6 = 4 (0x48); codes as without, since 1/(4·1/4) = 1.
        assert_eq!(scaled(Some(4.0)).0, [0x48]);
        assert_eq!(scaled(Some(4.0)).1, scaled(None).1);
        for nothing in [0.0, -0.0, -1.0, f32::NAN, f32::NEG_INFINITY, 1e-40] {
            assert_eq!(scaled(Some(nothing)), (vec![0], vec![0; 16]), "{nothing}");
            let infinite = sinks.nvfp4_scaled(recipe, &block(&[f32::NEG_INFINITY, 1.0]), Some(nothing));
            assert_eq!((infinite.0[0], infinite.1[0]), (0x7e, 15), "{nothing}");
        }
        for huge in [f32::INFINITY, f32::MAX] {
            let (scales, nibbles) = scaled(Some(huge));
            assert_eq!((scales[0], &nibbles[..4]), (0x7e, &[7, 15, 7, 8][..]), "{huge}");
        }
    });
}

/// Runs the table form in bf16 on a row (−1, 1), for which n is −1 and 1 exactly with eps 0.
fn table_form(backend: &dyn Backend, temb: [f32; 2], table: [f32; 2]) -> [f32; 2] {
    let twice = |values: [f32; 2]| values.into_iter().flat_map(|value| [value, value]);
    let mut inputs = Tensors::new();
    inputs.insert("x".into(), Tensor::new([1, 2], [-1.0, 1.0].map(bf16::from_f32).to_vec()));
    inputs.insert("temb".into(), Tensor::new([1, 2, 2], twice(temb).map(bf16::from_f32).collect::<Vec<_>>()));
    inputs.insert("table".into(), Tensor::new([2, 2], twice(table).collect::<Vec<_>>()));
    let call = Call { eps: 0.0, ..Call::new(Operator::AdaLayerNormPtokTableBf16) };
    let outputs = call.run(backend, &inputs).unwrap();
    [bf16s(&outputs["out"])[0].to_f32(), bf16s(&outputs["out"])[1].to_f32()]
}

/// Item 10: table entries, and their sums with temb, are not narrowed to bf16.
#[test]
fn table_entries_stay_f32() {
    // 1 + 2^-8 is the middle of the bf16 1 and 1 + 2^-7; 2^-20 more decides, and no bf16 holds 2^-8 + 2^-20.
    let (tie, crumb, above) = (2f32.powi(-8), 2f32.powi(-20), 1.0 + 2f32.powi(-7));
    each_backend(|Sinks(backend)| {
        // Chunk 0 shifts, chunk 1 scales.
        assert_eq!(table_form(backend, [0.0, 0.0], [0.0, tie]), [-1.0, 1.0]);
        assert_eq!(table_form(backend, [0.0, 0.0], [0.0, tie + crumb]), [-above, above]);
        assert_eq!(table_form(backend, [0.0, tie], [0.0, crumb]), [-above, above]);
        assert_eq!(table_form(backend, [tie, 0.0], [crumb, 0.0])[1], above);
        assert_eq!(table_form(backend, [0.0, 0.0], [tie + crumb, 0.0])[1], above);
    });
}

/// Item 11: act_scale that is tiny, 0, negative, NaN (all count as 1e-12), huge or infinite.
#[test]
fn extreme_act_scales() {
    // bf16 next to 1e-12, 3e38 and so on are within 1/256 of these; e4m3 has steps of 1/8 there.
    let v = [1e-12, -1e-12, 1.0, -1.0, 0.0, -0.0];
    each_backend(|sinks| {
        for act_scale in [1e-30, 0.0, -0.0, -5.0, f32::NAN, 1e-12, f32::NEG_INFINITY, 1e-45] {
            assert_eq!(sinks.fp8(&v, act_scale), [0x38, 0xb8, 0x7e, 0xfe, 0x00, 0x80], "{act_scale:e}");
        }
        assert_eq!(sinks.fp8(&[3e38, -3e38, 1.0, -1.0], 3e38), [0x38, 0xb8, 0x00, 0x80]);
        assert_eq!(sinks.fp8(&[3e38, -1.0, f32::INFINITY, 0.0], f32::INFINITY), [0x00, 0x80, 0x7f, 0x00]);
    });
}

/// The row (x − mean)/sqrt(var + eps) in f64.
fn normalised(x: &[bf16], eps: f64) -> Vec<f64> {
    let x: Vec<f64> = x.iter().map(|x| f64::from(x.to_f32())).collect();
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
    x.iter().map(|x| (x - mean) / (variance + eps).sqrt()).collect()
}

/// LayerNorm in bf16: the table form with zeros.
fn layer_norm(backend: &dyn Backend, x: &[bf16], rows: usize, eps: f32) -> Vec<bf16> {
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
