//! `--backend ptx-vm` as its users see it: the bytes of every target, text and exit codes.
//!
//! tests/producers.rs of ptx-vm runs the kernels on many more shapes and values; here it is the way through the program.

#[path = "../../../cli/program.rs"]
mod program;
#[path = "../../../support/mod.rs"]
mod support;

use adaln_vm::images::TARGETS;
use adaptive_layernorm_producers::named::Call;
use adaptive_layernorm_producers::{Nvfp4Recipe, Reference};
use predicates::str::{contains, is_empty};
use program::{Folder, adaln, refused, small};
use rayon::prelude::*;
use std::fs;
use support::random::{Kind, Problem};
use support::{calls, first_difference};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_adaln-vm");

/// The targets of kernels-gpu/targets.toml, from which the images are built.
#[test]
fn every_target_is_known() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../kernels-gpu/targets.toml");
    let list: toml::Table = fs::read_to_string(path).unwrap().parse().unwrap();
    let mut listed: Vec<&str> =
        list["target"].as_array().unwrap().iter().map(|target| target["name"].as_str().unwrap()).collect();
    let mut known = TARGETS.to_vec();
    listed.sort_unstable();
    known.sort_unstable();
    assert_eq!(known, listed);
}

/// Call i of the catalogue on targets i, i + 3, i + 6 of it: every call on three, every target with every sink and modulation.
#[test]
fn run_gives_the_bytes_of_the_reference() {
    let pairs: Vec<(Call, &str)> = calls()
        .into_iter()
        .enumerate()
        .flat_map(|(i, call)| [0, 3, 6].map(|step| (call, TARGETS[(i + step) % TARGETS.len()])))
        .collect();
    pairs.par_iter().for_each(|(call, target)| run_is_the_reference(*call, target));
}

fn run_is_the_reference(call: Call, target: &str) {
    let folder = Folder::new();
    let inputs = Problem { call, rows: 3, dim: 80, chunks: 2, kind: Kind::Outlier, seed: 11 }.inputs();
    let (input, output) = (folder.write("in", &inputs), folder.text("out"));
    let mut args = vec!["run", call.operator.name(), "--input", &input, "--output", &output];
    args.extend(["--backend", "ptx-vm", "--target", target]);
    if let Some(recipe) = call.recipe {
        args.extend(["--recipe", recipe.name()]);
    }
    adaln(&args).success().stderr(contains(format!("for {target}")));
    let expected = call.run(&Reference, &inputs).unwrap();
    assert_eq!(first_difference(&expected, &folder.read("out")), None, "{call:?} {target}");
}

/// All twelve operators.
#[test]
fn check_finds_every_target_equal_to_the_reference() {
    TARGETS.par_iter().for_each(|target| {
        let args = ["-q", "check", "--backend", "ptx-vm", "--target", target, "--seed", "26", "--cases", "12"];
        adaln(&args)
            .success()
            .stdout(contains("12 cases"))
            .stdout(contains("equal to the reference"))
            .stderr(is_empty());
    });
}

/// A target brings its recipe, as its GPU would.
#[test]
fn the_native_recipe_is_that_of_the_target() {
    let call = Call::new(adaptive_layernorm_producers::Operator::LayerNormNoAffineQuantNvfp4SwizzledBf16);
    let folder = Folder::new();
    let inputs = Problem {
        call: call.with_recipe(Nvfp4Recipe::FlashRtSm110),
        rows: 2,
        dim: 64,
        chunks: 1,
        kind: Kind::Normal,
        seed: 3,
    }
    .inputs();
    let (input, output) = (folder.write("in", &inputs), folder.text("out"));
    let native = [
        ("sm_110a", Nvfp4Recipe::FlashRtSm110),
        ("sm_120a", Nvfp4Recipe::FlashRtSm120),
        ("sm_90", Nvfp4Recipe::TransformerEngine),
    ];
    for (target, recipe) in native {
        let args = ["run", call.operator.name(), "--input", &input, "--output", &output, "--backend", "ptx-vm"];
        adaln(&[&args[..], &["--target", target]].concat()).success();
        let expected = call.with_recipe(recipe).run(&Reference, &inputs).unwrap();
        assert_eq!(first_difference(&expected, &folder.read("out")), None, "{target}");
    }
}

#[test]
fn no_rows_are_no_launch() {
    let folder = Folder::new();
    let call = Call::new(adaptive_layernorm_producers::Operator::AdaLayerNormQuantFp8Bf16);
    let inputs = Problem { call, rows: 0, dim: 8, chunks: 1, kind: Kind::Normal, seed: 3 }.inputs();
    let (input, output) = (folder.write("in", &inputs), folder.text("out"));
    program::run_on("ptx-vm", call.operator.name(), &input, &output, &[]).success();
    assert_eq!(folder.read("out")["out"].shape, [0, 8]);
}

#[test]
fn what_cannot_be_asked_for() {
    let folder = Folder::new();
    let input = folder.write("in", &small());
    let output = folder.text("out");
    let run =
        |more: &[&str]| adaln(&[&["run", program::ADA_FP8, "--input", &input, "--output", &output], more].concat());
    let refused = |more: &[&str], what: &[&str]| refused(&folder, &["in"], run(more), what);
    refused(
        &["--backend", "ptx-vm", "--target", "sm_75"],
        &["target \"sm_75\", expected one of sm_80, sm_87, sm_89, sm_90, sm_100a"],
    );
    refused(&["--backend", "cpu", "--target", "sm_110a"], &["--target sm_110a is for --backend ptx-vm only"]);
    refused(&["--target", "sm_110a"], &["--target sm_110a is for --backend ptx-vm only"]);
    refused(&["--backend", "ptx-vm", "--bind", "x=act_scale"], &["operand x is f32, expected bf16"]);
    let bench = adaln(&["-q", "bench", "--backend", "ptx-vm", "--shape", "16384x3072"]);
    program::refused(&folder, &["in"], bench, &["the times of ptx-vm say nothing of a GPU"]);
}

#[test]
fn demo_shows_the_accuracy() {
    let args = ["demo", "-q", "--backend", "ptx-vm", "--target", "sm_120a", "--shape", "2x128", "--format", "json"];
    let rows: serde_json::Value = serde_json::from_slice(&adaln(&args).success().get_output().stdout).unwrap();
    assert!(rows.as_array().unwrap().iter().all(|row| row["backend"] == "ptx-vm"), "{rows}");
    // FlashRtSm120, the native recipe, is the least accurate: 14 dB on N(0, 1).
    assert!(rows.as_array().unwrap().iter().all(|row| row["snr_db"].as_f64().unwrap() > 12.0), "{rows}");
}
