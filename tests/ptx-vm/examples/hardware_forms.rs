//! Forms beyond those of the tests, for the comparison with hardware: `PTX_VM_DUMP=folder cargo run --example hardware_forms`,
//! then `hardware/check.py folder` on a machine with a GPU. By itself it shows only that the machine runs them.

#[path = "../tests/support/mod.rs"]
mod support;

use support::Snippet;
use support::exact::{BF16, F16, F32, F64, Form};
use support::values::{integer_pairs, integers, pairs, patterns, special, triples};

type Cases = Vec<Vec<u64>>;

fn one(types: &[&str], result: &str, body: &str, cases: &Cases) {
    Snippet::new(types, result, body).run(cases);
}

fn single(form: Form) -> Cases {
    patterns(form, 500, 71).into_iter().map(|a| vec![a]).collect()
}

fn word(bits: u32) -> String {
    format!("b{bits}")
}

fn halves() {
    for (name, form) in [("f16", F16), ("bf16", BF16)] {
        let values = special(form);
        let packed: Cases = values.iter().flat_map(|a| values.iter().map(move |b| vec![a | b << 16])).collect();
        for op in ["abs", "neg"] {
            one(&["b32"], "b32", &format!("{op}.{name}x2 %d, %a0;"), &packed);
        }
        let both = pairs(form, 50, 75);
        for test in ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"] {
            for (result, register) in [("u32", "b32"), ("u16", "b16"), (name, "b16")] {
                one(&["b16", "b16"], register, &format!("set.{test}.{result}.{name} %d, %a0, %a1;"), &both);
            }
        }
        for mode in ["rni", "rzi", "rmi", "rpi"] {
            for (result, bits) in [("s64", 64), ("u64", 64), ("s32", 32), ("u32", 32), (name, 16)] {
                one(&["b16"], &word(bits), &format!("cvt.{mode}.{result}.{name} %d, %a0;"), &single(form));
            }
        }
    }
    for mode in ["rn", "rz", "rm", "rp"] {
        one(&["b16"], "b16", &format!("cvt.{mode}.bf16.f16 %d, %a0;"), &single(F16));
        one(&["b16"], "b16", &format!("cvt.{mode}.f16.bf16 %d, %a0;"), &single(BF16));
        for (result, source, form) in
            [("f16", "f32", F32), ("bf16", "f32", F32), ("f16", "f64", F64), ("bf16", "f64", F64)]
        {
            one(&[&word(form.bits)], "b16", &format!("cvt.{mode}.{result}.{source} %d, %a0;"), &single(form));
        }
        one(&["b32"], "b16", &format!("cvt.{mode}.sat.f16.f32 %d, %a0;"), &single(F32));
        one(&["b64"], "b32", &format!("cvt.{mode}.sat.f32.f64 %d, %a0;"), &single(F64));
    }
}

fn floats() {
    for op in ["abs", "neg", "cvt.f64", "cvt.rni.f64", "cvt.rzi.f64"] {
        one(&["b64"], "b64", &format!("{op}.f64 %d, %a0;"), &single(F64));
    }
    for op in ["min", "max", "copysign"] {
        one(&["b64", "b64"], "b64", &format!("{op}.f64 %d, %a0, %a1;"), &pairs(F64, 300, 72));
    }
    for (result, bits) in
        [("s8", 32), ("u8", 32), ("s16", 32), ("u16", 32), ("s32", 32), ("u32", 32), ("s64", 64), ("u64", 64)]
    {
        for mode in ["rni", "rzi", "rmi", "rpi"] {
            one(&["b64"], &word(bits), &format!("cvt.{mode}.{result}.f64 %d, %a0;"), &single(F64));
        }
    }
    for (op, source, form, bits) in
        [("f32", "f32", F32, 32), ("f32", "f16", F16, 32), ("f64", "f32", F32, 64), ("f32", "bf16", BF16, 32)]
    {
        if source != "bf16" {
            one(&[&word(form.bits)], &word(bits), &format!("cvt.sat.{op}.{source} %d, %a0;"), &single(form));
        }
        one(&[&word(form.bits)], &word(bits), &format!("cvt.{op}.{source} %d, %a0;"), &single(form));
    }
    for op in ["add", "sub", "mul"] {
        one(&["b32", "b32"], "b32", &format!("{op}.sat.f32 %d, %a0, %a1;"), &pairs(F32, 300, 73));
    }
    let three = ["b32", "b32", "b32"];
    one(&three, "b32", "fma.rn.sat.f32 %d, %a0, %a1, %a2;", &triples(F32, 300, 74, |a, _| a));
    one(&three, "b32", "slct.u32.f32 %d, %a0, %a1, %a2;", &triples(F32, 100, 79, |a, _| a));
    for test in ["eq", "lt", "geu", "nan"] {
        for (result, register) in [("f32", "b32"), ("u32", "b32"), ("f16", "b16"), ("bf16", "b16")] {
            one(&["b32", "b32"], register, &format!("set.{test}.{result}.f32 %d, %a0, %a1;"), &pairs(F32, 50, 78));
        }
    }
    for property in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
        one(&["b64"], "pred", &format!("testp.{property}.f64 %d, %a0;"), &single(F64));
    }
}

fn words() {
    let three = ["b32", "b32", "b32"];
    let any = triples(F32, 300, 80, |a, b| a ^ b);
    for body in ["mad24.lo.s32", "mad24.hi.u32", "mad24.hi.s32", "mad.hi.s32", "prmt.b32"] {
        one(&three, "b32", &format!("{body} %d, %a0, %a1, %a2;"), &any);
    }
    for table in ["0x96", "0x1D", "0xE8"] {
        one(&three, "b32", &format!("lop3.b32 %d, %a0, %a1, %a2, {table};"), &any);
    }
    for mode in ["lo", "hi"] {
        one(&["b32", "b32"], "b32", &format!("mul24.{mode}.s32 %d, %a0, %a1;"), &integer_pairs(32, 10, 81));
    }
    for ty in ["u16", "s16", "u32", "u64", "s64"] {
        let bits: u32 = ty[1..].parse().expect("a width");
        let register = word(bits);
        let cases: Cases = integer_pairs(bits, 6, 82).into_iter().map(|x| vec![x[0], x[1], x[0] ^ x[1]]).collect();
        for op in ["sad", "mad.hi", "mad.lo"] {
            one(&[&register, &register, &register], &register, &format!("{op}.{ty} %d, %a0, %a1, %a2;"), &cases);
        }
    }
    let counts = [0u64, 1, 7, 31, 32, 33, 63, 64, 255, 256, 0xFFFF_FFFF];
    let cases: Cases = integers(32, 10, 85).iter().flat_map(|a| counts.map(|n| vec![*a, n])).collect();
    let fields: Cases = counts.iter().flat_map(|a| counts.map(|n| vec![*a, n])).collect();
    for mode in ["clamp", "wrap"] {
        for ty in ["u32", "s32"] {
            one(&["b32", "b32"], "b32", &format!("szext.{mode}.{ty} %d, %a0, %a1;"), &cases);
        }
        one(&["b32", "b32"], "b32", &format!("bmsk.{mode}.b32 %d, %a0, %a1;"), &fields);
    }
}

fn main() {
    halves();
    floats();
    words();
}
