//! `cvt`: all codes of the narrow formats, and f32 to everything against rationals, `half` and `float8`.

mod support;

use support::exact::{BF16, E2M1, E4M3, E5M2, F16, F32, F64, Form, MODES, Mode};
use support::values::{Random, integers, patterns, special};
use support::{Snippet, one};

fn single(values: impl IntoIterator<Item = u64>) -> Vec<Vec<u64>> {
    values.into_iter().map(|a| vec![a]).collect()
}

/// f32 values that matter to a narrow format: every code, every midpoint of neighbours, and the f32 beside each; plus specials.
fn around(form: Form, value: impl Fn(u64) -> f32) -> Vec<u64> {
    let mut list = special(F32);
    for code in 0..=form.max {
        let here = value(code);
        let next = if code < form.max { value(code + 1) } else { here + (here - value(code - 1)) };
        // The sum of neighbours may leave f32 where its half does not.
        for v in [here, here / 2.0 + next / 2.0] {
            let bits = u64::from(v.to_bits());
            list.extend([bits.saturating_sub(1), bits, bits + 1].iter().flat_map(|b| [*b, b | 1 << 31]));
        }
    }
    list
}

/// What rounding an f32 pattern to a format gives; NaN as the ISA says for the format.
fn to_narrow(form: Form, bits: u64, mode: Mode, saturate: bool, nan: u64) -> u64 {
    if F32.is_nan(bits) {
        return nan;
    }
    let sign = if bits >> 31 == 1 { form.sign_bit() } else { 0 };
    if F32.is_infinite(bits) {
        return sign | if saturate { form.max } else { form.infinity.unwrap() };
    }
    if bits & 0x7FFF_FFFF == 0 { sign } else { form.round(&F32.value(bits), mode, saturate) }
}

fn in_pairs(values: &[u64], seed: u64) -> Vec<Vec<u64>> {
    let mut random = Random(seed);
    values.iter().map(|a| vec![*a, values[usize::try_from(random.next() % values.len() as u64).unwrap()]]).collect()
}

fn e4m3(code: u64) -> f32 {
    float8::F8E4M3::from_bits(u8::try_from(code).unwrap()).to_f32()
}

fn e5m2(code: u64) -> f32 {
    float8::F8E5M2::from_bits(u8::try_from(code).unwrap()).to_f32()
}

const E2M1_VALUES: [f32; 8] = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];

#[test]
fn f32_to_the_packed_narrow_formats() {
    let cases: [(&str, &str, Form, Vec<u64>, u64); 3] = [
        ("e4m3x2", "b16", E4M3, around(E4M3, e4m3), 0x7F),
        ("e5m2x2", "b16", E5M2, around(E5M2, e5m2), 0x7F),
        ("e2m1x2", "b8", E2M1, around(E2M1, |c| E2M1_VALUES[usize::try_from(c).unwrap()]), 0x7),
    ];
    for (name, register, form, mut values, nan) in cases {
        values.extend(patterns(F32, 1000, 41));
        let half = form.bits;
        let inputs = in_pairs(&values, 42);
        let narrow = |bits: u64| to_narrow(form, bits, Mode::Nearest, true, nan);
        Snippet::new(&["b32", "b32"], register, &format!("cvt.rn.satfinite.{name}.f32 %d, %a0, %a1;"))
            .agrees(&inputs, |x| narrow(x[0]) << half | narrow(x[1]));
        let relu = |bits: u64| if narrow(bits) & form.sign_bit() != 0 { 0 } else { narrow(bits) };
        Snippet::new(&["b32", "b32"], register, &format!("cvt.rn.satfinite.relu.{name}.f32 %d, %a0, %a1;"))
            .agrees(&inputs, |x| relu(x[0]) << half | relu(x[1]));
    }
}

/// The way LLVM writes it for a register that is not 8 bits wide.
#[test]
fn e2m1_in_a_scope_of_its_own() {
    let body = "{ .reg .b8 t0, t1, t2, t3; cvt.rn.satfinite.e2m1x2.f32 t0, %a0, %a1; cvt.rn.satfinite.e2m1x2.f32 t1, %a1, %a0;\n\
                cvt.rn.satfinite.e2m1x2.f32 t2, %a0, %a0; cvt.rn.satfinite.e2m1x2.f32 t3, %a1, %a1; mov.b32 %d, {t0, t1, t2, t3}; }";
    let (three, minus_half) = (u64::from(3.0f32.to_bits()), u64::from((-0.5f32).to_bits()));
    // 3 is code 5, -0.5 code 9; the first operand is the upper nibble.
    assert_eq!(one(&["b32", "b32"], "b32", body, &[three, minus_half]), 0x99_55_95_59);
    let body = "{ .reg .b8 t0, t1; mov.b16 {t0, t1}, %a0; cvt.rn.f16x2.e2m1x2 %d, t1; }";
    assert_eq!(one(&["b16"], "b32", body, &[0x9512]), 0xB800_4200);
}

#[test]
fn every_narrow_code_to_f16() {
    let f16 = |v: f32| u64::from(half::f16::from_f32(v).to_bits());
    let both = |code: u64, f: &dyn Fn(u64) -> u64| f(code & 0xFF) | f(code >> 8) << 16;
    let inputs = single((0..=255u64).flat_map(|low| [0u64, 0x35, 0x7F, 0x80, 0xC1, 0xFF].map(|high| low | high << 8)));
    let decode = |v: f32| if v.is_nan() { 0x7FFF } else { f16(v) };
    Snippet::new(&["b16"], "b32", "cvt.rn.f16x2.e4m3x2 %d, %a0;").agrees(&inputs, |x| both(x[0], &|c| decode(e4m3(c))));
    Snippet::new(&["b16"], "b32", "cvt.rn.f16x2.e5m2x2 %d, %a0;").agrees(&inputs, |x| both(x[0], &|c| decode(e5m2(c))));
    let inputs = single(0..=255u64);
    let e2m1 = |c: u64| f16(E2M1_VALUES[usize::try_from(c & 7).unwrap()]) | (c & 8) << 12;
    Snippet::new(&["b8"], "b32", "cvt.rn.f16x2.e2m1x2 %d, %a0;")
        .agrees(&inputs, |x| e2m1(x[0] & 15) | e2m1(x[0] >> 4) << 16);
}

#[test]
fn every_f16_to_the_narrow_formats() {
    let inputs = single((0..=0xFFFFu64).map(|low| low | (low.wrapping_mul(0x9E37) & 0xFFFF) << 16));
    let value = |bits: u64| half::f16::from_bits(u16::try_from(bits).unwrap()).to_f32();
    let e4m3 = |bits: u64| match value(bits) {
        nan if nan.is_nan() => 0x7F,
        v => u64::from(float8::F8E4M3::from_f32(v.clamp(-448.0, 448.0)).to_bits()),
    };
    let e5m2 = |bits: u64| match value(bits) {
        nan if nan.is_nan() => 0x7F,
        v => u64::from(float8::F8E5M2::from_f32(v.clamp(-57344.0, 57344.0)).to_bits()),
    };
    let both = |x: u64, f: &dyn Fn(u64) -> u64| f(x & 0xFFFF) | f(x >> 16) << 8;
    Snippet::new(&["b32"], "b16", "cvt.rn.satfinite.e4m3x2.f16x2 %d, %a0;").agrees(&inputs, |x| both(x[0], &e4m3));
    Snippet::new(&["b32"], "b16", "cvt.rn.satfinite.e5m2x2.f16x2 %d, %a0;").agrees(&inputs, |x| both(x[0], &e5m2));
}

/// Every f16 and bf16 to f32 and f64, exactly.
#[test]
fn every_half_widens_exactly() {
    let inputs = single(0..=0xFFFFu64);
    for (name, nan, value) in [
        ("f16", (|_| 0x7FFF_FFFF) as fn(u64) -> u64, (|b| half::f16::from_bits(b).to_f64()) as fn(u16) -> f64),
        ("bf16", |bits| bits << 16, |b| half::bf16::from_bits(b).to_f64()),
    ] {
        let wide = |x: &[u64]| value(u16::try_from(x[0]).unwrap());
        #[allow(clippy::cast_possible_truncation, reason = "halves are exact in f32")]
        Snippet::new(&["b16"], "b32", &format!("cvt.f32.{name} %d, %a0;"))
            .agrees(&inputs, |x| if wide(x).is_nan() { nan(x[0]) } else { u64::from((wide(x) as f32).to_bits()) });
        Snippet::new(&["b16"], "b64", &format!("cvt.f64.{name} %d, %a0;"))
            .agrees(&inputs, |x| if wide(x).is_nan() { 0x7FF8 << 48 } else { wide(x).to_bits() });
    }
    let inputs = single(special(F32));
    Snippet::new(&["b32"], "b32", "cvt.f32.f32 %d, %a0;").agrees(&inputs, |x| x[0]);
}

#[test]
fn f32_to_half() {
    for (name, form) in [("f16", F16), ("bf16", BF16)] {
        let mut values = patterns(F32, 500, 43);
        // Ties and their neighbours in bf16 (low half 0x8000) and f16 (low 13 bits 0x1000).
        let mut random = Random(44);
        values.extend((0..150).flat_map(|_| {
            let high = random.next() & 0xFFFF_0000;
            [0x7FFF, 0x8000, 0x8001, 0x0FFF, 0x1000, 0x1001, 0x3000].map(|low| high | low)
        }));
        let inputs = in_pairs(&values, 45);
        for (suffix, mode) in &MODES[..2] {
            for (satfinite, saturate) in [("", false), (".satfinite", true)] {
                let narrow = |bits: u64| to_narrow(form, bits, *mode, saturate, 0x7FFF);
                Snippet::new(&["b32", "b32"], "b16", &format!("cvt.{suffix}{satfinite}.{name}.f32 %d, %a0;"))
                    .agrees(&inputs, |x| narrow(x[0]));
                Snippet::new(&["b32", "b32"], "b32", &format!("cvt.{suffix}{satfinite}.{name}x2.f32 %d, %a0, %a1;"))
                    .agrees(&inputs, |x| narrow(x[0]) << 16 | narrow(x[1]));
                let relu = |bits: u64| if narrow(bits) & 0x8000 != 0 { 0 } else { narrow(bits) };
                Snippet::new(
                    &["b32", "b32"],
                    "b32",
                    &format!("cvt.{suffix}.relu{satfinite}.{name}x2.f32 %d, %a0, %a1;"),
                )
                .agrees(&inputs, |x| relu(x[0]) << 16 | relu(x[1]));
            }
        }
    }
}

/// The same against the `half` crate, whose code is its own.
#[test]
fn f32_to_half_agrees_with_the_half_crate() {
    let inputs = single(patterns(F32, 20_000, 46).into_iter().filter(|x| !F32.is_nan(*x)));
    let value = |x: &[u64]| f32::from_bits(u32::try_from(x[0]).unwrap());
    Snippet::new(&["b32"], "b16", "cvt.rn.bf16.f32 %d, %a0;")
        .agrees(&inputs, |x| half::bf16::from_f32(value(x)).to_bits().into());
    Snippet::new(&["b32"], "b16", "cvt.rn.f16.f32 %d, %a0;")
        .agrees(&inputs, |x| half::f16::from_f32(value(x)).to_bits().into());
}

#[test]
fn between_f32_and_f64() {
    let inputs = single(patterns(F64, 1500, 47).into_iter().chain(patterns(F32, 500, 48).iter().map(|x| {
        let wide = f64::from(f32::from_bits(u32::try_from(*x).unwrap())).to_bits();
        wide + (x & 3)
    })));
    for (suffix, mode) in MODES {
        Snippet::new(&["b64"], "b32", &format!("cvt.{suffix}.f32.f64 %d, %a0;")).agrees(&inputs, |x| {
            let sign = x[0] >> 32 & 0x8000_0000;
            if F64.is_nan(x[0]) {
                0x7FFF_FFFF
            } else if F64.is_infinite(x[0]) {
                sign | 0x7F80_0000
            } else if x[0] << 1 == 0 {
                sign
            } else {
                F32.round(&F64.value(x[0]), mode, false)
            }
        });
    }
    let inputs = single(patterns(F32, 500, 49));
    Snippet::new(&["b32"], "b64", "cvt.f64.f32 %d, %a0;").agrees(&inputs, |x| {
        let value = f32::from_bits(u32::try_from(x[0]).unwrap());
        if value.is_nan() { 0x7FF8 << 48 } else { f64::from(value).to_bits() }
    });
}

#[test]
fn integers_to_floats() {
    use num_bigint::BigInt;
    use num_rational::BigRational;
    for (ty, bits, signed) in [
        ("u32", 32, false),
        ("s32", 32, true),
        ("u64", 64, false),
        ("s64", 64, true),
        ("u16", 16, false),
        ("s16", 16, true),
    ] {
        let inputs = single(integers(bits, 60, 50).into_iter().chain(
            (0..bits).flat_map(|b| [1u64 << b, (1u64 << b) - 1, (1u64 << b) + 1]).map(|v| v & u64::MAX >> (64 - bits)),
        ));
        for (float, form, register) in
            [("f32", F32, "b32"), ("f64", F64, "b64"), ("f16", F16, "b16"), ("bf16", BF16, "b16")]
        {
            for (suffix, mode) in MODES {
                let body = format!("cvt.{suffix}.{float}.{ty} %d, %a0;");
                Snippet::new(&[&format!("b{bits}")], register, &body).agrees(&inputs, |x| {
                    let value = if signed {
                        i128::from((x[0] << (64 - bits)).cast_signed() >> (64 - bits))
                    } else {
                        i128::from(x[0])
                    };
                    if value == 0 { 0 } else { form.round(&BigRational::from(BigInt::from(value)), mode, false) }
                });
            }
        }
    }
}

type Rounding<T> = fn(T) -> T;

#[test]
fn floats_to_integers() {
    let mut values = patterns(F32, 800, 51);
    values.extend(
        [0.5f32, 1.5, 2.5, -0.5, -1.5, -2.5, 2147483648.0, -2147483648.0, 4294967296.0, 255.5, 65535.5, 9.2e18, 1.9e19]
            .map(|v| u64::from(v.to_bits())),
    );
    let inputs = single(values);
    let exact: [(&str, Rounding<f64>); 4] =
        [("rni", f64::round_ties_even), ("rzi", f64::trunc), ("rmi", f64::floor), ("rpi", f64::ceil)];
    for (suffix, round) in exact {
        for (ty, bits, low, high) in [
            ("u8", 8, 0i128, 255i128),
            ("s8", 8, -128, 127),
            ("u16", 16, 0, 65535),
            ("s16", 16, -32768, 32767),
            ("u32", 32, 0, 0xFFFF_FFFF),
            ("s32", 32, -(1 << 31), (1 << 31) - 1),
            ("u64", 64, 0, (1 << 64) - 1),
            ("s64", 64, -(1 << 63), (1 << 63) - 1),
        ] {
            let register = if bits == 8 { "b32".to_owned() } else { format!("b{bits}") };
            let body = format!("cvt.{suffix}.{ty}.f32 %d, %a0;");
            Snippet::new(&["b32"], &register, &body).agrees(&inputs, |x| {
                let value = f64::from(f32::from_bits(u32::try_from(x[0]).unwrap()));
                let mask = if bits == 64 {
                    u64::MAX
                } else if bits == 8 && low < 0 {
                    0xFFFF_FFFF
                } else {
                    u64::MAX >> (64 - bits)
                };
                if value.is_nan() {
                    return if bits == 64 { 1 << 63 } else { 0 };
                }
                // f64 to i128 saturates in Rust, and f32 values are exact in f64.
                #[allow(clippy::cast_possible_truncation, reason = "saturates")]
                let integer = (round(value) as i128).clamp(low, high);
                u64::try_from(integer & i128::from(mask)).unwrap()
            });
        }
    }
    assert_eq!(one(&["b64"], "b32", "cvt.rzi.s32.f64 %d, %a0;", &[f64::NAN.to_bits()]), 0x8000_0000);
}

#[test]
fn integral_rounding_keeps_the_type() {
    let inputs = single(patterns(F32, 500, 52).into_iter().filter(|x| !F32.is_nan(*x)));
    let table: [(&str, Rounding<f32>); 4] =
        [("rni", f32::round_ties_even), ("rzi", f32::trunc), ("rmi", f32::floor), ("rpi", f32::ceil)];
    for (suffix, round) in table {
        Snippet::new(&["b32"], "b32", &format!("cvt.{suffix}.f32.f32 %d, %a0;"))
            .agrees(&inputs, |x| u64::from(round(f32::from_bits(u32::try_from(x[0]).unwrap())).to_bits()));
    }
    let half = |v: f32| u64::from(v.to_bits());
    assert_eq!(one(&["b32"], "b32", "cvt.sat.f32.f32 %d, %a0;", &[half(1.5)]), half(1.0));
    assert_eq!(one(&["b32"], "b32", "cvt.sat.f32.f32 %d, %a0;", &[half(-1.5)]), 0);
    assert_eq!(one(&["b32"], "b32", "cvt.sat.f32.f32 %d, %a0;", &[0x7FC0_0000]), 0);
}

#[test]
fn between_integers() {
    let inputs = single(integers(64, 100, 53));
    let sign = |x: u64, bits: u32| ((x << (64 - bits)).cast_signed() >> (64 - bits)).cast_unsigned();
    Snippet::new(&["b32"], "b64", "cvt.s64.s32 %d, %a0;").agrees(&inputs, |x| sign(x[0] & 0xFFFF_FFFF, 32));
    Snippet::new(&["b32"], "b64", "cvt.u64.u32 %d, %a0;").agrees(&inputs, |x| x[0] & 0xFFFF_FFFF);
    Snippet::new(&["b64"], "b32", "cvt.u32.u64 %d, %a0;").agrees(&inputs, |x| x[0] & 0xFFFF_FFFF);
    Snippet::new(&["b32"], "b32", "cvt.s32.s8 %d, %a0;").agrees(&inputs, |x| sign(x[0], 8) & 0xFFFF_FFFF);
    Snippet::new(&["b32"], "b32", "cvt.s32.s16 %d, %a0;").agrees(&inputs, |x| sign(x[0], 16) & 0xFFFF_FFFF);
    Snippet::new(&["b32"], "b16", "cvt.u16.u8 %d, %a0;").agrees(&inputs, |x| x[0] & 0xFF);
    // A narrow signed result fills its wider register.
    Snippet::new(&["b32"], "b32", "cvt.s8.s32 %d, %a0;").agrees(&inputs, |x| sign(x[0], 8) & 0xFFFF_FFFF);
    Snippet::new(&["b32"], "b32", "cvt.sat.u8.s32 %d, %a0;")
        .agrees(&inputs, |x| u64::try_from(sign(x[0], 32).cast_signed().clamp(0, 255)).unwrap());
    Snippet::new(&["b32"], "b32", "cvt.sat.s16.u32 %d, %a0;").agrees(&inputs, |x| (x[0] & 0xFFFF_FFFF).min(0x7FFF));
}
