//! Integer arithmetic, logic and shifts against the ISA's definitions worked out in wider host integers, bit by bit.

mod support;

use support::values::{integer_pairs, integers};
use support::{Snippet, one};

fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

fn signed(value: u64, bits: u32) -> i128 {
    let value = i128::from(value & mask(bits));
    if value >> (bits - 1) & 1 == 1 { value - (1 << bits) } else { value }
}

fn low(value: i128, bits: u32) -> u64 {
    (value & i128::from(mask(bits))).try_into().expect("masked")
}

fn b(bits: u32) -> String {
    format!("b{bits}")
}

fn check2(bits: u32, op: &str, f: impl Fn(u64, u64) -> u64) {
    let ty = b(bits);
    let snippet = Snippet::new(&[&ty, &ty], &ty, &format!("{op} %d, %a0, %a1;"));
    snippet.agrees(&integer_pairs(bits, 8, 1), |x| f(x[0], x[1]));
}

#[test]
fn two_operands_in_every_width_and_signedness() {
    for bits in [16, 32, 64] {
        let value = |is_signed: bool, x: u64| if is_signed { signed(x, bits) } else { i128::from(x) };
        for (prefix, is_signed) in [("u", false), ("s", true)] {
            let v = |x| value(is_signed, x);
            check2(bits, &format!("add.{prefix}{bits}"), |a, b| low(v(a) + v(b), bits));
            check2(bits, &format!("sub.{prefix}{bits}"), |a, b| low(v(a) - v(b), bits));
            check2(bits, &format!("min.{prefix}{bits}"), |a, b| low(v(a).min(v(b)), bits));
            check2(bits, &format!("max.{prefix}{bits}"), |a, b| low(v(a).max(v(b)), bits));
            check2(bits, &format!("mul.lo.{prefix}{bits}"), |a, b| {
                low(
                    i128::from(a & 0xFFFF_FFFF) * i128::from(b & 0xFFFF_FFFF)
                        + ((i128::from(a >> 32) * i128::from(b & 0xFFFF_FFFF)
                            + i128::from(b >> 32) * i128::from(a & 0xFFFF_FFFF))
                            << 32),
                    bits,
                )
            });
        }
    }
}

#[test]
fn high_and_wide_products() {
    for bits in [16, 32, 64] {
        check2(bits, &format!("mul.hi.s{bits}"), |a, b| low((signed(a, bits) * signed(b, bits)) >> bits, bits));
        check2(bits, &format!("mul.hi.u{bits}"), |a, b| {
            u64::try_from((u128::from(a) * u128::from(b)) >> bits).expect("fits")
        });
    }
    for bits in [16, 32] {
        let (narrow, wide) = (b(bits), b(2 * bits));
        let snippet =
            |ty: &str| Snippet::new(&[&narrow, &narrow], &wide, &format!("mul.wide.{ty}{bits} %d, %a0, %a1;"));
        snippet("u").agrees(&integer_pairs(bits, 8, 2), |x| x[0] * x[1]);
        snippet("s").agrees(&integer_pairs(bits, 8, 2), |x| low(signed(x[0], bits) * signed(x[1], bits), 2 * bits));
    }
}

#[test]
fn multiply_add() {
    let cases: Vec<Vec<u64>> =
        integer_pairs(32, 6, 3).into_iter().map(|x| vec![x[0], x[1], x[0] ^ x[1] << 3 & mask(32)]).collect();
    let word = ["b32", "b32", "b32"];
    Snippet::new(&word, "b32", "mad.lo.s32 %d, %a0, %a1, %a2;")
        .agrees(&cases, |x| (x[0].wrapping_mul(x[1]).wrapping_add(x[2])) & mask(32));
    Snippet::new(&word, "b32", "mad.hi.u32 %d, %a0, %a1, %a2;")
        .agrees(&cases, |x| (((x[0] * x[1]) >> 32) + x[2]) & mask(32));
    Snippet::new(&word, "b32", "mad.hi.sat.s32 %d, %a0, %a1, %a2;").agrees(&cases, |x| {
        let sum = ((signed(x[0], 32) * signed(x[1], 32)) >> 32) + signed(x[2], 32);
        low(sum.clamp(-(1 << 31), (1 << 31) - 1), 32)
    });
    Snippet::new(&["b32", "b32", "b64"], "b64", "mad.wide.s32 %d, %a0, %a1, %a2;")
        .agrees(&cases, |x| low(signed(x[0], 32) * signed(x[1], 32) + i128::from(x[2]), 64));
    Snippet::new(&word, "b32", "sad.s32 %d, %a0, %a1, %a2;")
        .agrees(&cases, |x| low((signed(x[0], 32) - signed(x[1], 32)).abs() + i128::from(x[2]), 32));
    Snippet::new(&word, "b32", "mad24.lo.u32 %d, %a0, %a1, %a2;")
        .agrees(&cases, |x| ((x[0] & 0xFF_FFFF) * (x[1] & 0xFF_FFFF) + x[2]) & mask(32));
    Snippet::new(&word, "b32", "mul24.hi.u32 %d, %a0, %a1;")
        .agrees(&cases, |x| (((x[0] & 0xFF_FFFF) * (x[1] & 0xFF_FFFF)) >> 16) & mask(32));
}

#[test]
fn division() {
    for bits in [16, 32, 64] {
        let ty = b(bits);
        let cases: Vec<Vec<u64>> = integer_pairs(bits, 8, 4).into_iter().filter(|x| x[1] != 0).collect();
        let run = |op: &str, f: &dyn Fn(u64, u64) -> u64| {
            Snippet::new(&[&ty, &ty], &ty, &format!("{op}{bits} %d, %a0, %a1;")).agrees(&cases, |x| f(x[0], x[1]));
        };
        run("div.u", &|a, b| a / b);
        run("rem.u", &|a, b| a % b);
        run("div.s", &|a, b| low(signed(a, bits) / signed(b, bits), bits));
        run("rem.s", &|a, b| low(signed(a, bits) % signed(b, bits), bits));
    }
}

#[test]
fn saturating_and_relu_forms() {
    let clamp = |v: i128| low(v.clamp(-(1 << 31), (1 << 31) - 1), 32);
    check2(32, "add.sat.s32", |a, b| clamp(signed(a, 32) + signed(b, 32)));
    check2(32, "sub.sat.s32", |a, b| clamp(signed(a, 32) - signed(b, 32)));
    check2(32, "max.relu.s32", |a, b| low(signed(a, 32).max(signed(b, 32)).max(0), 32));
    check2(32, "min.relu.s32", |a, b| low(signed(a, 32).min(signed(b, 32)).max(0), 32));
    assert_eq!(one(&["b32"], "b32", "abs.s32 %d, %a0;", &[0xFFFF_FFFF]), 1);
    assert_eq!(one(&["b32"], "b32", "neg.s32 %d, %a0;", &[1]), 0xFFFF_FFFF);
    assert_eq!(one(&["b16"], "b16", "neg.s16 %d, %a0;", &[1]), 0xFFFF);
}

#[test]
fn packed_halves() {
    let halves = |x: u64| [x & 0xFFFF, x >> 16];
    let both = |a: u64, b: u64, f: &dyn Fn(u64, u64) -> u64| {
        let (a, b) = (halves(a), halves(b));
        f(a[0], b[0]) & 0xFFFF | (f(a[1], b[1]) & 0xFFFF) << 16
    };
    let s = |x: u64| signed(x, 16);
    check2(32, "add.u16x2", |a, b| both(a, b, &|x, y| x + y));
    check2(32, "min.u16x2", |a, b| both(a, b, &|x, y| x.min(y)));
    check2(32, "max.u16x2", |a, b| both(a, b, &|x, y| x.max(y)));
    check2(32, "min.s16x2", |a, b| both(a, b, &|x, y| low(s(x).min(s(y)), 16)));
    check2(32, "max.s16x2", |a, b| both(a, b, &|x, y| low(s(x).max(s(y)), 16)));
    check2(32, "max.relu.s16x2", |a, b| both(a, b, &|x, y| low(s(x).max(s(y)).max(0), 16)));
}

#[test]
fn carries_chain() {
    let body = "mov.b64 {%t32a, %t32b}, %a0;\nmov.b64 {%t32c, %ux}, %a1;\nadd.cc.u32 %t32a, %t32a, %t32c;\naddc.u32 %t32b, %t32b, %ux;\nmov.b64 %d, {%t32a, %t32b};";
    Snippet::new(&["b64", "b64"], "b64", body).agrees(&integer_pairs(64, 8, 5), |x| x[0].wrapping_add(x[1]));
    let body = body.replace("add.cc", "sub.cc").replace("addc", "subc");
    Snippet::new(&["b64", "b64"], "b64", &body).agrees(&integer_pairs(64, 8, 6), |x| x[0].wrapping_sub(x[1]));
    // A 64-bit product from 32-bit pieces: the carry of mad.lo.cc goes into madc.hi.
    let body = "mov.b64 {%t32a, %t32b}, %a0;\nmov.b64 {%t32c, %ux}, %a1;\nmul.lo.u32 %vx, %t32a, %t32c;\nmul.hi.u32 %wx, %t32a, %t32c;\n\
                mad.lo.cc.u32 %wx, %t32b, %t32c, %wx;\nmadc.hi.u32 %count, %t32b, %t32c, 0;\nmad.lo.cc.u32 %wx, %t32a, %ux, %wx;\n\
                madc.hi.u32 %count, %t32a, %ux, %count;\nmad.lo.u32 %count, %t32b, %ux, %count;\nmov.b64 %d, {%wx, %count};";
    Snippet::new(&["b64", "b64"], "b64", body).agrees(&integer_pairs(64, 8, 7), |x| {
        u64::try_from((u128::from(x[0]) * u128::from(x[1])) >> 32 & u128::from(u64::MAX)).expect("masked")
    });
}

#[test]
fn shifts_clamp_their_amount() {
    for bits in [16, 32, 64] {
        let ty = b(bits);
        let amounts = [0, 1, 5, 15, 16, 17, 31, 32, 33, 63, 64, 65, 0xFFFF_FFFF];
        let cases: Vec<Vec<u64>> = integers(bits, 8, 8).iter().flat_map(|a| amounts.map(|n| vec![*a, n])).collect();
        let run = |op: &str, f: &dyn Fn(u64, u64) -> u64| {
            Snippet::new(&[&ty, "b32"], &ty, &format!("{op}{bits} %d, %a0, %a1;")).agrees(&cases, |x| f(x[0], x[1]));
        };
        let wide = u64::from(bits);
        run("shl.b", &|a, n| if n >= wide { 0 } else { a << n & mask(bits) });
        run("shr.u", &|a, n| if n >= wide { 0 } else { a >> n });
        run("shr.b", &|a, n| if n >= wide { 0 } else { a >> n });
        run("shr.s", &|a, n| low(signed(a, bits) >> n.min(wide), bits));
    }
}

#[test]
fn funnel_shifts() {
    let amounts = [0u64, 1, 7, 31, 32, 33, 40, 0xFFFF_FFFF];
    let cases: Vec<Vec<u64>> =
        integer_pairs(32, 4, 9).into_iter().flat_map(|x| amounts.map(|n| vec![x[0], x[1], n])).collect();
    let run = |mode: &str, f: &dyn Fn(u128, u64) -> u128| {
        Snippet::new(&["b32", "b32", "b32"], "b32", &format!("shf.{mode}.b32 %d, %a0, %a1, %a2;"))
            .agrees(&cases, |x| u64::try_from(f(u128::from(x[1] << 32 | x[0]), x[2]) & 0xFFFF_FFFF).expect("masked"));
    };
    run("l.wrap", &|v, n| v << (n & 31) >> 32);
    run("r.wrap", &|v, n| v >> (n & 31));
    run("l.clamp", &|v, n| v << n.min(32) >> 32);
    run("r.clamp", &|v, n| v >> n.min(32));
}

#[test]
fn bit_counts() {
    for bits in [32, 64] {
        let ty = b(bits);
        let cases: Vec<Vec<u64>> = integers(bits, 40, 10).into_iter().map(|a| vec![a]).collect();
        let run = |op: &str, result: &str, f: &dyn Fn(u64) -> u64| {
            Snippet::new(&[&ty], result, &format!("{op}{bits} %d, %a0;")).agrees(&cases, |x| f(x[0]));
        };
        let bit = |a: u64, i: u32| a >> i & 1;
        run("popc.b", "b32", &|a| (0..bits).map(|i| bit(a, i)).sum());
        run("clz.b", "b32", &|a| u64::from((0..bits).rev().take_while(|i| bit(a, *i) == 0).count() as u32));
        run("brev.b", &ty, &|a| (0..bits).fold(0, |r, i| r | bit(a, i) << (bits - 1 - i)));
        let highest = |a: u64| (0..bits).rev().find(|i| bit(a, *i) == 1).map_or(0xFFFF_FFFF, u64::from);
        let flipped = move |a: u64| if bit(a, bits - 1) == 1 { !a & mask(bits) } else { a };
        run("bfind.u", "b32", &highest);
        run("bfind.s", "b32", &|a| highest(flipped(a)));
        run("bfind.shiftamt.u", "b32", &|a| match highest(a) {
            0xFFFF_FFFF => 0xFFFF_FFFF,
            at => u64::from(bits - 1) - at,
        });
        run("not.b", &ty, &|a| !a & mask(bits));
        run("cnot.b", &ty, &|a| u64::from(a == 0));
    }
}

/// The ISA's own loops.
#[test]
fn bit_fields() {
    for bits in [32u32, 64] {
        // Above 255 the 64-bit forms have no result (see `traps_and_undefined_results`).
        let last = if bits == 32 { 256 + 3 } else { 66 };
        let amounts = [0u64, 1, 4, 8, 17, 31, 32, 33, 63, 64, 65, 200, 255, last];
        let ty = b(bits);
        let msb = u64::from(bits - 1);
        let bit = |a: u64, i: u64| a >> i & 1;
        let pairs: Vec<(u64, u64)> = amounts.iter().flat_map(|p| amounts.map(|l| (*p, l))).collect();
        let cases: Vec<Vec<u64>> =
            integers(bits, 6, 11).iter().flat_map(|a| pairs.iter().map(|(p, l)| vec![*a, *p, *l])).collect();
        for (sign, is_signed) in [("u", false), ("s", true)] {
            Snippet::new(&[&ty, "b32", "b32"], &ty, &format!("bfe.{sign}{bits} %d, %a0, %a1, %a2;")).agrees(
                &cases,
                |x| {
                    let (a, pos, len) = (x[0], x[1] & 0xFF, x[2] & 0xFF);
                    let sbit = if !is_signed || len == 0 { 0 } else { bit(a, (pos + len - 1).min(msb)) };
                    (0..=msb).fold(0, |d, i| d | (if i < len && pos + i <= msb { bit(a, pos + i) } else { sbit }) << i)
                },
            );
        }
        let cases: Vec<Vec<u64>> =
            cases.iter().map(|x| vec![x[0], x[0].rotate_left(13) & mask(bits), x[1], x[2]]).collect();
        Snippet::new(&[&ty, &ty, "b32", "b32"], &ty, &format!("bfi.b{bits} %d, %a0, %a1, %a2, %a3;")).agrees(
            &cases,
            |x| {
                let (pos, len) = (x[2] & 0xFF, x[3] & 0xFF);
                (0..=msb).fold(0, |f, i| {
                    let inside = i >= pos && i < pos + len;
                    f | (if inside { bit(x[0], i - pos) } else { bit(x[1], i) }) << i
                })
            },
        );
    }
}

#[test]
fn extension_and_masks() {
    let cases: Vec<Vec<u64>> =
        integers(32, 10, 12).iter().flat_map(|a| [0u64, 1, 7, 8, 31, 32, 40].map(|n| vec![*a, n])).collect();
    let extend = |a: u64, n: u64, is_signed: bool| match n {
        0 => 0,
        32.. => a,
        n if is_signed && a >> (n - 1) & 1 == 1 => (a | u64::MAX << n) & mask(32),
        n => a & ((1 << n) - 1),
    };
    let word = ["b32", "b32"];
    Snippet::new(&word, "b32", "szext.clamp.s32 %d, %a0, %a1;").agrees(&cases, |x| extend(x[0], x[1], true));
    Snippet::new(&word, "b32", "szext.clamp.u32 %d, %a0, %a1;").agrees(&cases, |x| extend(x[0], x[1], false));
    Snippet::new(&word, "b32", "szext.wrap.s32 %d, %a0, %a1;").agrees(&cases, |x| extend(x[0], x[1] & 31, true));
    let cases: Vec<Vec<u64>> =
        [0u64, 1, 5, 31, 32].iter().flat_map(|a| [0u64, 1, 2, 31, 32, 33].map(|n| vec![*a, n])).collect();
    Snippet::new(&word, "b32", "bmsk.clamp.b32 %d, %a0, %a1;")
        .agrees(&cases, |x| (0..32).filter(|i| *i >= x[0] && *i < x[0] + x[1].min(32)).fold(0, |m, i| m | 1 << i));
    assert_eq!(one(&word, "b32", "bmsk.wrap.b32 %d, %a0, %a1;", &[1, 2]), 6);
}

#[test]
fn lop3_follows_its_table() {
    // With these three constants the table itself is the low byte of the result (ISA, lop3, "immLut").
    for table in 0..=255u64 {
        let body = format!("lop3.b32 %d, %a0, %a1, %a2, {table};");
        assert_eq!(one(&["b32", "b32", "b32"], "b32", &body, &[0xF0, 0xCC, 0xAA]) & 0xFF, table);
    }
}

/// Bytes named by their number, as the ISA writes them: `b` holds 7 6 5 4, `a` holds 3 2 1 0.
#[test]
fn byte_permutations() {
    let (a, b) = (0x3323_1303u64, 0x7767_5747u64);
    let word = ["b32", "b32", "b32"];
    let generic = |c: u64| one(&word, "b32", "prmt.b32 %d, %a0, %a1, %a2;", &[a, b, c]);
    assert_eq!(generic(0x3210), a);
    assert_eq!(generic(0x7654), b);
    assert_eq!(generic(0x7531), 0x7757_3313);
    assert_eq!(one(&word, "b32", "prmt.b32 %d, %a0, %a1, %a2;", &[0x80, 0x7F00_0000, 0xF888]), 0x00FF_FFFF);
    let table = [
        ("f4e", ["3210", "4321", "5432", "6543"]),
        ("b4e", ["5670", "6701", "7012", "0123"]),
        ("rc8", ["0000", "1111", "2222", "3333"]),
        ("ecl", ["3210", "3211", "3222", "3333"]),
        ("ecr", ["0000", "1110", "2210", "3210"]),
        ("rc16", ["1010", "3232", "1010", "3232"]),
    ];
    for (mode, rows) in table {
        for (selector, row) in rows.iter().enumerate() {
            let want = generic(u64::from_str_radix(row, 16).expect("digits"));
            let body = format!("prmt.b32.{mode} %d, %a0, %a1, %a2;");
            assert_eq!(one(&word, "b32", &body, &[a, b, selector as u64 | 0xFFF0]), want, "{mode} {selector}");
        }
    }
}
