//! Single changes of the shipped PTX, each of which the comparison with the reference must notice.
//!
//! A change names its place by what stands there, not by registers or lines, so that the list survives a new build of the images; a
//! change that finds its place no more fails the test, and so does one that nobody notices.

mod kernels;

use adaln_vm::images::{entry_text, text};
use adaln_vm::launches::{Alignment, stem};
use adaptive_layernorm_producers::contract::geometry::{Kind as ShapeKind, SHAPES};
use adaptive_layernorm_producers::named::Call;
use kernels::support::calls;
use kernels::support::random::{Kind, Problem};
use kernels::{Case, problem_launches, sharp};
use ptx_vm::{Module, Schedule};
use rayon::prelude::*;
use std::collections::BTreeMap;

/// Which of the lines that hold a text.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// The n-th, from 0.
    Nth(usize),
    /// The last before the first line that holds this.
    Before(&'static str),
    /// All of them.
    Every,
}
use Place::{Before, Every, Nth};

/// What happens to it.
#[derive(Clone, Copy, Debug)]
enum Edit {
    /// The line goes.
    Drop,
    /// One text for another.
    To(&'static str, &'static str),
    /// The last two operands change places.
    SwapLast,
}
use Edit::{Drop, SwapLast, To};

/// A change: of which target and entry, at the lines that hold what, and what it is.
type Mutant = (&'static str, &'static str, &'static str, Place, Edit);

const TABLE: &str = "ada_layer_norm_ptok_table_bf16__w2v3";
const TABLE_WARP: &str = "ada_layer_norm_ptok_table_bf16__w1v2";
const FP8_TABLE: &str = "ada_layer_norm_quant_fp8_ptok_table_bf16__w2v3";
const FP8: &str = "ada_layer_norm_quant_fp8_bf16__w1v2";
const FP8_ANY: &str = "layer_norm_no_affine_quant_fp8_static_bf16__any";
const STREAM: &str = "ada_layer_norm_quant_fp8_bf16__w1v2s";
const STREAM_WARPS: &str = "ada_layer_norm_quant_fp8_bf16__w2v3s";
const SM110: &str = "ada_layer_norm_quant_nvfp4_swizzled_ptok_table_bf16_sm110__v1";
const TE_WARP: &str = "ada_layer_norm_quant_nvfp4_swizzled_bf16_te__w1v2";
const SM120: &str = "layer_norm_no_affine_quant_nvfp4_swizzled_bf16_sm120__v1";
const SM120_TABLE: &str = "ada_layer_norm_quant_nvfp4_swizzled_ptok_table_bf16_sm120__v1";
const TE: &str = "layer_norm_no_affine_quant_nvfp4_swizzled_bf16_te__v1";
const PAIRS_WARP: &str = "layer_norm_no_affine_quant_nvfp4_swizzled_bf16_sm110__w1v4p";
const PAIRS_FP8: &str = "layer_norm_no_affine_quant_fp8_static_bf16__w1v4p";
const PAIRS: &str = "ada_layer_norm_quant_fp8_modfp8_bf16__w2v4p";
const RESIDENT: &str = "ada_layer_norm_quant_nvfp4_swizzled_bf16_sm110__w2v4r";
const RESIDENT_WARP: &str = "ada_layer_norm_quant_nvfp4_swizzled_modfp8_bf16_te__w1v4r";
const SIX: &str = "adaln_modulation6_bf16__aligned";

#[rustfmt::skip]
const MUTANTS: &[Mutant] = &[
    // Order between threads.
    ("sm_90",   TABLE,        "bar.sync",                 Nth(0),  Drop),
    ("sm_110a", TABLE,        "bar.sync",                 Nth(1),  Drop),
    ("sm_87",   TABLE,        "st.shared.b32",            Nth(0),  Drop),
    ("sm_80",   TABLE,        ", 512;",                   Every,   To(", 512;", ", 0;")),  // one exchange buffer for both reductions
    ("sm_100a", FP8_TABLE,    ", 15360;",                 Nth(0),  To("15360", "0")),      // one exchange buffer for the teams of a block
    ("sm_90",   TE_WARP,      "bar.sync",                 Nth(0),  Drop),                  // behind the table's stores
    ("sm_120a", TE_WARP,      "st.shared.v2.b32",         Nth(0),  Drop),
    ("sm_89",   STREAM,       "cp.async.wait_group",      Nth(0),  Drop),
    ("sm_120a", STREAM,       "cp.async.wait_group",      Nth(1),  Drop),
    ("sm_87",   STREAM_WARPS, "cp.async.wait_group",      Nth(1),  To("wait_group 1", "wait_group 2")),
    ("sm_100a", STREAM_WARPS, "cp.async.commit_group",    Nth(3),  Drop),
    ("sm_80",   STREAM,       "cp.async.cg",              Nth(1),  Drop),
    ("sm_90",   STREAM,       "cp.async.cg",              Nth(0),  To("], [", "+16], [")),
    ("sm_87",   PAIRS,        "st.shared.b32",            Nth(1),  Drop),                  // the second of a thread's lanes
    ("sm_90",   RESIDENT,     "bar.sync",                 Nth(0),  Drop),                  // behind what the block keeps
    ("sm_110a", RESIDENT,     "bar.sync",                 Nth(1),  Drop),                  // a team's own
    ("sm_100a", RESIDENT,     "bar.sync",                 Nth(2),  To(", 64;", ", 128;")), // two teams'
    ("sm_87",   RESIDENT_WARP, "bar.sync",                Nth(0),  Drop),
    ("sm_120a", RESIDENT,     "st.shared.v4.b32",         Nth(1),  Drop),                  // a quarter of the modulation
    ("sm_80",   RESIDENT,     "st.shared.v4.b32",         Nth(4),  Drop),                  // a byte's lines
    // Shuffles.
    ("sm_90",   TABLE,        "shfl.sync.bfly",           Nth(1),  To(", 8, 31", ", 4, 31")),
    ("sm_110a", TABLE_WARP,   "shfl.sync.bfly",           Nth(0),  To(", 16, 31", ", 1, 31")),
    ("sm_80",   SM110,        "shfl.sync.bfly",           Before("fma.rn.bf16x2"), To(", 1, 31", ", 2, 31")), // amax of the other half block
    ("sm_87",   TABLE,        "shfl.sync.bfly",           Nth(4),  To(", -1;", ", 65535;")),
    ("sm_100a", STREAM_WARPS, "shfl.sync.bfly",           Nth(9),  To(", 16, 31", ", 8, 31")), // the other half's total
    ("sm_90",   STREAM,       "shfl.sync.bfly",           Nth(5),  To(", 16, 31", ", 8, 31")), // two totals begin
    ("sm_90",   PAIRS_FP8,    "shfl.sync.bfly",           Nth(0),  To(", 16, 31", ", 8, 31")), // lanes of the warp's other half
    ("sm_110a", PAIRS_WARP,   "shfl.sync.bfly",           Nth(5),  To(", 16, 31", ", 8, 31")), // the other lanes' total
    // Rounding.
    ("sm_90",   TABLE,        "cvt.rn.bf16x2.f32",        Nth(0),  To("cvt.rn", "cvt.rz")),
    ("sm_110a", TABLE,        "add.rn.f32",               Before("cvt.rn.f32.u32"), To("add.rn", "add.rp")), // the butterfly
    ("sm_120a", TABLE,        "add.rn.f32",               Before("shfl.sync.bfly"), To("add.rn", "add.rz")), // two warps
    ("sm_100a", TABLE_WARP,   "add.rn.f32",               Before("cvt.rn.f32.u32"), To("add.rn", "add.rz")),
    ("sm_87",   TABLE,        "add.rn.f32",               Before("bar.sync"), To("add.rn", "add.rz")),       // two chunks
    ("sm_90",   TABLE,        "add.rn.f32",               Before("sqrt.rn"), To("add.rn", "add.rm")),        // var + eps
    ("sm_87",   TABLE,        "mul.rn.f32",               Before("sqrt.rn"), To("mul.rn", "mul.rz")),
    ("sm_120a", TABLE,        "fma.rn.f32",               Before("sqrt.rn"), To("fma.rn", "fma.rz")),        // a square
    ("sm_80",   TABLE,        "fma.rn.f32",               Before("abs.f32"), To("fma.rn", "fma.rz")),        // the mean's correction
    ("sm_90",   TABLE,        "sub.rn.f32",               Nth(0),  To("sub.rn", "sub.rz")),
    ("sm_100a", TABLE,        "sqrt.rn.f32",              Nth(0),  To("sqrt.rn", "sqrt.rz")),
    ("sm_89",   TABLE_WARP,   "rcp.rn.f32",               Nth(0),  To("rcp.rn", "rcp.rp")),
    ("sm_90",   TABLE_WARP,   "fma.rn.f32",               Before("cvt.rn.bf16x2"), To("fma.rn", "fma.rz")),  // the modulation
    ("sm_90",   FP8_TABLE,    "cvt.rn.bf16x2.f32",        Nth(2),  To("cvt.rn", "cvt.rz")),
    // Packing and selection.
    ("sm_90",   TABLE,        "cvt.rn.bf16x2.f32",        Nth(1),  SwapLast),
    ("sm_90",   FP8,          "cvt.rn.satfinite.e4m3x2",  Nth(0),  To("{l, h}", "{h, l}")),
    ("sm_120a", SIX,          "cvt.rn.bf16x2.f32",        Nth(0),  SwapLast),
    ("sm_110a", SM110,        ", 4146;",                  Nth(0),  To("4146", "12816")), // swaps no halves
    ("sm_110a", SM110,        ", 1132217212;",            Nth(0),  To("1132217212", "1132282749")), // both lines begin a code higher
    ("sm_87",   SM110,        "min.bf16x2",               Nth(0),  To("min.", "max.")),
    ("sm_90",   TE,           ", 4146;",                  Nth(0),  To("4146", "12562")),
    ("sm_110a", TE,           "cvt.rn.satfinite.e2m1x2",  Nth(0),  To("{t0, t1, t2, t3}", "{t1, t0, t2, t3}")),
    ("sm_120a", TE,           "cvt.rn.satfinite.e2m1x2",  Nth(0),  To("t3, %", "t2, %")),
    ("sm_110a", SM110,        "max.NaN.bf16x2",           Nth(0),  To("max.NaN", "max")),
    ("sm_90",   SM120,        "max.bf16x2",               Nth(0),  To("max.", "min.")),
    ("sm_100a", SM120,        ", 65537;",                 Nth(0),  To("65537", "0")), // ties up
    ("sm_90",   PAIRS_WARP,   "max.NaN.bf16x2",           Nth(7),  To("max.", "min.")), // amax of both halves of a block
    // Constants.
    ("sm_100a", SM110,        "SM110[2048]",              Nth(0),  To(" 127, 65, 127, 65, 255,", " 128, 65, 128, 65, 255,")), // 2/s itself for s = 1/8: ties to even
    ("sm_90",   SM110,        "SM110[2048]",              Nth(0),  To(" 255, 64, 255, 64, 136,", " 1, 65, 1, 65, 136,")), // above 1/s: the tie 5
    ("sm_87",   SM110,        "SM110[2048]",              Nth(0),  To(" 131, 63, 131, 63, 15, 66,", " 128, 63, 128, 63, 15, 66,")), // v not turned, byte 0x16
    ("sm_90",   SM110,        "SM110[2048]",              Nth(0),  To(" 155, 66, 155, 66,", " 156, 66, 156, 66,")), // 2/1.625, byte 0x0d
    ("sm_90",   SM120_TABLE,  "SM120[2048]",              Nth(0),  To(" 0, 65, 0, 65, 128, 72,", " 254, 64, 254, 64, 128, 72,")), // below 1/s
    ("sm_80",   SM110,        ", 1132675971;",            Nth(0),  To("1132675971", "1132610434")), // no code above 6
    ("sm_90",   SM110,        "0f3E2AAAAB",               Nth(0),  To("0f3E2AAAAB", "0f3E2AAAA0")), // 1/6
    ("sm_120a", SM110,        ", 1145325764;",            Nth(0),  To("1145325764", "1145325765")), // what code 0 is of every nibble
    ("sm_80",   FP8,          "1015021568",               Nth(0),  To("1015021568", "1023410176")), // subnormals of e4m3
    ("sm_80",   FP8_TABLE,    "167772160",                Nth(0),  To("167772160", "159383552")), // a step of e4m3
    ("sm_87",   FP8,          ", 1138753536;",            Nth(0),  To("1138753536", "1139802112")), // 448
    ("sm_89",   SM120_TABLE,  "SM120[2048]",              Nth(0),  To(" 0, 71, 0, 71,", " 0, 63, 0, 63,")), // not steep: no code above 3
    ("sm_90",   SM110,        "SM110[2048]",              Nth(0),  To(" 128, 127, 128, 127, 128, 127, 128, 127", " 0, 0, 0, 0, 128, 127, 128, 127")), // codes of a NaN block
    // Addresses, widths and bounds.
    ("sm_90",   TABLE,        "ld.global.v4",             Nth(0),  To("];", "+16];")),
    ("sm_110a", FP8,          "st.global.v2.b32",         Nth(0),  To("], {", "+8], {")),
    ("sm_90",   TABLE,        "st.global.v4.b32",         Nth(1),  Drop),
    ("sm_120a", PAIRS,        "st.global.v4.b32",         Nth(0),  To("], {", "+16], {")),
    ("sm_100a", PAIRS_WARP,   "st.global.v2.b32",         Nth(1),  Drop),
    ("sm_90",   SM110,        "st.global.u8",             Nth(1),  Drop),                           // a pad column
    ("sm_110a", SM110,        "st.global.u8",             Nth(0),  To("st.global.u8", "st.global.u16")),
    ("sm_90",   SM110,        ", 512;",                   Nth(2),  To(", 512;", ", 256;")),         // the scale layout
    ("sm_89",   PAIRS,        ", 480;",                   Nth(0),  To(", 480;", ", 448;")),          // the word of a thread's lanes
    ("sm_89",   RESIDENT,     "min.u32",                  Nth(1),  To("min.", "max.")),            // the row after
    ("sm_90",   RESIDENT_WARP, "ld.shared.v4.b32",        Nth(1),  To("];", "+16];")),             // another chunk's modulation
    ("sm_80",   TABLE,        "shr.u32",                  Before("bar.sync"), To(", 5;", ", 4;")), // the warp's number
    ("sm_90",   FP8_TABLE,    ", -1;",                    Nth(0),  To(", -1;", ", 0;")),             // the row of a team past the last
    ("sm_90",   FP8_ANY,      "setp.ge.u32",              Nth(0),  To("setp.ge", "setp.gt")),
    ("sm_87",   SIX,          "setp.ge.u32",              Nth(0),  To("setp.ge", "setp.gt")),
    ("sm_100a", FP8_ANY,      "setp.lt.u32",              Nth(5),  To("setp.lt", "setp.le")),
];

/// The text with the change made.
fn apply(source: &str, (_, _, holds, place, edit): &Mutant) -> Option<String> {
    let lines: Vec<&str> = source.lines().collect();
    let matching: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].contains(holds)).collect();
    let chosen: Vec<usize> = match place {
        Nth(n) => matching.get(*n).copied().into_iter().collect(),
        Before(end) => {
            let end = lines.iter().position(|line| line.contains(end))?;
            matching.into_iter().rev().find(|at| *at < end).into_iter().collect()
        }
        Every => matching,
    };
    let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    for at in &chosen {
        changed[*at] = match edit {
            Drop => String::new(),
            To(from, to) => lines[*at].replacen(from, to, 1),
            SwapLast => swap_last(lines[*at])?,
        };
    }
    let changed = changed.join("\n");
    (!chosen.is_empty() && changed != lines.join("\n")).then_some(changed)
}

fn swap_last(line: &str) -> Option<String> {
    let (rest, last) = line.trim_end().strip_suffix(';')?.rsplit_once(", ")?;
    let (rest, other) = rest.rsplit_once(", ")?;
    Some(format!("{rest}, {last}, {other};"))
}

/// The call of an entry and the D of its class.
fn call_of(entry: &str) -> (Call, Vec<usize>) {
    let (of, shape) = entry.split_once("__").expect("a shape class");
    let call = calls().into_iter().find(|call| stem(call) == of).expect("an operator");
    let dims = match SHAPES.iter().find(|s| s.name == shape) {
        None => vec![4, 20],
        Some(s) if s.kind == ShapeKind::Any => vec![6, 30],
        Some(s) if s.warps == 0 => vec![16, 80, 128, 256],
        Some(s) => vec![usize::try_from(8 * (32 * s.warps * s.chunks - 6)).expect("a small D")],
    };
    (call, dims)
}

/// A few small problems for an entry.
fn check(entry: &str) -> Vec<Case> {
    let (call, dims) = call_of(entry);
    // A team of a stream has a ring of three rows, and must come round; of those that stay there are four.
    let rows = if entry.ends_with('s') {
        21
    } else if entry.ends_with('r') {
        9
    } else {
        3
    };
    let mut cases = Vec::new();
    for dim in dims {
        cases.extend(sharp::cases(call, 2, dim, 24));
        for (kind, seed) in Kind::ALL.into_iter().zip(1..) {
            cases.push(Case::new(Problem { call, rows, dim, chunks: 2, kind, seed }));
        }
    }
    cases
}

/// The first thing that a case finds wrong with a module.
fn verdict(module: &Module, entry: &str, cases: &[Case]) -> Result<usize, String> {
    let mut runs = 0;
    for case in cases {
        for alignment in Alignment::ALL {
            let all = problem_launches(&case.problem, alignment);
            for launch in all.iter().filter(|launch| launch.name == entry) {
                case.run(module, launch, alignment, Schedule::Random(runs as u64))?;
                runs += 1;
            }
        }
    }
    Ok(runs)
}

#[test]
fn every_mutant_is_caught() {
    let texts: BTreeMap<&str, String> =
        MUTANTS.iter().map(|(target, ..)| (*target, text(target).expect("a target"))).collect();
    let survivors: Vec<String> = MUTANTS.par_iter().filter_map(|mutant| survives(&texts[mutant.0], mutant)).collect();
    println!("{} of {} mutants caught", MUTANTS.len() - survivors.len(), MUTANTS.len());
    assert!(survivors.is_empty(), "not caught:\n{}", survivors.join("\n"));
}

/// Why a mutant is not caught, if it is not.
fn survives(text: &str, mutant: &Mutant) -> Option<String> {
    let (target, entry, ..) = *mutant;
    let cases = check(entry);
    let source = entry_text(text, entry).expect("an entry");
    let parse = |source: &str| Module::parse(source);
    let healthy = parse(&source).expect("a shipped entry");
    match verdict(&healthy, entry, &cases) {
        Ok(0) => return Some(format!("{mutant:?}: no case runs the entry")),
        Ok(_) => {}
        Err(what) => return Some(format!("{target} {entry} fails unchanged: {what}")),
    }
    let Some(changed) = apply(&source, mutant) else { return Some(format!("{mutant:?}: the place is not there")) };
    match parse(&changed) {
        Err(error) => Some(format!("{mutant:?}: not PTX: {error}")),
        Ok(module) => match verdict(&module, entry, &cases) {
            Ok(_) => Some(format!("{mutant:?}")),
            Err(what) => {
                println!("caught: {mutant:?}\n    {what}");
                None
            }
        },
    }
}
