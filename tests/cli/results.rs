//! `adaln check`, `bench`, `demo`, `info`, `accuracy`, `completions`, `man`.
use crate::program::{ADA_FP8, Folder, adaln, refused};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use std::fs;

#[test]
fn check_finds_the_cpu_equal_to_the_reference() {
    let assert = adaln(&["--quiet", "check", "--backend", "cpu", "--seed", "7", "--cases", "24"]).success();
    let assert = assert.stdout(contains("24 cases")).stdout(contains("seed 7"));
    assert!(assert.get_output().stderr.is_empty(), "--quiet says nothing else");
}

#[test]
fn tables_in_every_format() {
    let shapes = ["--shape", "1x51x1536", "--shape", "2x7x33"];
    let demo = ["demo", "--quiet", "--operator", "adaln_modulation6_bf16", "--backend", "cpu"];
    let args = [&demo[..], &shapes, &["--format"]].concat();
    let output = |format: &'static str| {
        let assert = adaln(&[&args[..], &[format]].concat()).success();
        String::from_utf8(assert.get_output().stdout.clone()).unwrap()
    };
    let rows: serde_json::Value = serde_json::from_str(&output("json")).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 2);
    assert_eq!(rows[0]["shape"], "1x51x1536");
    // Sums rounded to eight bits: about 1.76 + 6.02 x 9 dB.
    assert!(rows[0]["snr_db"].as_f64().is_some_and(|snr| (54.0..58.0).contains(&snr)), "{rows}");
    let csv = output("csv");
    assert_eq!(csv.lines().next(), Some("operator,recipe,shape,backend,time_us,gb_per_s,snr_db"));
    assert!(output("table").contains("2x7x33"));
    // Of no rows there is no error.
    let empty = [&demo[..], &["--shape", "0x16", "--format"]].concat();
    let rows = adaln(&[&empty[..], &["json"]].concat()).success().stdout(contains("\"snr_db\": null"));
    rows.stdout(contains("\"shape\": \"0x16\""));
    adaln(&[&empty[..], &["table"]].concat()).success().stdout(contains("NaN").not());
    let info: serde_json::Value =
        serde_json::from_slice(&adaln(&["info", "--entries", "--format", "json"]).success().get_output().stdout)
            .unwrap();
    assert!(info["images"].is_array() && info["entries"].is_array(), "{info}");
}

#[test]
fn bench_measures_beside_a_copy() {
    let folder = Folder::new();
    let plot = folder.text("sweep.svg");
    let sweep = ["--sweep", "--step", "8192", "--megabytes", "1", "--plot", &plot];
    let args = ["bench", "-q", "--backend", "cpu", "--operator", ADA_FP8, "--runs", "2", "--format", "json"];
    let assert = adaln(&[&args[..], &sweep].concat()).success();
    let rows: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    // 2 bytes of x and 1 of out an element, rows of 8192: 1 MB has 40; scale, shift and act_scale besides.
    assert_eq!((&rows[0]["shape"], &rows[0]["bytes"]), (&"40x8192".into(), &(40 * 8192 * 3 + 4 * 8192 + 4).into()));
    let number = |key: &str| rows[0][key].as_f64().unwrap();
    assert!((number("ratio") - number("time_us") / number("copy_us")).abs() < 1e-6, "{rows}");
    let svg = fs::read_to_string(plot).unwrap();
    assert!(svg.starts_with("<svg") && svg.contains("picoseconds per byte"), "{svg}");
    refused(
        &folder,
        &["sweep.svg"],
        adaln(&["bench", "-q", "--shape", "3x5", "--operator", ADA_FP8]),
        &["D, the last dimension of x, is 5, expected an even number"],
    );
}

#[test]
fn accuracy_is_what_the_recipes_promise() {
    let assert = adaln(&["accuracy", "--quiet", "--format", "json"]).success();
    let rows: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    let normal = |sink: &str| {
        let row = rows.as_array().unwrap().iter().find(|row| row["sink"] == sink).unwrap();
        row["normal_db"].as_f64().unwrap()
    };
    // Contract section 3.3: 14.0 and 20.4 dB on N(0, 1).
    assert!((normal("NVFP4 flashrt-sm120") - 14.0).abs() < 0.2, "{rows}");
    assert!((normal("NVFP4 flashrt-sm110") - 20.4).abs() < 0.2, "{rows}");
    assert!(normal("FP8, static scale") > 30.0 && normal("bf16") > 50.0, "{rows}");
    adaln(&["accuracy", "-q", "--format", "markdown"]).success().stdout(contains("| bf16 "));
}

#[test]
fn completions_and_manual() {
    for shell in ["bash", "zsh", "fish"] {
        adaln(&["completions", shell]).success().stdout(contains("ada_layer_norm_quant_fp8_bf16"));
    }
    adaln(&["man"]).success().stdout(contains(".TH adaln 1"));
    adaln(&["man", "run"]).success().stdout(contains(".TH adaln\\-run 1").or(contains(".TH adaln-run 1")));
    // In the synopsis and in the list, options say what they take.
    let synopsis = "\\fBadaln run\\fR [OPTIONS] \\-\\-input <FILE> \\-\\-output <FILE> <OPERATOR>";
    let options = "\\fB\\-\\-input\\fR \\fI<FILE>\\fR";
    adaln(&["man", "run"]).success().stdout(contains(synopsis).and(contains(options)));
    adaln(&["man", "run"]).success().stdout(contains(concat!("\"adaln ", env!("CARGO_PKG_VERSION"), "\"")));
    adaln(&["man"]).success().stdout(contains("\\fBadaln\\fR [OPTIONS] <COMMAND>"));
    adaln(&["man", "walk"]).code(2).stderr(contains("no command walk, expected one of demo, run"));
}
