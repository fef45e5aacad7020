//! The kernels' cheaper operations, mirrored here, equal what the contract writes on every input that can occur.
//!
//! Contract section 1 allows a cheaper operation only with an exhaustive test; these are the tests. The mirrored lines are in
//! kernels-gpu/src/statistics.rs and kernels-gpu/src/sink/nvfp4/recipe.rs.
use adaptive_layernorm_producers::formats::bf16::round;
use adaptive_layernorm_producers::reference::nvfp4::{
    decode_sm120, effective_global_scale, inverse_scale, nibble, scale_byte, ties_to_even,
};
use adaptive_layernorm_producers::reference::{e4m3, nvfp4};
use adaptive_layernorm_producers::{E4m3, Nvfp4Recipe};

const ONE_SIXTH: f32 = 1.0 / 6.0;

/// Every bf16 magnitude that is not NaN, infinity last.
fn magnitudes() -> impl Iterator<Item = f32> + Clone {
    (0..=0x7f80u32).map(|bits| f32::from_bits(bits << 16))
}

/// Every scale byte that a block of numbers can get, but 0.
fn bytes() -> impl Iterator<Item = u8> {
    1..=0x7e
}

/// Global scales: none, powers of two, odd ones, and the bounds.
fn global_scales() -> Vec<Option<f32>> {
    let odd = [0.3, 2688.0 / 1.7, 7.123e-3, 123.456, 3.3e-5, 1.9e4, 2f32.powi(-118), f32::MAX];
    [None, Some(1.0), Some(0.5), Some(4096.0)].into_iter().chain(odd.map(Some)).collect()
}

#[test]
fn product_with_one_sixth_gives_the_sm110_scale_byte() {
    for amax in magnitudes() {
        let short = e4m3::encode(amax * ONE_SIXTH).to_bits();
        assert_eq!(short, scale_byte(Nvfp4Recipe::FlashRtSm110, 1.0, amax), "{amax:e}");
        assert_eq!(short, E4m3::from_f32((amax / 6.0).max(1e-12)).to_bits(), "{amax:e}");
    }
}

#[test]
fn product_with_less_than_one_sixth_gives_the_sm120_scale_byte() {
    for amax in magnitudes() {
        let x = amax * ONE_SIXTH.next_down();
        let rounded = (x.to_bits().wrapping_add(0xf_ffff) >> 20) as i32 - 960;
        let byte = if rounded < 8 { 1 } else { rounded.min(0x7e) };
        let short = if amax == 0.0 { 0 } else { byte };
        assert_eq!(short, i32::from(scale_byte(Nvfp4Recipe::FlashRtSm120, 1.0, amax)), "{amax:e}");
    }
}

/// `fma.rn.bf16x2` of one half: the product of two bf16 is exact in f64, and so is its sum with a third where the two are not
/// more than 2^37 apart; beyond, the sum is the third operand or past every code.
fn fma_bf16(a: f32, b: f32, c: f32) -> f32 {
    let exact = f64::from(a) * f64::from(b) + f64::from(c);
    let bits = exact.to_bits();
    // Nearest even, by hand: f64 to bf16 in one rounding, subnormals too.
    if exact == 0.0 || !exact.is_finite() {
        return exact as f32;
    }
    let exponent = (bits >> 52 & 0x7ff) as i32 - 1023;
    let drop = 52 - 7 + (-126 - exponent).clamp(0, 60);
    let half = 1u64 << (drop - 1);
    let mantissa = bits & ((1 << 52) - 1) | 1 << 52;
    let rounded = if drop > 53 { 0 } else { (mantissa + half - 1 + (mantissa >> drop & 1)) >> drop };
    let magnitude = rounded as f64 * 2f64.powi(exponent - 52 + drop);
    (if exact < 0.0 { -magnitude } else { magnitude }) as f32
}

#[test]
fn the_mirrored_fma_rounds_once() {
    let ulp = 2f32.powi(-7);
    for (a, b, c, expected) in [
        (1.0, 1.0, 0.0, 1.0),
        (1.0 + ulp, 1.0 + ulp, 0.0, 1.0 + 2.0 * ulp), // 1 + 2u + u²
        (1.0, 0.5, 252.0, 252.0),                     // ties to even
        (1.0, 1.5, 252.0, 254.0),
        (1.0, 1.5 - ulp, 252.0, 253.0), // and what is beside one
        (1.0, 5.0, 256.0, 260.0),       // two apart from 256 on
        (1.0, 7.0, 256.0, 264.0),
        (2f32.powi(-133), 1.0, 0.0, 2f32.powi(-133)), // the smallest subnormal
        (2f32.powi(-133), 0.5, 0.0, 0.0),
        (2f32.powi(-133), 1.5, 0.0, 2f32.powi(-132)),
        (3e38, 3e38, 1.0, f32::INFINITY),
        (-3.0, 1.0, 1.0, -2.0),
    ] {
        assert_eq!(fma_bf16(a, b, c), expected, "{a:e} {b:e} {c:e}");
    }
}

/// Which code a bf16 stands for: 252 to 255, then 256 to 262 by twos.
fn coded(line: f32) -> u8 {
    (round(line).to_bits() - round(252.0).to_bits()) as u8
}

/// The kernels' factors for scales from 1 to 1.875: of v, of 2v/s and of v/s.
const SM110_LINES: [[f32; 3]; 8] = [
    [1.0, 1.9921875, 0.99609375],
    [1.0, 1.7734375, 0.88671875],
    [1.0, 1.59375, 0.796875],
    [1.0, 1.453125, 0.7265625],
    [1.0, 1.328125, 0.6640625],
    [1.015625, 1.2109375, 0.60546875],
    [1.0234375, 1.1171875, 0.55859375],
    [1.0703125, 0.99609375, 0.5],
];

#[test]
fn lines_in_bf16_give_the_sm110_codes() {
    for byte in bytes() {
        let scale = E4m3::from_bits(byte).to_f32();
        let power = 2f32.powi(-scale.log2().floor() as i32);
        let [turn, twice, once] = SM110_LINES[(scale.to_bits() >> 20 & 7) as usize];
        for v in magnitudes() {
            let short = sm110_code(v, [turn, twice * power, once * power]);
            assert_eq!(short, nibble(Nvfp4Recipe::FlashRtSm110, 1.0, byte, v), "byte {byte:#x}, v {v:e}");
        }
    }
}

/// The entries of scale byte 0 and of a block that holds a NaN.
#[test]
fn special_bytes_give_their_one_code() {
    const INFINITY: f32 = f32::INFINITY;
    for v in magnitudes() {
        if v.is_finite() {
            assert_eq!((sm110_code(v, [0.0; 3]), sm120_code(v, [0.0; 4])), (0, 0), "{v:e}");
        }
    }
    for v in magnitudes().chain([f32::NAN]) {
        let codes = (sm110_code(v, [1.0, INFINITY, INFINITY]), sm120_code(v, [INFINITY, INFINITY, INFINITY, 0.0]));
        assert_eq!(codes, (7, 7), "{v:e}");
    }
}

/// The kernel's lines by an entry of its table; a minimum or maximum with NaN is the other number.
fn sm110_code(v: f32, [turn, twice, once]: [f32; 3]) -> u8 {
    let v = fma_bf16(v, turn, 0.0);
    coded(fma_bf16(v, twice, 252.0).min(fma_bf16(v, once, 256.0)).min(262.0))
}

/// The same of the other recipe.
fn sm120_code(v: f32, [twice, once, steep, start]: [f32; 4]) -> u8 {
    let odd = f32::from_bits(v.to_bits() | 1 << 16);
    let few = fma_bf16(odd, twice, 252.0).min(fma_bf16(odd, once, 253.0)).min(255.0);
    let many = fma_bf16(odd, steep, start).min(fma_bf16(odd, once, 256.0)).min(262.0);
    coded(few.max(many))
}

#[test]
fn lines_in_bf16_give_the_sm120_codes() {
    for byte in bytes() {
        let scale = decode_sm120(byte);
        let [twice, once] = [2.0 / scale, 1.0 / scale].map(|factor| round(factor).to_f32());
        let three = 3.0 * scale;
        let step = 2f32.powi(three.log2().floor() as i32 - 7);
        let (steep, start) = (512.0 / step, -(512.0 / step) * (three - step));
        assert!([three, three - step, steep, start].iter().all(|x| round(*x).to_f32() == *x), "byte {byte:#x}: exact");
        for v in magnitudes() {
            let short = sm120_code(v, [twice, once, steep, start]);
            assert_eq!(short, nibble(Nvfp4Recipe::FlashRtSm120, 1.0, byte, v), "byte {byte:#x}, v {v:e}");
        }
    }
}

/// Codes by the smallest of three lines in f32, whose numbers are one apart below 2^24 and two above.
fn lines(y: f32) -> u8 {
    const CODE_4: f32 = 16_777_216.0;
    let pieces = [y.mul_add(2.0, CODE_4 - 4.0).to_bits(), (y + CODE_4).to_bits(), CODE_4.to_bits() + 3];
    let smallest = pieces.into_iter().min().unwrap();
    (smallest - (CODE_4 - 4.0).to_bits()) as u8
}

#[test]
fn rounded_lines_give_the_codes_of_transformer_engine() {
    for g in global_scales() {
        let g = effective_global_scale(g);
        for byte in bytes() {
            let inv = inverse_scale(Nvfp4Recipe::TransformerEngine, g, byte);
            for v in magnitudes() {
                assert_eq!(lines(v * inv), ties_to_even(v * inv), "g {g:e}, byte {byte:#x}, v {v:e}");
            }
        }
    }
}

/// The curve's corners and every tie, one ulp to both sides; what the special bytes make of v.
#[test]
fn rounded_lines_at_every_tie() {
    for y in [0.25f32, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0] {
        for y in [y.next_down(), y, y.next_up()] {
            assert_eq!(lines(y), ties_to_even(y), "{y}");
        }
    }
    assert_eq!([0.0, f32::INFINITY, f32::NAN].map(lines), [0, 7, 7]);
}

/// Independent of the reference's thresholds: the nearest of the eight values, found by distance in f64.
#[test]
fn codes_are_the_nearest_values() {
    const VALUES: [f64; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
    let nearest = |y: f64, prefer: fn(usize) -> bool| {
        let mut best = 0;
        for (code, value) in VALUES.iter().enumerate() {
            let (old, new) = ((y - VALUES[best]).abs(), (y - value).abs());
            if new < old || (new == old && prefer(code)) {
                best = code;
            }
        }
        best as u8
    };
    for byte in bytes() {
        for v in magnitudes().filter(|v| v.is_finite()) {
            // y as the contract forms it: the rounded product with the rounded reciprocal.
            let y = f64::from(v * (1.0 / E4m3::from_bits(byte).to_f32()));
            let toward_zero = nearest(y.min(100.0), |_| false);
            assert_eq!(nibble(Nvfp4Recipe::FlashRtSm110, 1.0, byte, v), toward_zero, "byte {byte:#x}, v {v:e}");
            let to_even = nearest(y.min(100.0), |code| code % 2 == 0);
            assert_eq!(nibble(Nvfp4Recipe::TransformerEngine, 1.0, byte, v), to_even, "byte {byte:#x}, v {v:e}");
        }
    }
}

/// The scale byte of the SM120 recipe, independently: the smallest code whose value is not below amax/6.
#[test]
fn sm120_scale_bytes_are_the_next_above() {
    for amax in magnitudes().skip(1) {
        let x = amax / 6.0;
        let above = (8..=0x7e).find(|byte| E4m3::from_bits(*byte).to_f32() >= x).unwrap_or(0x7e);
        // Three mantissa bits below the first normal code are 15/16 of it: up to there every amax gets 1.
        let expected = if x <= 2f32.powi(-6) * 15.0 / 16.0 { 1 } else { above };
        assert_eq!(nvfp4::scale_byte(Nvfp4Recipe::FlashRtSm120, 1.0, amax), expected, "amax {amax:e}");
    }
}

/// `sum/D` by one product and two fma.
fn short_mean(sum: f32, dim: f32) -> f32 {
    let inv_dim = 1.0 / dim;
    let quotient = sum * inv_dim;
    let corrected = (-quotient).mul_add(dim, sum).mul_add(inv_dim, quotient);
    if sum.abs() < 2f32.powi(-60) { sum / dim } else { corrected }
}

fn check_mean(sum: f32, dim: u32) {
    let dim = dim as f32;
    assert_eq!(short_mean(sum, dim).to_bits(), (sum / dim).to_bits(), "{sum:e} / {dim}");
}

/// A generator good enough to pick test values.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *state >> 16
}

#[test]
fn corrected_mean_is_the_quotient_for_random_sums() {
    let mut state = 1;
    let mut check = |dim, sums| {
        for _ in 0..sums {
            let bits = next(&mut state) as u32;
            let sum = f32::from_bits(bits);
            if sum.is_finite() {
                check_mean(sum, dim);
            }
        }
    };
    for dim in 1..=16_384 {
        check(dim, 200);
    }
    for step in 0..20_000 {
        check(16_384 + step * 837, 50);
    }
    check(1 << 24, 1000);
}

/// Sums whose quotient lies as near to the middle of two f32 as a quotient by this D can.
#[test]
fn corrected_mean_is_the_quotient_for_the_hardest_sums() {
    let (mut tried, mut state) = (0u32, 1);
    let few = (1..=16_384).chain((0..40_000).map(|_| 16_384 + (next(&mut state) % ((1 << 24) - 16_384)) as u32));
    for dim in few {
        let odd = u64::from(dim >> dim.trailing_zeros());
        if odd == 1 {
            continue;
        }
        // a·2^s = q·odd + (odd ± k)/2 with q of 24 bits: solve for a, the sum's mantissa.
        let bits = 64 - odd.leading_zeros();
        for s in [bits - 1, bits] {
            let half = odd.div_ceil(2);
            let inverse = (0..s).fold(1, |inverse, _| inverse * half % odd);
            for remainder in [odd / 2, odd / 2 + 1, odd / 2 - 1.min(odd / 2), odd / 2 + 2] {
                let smallest = remainder % odd * inverse % odd;
                let first = smallest + (1u64 << 23).saturating_sub(smallest).div_ceil(odd) * odd;
                for a in [first, first + odd].into_iter().filter(|a| *a < 1 << 24) {
                    check_mean(a as f32, dim);
                    check_mean(-(a as f32) * 2f32.powi(-30), dim);
                    tried += 1;
                }
            }
        }
    }
    println!("{tried} near-ties");
    assert!(tried > 100_000);
}
