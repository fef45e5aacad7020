//! Control flow, scopes, variables, parameters and calls.

mod support;

use ptx_vm::{Dim3, Launch, Memory, Module, Schedule};
use support::{module, one, parsed};

/// The words that one thread leaves in a buffer of `words` (`p0`).
fn words(text: &str, words: usize) -> Vec<u32> {
    let module = parsed(text);
    let mut memory = Memory::new();
    let output = memory.output(4 * words, 0);
    Launch::new(&module, "k").arg(output).run(&mut memory).unwrap_or_else(|error| panic!("{error}"));
    memory.check_written(output).expect("all written");
    memory.bytes(output).chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect()
}

#[test]
fn loops_and_predicates() {
    let body = "mov.u32 %d, 1;\nmov.u32 %t32a, 0;\nL:\nadd.u32 %t32a, %t32a, 1;\nmul.lo.u32 %d, %d, %t32a;\n\
                setp.lt.u32 %p|%q, %t32a, %a0;\n@%p bra L;\n@!%q mov.u32 %d, 0;";
    assert_eq!(one(&["b32"], "b32", body, &[6]), 720);
}

#[test]
fn combined_comparisons() {
    let run = |op: &str, a: u64, b: u64, c: u64| one(&["b32", "b32", "pred"], "pred", op, &[a, b, c]);
    for (a, b, c) in [(1, 2, 0), (1, 2, 1), (2, 1, 0), (2, 1, 1)] {
        let less = a < b;
        assert_eq!(run("setp.lt.and.u32 %d, %a0, %a1, %a2;", a, b, c), u64::from(less && c == 1));
        assert_eq!(run("setp.lt.or.u32 %d, %a0, %a1, !%a2;", a, b, c), u64::from(less || c == 0));
        assert_eq!(run("setp.lt.xor.u32 %p|%d, %a0, %a1, %a2;", a, b, c), u64::from((a >= b) != (c == 1)));
    }
    let signed = 0xFFFF_FFFF;
    assert_eq!(one(&["b32", "b32"], "pred", "setp.lt.s32 %d, %a0, %a1;", &[signed, 1]), 1);
    assert_eq!(one(&["b32", "b32"], "pred", "setp.lo.u32 %d, %a0, %a1;", &[signed, 1]), 0);
    assert_eq!(one(&["b32", "b32"], "b32", "set.gt.u32.u32 %d, %a0, %a1;", &[signed, 1]), 0xFFFF_FFFF);
    assert_eq!(one(&["b32", "b32"], "b32", "set.gt.f32.s32 %d, %a0, %a1;", &[1, signed]), 0x3F80_0000);
    assert_eq!(one(&["b32", "b32", "b32"], "b32", "slct.b32.s32 %d, %a0, %a1, %a2;", &[7, 8, 0]), 7);
    assert_eq!(one(&["b32", "b32", "b32"], "b32", "slct.b32.s32 %d, %a0, %a1, %a2;", &[7, 8, signed]), 8);
    assert_eq!(one(&["b32", "b32", "b32"], "b32", "slct.u32.f32 %d, %a0, %a1, %a2;", &[7, 8, 0x7FC0_0000]), 8);
    assert_eq!(one(&["pred", "pred"], "pred", "and.pred %d, %a0, %a1;\nnot.pred %d, %d;", &[1, 1]), 0);
}

#[test]
fn indexed_branches() {
    let body = "TABLE: .branchtargets A, B, C;\nbrx.idx %a0, TABLE;\nA:\nmov.u32 %d, 10;\nbra OUT;\nB:\nmov.u32 %d, 20;\nbra OUT;\nC:\nmov.u32 %d, 30;\nOUT:";
    for (index, want) in [(0, 10), (1, 20), (2, 30)] {
        assert_eq!(one(&["b32"], "b32", body, &[index]), want);
    }
}

#[test]
fn scopes_shadow() {
    let body = "mov.u32 %d, 1;\n{ .reg .b32 %d; mov.u32 %d, 99; { .reg .b32 x; mov.u32 x, %d; mov.u32 %t32a, x; } }\nadd.u32 %d, %d, %t32a;";
    assert_eq!(one(&[], "b32", body, &[]), 100);
    // The label of an inner scope does not meet that of another.
    let body = "mov.u32 %d, 0;\n{ bra L; add.u32 %d, %d, 1; L: }\n{ bra L; add.u32 %d, %d, 2; L: }";
    assert_eq!(one(&[], "b32", body, &[]), 0);
}

#[test]
fn packing_and_unpacking() {
    assert_eq!(one(&["b16", "b16"], "b32", "mov.b32 %d, {%a0, %a1};", &[0x1111, 0x2222]), 0x2222_1111);
    assert_eq!(one(&["b64"], "b32", "mov.b64 {_, %d}, %a0;", &[0x1234_5678_0000_0000]), 0x1234_5678);
    assert_eq!(one(&["b64"], "b16", "mov.b64 {%t16a, _, _, %d}, %a0;", &[0xABCD_0000_0000_0000]), 0xABCD);
    assert_eq!(one(&["b32"], "b64", "mov.b64 %d, {%a0, %a0};", &[5]), 0x5_0000_0005);
}

#[test]
fn constants_of_every_kind() {
    assert_eq!(one(&[], "b32", "mov.b32 %d, 0f3F800000;", &[]), 0x3F80_0000);
    assert_eq!(one(&[], "b64", "mov.b64 %d, 0d3FF0000000000000;", &[]), 0x3FF0 << 48);
    assert_eq!(one(&[], "b64", "mov.f64 %d, 1.5;", &[]), 1.5f64.to_bits());
    assert_eq!(one(&[], "b32", "mov.f32 %d, 1.5;", &[]), u64::from(1.5f32.to_bits()));
    assert_eq!(one(&[], "b32", "mov.u32 %d, 017;", &[]), 15);
    assert_eq!(one(&[], "b32", "mov.u32 %d, 0b101U;", &[]), 5);
    assert_eq!(one(&[], "b16", "mov.u16 %d, -2;", &[]), 0xFFFE);
    assert_eq!(one(&[], "pred", "mov.pred %d, -1;", &[]), 1);
}

#[test]
fn module_variables() {
    let body = "ld.param.u64 %rd1, [p0];\nld.const.u32 %r1, [table+4];\nmov.u64 %rd2, counter;\nld.global.u32 %r2, [counter];\nadd.u32 %r2, %r2, %r1;\n\
                st.global.u32 [%rd2], %r2;\nld.global.u32 %r3, [%rd2];\nst.global.u32 [%rd1], %r3;\nld.const.b8 %rs1, [bytes+2];\ncvt.u32.u8 %r4, %rs1;\n\
                st.global.u32 [%rd1+4], %r4;\nret;";
    let text = module(1, body).replace(".visible .entry", ".const .align 4 .u32 table[3] = {10, 20, 30};\n.global .u32 counter = 5;\n.const .b8 bytes[4] = {1, 2, 3};\n.visible .entry");
    assert_eq!(words(&text, 2), [25, 3]);
    // They start anew with every launch.
    assert_eq!(words(&text, 2), [25, 3]);
}

#[test]
fn local_memory_and_extensions() {
    let body = ".local .align 8 .b8 frame[16];\nld.param.u64 %rd1, [p0];\nmov.u64 %rd2, frame;\ncvta.local.u64 %rd3, %rd2;\nst.local.u32 [%rd2], 0xFFFFFF80;\n\
                ld.s8 %r1, [%rd3];\nld.local.u8 %r2, [%rd2];\nst.global.u32 [%rd1], %r1;\nst.global.u32 [%rd1+4], %r2;\n\
                ld.local.s16 %rd4, [frame];\nst.global.u64 [%rd1+8], %rd4;\nret;";
    assert_eq!(words(&module(1, body), 4), [0xFFFF_FF80, 0x80, 0xFFFF_FF80, 0xFFFF_FFFF]);
}

#[test]
fn struct_parameters() {
    let text = module(0, "ld.param.u64 %rd1, [args+8];\nld.param.v2.u32 {%r1, %r2}, [args];\nmov.b64 %rd2, args;\nld.param.u32 %r3, [%rd2+16];\n\
                          cvta.param.u64 %rd3, %rd2;\nld.u32 %r4, [%rd3+20];\nst.global.v4.u32 [%rd1], {%r1, %r2, %r3, %r4};\nret;")
        .replace("k()", "k(.param .align 8 .b8 args[24])");
    let module = Module::parse(&text).expect("valid");
    let mut memory = Memory::new();
    let output = memory.output(16, 0);
    let mut bytes = Vec::new();
    for part in [1u32.to_le_bytes(), 2u32.to_le_bytes()] {
        bytes.extend(part);
    }
    bytes.extend(output.address().to_le_bytes());
    bytes.extend([3u32.to_le_bytes(), 4u32.to_le_bytes()].concat());
    assert_eq!(module.entries().next().unwrap().parameters[0].bytes, 24);
    Launch::new(&module, "k").arg(bytes).run(&mut memory).expect("no fault");
    assert_eq!(memory.bytes(output), [1u32, 2, 3, 4].map(u32::to_le_bytes).concat());
}

#[test]
fn calls_are_inlined() {
    let callee = ".func (.param .b32 result) twice(.param .b32 value)\n{\n.reg .b32 %r<4>;\n.reg .pred %p;\nld.param.b32 %r1, [value];\nsetp.eq.u32 %p, %r1, 0;\n\
                  mov.u32 %r2, 7;\n@%p bra OUT;\nshl.b32 %r2, %r1, 1;\nst.param.b32 [result], %r2;\nret;\nOUT:\nst.param.b32 [result], %r2;\nret;\n}\n";
    let call = |value: u32, at: u32| {
        format!(
            "{{\n.param .b32 arg;\n.param .b32 back;\nst.param.b32 [arg], {value};\ncall.uni (back), twice, (arg);\nld.param.b32 %r1, [back];\nst.global.u32 [%rd1+{at}], %r1;\n}}\n"
        )
    };
    let body = format!("ld.param.u64 %rd1, [p0];\n{}{}ret;", call(21, 0), call(0, 4));
    let text = module(1, &body).replace(".visible .entry", &format!("{callee}.visible .entry"));
    assert_eq!(words(&text, 2), [42, 7]);
    let recursive = text.replace("shl.b32 %r2, %r1, 1;", "call.uni (result), twice, (value);");
    assert!(Module::parse(&recursive).expect_err("recursion").to_string().contains("recurses"));
}

#[test]
fn dynamic_shared_memory() {
    let body = "mov.u32 %r1, %tid.x;\nmov.u32 %r2, pool;\nmad.lo.u32 %r2, %r1, 4, %r2;\nst.shared.u32 [%r2], %r1;\nbar.sync 0;\n\
                mov.u32 %r3, pool;\nsub.u32 %r4, 63, %r1;\nmad.lo.u32 %r3, %r4, 4, %r3;\nld.shared.u32 %r5, [%r3];\nmov.u32 %r6, %dynamic_smem_size;\nadd.u32 %r5, %r5, %r6;\n\
                ld.param.u64 %rd1, [p0];\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r5;\nret;";
    let text = module(1, body).replace(".visible .entry", ".extern .shared .align 16 .b8 pool[];\n.visible .entry");
    let module = parsed(&text);
    let mut memory = Memory::new();
    let output = memory.output(256, 0);
    let launch = Launch::new(&module, "k").block(64).arg(output);
    assert!(launch.clone().dynamic_shared(128).run(&mut memory.clone()).is_err(), "too little");
    launch.dynamic_shared(256).run(&mut memory).expect("no fault");
    assert_eq!(memory.bytes(output)[..4], (63u32 + 256).to_le_bytes());
}

#[test]
fn grids_and_blocks_have_three_dimensions() {
    let body = "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %ctaid.y;\nmov.u32 %r3, %ctaid.z;\nmov.u32 %r4, %nctaid.x;\nmov.u32 %r5, %nctaid.y;\n\
                mad.lo.u32 %r2, %r3, %r5, %r2;\nmad.lo.u32 %r1, %r2, %r4, %r1;\nmov.u32 %r6, %tid.z;\nmov.u32 %r7, %ntid.y;\nmov.u32 %r8, %tid.y;\nmad.lo.u32 %r6, %r6, %r7, %r8;\n\
                mov.u32 %r7, %ntid.x;\nmov.u32 %r8, %tid.x;\nmad.lo.u32 %r6, %r6, %r7, %r8;\nmad.lo.u32 %r1, %r1, 24, %r6;\n\
                ld.param.u64 %rd1, [p0];\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r1;\nret;";
    let module = parsed(&module(1, body));
    let mut memory = Memory::new();
    let output = memory.output(4 * 24 * 30, 0);
    Launch::new(&module, "k").grid((5, 3, 2)).block(Dim3([4, 3, 2])).arg(output).run(&mut memory).expect("no fault");
    memory.check_written(output).expect("every thread has its own word");
}

#[test]
fn atomics() {
    let body = "ld.param.u64 %rd1, [p0];\nmov.u32 %r1, %tid.x;\natom.global.add.u32 %r2, [%rd1], 2;\nred.global.max.u32 [%rd1+4], %r1;\natom.global.cas.b32 %r3, [%rd1+8], 0, 5;\n\
                atom.global.inc.u32 %r4, [%rd1+12], 9;\nred.global.and.b32 [%rd1+16], -2;\natom.global.exch.b32 %r5, [%rd1+20], 77;\nred.add.u64 [%rd1+24], 1;\nret;";
    let module = parsed(&module(1, body));
    for schedule in [Schedule::InOrder, Schedule::Random(5)] {
        let mut memory = Memory::new();
        let buffer = memory.add(ptx_vm::Buffer::in_out([0u32, 0, 0, 0, 255, 0, 0, 0].map(u32::to_le_bytes).concat()));
        Launch::new(&module, "k").grid(3).block(64).arg(buffer).schedule(schedule).run(&mut memory).expect("no fault");
        assert_eq!(memory.bytes(buffer), [384u32, 63, 5, 192 % 10, 254, 77, 192, 0].map(u32::to_le_bytes).concat());
    }
}

#[test]
fn what_carries_no_meaning_is_accepted() {
    let text = ".version 8.6 // comment\n.target sm_90\n.address_size 64\n\n.file 1 \"a.rs\"\n/* a\n comment */\n\
                .visible .entry k(\n.param .u64 .ptr .global .align 16 p0\n)\n.maxntid 128, 1, 1\n.minnctapersm 2\n{\n.reg .b64 %rd<2>;\n.pragma \"nounroll\";\n.loc 1 2 3\n\
                // begin inline asm\n{ griddepcontrol.wait; }\n// end inline asm\nfence.acq_rel.gpu;\nmembar.gl;\nld.param.u64 %rd1, [p0];\nprefetch.global.L2 [%rd1];\n\
                st.global.wt.u32 [%rd1], 1;\nst.global.L1::no_allocate.u32 [%rd1+4], 2;\ngriddepcontrol.launch_dependents;\nexit;\n}\n";
    assert_eq!(words(text, 2), [1, 2]);
    let error = Module::parse(&text.replace("membar.gl", "membar.gl.what")).expect_err("unknown");
    assert_eq!(error.line, 21);
}
