//! Asynchronous copies, and every way to use one too early.

mod support;

use ptx_vm::{FaultKind, Launch, LaunchError, Memory, Module, RaceKind, Report, Space};
use support::{kind, module, parsed};

/// Runs a body over an output of 256 bytes (`p0`) and an input of 256 ascending bytes (`p1`); `%r2` is this thread's shared slot of 16
/// bytes, `%r3` that of its neighbour (the first and second thread are each other's), `%rd4` and `%rd5` its part of output and input.
fn run(body: &str, threads: u32) -> (Result<Report, LaunchError>, Vec<u8>) {
    let text = module(
        2,
        &format!(
            ".shared .align 16 .b8 ring[1024];\nld.param.u64 %rd1, [p0];\nld.param.u64 %rd2, [p1];\nmov.u32 %r1, %tid.x;\n\
             mul.wide.u32 %rd3, %r1, 16;\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, %rd3;\nmov.u32 %r2, ring;\n\
             xor.b32 %r3, %r1, 1;\nshl.b32 %r3, %r3, 4;\nadd.u32 %r3, %r3, %r2;\nshl.b32 %r1, %r1, 4;\nadd.u32 %r2, %r2, %r1;\n{body}\nret;"
        ),
    );
    let module: Module = parsed(&text);
    let mut memory = Memory::new();
    let output = memory.output(256, 0xEE);
    let input = memory.input((0..=255).collect::<Vec<u8>>());
    let result = Launch::new(&module, "k").block(threads).arg(output).arg(input).run(&mut memory);
    (result, memory.bytes(output).to_vec())
}

fn fault_of(body: &str, threads: u32) -> FaultKind {
    kind(run(body, threads).0)
}

const COPY: &str = "cp.async.cg.shared.global [%r2], [%rd5], 16;\n";
const OUT: &str = "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r2];\nst.global.v4.u32 [%rd4], {%r4, %r5, %r6, %r7};\n";
const OUT_OF_NEIGHBOUR: &str =
    "ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];\nst.global.v4.u32 [%rd4], {%r4, %r5, %r6, %r7};\n";

#[test]
fn a_copy_that_was_waited_for_has_arrived() {
    for wait in ["cp.async.commit_group;\ncp.async.wait_group 0;\n", "cp.async.wait_all;\n"] {
        let (result, bytes) = run(&format!("{COPY}{wait}{OUT}"), 16);
        result.expect("no fault");
        assert_eq!(bytes, (0..=255).collect::<Vec<u8>>());
    }
}

#[test]
fn a_neighbour_also_needs_the_barrier() {
    let wait = "cp.async.commit_group;\ncp.async.wait_group 0;\n";
    let (result, bytes) = run(&format!("{COPY}{wait}bar.sync 0;\n{OUT_OF_NEIGHBOUR}"), 2);
    result.expect("no fault");
    assert_eq!(bytes[..32], [(16..32).collect::<Vec<u8>>(), (0..16).collect()].concat());
    let race = fault_of(&format!("{COPY}{wait}{OUT_OF_NEIGHBOUR}"), 2);
    let found = matches!(
        race,
        FaultKind::Race { space: Space::Shared, kind: RaceKind::WriteRead, .. }
            | FaultKind::UninitialisedRead { space: Space::Shared, .. }
    );
    assert!(found, "{race}");
    let pending = fault_of(&format!("{COPY}bar.sync 0;\n{OUT_OF_NEIGHBOUR}"), 2);
    assert!(matches!(pending, FaultKind::CopyPending { .. }), "{pending}");
}

#[test]
fn the_destination_belongs_to_the_copy_until_the_wait() {
    let commit = "cp.async.commit_group;\n";
    let wait = "cp.async.wait_group 0;\n";
    for early in
        [OUT.to_owned(), format!("{commit}{OUT}"), format!("{wait}{OUT}"), "st.shared.u32 [%r2+12], %r1;".into()]
    {
        let pending = fault_of(&format!("{COPY}{early}"), 1);
        assert!(matches!(pending, FaultKind::CopyPending { copy, .. } if copy.line == 23), "{early}: {pending}");
    }
    // Two copies to one place.
    let twice = fault_of(&format!("{COPY}{COPY}"), 1);
    assert!(matches!(twice, FaultKind::CopyPending { .. }), "{twice}");
}

#[test]
fn groups_end_oldest_first() {
    let two = "cp.async.cg.shared.global [%r2], [%rd5], 16;\ncp.async.commit_group;\n\
               cp.async.cg.shared.global [%r2+256], [%rd5+16], 16;\ncp.async.commit_group;\ncp.async.wait_group 1;\n";
    let (result, bytes) = run(&format!("{two}{OUT}"), 1);
    result.expect("the older group has arrived");
    assert_eq!(bytes[..16], (0..16).collect::<Vec<u8>>());
    let newer = fault_of(&format!("{two}ld.shared.u32 %r4, [%r2+256];"), 1);
    assert!(matches!(newer, FaultKind::CopyPending { .. }), "{newer}");
    // An empty group counts.
    let (result, _) =
        run(&format!("{COPY}cp.async.commit_group;\ncp.async.commit_group;\ncp.async.wait_group 1;\n{OUT}"), 1);
    result.expect("the full group is not the newest");
}

#[test]
fn short_sources_are_filled_with_zeros() {
    let body = format!("mov.u32 %r9, 5;\ncp.async.cg.shared.global [%r2], [%rd5], 16, %r9;\ncp.async.wait_all;\n{OUT}");
    let (result, bytes) = run(&body, 1);
    result.expect("no fault");
    assert_eq!(bytes[..16], [0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let (result, bytes) = run(
        &format!(
            "cp.async.ca.shared.global [%r2], [%rd5], 8;\ncp.async.ca.shared::cta.global.L2::128B [%r2+8], [%rd5+20], 4;\n\
         cp.async.ca.shared.global [%r2+12], [%rd5], 4, 0;\ncp.async.wait_all;\n{OUT}"
        ),
        1,
    );
    result.expect("no fault");
    assert_eq!(bytes[..16], [0, 1, 2, 3, 4, 5, 6, 7, 20, 21, 22, 23, 0, 0, 0, 0]);
    let too_much = fault_of("cp.async.ca.shared.global [%r2], [%rd5], 4, 5;", 1);
    assert!(matches!(too_much, FaultKind::UndefinedResult(_)), "{too_much}");
}

#[test]
fn sources_and_destinations_are_checked() {
    let outside = fault_of("cp.async.cg.shared.global [%r2], [%rd5+256], 16;", 1);
    assert!(matches!(outside, FaultKind::OutOfBounds { space: Space::Global, bytes: 16, .. }), "{outside}");
    let outside = fault_of("cp.async.cg.shared.global [%r2+1024], [%rd5], 16;", 1);
    assert!(matches!(outside, FaultKind::OutOfBounds { space: Space::Shared, .. }), "{outside}");
    let odd = fault_of("cp.async.cg.shared.global [%r2], [%rd5+8], 16;", 1);
    assert!(matches!(odd, FaultKind::Misaligned { space: Space::Global, .. }), "{odd}");
    let odd = fault_of("cp.async.cg.shared.global [%r2+8], [%rd5], 16;", 1);
    assert!(matches!(odd, FaultKind::Misaligned { space: Space::Shared, .. }), "{odd}");
    let empty = fault_of("cp.async.cg.shared.global [%r2], [%rd4], 16;", 1);
    assert!(matches!(empty, FaultKind::UninitialisedRead { space: Space::Global, .. }), "{empty}");
    let changed = fault_of(
        "mov.u32 %r9, 7;\nst.global.v4.u32 [%rd4], {%r9, %r9, %r9, %r9};\ncp.async.cg.shared.global [%r2], [%rd4], 16;\n\
         st.global.u32 [%rd4+16], %r9;\ncp.async.wait_all;\nld.shared.u32 %r4, [%r2];\n\
         cp.async.ca.shared.global [%r2], [%rd4], 4;\natom.global.add.u32 %r5, [%rd4], 1;\ncp.async.wait_all;",
        1,
    );
    assert!(matches!(changed, FaultKind::CopySourceChanged { .. }), "{changed}");
}

#[test]
fn other_forms_are_refused() {
    for form in [
        "cp.async.cg.shared.global [%r2], [%rd5], 8;",
        "cp.async.ca.shared.global [%r2], [%rd5], 12;",
        "cp.async.bulk.shared.global [%r2], [%rd5], 16, [%r3];",
        "cp.async.mbarrier.arrive.shared.b64 [%r2];",
        "cp.async.shared.global [%r2], [%rd5], 16;",
    ] {
        let text = module(2, &format!("{form}\nret;"));
        assert!(Module::parse(&text).is_err(), "{form}");
    }
}
