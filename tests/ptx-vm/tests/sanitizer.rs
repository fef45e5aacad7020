//! One small kernel for every fault, and its neighbour that is right.

mod support;

use ptx_vm::{
    Buffer, FaultKind, Launch, LaunchError, Memory, Module, ParseErrorKind, RaceKind, Report, Schedule, Space,
};
use support::{fault, kind, module, parsed};

/// Runs a body over one output of 256 bytes (`p0`) and one input of 256 ascending bytes (`p1`).
fn run_on(
    body: &str,
    grid: u32,
    block: u32,
    output: Buffer,
    schedule: Schedule,
) -> (Result<Report, LaunchError>, Memory) {
    let module = parsed(&module(2, body));
    let mut memory = Memory::new();
    let output = memory.add(output);
    let input = memory.input((0..=255).collect::<Vec<u8>>());
    let launch = Launch::new(&module, "k").grid(grid).block(block).arg(output).arg(input).schedule(schedule);
    (launch.run(&mut memory), memory)
}

fn run(body: &str, block: u32) -> Result<Report, LaunchError> {
    run_on(body, 1, block, Buffer::output(256, 0xEE), Schedule::InOrder).0
}

const POINTERS: &str = "ld.param.u64 %rd1, [p0];\nld.param.u64 %rd2, [p1];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\n\
                        add.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\n";

fn with_pointers(body: &str) -> String {
    format!("{POINTERS}{body}\nret;")
}

/// The line of the body's first line in the module that `support::module` writes, behind the pointers.
const FIRST_LINE: u32 = 10 + 6;

#[test]
fn a_correct_kernel_passes() {
    let report = run(&with_pointers("ld.global.u32 %r2, [%rd5];\nst.global.u32 [%rd4], %r2;"), 64).expect("no fault");
    assert_eq!(report.instructions(), 64 * 9);
    assert_eq!(report.count("ld.global"), 64);
    assert_eq!(report.count("ld"), 3 * 64);
    assert!(report.lines_never_run().is_empty());
}

#[test]
fn out_of_bounds() {
    let load = fault(run(&with_pointers("ld.global.u32 %r2, [%rd5+4];\nst.global.u32 [%rd4], %r2;"), 64));
    assert_eq!((load.block, load.thread, load.line), ([0; 3], [63, 0, 0], FIRST_LINE));
    assert_eq!(load.text, "ld.global.u32 %r2, [%rd5+4];");
    assert!(matches!(load.kind, FaultKind::OutOfBounds { space: Space::Global, bytes: 4, .. }));
    assert!(load.to_string().contains("offset 256 of buffer 1, which has 256 bytes"), "{load}");
    let before = kind(run(&with_pointers("ld.global.u32 %r2, [%rd5+-4];"), 1));
    assert!(matches!(before, FaultKind::OutOfBounds { .. }));
    let store = kind(run(&with_pointers("st.global.u32 [%rd4+4], %r1;"), 64));
    assert!(matches!(store, FaultKind::OutOfBounds { .. }));
    let null = kind(run("mov.u64 %rd1, 0;\nld.global.u8 %rs1, [%rd1];", 1));
    assert!(matches!(null, FaultKind::OutOfBounds { address: 0, .. }));
    let half_outside = kind(run(&with_pointers("ld.global.v2.u32 {%r2, %r3}, [%rd5+252];"), 2));
    assert!(matches!(half_outside, FaultKind::Misaligned { .. } | FaultKind::OutOfBounds { .. }));
}

#[test]
fn out_of_bounds_of_shared_local_and_param() {
    let shared =
        ".shared .align 4 .b8 a[16];\n.shared .align 4 .b8 b[16];\nmov.u32 %r1, a;\nst.shared.u32 [%r1+16], %r1;";
    assert!(matches!(kind(run(shared, 1)), FaultKind::OutOfBounds { space: Space::Shared, bytes: 4, .. }));
    let from_zero = "mov.u32 %r1, 0;\nst.shared.u32 [%r1], %r1;";
    assert!(matches!(kind(run(from_zero, 1)), FaultKind::OutOfBounds { space: Space::Shared, address: 0, .. }));
    let local = ".local .align 8 .b8 a[8];\nmov.u64 %rd1, a;\nst.local.u64 [%rd1+8], %rd1;";
    assert!(matches!(kind(run(local, 1)), FaultKind::OutOfBounds { space: Space::Local, .. }));
    assert!(matches!(kind(run("ld.param.u64 %rd1, [p1+8];", 1)), FaultKind::OutOfBounds { space: Space::Param, .. }));
    let generic = ".shared .align 4 .b8 a[16];\nmov.u64 %rd1, a;\nst.u32 [%rd1], 1;";
    assert!(matches!(kind(run(generic, 1)), FaultKind::OutOfBounds { space: Space::Global, .. }));
}

#[test]
fn misaligned() {
    let by_two = kind(run(&with_pointers("ld.global.u32 %r2, [%rd5+2];"), 1));
    assert!(matches!(by_two, FaultKind::Misaligned { space: Space::Global, bytes: 4, address } if address % 4 == 2));
    // A vector needs the alignment of all of it, and a buffer has the alignment it is given and no more.
    let body = with_pointers("st.global.v2.u32 [%rd1], {%r1, %r1};");
    let (of_four, _) = run_on(&body, 1, 1, Buffer::output(256, 0).with_alignment(4), Schedule::InOrder);
    assert!(matches!(kind(of_four), FaultKind::Misaligned { bytes: 8, .. }));
    let (of_eight, _) = run_on(&body, 1, 1, Buffer::output(256, 0).with_alignment(8), Schedule::InOrder);
    of_eight.expect("aligned");
    // So do variables.
    let shared = ".shared .align 4 .b8 a[16];\nmov.u32 %r1, a;\nst.shared.u64 [%r1], 0;";
    assert!(matches!(kind(run(shared, 1)), FaultKind::Misaligned { space: Space::Shared, bytes: 8, .. }));
}

#[test]
fn read_only_buffers() {
    let written = kind(run(&with_pointers("st.global.u32 [%rd5], %r1;"), 1));
    assert!(matches!(written, FaultKind::ReadOnly { .. }));
}

#[test]
fn undefined_registers() {
    let used = kind(run("add.u32 %r2, %r3, 1;", 1));
    assert_eq!(used, FaultKind::UndefinedRegister { name: "%r3".into() });
    let guard = kind(run("@%p1 bra END;\nEND:", 1));
    assert_eq!(guard, FaultKind::UndefinedRegister { name: "%p1".into() });
    let stored = kind(run(&with_pointers("st.global.u32 [%rd4], %r7;"), 1));
    assert_eq!(stored, FaultKind::UndefinedRegister { name: "%r7".into() });
    // A copy is not a use, but the copy is undefined too.
    run("mov.u32 %r2, %r3;", 1).expect("copied only");
    assert_eq!(
        kind(run("mov.u32 %r2, %r3;\nadd.u32 %r4, %r2, 1;", 1)),
        FaultKind::UndefinedRegister { name: "%r2".into() }
    );
    let packed = kind(run("mov.u16 %rs1, 1;\nmov.b32 %r2, {%rs1, %rs2};\nadd.u32 %r4, %r2, 1;", 1));
    assert_eq!(packed, FaultKind::UndefinedRegister { name: "%r2".into() });
    // Only one thread takes the path that defines it.
    let partial = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 mov.u32 %r2, 1;\nadd.u32 %r3, %r2, 1;";
    assert_eq!(fault(run(partial, 2)).thread, [1, 0, 0]);
}

#[test]
fn uninitialised_memory() {
    let output = kind(run(&with_pointers("ld.global.u32 %r2, [%rd4];"), 1));
    assert!(matches!(output, FaultKind::UninitialisedRead { space: Space::Global, .. }));
    let shared = kind(run(
        ".shared .align 4 .b8 a[16];\nmov.u32 %r1, a;\nst.shared.u16 [%r1], 7;\nld.shared.u32 %r2, [%r1];",
        1,
    ));
    // The first byte that has no value is named: the third.
    assert!(matches!(shared, FaultKind::UninitialisedRead { space: Space::Shared, address } if address % 4 == 2));
    let local = kind(run(".local .align 4 .b8 a[16];\nld.local.u32 %r2, [a];", 1));
    assert!(matches!(local, FaultKind::UninitialisedRead { space: Space::Local, .. }));
}

const SHARE: &str =
    ".shared .align 4 .b8 a[512];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, a;\nmad.lo.u32 %r3, %r1, 4, %r2;\n";

#[test]
fn races_in_shared_memory() {
    let schedules =
        [Schedule::InOrder, Schedule::Reversed, Schedule::RoundRobin, Schedule::Random(1), Schedule::Random(2)];
    let run = |body: &str, schedule| run_on(body, 1, 64, Buffer::output(256, 0), schedule).0;
    for schedule in schedules {
        let all_write_one = format!("{SHARE}st.shared.u32 [%r2], %r1;");
        let race = kind(run(&all_write_one, schedule));
        assert!(matches!(race, FaultKind::Race { space: Space::Shared, kind: RaceKind::WriteWrite, .. }), "{race:?}");
        let neighbour = |between: &str| {
            format!("{SHARE}st.shared.u32 [%r3], %r1;\n{between}xor.b32 %r4, %r3, 4;\nld.shared.u32 %r5, [%r4];")
        };
        // `a` is aligned to 4, so that `xor 4` may leave it by a word; the pairs are right where it does not.
        let pair = |between: &str| neighbour(between).replace(".align 4", ".align 8");
        assert!(matches!(
            kind(run(&pair(""), schedule)),
            FaultKind::Race { kind: RaceKind::WriteRead | RaceKind::ReadWrite, .. }
                | FaultKind::UninitialisedRead { .. }
        ));
        run(&pair("bar.sync 0;\n"), schedule).expect("ordered by the barrier");
        run(&pair("bar.warp.sync -1;\n"), schedule).expect("ordered within the warp");
        // A second write after the reads of the other lane needs a second barrier.
        let again = format!("{}\nst.shared.u32 [%r3], %r5;", pair("bar.sync 0;\n"));
        assert!(matches!(kind(run(&again, schedule)), FaultKind::Race { .. }));
        let twice = format!("{}\nbar.sync 0;\nst.shared.u32 [%r3], %r5;", pair("bar.sync 0;\n"));
        run(&twice, schedule).expect("ordered by two barriers");
    }
}

#[test]
fn a_race_names_both_parties() {
    let found = fault(run(&format!("{SHARE}st.shared.u32 [%r2], %r1;"), 2));
    let FaultKind::Race { other, .. } = &found.kind else { panic!("{found}") };
    assert_eq!((found.thread, other.thread), ([1, 0, 0], [0, 0, 0]));
    assert_eq!(found.line, other.line);
}

#[test]
fn a_warp_barrier_does_not_order_other_warps() {
    let across = format!(
        "{SHARE}st.shared.u32 [%r3], %r1;\nbar.warp.sync -1;\nxor.b32 %r4, %r3, 128;\nld.shared.u32 %r5, [%r4];"
    );
    let across = across.replace(".align 4", ".align 256");
    assert!(matches!(kind(run(&across, 64)), FaultKind::Race { .. } | FaultKind::UninitialisedRead { .. }));
    // A shuffle orders no memory at all.
    let shuffled = format!(
        "{SHARE}st.shared.u32 [%r3], %r1;\nshfl.sync.bfly.b32 %r6, %r1, 1, 31, -1;\nxor.b32 %r4, %r3, 4;\nld.shared.u32 %r5, [%r4];"
    );
    assert!(matches!(kind(run(&shuffled.replace(".align 4", ".align 8"), 64)), FaultKind::Race { .. }));
}

/// What a thread does after `bar.arrive` is not ordered before those that wait there.
#[test]
fn an_arrival_orders_only_what_came_before() {
    let body = |early: &str, late: &str| {
        format!(
            "{SHARE}and.b32 %r4, %r1, 31;\nmad.lo.u32 %r3, %r4, 4, %r2;\nsetp.ge.u32 %p1, %r1, 32;\n@%p1 bra CONSUME;\n{early}\n\
             bar.arrive 1, 64;\n{late}\nbra DONE;\nCONSUME:\nbar.sync 1, 64;\nld.shared.u32 %r5, [%r3];\nDONE:"
        )
    };
    let store = "st.shared.u32 [%r3], %r4;";
    for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::Random(4)] {
        let run = |body: &str| run_on(body, 1, 64, Buffer::output(4, 0), schedule).0;
        run(&body(store, "")).expect("written before the arrival");
        let late = kind(run(&body("", store)));
        assert!(matches!(late, FaultKind::Race { .. } | FaultKind::UninitialisedRead { .. }), "{late:?}");
        assert!(matches!(kind(run(&body(store, store))), FaultKind::Race { .. }));
    }
}

/// Many readers, then a writer, round after round: the readers' lists are used again without mixing bytes up.
#[test]
fn rounds_of_reading_and_writing() {
    let body = format!(
        "{SHARE}mov.u32 %r6, 0;\nL:\nst.shared.u32 [%r3], %r1;\nbar.sync 0;\nld.shared.u32 %r4, [%r2];\nld.shared.u32 %r5, [%r2+4];\n\
         ld.shared.u32 %r7, [%r2+128];\nbar.sync 0;\nadd.u32 %r6, %r6, 1;\nsetp.lt.u32 %p1, %r6, 4;\n@%p1 bra L;"
    );
    for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::RoundRobin, Schedule::Random(4)] {
        run_on(&body, 1, 64, Buffer::output(4, 0), schedule).0.expect("two barriers a round");
        let without = body.replacen("bar.sync 0;\nadd", "add", 1);
        assert!(matches!(kind(run_on(&without, 1, 64, Buffer::output(4, 0), schedule).0), FaultKind::Race { .. }));
    }
}

#[test]
fn races_across_the_grid() {
    let body = |address: &str| with_pointers(&format!("mov.u32 %r2, %ctaid.x;\nst.global.u32 [{address}], %r2;"));
    let run = |body: &str| run_on(body, 3, 1, Buffer::scratch(256), Schedule::InOrder).0;
    let found = fault(run(&body("%rd1")));
    let FaultKind::Race { space: Space::Global, kind: RaceKind::WriteWrite, other, .. } = &found.kind else {
        panic!("{found}")
    };
    assert_eq!((found.block, other.block), ([1, 0, 0], [0, 0, 0]));
    assert_eq!(found.text, "st.global.u32 [%rd1], %r2;");
    // One block writes what another reads.
    let read = "mov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd6, %r2, 4;\nadd.u64 %rd6, %rd1, %rd6;\nst.global.u32 [%rd6], %r2;\n\
                setp.ne.u32 %p1, %r2, 2;\n@%p1 bra END;\nld.global.u32 %r3, [%rd1];\nEND:";
    let (result, _) = run_on(&with_pointers(read), 3, 1, Buffer::in_out(vec![0; 256]), Schedule::InOrder);
    assert!(matches!(kind(result), FaultKind::Race { kind: RaceKind::WriteRead, .. }));
    // The same in the other order of blocks.
    let (result, _) = run_on(
        &with_pointers(&read.replace("%r2, 2", "%r2, 0").replace("[%rd1];\nEND", "[%rd1+8];\nEND")),
        3,
        1,
        Buffer::in_out(vec![0; 256]),
        Schedule::InOrder,
    );
    assert!(matches!(kind(result), FaultKind::Race { kind: RaceKind::ReadWrite, .. }));
}

/// Atomics of two blocks do not race with each other, but with a plain access of a third.
#[test]
fn atomics_race_with_plain_accesses_of_other_blocks() {
    let body = |plain: &str, block: u32| {
        with_pointers(&format!(
            "mov.u32 %r2, %ctaid.x;\nsetp.eq.u32 %p1, %r2, {block};\n@%p1 bra PLAIN;\nred.global.add.u32 [%rd1], 1;\nbra DONE;\nPLAIN:\n{plain}\nDONE:"
        ))
    };
    let run = |body: &str| run_on(body, 3, 1, Buffer::in_out(vec![0; 256]), Schedule::InOrder).0;
    run(&body("red.global.add.u32 [%rd1], 1;", 1)).expect("atomics only");
    for block in [0, 2] {
        assert!(matches!(kind(run(&body("ld.global.u32 %r3, [%rd1];", block))), FaultKind::Race { .. }));
        assert!(matches!(kind(run(&body("st.global.u32 [%rd1], 5;", block))), FaultKind::Race { .. }));
    }
}

#[test]
fn threads_of_a_block_race_on_global_memory_too() {
    let body = with_pointers("st.global.u32 [%rd1], %r1;");
    assert!(matches!(kind(run(&body, 2)), FaultKind::Race { space: Space::Global, .. }));
    let ordered = with_pointers(
        "setp.eq.u32 %p1, %r1, 0;\n@%p1 st.global.u32 [%rd1], %r1;\nbar.sync 0;\nld.global.u32 %r2, [%rd1];",
    );
    run_on(&ordered, 1, 64, Buffer::scratch(256), Schedule::Random(3)).0.expect("ordered by the barrier");
}

#[test]
fn equal_writes_may_be_allowed() {
    let module = parsed(&module(1, "ld.param.u64 %rd1, [p0];\nst.global.u32 [%rd1], 7;\nret;"));
    for (grid, block) in [(1, 8), (8, 1)] {
        let mut memory = Memory::new();
        let output = memory.output(4, 0);
        let launch = Launch::new(&module, "k").grid(grid).block(block).arg(output);
        assert!(matches!(
            kind(launch.clone().run(&mut memory.clone())),
            FaultKind::Race { kind: RaceKind::WriteWrite, .. }
        ));
        launch.allow_equal_writes().run(&mut memory).expect("equal values");
        assert_eq!(memory.bytes(output), [7, 0, 0, 0]);
    }
}

#[test]
fn outputs_are_written_once() {
    let twice = with_pointers("st.global.u32 [%rd4], 1;\nst.global.u32 [%rd4], 2;");
    let found = kind(run(&twice, 1));
    assert!(matches!(found, FaultKind::WrittenTwice { first: 1, second: 2, .. }));
    run(&with_pointers("st.global.u32 [%rd4], 1;\nst.global.u32 [%rd4], 1;"), 1).expect("the same value");
    run_on(&twice, 1, 1, Buffer::scratch(256), Schedule::InOrder).0.expect("scratch may change");
}

#[test]
fn unwritten_bytes_are_reported() {
    let module = parsed(&module(
        1,
        &format!("{}st.global.u8 [%rd1+5], 9;\nst.global.u16 [%rd1+8], 9;\nret;", "ld.param.u64 %rd1, [p0];\n"),
    ));
    let mut memory = Memory::new();
    let output = memory.output(12, 0xEE);
    Launch::new(&module, "k").arg(output).run(&mut memory).expect("no fault");
    assert_eq!(memory.unwritten(output), [0..5, 6..8, 10..12]);
    assert_eq!(memory.check_written(output).expect_err("gaps").ranges.len(), 3);
    assert_eq!(memory.bytes(output)[4..7], [0xEE, 9, 0xEE]);
}

#[test]
fn non_coherent_loads_of_written_bytes() {
    let body = with_pointers("st.global.u32 [%rd4], 1;\nld.global.nc.u32 %r2, [%rd4];");
    let (result, _) = run_on(&body, 1, 1, Buffer::scratch(256), Schedule::InOrder);
    assert!(matches!(kind(result), FaultKind::NonCoherentLoad { .. }));
}

#[test]
fn barriers_reached_by_part_of_the_block() {
    let skipped = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 40;\n@%p1 bra END;\nbar.sync 0;\nEND:\nret;";
    for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::Random(9)] {
        let found = run_on(skipped, 1, 64, Buffer::output(4, 0), schedule).0;
        let FaultKind::PartialBarrier { barrier: 0, expected: 64, missing, reason, .. } = kind(found) else {
            panic!("another")
        };
        assert_eq!((missing, reason.as_str()), ([40, 0, 0], "has exited"));
    }
    let other = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bar.sync 1;\n@!%p1 bar.sync 0;";
    assert!(matches!(kind(run(other, 64)), FaultKind::PartialBarrier { .. }));
    // A count that the warps present cannot reach.
    assert!(matches!(kind(run("bar.sync 0, 64;", 32)), FaultKind::PartialBarrier { arrived: 32, expected: 64, .. }));
    run("bar.sync 0, 64;", 64).expect("two warps");
}

#[test]
fn divergent_barriers() {
    let duplicated = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bra A;\nbar.sync 0;\nbra END;\nA:\nbar.sync 0;\nEND:\nret;";
    let found = fault(run(duplicated, 64));
    assert!(matches!(found.kind, FaultKind::DivergentBarrier { barrier: 0, .. }), "{found}");
    // Without .aligned the ISA allows it.
    run(&duplicated.replace("bar.sync 0", "barrier.sync 0"), 64).expect("unaligned barriers");
}

#[test]
fn invalid_barriers() {
    assert!(matches!(kind(run("mov.u32 %r1, 16;\nbar.sync %r1;", 32)), FaultKind::InvalidBarrier(_)));
    assert!(matches!(kind(run("bar.sync 0, 33;", 64)), FaultKind::InvalidBarrier(_)));
    let disagree = "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 32;\nselp.u32 %r2, 64, 96, %p1;\nbarrier.sync 0, %r2;";
    assert!(matches!(kind(run(disagree, 64)), FaultKind::InvalidBarrier(_)));
}

#[test]
fn shuffles_with_an_absent_lane() {
    let exited = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 5;\n@%p1 bra END;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nEND:\nret;";
    for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::RoundRobin] {
        let found = run_on(exited, 1, 32, Buffer::output(4, 0), schedule).0;
        assert!(matches!(kind(found), FaultKind::AbsentLane { lane: 5, mask: 0xFFFF_FFFF, .. }));
    }
    let never_there = "mov.u32 %r1, %tid.x;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;";
    assert!(matches!(kind(run(never_there, 24)), FaultKind::AbsentLane { lane: 24, .. }));
    run(&never_there.replace("-1", "0xFFFFFF").replace("bfly", "idx"), 24).expect("the lanes that are there");
    let elsewhere = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 5;\n@%p1 bra B;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nbra END;\n\
                     B:\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nEND:\nret;";
    assert!(matches!(kind(run(elsewhere, 32)), FaultKind::AbsentLane { .. }));
    let at_barrier = "mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 5;\n@%p1 bra B;\nshfl.sync.bfly.b32 %r2, %r1, 1, 31, -1;\nB:\nbar.sync 0;";
    let stuck = kind(run(at_barrier, 32));
    assert!(matches!(stuck, FaultKind::AbsentLane { lane: 5, .. } | FaultKind::PartialBarrier { .. }), "{stuck:?}");
}

#[test]
fn member_masks() {
    let without_self = "mov.u32 %r1, %tid.x;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, 0xFFFFFFFE;";
    assert_eq!(kind(run(without_self, 32)), FaultKind::MaskWithoutSelf { mask: 0xFFFF_FFFE, lane: 0 });
    // Half warps may shuffle by themselves, but not read the other half.
    let halves = |distance: u32| {
        format!(
            "mov.u32 %r1, %tid.x;\nsetp.lt.u32 %p1, %r1, 16;\nselp.b32 %r2, 0xFFFF, 0xFFFF0000, %p1;\nshfl.sync.bfly.b32 %r3, %r1, {distance}, 31, %r2;"
        )
    };
    run(&halves(8), 32).expect("within the half");
    assert!(matches!(kind(run(&halves(16), 32)), FaultKind::ShuffleOutsideMask { .. }));
}

#[test]
fn loops_that_do_not_end() {
    let module = parsed(&module(0, "L:\nbra L;"));
    let result = Launch::new(&module, "k").step_limit(1000).run(&mut Memory::new());
    assert_eq!(kind(result), FaultKind::StepLimit { limit: 1000 });
}

#[test]
fn traps_and_undefined_results() {
    assert_eq!(kind(run("trap;", 1)), FaultKind::Trap);
    for instruction in ["bfe.u64 %rd1, %rd1, 256, 1;", "bfi.b64 %rd1, %rd1, %rd1, 1, 256;"] {
        let field = kind(run(&format!("mov.u64 %rd1, 1;\n{instruction}"), 1));
        assert!(matches!(field, FaultKind::UndefinedResult(_)));
    }
    let divided = "mov.u32 %r1, %tid.x;\ndiv.u32 %r2, 5, %r1;";
    assert!(matches!(kind(run(divided, 1)), FaultKind::UndefinedResult(_)));
}

#[test]
fn launches_are_checked() {
    let text = module(1, "ret;").replace("{\n.reg", ".reqntid 32\n{\n.reg");
    let module = Module::parse(&text).expect("valid");
    let mut memory = Memory::new();
    let input = memory.input(vec![0]);
    let good = Launch::new(&module, "k").block(32).arg(input);
    good.run(&mut memory).expect("valid");
    let other = |launch: Launch<'_>| launch.run(&mut Memory::new()).expect_err("must be refused");
    assert_eq!(other(Launch::new(&module, "j")), LaunchError::UnknownEntry("j".into()));
    assert!(matches!(
        other(Launch::new(&module, "k").block(32)),
        LaunchError::ArgumentCount { expected: 1, got: 0, .. }
    ));
    assert!(matches!(
        other(Launch::new(&module, "k").block(32).arg(1u32)),
        LaunchError::ArgumentSize { expected: 8, got: 4, .. }
    ));
    assert!(matches!(other(good.clone().block(64)), LaunchError::Geometry(_)));
    assert!(matches!(other(good.clone().grid(0)), LaunchError::Geometry(_)));
    assert!(matches!(other(good.clone().block(2048)), LaunchError::Geometry(_)));
    assert!(matches!(other(good.dynamic_shared(4)), LaunchError::Geometry(_)));
    let entry = module.entries().next().expect("one entry");
    assert_eq!((entry.name.as_str(), entry.required_threads, entry.parameters[0].bytes), ("k", Some([32, 1, 1]), 8));
    assert_eq!((module.version(), module.target()), ("8.1", "sm_90"));
}

/// Refused when the module is parsed, with the line.
#[test]
fn unknown_instructions_are_never_guessed() {
    let refused = |instruction: &str| {
        let text = module(1, instruction);
        let error = Module::parse(&text).expect_err(instruction);
        assert_eq!((error.line, error.text.as_str()), (10, instruction), "{error}");
        error.kind
    };
    for instruction in [
        "rcp.approx.f32 %r1, %r2;",
        "add.ftz.f32 %r1, %r2, %r3;",
        "ex2.approx.f32 %r1, %r2;",
        "div.full.f32 %r1, %r2, %r3;",
        "shfl.bfly.b32 %r1, %r2, 1, 31;",
        "vote.all.pred %p1, %p2;",
        "activemask.b32 %r1;",
        "cvt.f32.s32 %r1, %r2;",
        "cvt.rn.s32.f32 %r1, %r2;",
        "cvt.rn.e4m3x2.f32 %rs1, %r1, %r2;",
        "cvt.bf16.f32 %rs1, %r1;",
        "setp.lo.s32 %p1, %r1, %r2;",
        "setp.lt.b32 %p1, %r1, %r2;",
        "mul.wide.u64 %rd1, %rd2, %rd3;",
        "mul.u32 %r1, %r2, %r3;",
        "ld.global.v3.u32 {%r1, %r2, %r3}, [%rd1];",
        "ld.shared::cluster.u32 %r1, [%r2];",
        "atom.global.add.f32 %r1, [%rd1], %r2;",
        "cp.async.bulk.wait_group 0;",
        "min.ftz.f32 %r1, %r2, %r3;",
        "fma.f32 %r1, %r2, %r3, %r4;",
        "wgmma.fence.sync.aligned;",
        "st.const.u32 [%rd1], %r1;",
        "frobnicate.u32 %r1;",
    ] {
        assert!(matches!(refused(instruction), ParseErrorKind::UnsupportedInstruction(_)), "{instruction}");
    }
    assert!(matches!(refused("mov.u64 %rd1, %clock64;"), ParseErrorKind::UnsupportedInstruction(_)));
    assert!(matches!(refused("mov.u32 %r1, %smid;"), ParseErrorKind::UnsupportedInstruction(_)));
    assert!(matches!(refused("mov.u32 %r1, %nope;"), ParseErrorKind::UnknownName(_)));
    assert!(matches!(refused("bra NOWHERE;"), ParseErrorKind::UnknownName(_)));
    for instruction in [
        "add.u32 %r1, %rs2, %r3;",
        "add.u32 %r1, %r2;",
        "add.u32 %r1, %r2, %r3, %r4;",
        "add.u16 %rs1, %rs2, 65536;",
        "add.f32 %r1, %r2, 1;",
        "mov.u32 %tid.x, 1;",
        "ld.global.u32 %rs1, [%rd1];",
        "bfe.u32 %r1, %r2, %rd1, 3;",
    ] {
        assert!(matches!(refused(instruction), ParseErrorKind::Operand(_)), "{instruction}");
    }
    assert!(matches!(refused(".reg .b32 %r<4>;"), ParseErrorKind::Redeclared(_)));
    assert!(matches!(refused(".tex .u64 t;"), ParseErrorKind::UnsupportedDeclaration(_)));
    assert!(matches!(refused("add.u32 %r1 %r2;"), ParseErrorKind::Syntax(_)));
}
