//! f32 and f64 arithmetic: every rounding mode against rationals rounded by search.

mod support;

use std::ops::{Add, Div, Mul};

use num_rational::BigRational;
use num_traits::Zero;
use support::exact::{F32, F64, Form, MODES, Mode};
use support::values::{pairs, patterns, special, triples};
use support::{Snippet, one};

const NAN32: u64 = 0x7FFF_FFFF;

/// The result of an operation on finite operands whose exact result is not zero; other cases are decided by the caller.
fn rounded(form: Form, exact: &BigRational, mode: Mode) -> u64 {
    form.round(exact, mode, false)
}

fn zero(form: Form, negative: bool) -> u64 {
    if negative { form.sign_bit() } else { 0 }
}

fn negative(form: Form, bits: u64) -> bool {
    bits & form.sign_bit() != 0
}

fn canonical_nan(form: Form) -> u64 {
    if form.bits == 32 { NAN32 } else { 0x7FF8 << 48 }
}

fn add(form: Form, a: u64, b: u64, mode: Mode) -> u64 {
    if form.is_nan(a) || form.is_nan(b) {
        return canonical_nan(form);
    }
    match (form.is_infinite(a), form.is_infinite(b)) {
        (true, true) if a != b => return canonical_nan(form),
        (true, _) => return a,
        (_, true) => return b,
        _ => {}
    }
    let sum = form.value(a).add(form.value(b));
    if !sum.is_zero() {
        return rounded(form, &sum, mode);
    }
    // x + (-x) is +0 except toward minus infinity; two zeros of one sign keep it (IEEE 754, 6.3).
    let same_sign = negative(form, a) == negative(form, b);
    zero(form, if same_sign { negative(form, a) } else { mode == Mode::Down })
}

fn mul(form: Form, a: u64, b: u64, mode: Mode) -> u64 {
    let sign = negative(form, a) != negative(form, b);
    if form.is_nan(a) || form.is_nan(b) {
        return canonical_nan(form);
    }
    if form.is_infinite(a) || form.is_infinite(b) {
        let has_zero = [a, b].iter().any(|x| form.is_finite(*x) && form.value(*x).is_zero());
        return if has_zero { canonical_nan(form) } else { zero(form, sign) | form.infinity.unwrap() };
    }
    let product = form.value(a).mul(form.value(b));
    if product.is_zero() { zero(form, sign) } else { rounded(form, &product, mode) }
}

fn div(form: Form, a: u64, b: u64, mode: Mode) -> u64 {
    let sign = negative(form, a) != negative(form, b);
    let infinity = form.infinity.unwrap();
    if form.is_nan(a) || form.is_nan(b) || (form.is_infinite(a) && form.is_infinite(b)) {
        return canonical_nan(form);
    }
    if form.is_infinite(a) || form.is_infinite(b) {
        return zero(form, sign) | if form.is_infinite(a) { infinity } else { 0 };
    }
    let (x, y) = (form.value(a), form.value(b));
    match (x.is_zero(), y.is_zero()) {
        (true, true) => canonical_nan(form),
        (true, _) => zero(form, sign),
        (_, true) => zero(form, sign) | infinity,
        _ => rounded(form, &x.div(y), mode),
    }
}

fn fma(form: Form, a: u64, b: u64, c: u64, mode: Mode) -> u64 {
    let all_finite = [a, b, c].iter().all(|x| form.is_finite(*x));
    if !all_finite {
        // No rounding of the product can matter here: a finite product stays finite beside an infinity.
        let product = mul(form, a, b, Mode::Zero);
        return add(form, product, c, mode);
    }
    let product = form.value(a).mul(form.value(b));
    let sum = &product + form.value(c);
    if !sum.is_zero() {
        return rounded(form, &sum, mode);
    }
    let product_negative = negative(form, a) != negative(form, b);
    let same_sign = product_negative == negative(form, c);
    zero(form, if same_sign { product_negative } else { mode == Mode::Down })
}

fn ty(form: Form) -> String {
    format!("b{}", form.bits)
}

#[test]
fn sums_products_and_quotients_in_every_mode() {
    for (form, count) in [(F32, 800), (F64, 150)] {
        let ty = ty(form);
        let inputs = pairs(form, count, 21);
        for (suffix, mode) in MODES {
            let run = |op: &str| Snippet::new(&[&ty, &ty], &ty, &format!("{op}.{suffix}.f{} %d, %a0, %a1;", form.bits));
            run("add").agrees(&inputs, |x| add(form, x[0], x[1], mode));
            run("sub").agrees(&inputs, |x| {
                if form.is_nan(x[1]) { canonical_nan(form) } else { add(form, x[0], x[1] ^ form.sign_bit(), mode) }
            });
            run("mul").agrees(&inputs, |x| mul(form, x[0], x[1], mode));
            run("div").agrees(&inputs, |x| div(form, x[0], x[1], mode));
        }
    }
}

#[test]
fn fused_multiply_add_in_every_mode() {
    for (form, count) in [(F32, 900), (F64, 100)] {
        let ty = ty(form);
        let inputs = triples(form, count, 22, |a, b| mul(form, a, b, Mode::Nearest));
        for (suffix, mode) in MODES {
            let body = format!("fma.{suffix}.f{} %d, %a0, %a1, %a2;", form.bits);
            Snippet::new(&[&ty, &ty, &ty], &ty, &body).agrees(&inputs, |x| fma(form, x[0], x[1], x[2], mode));
        }
    }
}

#[test]
fn reciprocals_in_every_mode() {
    let one = 0x3F80_0000;
    let inputs: Vec<Vec<u64>> = patterns(F32, 1000, 23).into_iter().map(|a| vec![a]).collect();
    for (suffix, mode) in MODES {
        Snippet::new(&["b32"], "b32", &format!("rcp.{suffix}.f32 %d, %a0;"))
            .agrees(&inputs, |x| div(F32, one, x[0], mode));
    }
}

/// The root lies between neighbours whose squares enclose the operand.
#[test]
fn square_roots_in_every_mode() {
    for (form, count) in [(F32, 1000), (F64, 200)] {
        let inputs: Vec<Vec<u64>> = patterns(form, count, 24).into_iter().map(|a| vec![a & !form.sign_bit()]).collect();
        for (suffix, mode) in MODES {
            let snippet = Snippet::new(&[&ty(form)], &ty(form), &format!("sqrt.{suffix}.f{} %d, %a0;", form.bits));
            for (input, root) in inputs.iter().zip(snippet.run(&inputs)) {
                check_root(form, input[0], root, mode);
            }
        }
        let snippet = Snippet::new(&[&ty(form)], &ty(form), &format!("sqrt.rn.f{} %d, %a0;", form.bits));
        assert_eq!(
            snippet.run(&[vec![form.sign_bit()], vec![form.sign_bit() | 1]]),
            [form.sign_bit(), canonical_nan(form)]
        );
    }
}

fn check_root(form: Form, operand: u64, root: u64, mode: Mode) {
    if !form.is_finite(operand) {
        let want = if form.is_infinite(operand) { operand } else { canonical_nan(form) };
        assert_eq!(root, want);
        return;
    }
    let square = |bits: u64| form.value(bits).mul(form.value(bits));
    let exact = form.value(operand);
    let at_most = square(root) <= exact;
    let at_least = square(root) >= exact;
    match mode {
        Mode::Zero | Mode::Down => assert!(at_most && square(root + 1) > exact, "{operand:x} {root:x}"),
        Mode::Up => assert!(at_least && (root == 0 || square(root - 1) < exact), "{operand:x} {root:x}"),
        Mode::Nearest if root == 0 => assert!(exact.is_zero()),
        Mode::Nearest => {
            let two = BigRational::from_integer(2.into());
            let middle = |a: u64, b: u64| (form.value(a) + form.value(b)) / &two;
            let (below, above) = (middle(root - 1, root), middle(root, root + 1));
            assert!(&below * &below <= exact && exact <= &above * &above, "{operand:x} {root:x}");
        }
    }
}

#[test]
fn the_default_rounding_is_to_nearest() {
    for op in ["add", "sub", "mul"] {
        let inputs = pairs(F32, 50, 25);
        let plain = Snippet::new(&["b32", "b32"], "b32", &format!("{op}.f32 %d, %a0, %a1;")).run(&inputs);
        let named = Snippet::new(&["b32", "b32"], "b32", &format!("{op}.rn.f32 %d, %a0, %a1;")).run(&inputs);
        assert_eq!(plain, named);
    }
}

#[test]
fn hand_values() {
    let f = |x: f32| u64::from(x.to_bits());
    let two = ["b32", "b32"];
    // 2^23 + 0.5 is a tie: to even, up, down.
    let big = f(8_388_608.0);
    assert_eq!(one(&two, "b32", "add.rn.f32 %d, %a0, %a1;", &[big, f(0.5)]), big);
    assert_eq!(one(&two, "b32", "add.rp.f32 %d, %a0, %a1;", &[big, f(0.5)]), big + 1);
    assert_eq!(one(&two, "b32", "add.rm.f32 %d, %a0, %a1;", &[big, f(0.5)]), big);
    assert_eq!(one(&two, "b32", "add.rm.f32 %d, %a0, %a1;", &[f(1.0), f(-1.0)]), 0x8000_0000);
    // Subnormals are kept: the smallest one times one.
    assert_eq!(one(&two, "b32", "mul.f32 %d, %a0, %a1;", &[1, f(1.0)]), 1);
    assert_eq!(one(&two, "b32", "add.sat.f32 %d, %a0, %a1;", &[f(0.75), f(0.75)]), f(1.0));
    assert_eq!(one(&two, "b32", "sub.sat.f32 %d, %a0, %a1;", &[f(0.25), f(0.75)]), 0);
    assert_eq!(one(&two, "b32", "add.sat.f32 %d, %a0, %a1;", &[NAN32, f(0.75)]), 0);
    assert_eq!(one(&["b32"], "b32", "abs.f32 %d, %a0;", &[f(-2.0)]), f(2.0));
    assert_eq!(one(&["b32"], "b32", "neg.f32 %d, %a0;", &[f(0.0)]), f(-0.0));
    assert_eq!(one(&two, "b32", "copysign.f32 %d, %a0, %a1;", &[f(-0.0), f(3.0)]), f(-3.0));
}

#[test]
fn signs() {
    let inputs: Vec<Vec<u64>> = patterns(F32, 100, 30).into_iter().map(|a| vec![a]).collect();
    let number = |x: u64, bits: u64| if F32.is_nan(x) { NAN32 } else { bits };
    Snippet::new(&["b32"], "b32", "abs.f32 %d, %a0;").agrees(&inputs, |x| number(x[0], x[0] & 0x7FFF_FFFF));
    Snippet::new(&["b32"], "b32", "neg.f32 %d, %a0;").agrees(&inputs, |x| number(x[0], x[0] ^ 0x8000_0000));
}

#[test]
fn minimum_and_maximum() {
    let order = |x: u64| {
        let v = f32::from_bits(u32::try_from(x).unwrap());
        (v, u8::from(x >> 31 == 0))
    };
    let inputs = pairs(F32, 300, 26);
    for (op, largest) in [("min", false), ("max", true)] {
        for (suffix, nan_wins, xor) in
            [("", false, false), (".NaN", true, false), (".xorsign.abs", false, true), (".NaN.xorsign.abs", true, true)]
        {
            let body = format!("{op}{suffix}.f32 %d, %a0, %a1;");
            Snippet::new(&["b32", "b32"], "b32", &body).agrees(&inputs, |x| {
                let (a, b) = if xor { (x[0] & 0x7FFF_FFFF, x[1] & 0x7FFF_FFFF) } else { (x[0], x[1]) };
                let chosen = match (F32.is_nan(a), F32.is_nan(b)) {
                    (true, true) => NAN32,
                    (true, false) => {
                        if nan_wins {
                            NAN32
                        } else {
                            b
                        }
                    }
                    (false, true) => {
                        if nan_wins {
                            NAN32
                        } else {
                            a
                        }
                    }
                    _ if (order(a) > order(b)) == largest => a,
                    _ => b,
                };
                if xor && chosen != NAN32 { chosen | ((x[0] ^ x[1]) & 0x8000_0000) } else { chosen }
            });
        }
    }
}

#[test]
fn minimum_and_maximum_of_three() {
    let three = ["b32", "b32", "b32"];
    let f = |x: f32| u64::from(x.to_bits());
    let inputs = [f(2.0), f(-1.0), f(3.0)];
    assert_eq!(one(&three, "b32", "max.f32 %d, %a0, %a1, %a2;", &inputs), f(3.0));
    assert_eq!(one(&three, "b32", "min.f32 %d, %a0, %a1, %a2;", &inputs), f(-1.0));
    let with_nan = [f(2.0), 0x7FC0_0001, f(3.0)];
    assert_eq!(one(&three, "b32", "min.f32 %d, %a0, %a1, %a2;", &with_nan), f(2.0));
    assert_eq!(one(&three, "b32", "max.NaN.f32 %d, %a0, %a1, %a2;", &with_nan), NAN32);
}

#[test]
fn packed_pairs_are_two_scalars() {
    let low = 0xFFFF_FFFF;
    let inputs: Vec<Vec<u64>> = pairs(F64, 200, 27)
        .into_iter()
        .chain(special(F32).iter().map(|a| vec![*a << 32 | 0x3F80_0000, 0x4000_0000 << 32 | *a]))
        .collect();
    for (suffix, mode) in MODES {
        let run = |op: &str| Snippet::new(&["b64", "b64"], "b64", &format!("{op}.{suffix}.f32x2 %d, %a0, %a1;"));
        run("add")
            .agrees(&inputs, |x| add(F32, x[0] & low, x[1] & low, mode) | add(F32, x[0] >> 32, x[1] >> 32, mode) << 32);
        run("mul")
            .agrees(&inputs, |x| mul(F32, x[0] & low, x[1] & low, mode) | mul(F32, x[0] >> 32, x[1] >> 32, mode) << 32);
        let body = format!("fma.{suffix}.f32x2 %d, %a0, %a1, %a0;");
        Snippet::new(&["b64", "b64"], "b64", &body).agrees(&inputs, |x| {
            let part = |shift: u32| fma(F32, x[0] >> shift & low, x[1] >> shift & low, x[0] >> shift & low, mode);
            part(0) | part(32) << 32
        });
    }
}

type Relation = fn(f32, f32) -> bool;

#[test]
fn comparisons_with_and_without_order() {
    let inputs = pairs(F32, 200, 28);
    let table: [(&str, Relation); 6] = [
        ("eq", |a, b| a == b),
        ("ne", |a, b| a != b),
        ("lt", |a, b| a < b),
        ("le", |a, b| a <= b),
        ("gt", |a, b| a > b),
        ("ge", |a, b| a >= b),
    ];
    let value = |x: u64| f32::from_bits(u32::try_from(x).unwrap());
    for (op, f) in table {
        for (suffix, unordered) in [("", false), ("u", true)] {
            Snippet::new(&["b32", "b32"], "pred", &format!("setp.{op}{suffix}.f32 %d, %a0, %a1;")).agrees(
                &inputs,
                |x| {
                    let (a, b) = (value(x[0]), value(x[1]));
                    u64::from(if a.is_nan() || b.is_nan() { unordered } else { f(a, b) })
                },
            );
        }
    }
    for (op, want) in [("num", true), ("nan", false)] {
        Snippet::new(&["b32", "b32"], "pred", &format!("setp.{op}.f32 %d, %a0, %a1;"))
            .agrees(&inputs, |x| u64::from((value(x[0]).is_nan() || value(x[1]).is_nan()) != want));
    }
}

#[test]
fn properties() {
    let inputs: Vec<Vec<u64>> = patterns(F32, 100, 29).into_iter().map(|a| vec![a]).collect();
    let run = |op: &str, f: &dyn Fn(f32) -> bool| {
        Snippet::new(&["b32"], "pred", &format!("testp.{op}.f32 %d, %a0;"))
            .agrees(&inputs, |x| u64::from(f(f32::from_bits(u32::try_from(x[0]).unwrap()))));
    };
    run("finite", &|v| v.is_finite());
    run("notanumber", &|v| v.is_nan());
    run("normal", &|v| v.is_normal() || v == 0.0);
    run("subnormal", &|v| v.is_subnormal());
}
