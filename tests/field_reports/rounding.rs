//! Items 8 to 11: saturation, ties, signs, what is not narrowed, extreme scalars.
use crate::support::bf16s;
use crate::{Sinks, block, each_backend};
use adaptive_layernorm_producers::named::{Call, Tensor, Tensors};
use adaptive_layernorm_producers::{Backend, Nvfp4Recipe, Operator};
use half::bf16;

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

/// Item 9 for FP8: q is a product with the rounded reciprocal too. 1/0.4375 rounds up, so that 6.25 and 7.25 times 0.4375 land above
/// their ties, on the next code; a division would land on them, and go to the even code below.
#[test]
fn q_is_formed_with_the_rounded_reciprocal() {
    each_backend(|sinks| {
        assert_eq!(sinks.fp8(&[2.734375, 3.171875, -2.734375, -3.171875], 0.4375), [0x4d, 0x4f, 0xcd, 0xcf]);
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
