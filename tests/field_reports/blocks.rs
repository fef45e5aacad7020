//! Items 1 to 7: padding of the scale layout; zero, tiny, infinite and NaN blocks.
use crate::support::{bytes, calls};
use crate::{Sinks, block, each_backend, nvfp4_calls, problem};
use adaptive_layernorm_producers::formats::{scale_layout, swizzled_sf_size, unpack_nvfp4};
use adaptive_layernorm_producers::named::{Data, Tensor};
use adaptive_layernorm_producers::{Nvfp4Recipe, Operator};
use half::bf16;

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
