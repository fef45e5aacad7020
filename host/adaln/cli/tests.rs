//! Any command line is read or refused with exit code 2.
use super::Cli;
use clap::Parser;
use proptest::prelude::*;
use proptest::sample::select;
use std::ffi::OsString;

/// What command lines are made of, and what they should not be.
const WORDS: [&str; 48] = [
    "demo",
    "run",
    "check",
    "bench",
    "diff",
    "accuracy",
    "vectors",
    "info",
    "completions",
    "man",
    "help",
    "--help",
    "--version",
    "-q",
    "--quiet",
    "--",
    "-",
    "",
    "--input",
    "--output",
    "--bind",
    "x=y",
    "=",
    "x=",
    "=y",
    "--eps",
    "nan",
    "-inf",
    "1e999",
    "--backend",
    "ptx-vm",
    "cuda",
    "--seed",
    "--cases",
    "18446744073709551616",
    "-1",
    "0",
    "--shape",
    "2x3",
    "18446744073709551615x18446744073709551615",
    "x",
    "--sweep",
    "--step",
    "--recipe",
    "flashrt-sm120",
    "ada_layer_norm_quant_fp8_bf16",
    "--shift-idx",
    "4294967296",
];

fn word() -> impl Strategy<Value = OsString> {
    let known = select(WORDS.to_vec());
    prop_oneof![
        8 => known.clone().prop_map(OsString::from),
        1 => (known.clone(), known).prop_map(|(a, b)| format!("{a}={b}").into()),
        1 => ".{0,30}".prop_map(OsString::from),
        1 => prop::collection::vec(any::<u8>(), 0..20).prop_map(not_unicode),
    ]
}

#[cfg(unix)]
fn not_unicode(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

#[cfg(not(unix))]
fn not_unicode(bytes: Vec<u8>) -> OsString {
    String::from_utf8_lossy(&bytes).into_owned().into()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_words(words in prop::collection::vec(word(), 0..9)) {
        let line = [OsString::from("adaln")].into_iter().chain(words);
        if let Err(error) = Cli::try_parse_from(line) {
            // 0 for help that was asked for.
            prop_assert!(error.exit_code() == 2 || !error.use_stderr());
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
