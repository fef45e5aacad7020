//! Conversions, exhaustively, against outside oracles: the `float8` crate and tables made with ml_dtypes.
mod support;

use adaptive_layernorm_producers::formats::{bf16::round, e2m1};
use adaptive_layernorm_producers::{E4m3, reference};
use float8::F8E4M3;
use half::bf16;
use support::fixture;

fn every_bf16() -> impl Iterator<Item = bf16> {
    (0..=u16::MAX).map(bf16::from_bits)
}

fn every_code() -> impl Iterator<Item = E4m3> {
    (0..=u8::MAX).map(E4m3::from_bits)
}

#[test]
fn e4m3_of_every_bf16() {
    let table = std::fs::read(fixture("e4m3_of_bf16.bin")).unwrap();
    for (v, from_table) in every_bf16().zip(table) {
        let code = E4m3::from_f32(v.to_f32());
        assert_eq!(code, reference::e4m3::encode(v.to_f32()), "{:#06x}, reference", v.to_bits());
        // The table's NaN keep their signs; the contract has one NaN.
        assert_eq!(code.to_bits(), if v.is_nan() { 0x7f } else { from_table }, "{:#06x}, ml_dtypes", v.to_bits());
        let other = F8E4M3::from_f32(v.to_f32().clamp(-448.0, 448.0));
        assert_eq!(code.to_bits(), if v.is_nan() { 0x7f } else { other.to_bits() }, "{:#06x}, float8", v.to_bits());
    }
}

#[test]
fn f32_of_every_e4m3() {
    let table = std::fs::read(fixture("f32_of_e4m3.bin")).unwrap();
    let table = table.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    for (code, from_table) in every_code().zip(table) {
        let values = [code.to_f32(), reference::e4m3::decode(code), F8E4M3::from_bits(code.to_bits()).to_f32()];
        for value in values {
            assert!(
                value.to_bits() == from_table.to_bits() || value.is_nan() && from_table.is_nan(),
                "{code:?}: {value}"
            );
        }
        assert_eq!(code.is_nan(), from_table.is_nan());
    }
}

#[test]
fn an_e4m3_is_a_number_and_prints_as_one() {
    let minus_three_and_a_half = E4m3::from_bits(0xc6);
    assert_eq!((f32::from(minus_three_and_a_half), minus_three_and_a_half.to_string().as_str()), (-3.5, "-3.5"));
    assert_eq!((f32::from(E4m3::MAX), format!("{:>6}", E4m3::MAX).as_str()), (448.0, "   448"));
}

#[test]
fn ordinals_of_e2m1_are_in_the_order_of_the_values() {
    assert_eq!([0x0, 0x8, 0x1, 0x9, 0x5, 0xd, 0x7, 0xf].map(e2m1::ordinal), [0, 0, 1, -1, 5, -5, 7, -7]);
    for (a, b) in (0..16).flat_map(|a| (0..16).map(move |b| (a, b))) {
        assert_eq!(e2m1::ordinal(a).cmp(&e2m1::ordinal(b)), e2m1::decode(a).partial_cmp(&e2m1::decode(b)).unwrap());
    }
    // The high bits of a byte do not belong to the nibble.
    assert_eq!((e2m1::ordinal(0xf3), e2m1::decode(0xf3), e2m1::decode(0x7b)), (3, 1.5, -1.5));
}

#[test]
fn every_e4m3_comes_back() {
    for code in every_code().filter(|code| !code.is_nan()) {
        assert_eq!(E4m3::from_f32(code.to_f32()), code);
    }
    assert_eq!(E4m3::from_f32(E4m3::from_bits(0xff).to_f32()), E4m3::NAN);
}

/// f32 has values between the bf16: around every code and every middle of two codes, one ulp to both sides.
#[test]
fn e4m3_near_every_code_and_every_tie() {
    let values = every_code().filter(|code| !code.is_nan()).map(E4m3::to_f32);
    let mut magnitudes: Vec<f32> = values.filter(|value| value.is_sign_positive()).collect();
    magnitudes.extend([464.0, 480.0, 1000.0, f32::MAX, f32::INFINITY, f32::MIN_POSITIVE, 1e-12, 2f32.powi(-10)]);
    let middles: Vec<f32> = magnitudes.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0).collect();
    for magnitude in magnitudes.into_iter().chain(middles) {
        for near in [magnitude, magnitude.next_up(), magnitude.next_down()] {
            for value in [near, -near] {
                let expected = F8E4M3::from_f64(f64::from(value.clamp(-448.0, 448.0))).to_bits();
                let expected = if value.is_nan() { 0x7f } else { expected };
                assert_eq!(E4m3::from_f32(value).to_bits(), expected, "{value:e}");
                assert_eq!(reference::e4m3::encode(value).to_bits(), expected, "{value:e}, reference");
            }
        }
    }
}

#[test]
fn e4m3_saturates_and_keeps_signs() {
    let cases = [
        (448.0, 0x7e),
        (464.0, 0x7e),
        (464.1, 0x7e),
        (1000.0, 0x7e),
        (f32::INFINITY, 0x7e),
        (-448.0, 0xfe),
        (f32::NEG_INFINITY, 0xfe),
        (-0.0, 0x80),
        (f32::NAN, 0x7f),
        (-f32::NAN, 0x7f),
        // 2^-10 is the tie between 0 and the smallest subnormal.
        (0.000_976_562_5, 0x00),
        (-0.000_976_562_5, 0x80),
        (0.000_976_562_6, 0x01),
    ];
    for (value, code) in cases {
        assert_eq!(E4m3::from_f32(value).to_bits(), code, "{value}");
    }
}

#[test]
fn codes_in_order_of_value_have_ordinals_in_order() {
    let mut codes: Vec<E4m3> = every_code().filter(|code| !code.is_nan()).collect();
    codes.sort_by(|a, b| a.to_f32().total_cmp(&b.to_f32()));
    for pair in codes.windows(2) {
        let (a, b) = (pair[0].ordinal().unwrap(), pair[1].ordinal().unwrap());
        assert_eq!(b - a, i32::from(pair[0].to_f32() != pair[1].to_f32()), "{pair:?}");
    }
    assert_eq!(E4m3::NAN.ordinal(), None);
}

#[test]
fn e2m1_of_every_bf16() {
    let table = std::fs::read(fixture("e2m1_of_bf16.bin")).unwrap();
    for (v, from_table) in every_bf16().zip(table) {
        assert_eq!(e2m1::encode(v.to_f32()), from_table, "{:#06x}", v.to_bits());
        if !v.is_nan() {
            let sign = u8::from(v.is_sign_negative()) << 3;
            assert_eq!(reference::nvfp4::ties_to_even(v.to_f32().abs()) | sign, from_table, "{:#06x}", v.to_bits());
        }
    }
    for nibble in 0..16 {
        assert_eq!(e2m1::encode(e2m1::decode(nibble)), nibble);
    }
}

#[test]
fn bf16_rounding_is_that_of_half_with_one_nan() {
    let near = |v: bf16| {
        let bits = u32::from(v.to_bits()) << 16;
        [bits, bits + 1, bits + 0x7fff, bits + 0x8000, bits + 0x8001, bits + 0xffff]
    };
    for value in every_bf16().flat_map(near).map(f32::from_bits) {
        let expected = if value.is_nan() { 0x7fff } else { bf16::from_f32(value).to_bits() };
        assert_eq!(round(value).to_bits(), expected, "{:#010x}", value.to_bits());
    }
}
