//! f16 and bf16 arithmetic, scalar and packed.

mod support;

use num_traits::Zero;
use support::Snippet;
use support::exact::{BF16, F16, Form, Mode};
use support::values::{Random, pairs, special, triples};

const NAN: u64 = 0x7FFF;

fn negative(bits: u64) -> bool {
    bits & 0x8000 != 0
}

/// `a * b + c` with one rounding; `add` and `mul` are `fma` with 1 and with a zero of the product's sign.
fn fma(form: Form, a: u64, b: u64, c: u64) -> u64 {
    let sign = negative(a) != negative(b);
    let infinity = |negative: bool| form.infinity.unwrap() | if negative { 0x8000 } else { 0 };
    if [a, b, c].iter().any(|x| form.is_nan(*x)) {
        return NAN;
    }
    if form.is_infinite(a) || form.is_infinite(b) {
        let zero = [a, b].iter().any(|x| x & 0x7FFF == 0);
        let opposite = form.is_infinite(c) && negative(c) != sign;
        return if zero || opposite { NAN } else { infinity(sign) };
    }
    if form.is_infinite(c) {
        return c;
    }
    let sum = form.value(a) * form.value(b) + form.value(c);
    if sum.is_zero() {
        return if sign && negative(c) { 0x8000 } else { 0 };
    }
    form.round(&sum, Mode::Nearest, false)
}

fn mul(form: Form, a: u64, b: u64) -> u64 {
    fma(form, a, b, if negative(a) != negative(b) { 0x8000 } else { 0 })
}

fn one_of(form: Form) -> u64 {
    u64::try_from(form.bias).unwrap() << form.mantissa
}

const FORMATS: [(&str, Form); 2] = [("f16", F16), ("bf16", BF16)];

fn halves(inputs: &[Vec<u64>], seed: u64) -> Vec<Vec<u64>> {
    // The upper halves are another case of the list.
    let mut random = Random(seed);
    inputs
        .iter()
        .map(|low| {
            let high = &inputs[usize::try_from(random.next() % inputs.len() as u64).unwrap()];
            low.iter().zip(high).map(|(l, h)| l | h << 16).collect()
        })
        .collect()
}

/// Checks the scalar and the packed form.
fn both(name: &str, op: &str, operands: usize, inputs: &[Vec<u64>], f: impl Fn(&[u64]) -> u64) {
    let list: String = (0..operands).map(|index| format!(", %a{index}")).collect();
    let scalar = vec!["b16"; operands];
    Snippet::new(&scalar, "b16", &format!("{op}.{name} %d{list};")).agrees(inputs, &f);
    let packed = vec!["b32"; operands];
    Snippet::new(&packed, "b32", &format!("{op}.{name}x2 %d{list};")).agrees(&halves(inputs, 31), |x| {
        let part = |shift: u32| f(&x.iter().map(|v| v >> shift & 0xFFFF).collect::<Vec<u64>>());
        part(0) | part(16) << 16
    });
}

#[test]
fn sums_and_products() {
    for (name, form) in FORMATS {
        let inputs = pairs(form, 1000, 32);
        let one = one_of(form);
        both(name, "add", 2, &inputs, |x| fma(form, x[0], one, x[1]));
        both(name, "add.rn", 2, &inputs, |x| fma(form, x[0], one, x[1]));
        both(name, "sub", 2, &inputs, |x| if form.is_nan(x[1]) { NAN } else { fma(form, x[0], one, x[1] ^ 0x8000) });
        both(name, "mul", 2, &inputs, |x| mul(form, x[0], x[1]));
    }
}

#[test]
fn fused_multiply_add() {
    for (name, form) in FORMATS {
        let inputs = triples(form, 600, 33, |a, b| mul(form, a, b));
        both(name, "fma.rn", 3, &inputs, |x| fma(form, x[0], x[1], x[2]));
        both(name, "fma.rn.relu", 3, &inputs, |x| match fma(form, x[0], x[1], x[2]) {
            negative if negative & 0x8000 != 0 => 0,
            other => other,
        });
    }
}

#[test]
fn minimum_maximum_and_signs() {
    for (name, form) in FORMATS {
        let inputs = pairs(form, 300, 34);
        // Patterns as signed integers are in the order of their values, zeros and all.
        let order =
            |x: u64| if negative(x) { -i64::try_from(x & 0x7FFF).unwrap() - 1 } else { i64::try_from(x).unwrap() };
        let pick = |a: u64, b: u64, largest: bool, nan_wins: bool| match (form.is_nan(a), form.is_nan(b)) {
            (true, true) => NAN,
            (false, false) => {
                if (order(a) > order(b)) == largest {
                    a
                } else {
                    b
                }
            }
            _ if nan_wins => NAN,
            (true, false) => b,
            (false, true) => a,
        };
        for (op, largest) in [("min", false), ("max", true)] {
            both(name, op, 2, &inputs, |x| pick(x[0], x[1], largest, false));
            both(name, &format!("{op}.NaN"), 2, &inputs, |x| pick(x[0], x[1], largest, true));
            for (suffix, nan_wins) in [(".xorsign.abs", false), (".NaN.xorsign.abs", true)] {
                both(name, &format!("{op}{suffix}"), 2, &inputs, |x| {
                    match pick(x[0] & 0x7FFF, x[1] & 0x7FFF, largest, nan_wins) {
                        NAN => NAN,
                        magnitude => magnitude | ((x[0] ^ x[1]) & 0x8000),
                    }
                });
            }
        }
        let singles: Vec<Vec<u64>> = special(form).into_iter().map(|x| vec![x]).collect();
        both(name, "abs", 1, &singles, |x| if form.is_nan(x[0]) { NAN } else { x[0] & 0x7FFF });
        both(name, "neg", 1, &singles, |x| if form.is_nan(x[0]) { NAN } else { x[0] ^ 0x8000 });
    }
}

type Relation = fn(f32, f32) -> bool;

#[test]
fn comparisons() {
    for (name, form) in FORMATS {
        let inputs = pairs(form, 200, 35);
        let value = |x: u64| {
            if name == "f16" {
                half::f16::from_bits(u16::try_from(x).unwrap()).to_f32()
            } else {
                half::bf16::from_bits(u16::try_from(x).unwrap()).to_f32()
            }
        };
        let one = one_of(form);
        let table: [(&str, Relation); 8] = [
            ("eq", |a, b| a == b),
            ("ne", |a, b| a.partial_cmp(&b).is_some_and(|order| order.is_ne())),
            ("lt", |a, b| a < b),
            ("le", |a, b| a <= b),
            ("gt", |a, b| a > b),
            ("ge", |a, b| a >= b),
            ("neu", |a, b| a != b),
            ("ltu", |a, b| a.partial_cmp(&b).is_none_or(|order| order.is_lt())),
        ];
        for (op, f) in table {
            let holds = |x: &[u64], shift: u32| f(value(x[0] >> shift & 0xFFFF), value(x[1] >> shift & 0xFFFF));
            Snippet::new(&["b16", "b16"], "pred", &format!("setp.{op}.{name} %d, %a0, %a1;"))
                .agrees(&inputs, |x| u64::from(holds(x, 0)));
            let packed = halves(&inputs, 36);
            let each = |x: &[u64], set: u64| (u64::from(holds(x, 0)) * set) | ((u64::from(holds(x, 16)) * set) << 16);
            let words = ["b32", "b32"];
            let body = format!(
                "setp.{op}.{name}x2 %p|%q, %a0, %a1;\nselp.b32 %t32a, 1, 0, %p;\nselp.b32 %t32b, 65536, 0, %q;\nor.b32 %d, %t32a, %t32b;"
            );
            Snippet::new(&words, "b32", &body).agrees(&packed, |x| each(x, 1));
            Snippet::new(&words, "b32", &format!("set.{op}.{name}x2.{name}x2 %d, %a0, %a1;"))
                .agrees(&packed, |x| each(x, one));
            Snippet::new(&words, "b32", &format!("set.{op}.u32.{name}x2 %d, %a0, %a1;"))
                .agrees(&packed, |x| each(x, 0xFFFF));
        }
    }
}
