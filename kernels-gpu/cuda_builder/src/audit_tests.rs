//! Small samples of bad PTX, one for each rule.

use super::*;
use crate::targets::{Kind, Rule, Target, TargetList};

fn list() -> TargetList {
    let rule = |entry: &str, barriers, wide_loads| Rule { entry: entry.to_owned(), barriers, wide_loads };
    TargetList { targets: vec![], registers: vec![], rules: vec![rule("generic", 1, false), rule("", 1, true)] }
}

/// An entry that passes, with more statements put in.
fn module(name: &str, more: &str) -> String {
    format!(
        ".visible .entry {name}()\n{{\nld.global.v4.b32 {{%r1,%r2,%r3,%r4}}, [%rd1];\nbar.sync 0;\n{more}\nret;\n}}\n"
    )
}

fn only_finding(more: &str) -> String {
    let mut findings = audit_ptx(&module("k", more), &list());
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings.remove(0)
}

#[test]
fn a_clean_entry_passes() {
    let more =
        "add.rn.f32 %r1, %r2, %r3;\nfma.rn.f32 %r1, %r2, %r3, %r4;\nadd.s32 %r1, %r2, %r3;\nmax.bf16x2 %r1, %r2, %r3;";
    assert_eq!(audit_ptx(&module("k", more), &list()), Vec::<String>::new());
}

#[test]
fn each_forbidden_instruction_is_found() {
    let cases = [
        ("call.uni panic, ();", "a call"),
        ("@%p1 st.local.b32 [%rd1], %r1;", "local memory"),
        (".local .align 16 .b8 __local_depot0[16];", "local memory"),
        ("ld.global.nc.L1::no_allocate.b32 %r1, [%rd1];", "wait"),
        ("ldu.global.b32 %r1, [%rd1];", "wait"),
        ("rcp.approx.f32 %r1, %r2;", "approximate"),
        ("div.full.f32 %r1, %r2, %r3;", "approximate"),
        ("add.rn.ftz.f32 %r1, %r2, %r3;", "flushed"),
        ("mul.f32 %r1, %r2, %r3;", "contract"),
        ("mad.f32 %r1, %r2, %r3, %r4;", "contract"),
        ("mul.bf16x2 %r1, %r2, %r3;", "contract"),
    ];
    for (statement, word) in cases {
        assert!(only_finding(statement).contains(word), "{statement}");
    }
}

#[test]
fn functions_outside_entries_are_found() {
    let text = format!(".extern .func panic\n(\n)\n;\n{}", module("k", ""));
    assert_eq!(audit_ptx(&text, &list()), ["an undefined function: `.extern .func panic`"]);
    let text = format!(".func (.param .b32 r) helper()\n{{\nret;\n}}\n{}", module("k", ""));
    assert_eq!(audit_ptx(&text, &list()), ["a function that was not inlined: `.func (.param .b32 r) helper()`"]);
}

#[test]
fn a_duplicated_and_a_lost_barrier_are_found() {
    assert_eq!(only_finding("barrier.sync 0;"), "k: 2 barriers where 1 are expected");
    assert_eq!(only_finding("barrier.cta.sync.aligned.all 0;"), "k: 2 barriers where 1 are expected");
    assert_eq!(audit_ptx(&module("k", "bar.warp.sync -1;\nbarrier.cluster.arrive;"), &list()), Vec::<String>::new());
    let lost = module("k", "").replace("bar.sync 0;", "");
    assert_eq!(audit_ptx(&lost, &list()), ["k: 0 barriers where 1 are expected"]);
}

#[test]
fn accesses_before_the_wait_for_the_previous_grid_are_found() {
    let early = module("k", "griddepcontrol.wait;");
    let wait_first = |text: &str| text.replace("ld.global.v4", "griddepcontrol.wait;\nld.global.v4");
    assert_eq!(audit_ptx(&early, &list()), ["k: `ld.global.v4.b32` before the wait for the previous grid"]);
    assert_eq!(audit_ptx(&wait_first(&module("k", "")), &list()), Vec::<String>::new());
    assert_eq!(audit_ptx(&wait_first(&early), &list()), ["k: 2 waits for the previous grid"]);
    let target = |cfg: &[&str]| Target {
        name: "sm_90".to_owned(),
        kind: Kind::Cubin,
        ptx: 80,
        cfg: cfg.iter().map(|cfg| (*cfg).to_owned()).collect(),
    };
    let text = format!(".version 8.0\n.target sm_90\n{}", module("k", ""));
    assert_eq!(audit_target(&text, &target(&["sm_90_up"])), ["k: no wait for the previous grid"]);
    assert_eq!(audit_target(&wait_first(&text), &target(&["sm_90_up"])), Vec::<String>::new());
    assert_eq!(audit_target(&text, &target(&[])), Vec::<String>::new());
}

#[test]
fn a_missing_wide_load_is_found_except_in_generic_entries() {
    let narrow = |name| module(name, "").replace("ld.global.v4.b32", "ld.global.v2.b32");
    assert_eq!(audit_ptx(&narrow("k"), &list()), ["k: no 16-byte load"]);
    assert_eq!(audit_ptx(&narrow("k_generic"), &list()), Vec::<String>::new());
}

#[test]
fn load_widths() {
    let widths =
        ["ld.global.v4.u32", "ld.global.nc.L2::128B.v2.b64", "ld.global.b128", "ld.global.v8.b32", "ld.global.v2.f32"];
    assert_eq!(widths.map(loaded_bytes), [16, 16, 16, 32, 8]);
    assert_eq!(["ld.shared.v4.b32", "ld.param.b64", "st.global.v4.b32"].map(loaded_bytes), [0, 0, 0]);
    let copies = ["cp.async.cg.shared.global [%r1], [%rd1], 16", "cp.async.ca.shared.global [%r1], [%rd1], 4, %r2"];
    assert_eq!(copies.map(loaded_bytes), [16, 4]);
    assert_eq!(["cp.async.commit_group", "cp.async.wait_group 1"].map(loaded_bytes), [0, 0]);
}

#[test]
fn spills_and_stack_are_found() {
    let clean = Resources { name: "k".to_owned(), registers: 40, shared: 64, local: 0, spills: 0 };
    let spilled = Resources { local: 16, spills: 8, ..clean.clone() };
    assert_eq!(audit_resources(&[clean]), Vec::<String>::new());
    assert_eq!(audit_resources(&[spilled]), ["k: 16 bytes of local memory", "k: 8 bytes of spills"]);
}

#[test]
fn an_empty_module_and_an_unmatched_entry_are_found() {
    assert_eq!(audit_ptx(".version 7.0\n", &list()), ["there is no entry"]);
    let no_rules = TargetList { targets: vec![], registers: vec![], rules: vec![] };
    assert_eq!(audit_ptx(&module("k", ""), &no_rules), ["k: no rule of the target list matches this entry"]);
}

#[test]
fn the_ptx_of_another_target_is_found() {
    let target = Target { name: "sm_90".to_owned(), kind: Kind::Ptx, ptx: 80, cfg: vec![] };
    assert_eq!(audit_target(".version 8.0\n.target sm_90\n.address_size 64\n", &target), Vec::<String>::new());
    for other in
        [".version 7.0\n.target sm_80\n", ".version 8.0\n.target sm_90a\n", ".version 7.8\n.target sm_90\n", ""]
    {
        assert_eq!(audit_target(other, &target).len(), 1, "{other}");
    }
}
