//! Warp operations and barriers that do more than wait.

mod support;

use ptx_vm::{Launch, Memory, Report, Schedule};
use support::{module, parsed};

/// The 32-bit results of `threads` threads for a body that leaves them in `%r31`; `%r1` is the thread's number.
fn results(body: &str, threads: u32) -> (Vec<u32>, Report) {
    let text = module(
        1,
        &format!(
            "mov.u32 %r1, %tid.x;\n{body}\nld.param.u64 %rd1, [p0];\nmul.wide.u32 %rd2, %r1, 4;\nadd.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r31;\nret;"
        ),
    );
    let module = parsed(&text);
    let mut first: Option<(Vec<u32>, Report)> = None;
    for schedule in
        [Schedule::InOrder, Schedule::Reversed, Schedule::RoundRobin, Schedule::Random(1), Schedule::Random(2)]
    {
        let mut memory = Memory::new();
        let output = memory.output(4 * threads as usize, 0);
        let launch = Launch::new(&module, "k").block(threads).arg(output).schedule(schedule);
        let report = launch.run(&mut memory).unwrap_or_else(|error| panic!("{schedule:?}: {error}"));
        let words = memory.bytes(output).chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
        match &first {
            None => first = Some((words, report)),
            Some(first) => assert_eq!(*first, (words, report), "{schedule:?}"),
        }
    }
    first.unwrap()
}

fn warp(body: &str) -> Vec<u32> {
    results(body, 32).0
}

fn lanes(f: impl Fn(u32) -> u32) -> Vec<u32> {
    (0..32).map(f).collect()
}

#[test]
fn shuffles_of_a_whole_warp() {
    let run = |mode: &str, b: u32, c: u32| {
        warp(&format!("mul.lo.u32 %r2, %r1, 10;\nshfl.sync.{mode}.b32 %r31, %r2, {b}, {c}, -1;"))
    };
    for distance in [1, 2, 4, 8, 16, 31] {
        assert_eq!(run("bfly", distance, 31), lanes(|l| (l ^ distance) * 10));
        assert_eq!(run("down", distance, 31), lanes(|l| if l + distance < 32 { (l + distance) * 10 } else { l * 10 }));
        assert_eq!(run("up", distance, 0), lanes(|l| if l >= distance { (l - distance) * 10 } else { l * 10 }));
        assert_eq!(run("idx", distance, 31), lanes(|_| distance * 10));
    }
    // Segments of eight lanes: segment mask 0x18 in bits 8..12 of c.
    assert_eq!(run("idx", 3, 0x181F), lanes(|l| ((l & 24) | 3) * 10));
    assert_eq!(run("down", 2, 0x181F), lanes(|l| if l % 8 + 2 < 8 { (l + 2) * 10 } else { l * 10 }));
    assert_eq!(run("up", 2, 0x1800), lanes(|l| if l % 8 >= 2 { (l - 2) * 10 } else { l * 10 }));
    // A clamp of 15: lanes beyond keep their own value.
    assert_eq!(run("bfly", 16, 15), lanes(|l| if l ^ 16 <= 15 { (l ^ 16) * 10 } else { l * 10 }));
}

#[test]
fn shuffle_predicates_say_whether_the_source_is_in_range() {
    let body = "shfl.sync.down.b32 %r2|%p1, %r1, 3, 31, -1;\nselp.u32 %r31, 1, 0, %p1;";
    assert_eq!(warp(body), lanes(|l| u32::from(l + 3 < 32)));
    let body = "shfl.sync.up.b32 %r3|%p1, %r1, 3, 0, -1;\nselp.u32 %r31, 1, 0, %p1;";
    assert_eq!(warp(body), lanes(|l| u32::from(l >= 3)));
}

#[test]
fn a_lane_may_choose_its_source() {
    assert_eq!(warp("sub.u32 %r2, 31, %r1;\nshfl.sync.idx.b32 %r31, %r1, %r2, 31, -1;"), lanes(|l| 31 - l));
}

#[test]
fn a_butterfly_sums_the_warp() {
    let step = |d: u32| format!("shfl.sync.bfly.b32 %r3, %r2, {d}, 31, -1;\nadd.u32 %r2, %r2, %r3;\n");
    let body: String = "mov.u32 %r2, %r1;\n".to_owned() + &[16, 8, 4, 2, 1].map(step).concat() + "mov.u32 %r31, %r2;";
    let (sums, report) = results(&body, 64);
    assert_eq!(sums, (0..64).map(|t| if t < 32 { 496 } else { 1520 }).collect::<Vec<u32>>());
    assert_eq!((report.warp_operations(), report.count("shfl.sync")), (10, 5 * 64));
}

#[test]
fn votes() {
    let run = |mode: &str, compare: &str| {
        warp(&format!("setp.{compare} %p1, %r1, 5;\nvote.sync.{mode}.pred %p2, %p1, -1;\nselp.u32 %r31, 1, 0, %p2;"))[0]
    };
    assert_eq!([run("all", "lt.u32"), run("any", "lt.u32"), run("uni", "lt.u32")], [0, 1, 0]);
    assert_eq!([run("all", "ne.u32"), run("any", "eq.u32"), run("uni", "ge.s32")], [0, 1, 0]);
    assert_eq!(warp("setp.lt.u32 %p1, %r1, 5;\nvote.sync.ballot.b32 %r31, %p1, -1;"), lanes(|_| 0b11111));
    assert_eq!(warp("setp.lt.u32 %p1, %r1, 5;\nvote.sync.ballot.b32 %r31, !%p1, -1;"), lanes(|_| !0b11111));
}

#[test]
fn matches() {
    assert_eq!(
        warp("and.b32 %r2, %r1, 1;\nmatch.any.sync.b32 %r31, %r2, -1;"),
        lanes(|l| if l % 2 == 0 { 0x5555_5555 } else { 0xAAAA_AAAA })
    );
    let all = |value: &str| {
        warp(&format!(
            "{value}\nmatch.all.sync.b32 %r2|%p1, %r3, -1;\nselp.u32 %r4, 1, 0, %p1;\nadd.u32 %r31, %r2, %r4;"
        ))[7]
    };
    assert_eq!(all("mov.u32 %r3, 9;"), 0); // all ones plus one
    assert_eq!(all("mov.u32 %r3, %r1;"), 0);
}

#[test]
fn reductions() {
    let run = |op: &str, value: &str| warp(&format!("{value}\nredux.sync.{op} %r31, %r2, -1;"))[3];
    assert_eq!(run("add.u32", "mov.u32 %r2, %r1;"), 496);
    assert_eq!(run("min.s32", "sub.s32 %r2, 3, %r1;"), (-28i32).cast_unsigned());
    assert_eq!(run("max.s32", "sub.s32 %r2, 3, %r1;"), 3);
    assert_eq!(run("min.u32", "sub.s32 %r2, 3, %r1;"), 0);
    assert_eq!(run("max.u32", "sub.s32 %r2, 3, %r1;"), u32::MAX);
    assert_eq!(run("or.b32", "shl.b32 %r2, 1, %r1;"), u32::MAX);
    assert_eq!(run("and.b32", "or.b32 %r2, %r1, 96;"), 96);
    assert_eq!(run("xor.b32", "mov.u32 %r2, %r1;"), 0);
}

#[test]
fn one_leader_is_elected() {
    assert_eq!(warp("elect.sync %r2|%p1, -1;\nselp.u32 %r31, 1, 0, %p1;"), lanes(|l| u32::from(l == 0)));
    let upper = "setp.lt.u32 %p2, %r1, 16;\n@%p2 bra DONE;\nelect.sync _|%p1, 0xFFFF0000;\nDONE:\nselp.u32 %r31, 0, 7, %p2;\n@!%p2 selp.u32 %r31, 1, 0, %p1;";
    assert_eq!(warp(upper), lanes(|l| u32::from(l == 16)));
}

#[test]
fn special_registers() {
    let value = |name: &str| warp(&format!("mov.u32 %r31, {name};"));
    assert_eq!(value("%laneid"), lanes(|l| l));
    assert_eq!(value("%lanemask_lt"), lanes(|l| (1u32 << l) - 1));
    assert_eq!(value("%lanemask_le"), lanes(|l| u32::MAX >> (31 - l)));
    assert_eq!(value("%lanemask_eq"), lanes(|l| 1 << l));
    assert_eq!(value("%lanemask_gt"), lanes(|l| u32::MAX.checked_shl(l + 1).unwrap_or(0)));
    assert_eq!(value("%lanemask_ge"), lanes(|l| u32::MAX << l));
    assert_eq!(value("%ntid.x"), lanes(|_| 32));
    assert_eq!(value("WARP_SZ"), lanes(|_| 32));
    assert_eq!(results("mov.u32 %r31, %warpid;", 64).0[40], 1);
}

#[test]
fn barriers_count_and_reduce() {
    let run = |op: &str| results(&format!("setp.lt.u32 %p1, %r1, 5;\nbar.red.{op}"), 64).0[50];
    assert_eq!(run("popc.u32 %r31, 0, %p1;"), 5);
    assert_eq!(run("popc.u32 %r31, 0, !%p1;"), 59);
    assert_eq!(run("and.pred %p2, 0, %p1;\nselp.u32 %r31, 1, 0, %p2;"), 0);
    assert_eq!(run("or.pred %p2, 0, 64, %p1;\nselp.u32 %r31, 1, 0, %p2;"), 1);
    let (_, report) = results("bar.sync 0;\nbar.cta.sync 1;\nbarrier.sync.aligned 2, 64;\nmov.u32 %r31, 0;", 64);
    assert_eq!(report.barriers(), 3);
}

/// The first warp produces, the second consumes: `arrive` does not wait and orders what came before it.
#[test]
fn producers_and_consumers() {
    let body = ".shared .align 4 .b8 a[128];\nmov.u32 %r2, a;\nand.b32 %r3, %r1, 31;\nmad.lo.u32 %r2, %r3, 4, %r2;\nmov.u32 %r31, 0;\n\
                setp.ge.u32 %p1, %r1, 32;\n@%p1 bra CONSUME;\nadd.u32 %r4, %r3, 100;\nst.shared.u32 [%r2], %r4;\nbar.arrive 1, 64;\nbra DONE;\n\
                CONSUME:\nbar.sync 1, 64;\nld.shared.u32 %r31, [%r2];\nDONE:";
    let (words, _) = results(body, 64);
    assert_eq!(words[32..], lanes(|l| l + 100));
}
