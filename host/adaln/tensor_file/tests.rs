//! Hostile files: whatever they hold, a command ends with a result or one sentence, and takes no memory that the file does not have.
use super::TensorFile;
use crate::cli::Cli;
use adaptive_layernorm_producers::Operator;
use clap::Parser;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use std::fs;
use tempfile::TempDir;

/// Bytes of address space that a few kilobytes of file may cost: threads have stacks, allocators take arenas.
const MOST_MEMORY: u64 = 1 << 30;
const TENSORS: [&str; 12] = [
    "x",
    "scale",
    "shift",
    "act_scale",
    "temb",
    "table",
    "packed",
    "sf_swizzled",
    "scale_fp8",
    "adaln_params",
    "layer_modulation",
    "out",
];

/// The largest address space this process ever had.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) << 10
}

/// Opens the file, reads every tensor, and runs the commands that take a file.
fn survives(bytes: &[u8]) -> Result<(), TestCaseError> {
    let folder = TempDir::new().unwrap();
    let (path, output) = (folder.path().join("in"), folder.path().join("out"));
    fs::write(&path, bytes).unwrap();
    let before = peak();
    if let Ok(mut file) = TensorFile::open(&path) {
        for name in file.names() {
            if let Ok(tensor) = file.read(&name) {
                prop_assert_eq!(tensor.shape.iter().product::<usize>(), tensor.data.len(), "{}", name);
            }
        }
    }
    let (path, output) = (path.to_str().unwrap(), output.to_str().unwrap());
    let mut commands = vec![vec!["adaln", "--quiet", "diff", path, path]];
    let run = |operator: Operator| {
        vec!["adaln", "--quiet", "run", operator.name(), "--input", path, "--output", output, "--backend", "cpu"]
    };
    commands.extend(Operator::ALL.map(run));
    for command in commands {
        if let Err(failure) = Cli::try_parse_from(command).unwrap().run() {
            let text = failure.to_string();
            prop_assert!(!text.is_empty() && text.len() < 5000 + bytes.len() * 2, "{}", text);
        }
    }
    let grown = peak() - before;
    prop_assert!(grown < MOST_MEMORY, "{} bytes more", grown);
    Ok(())
}

/// A header and what follows it.
fn file(header: &str, length: u64, data: usize) -> Vec<u8> {
    [&length.to_le_bytes()[..], header.as_bytes(), &vec![0x3f; data]].concat()
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..40u64,
        select(vec![0, 1, 2, 16, 1 << 31, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX]),
        any::<u64>(),
    ]
}

/// One entry of a header: any dtype, any axes, any offsets.
fn entry() -> impl Strategy<Value = String> {
    let dtypes =
        select(vec!["BF16", "F32", "F8_E4M3", "U8", "F16", "I64", "BOOL", "F4", "F6_E2M3", "F8_E8M0", "bf16", ""]);
    let names = select(TENSORS.to_vec());
    (names, dtypes, prop::collection::vec(size(), 0..5), size(), size()).prop_map(|(name, dtype, shape, begin, end)| {
        format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{begin},{end}]}}"#)
    })
}

/// Entries whose offsets fit their shapes and follow each other, so that more than the header is reached.
fn plausible() -> impl Strategy<Value = Vec<u8>> {
    let dtypes = select(vec![("BF16", 2), ("F32", 4), ("F8_E4M3", 1), ("U8", 1), ("F16", 2)]);
    let axes = prop_oneof![
        prop::collection::vec(select(vec![0u64, 1, 2, 3, 6, 8, 16, 17]), 0..4),
        // A 0 makes room for any other axis.
        (prop::collection::vec(size(), 0..3)).prop_map(|rest| [vec![0], rest].concat()),
    ];
    let entries = prop::collection::vec((select(TENSORS.to_vec()), dtypes, axes), 0..10);
    entries.prop_map(|entries| {
        let (mut end, mut texts) = (0u64, Vec::new());
        for (name, (dtype, bytes), shape) in entries {
            let begin = end;
            end += shape.iter().fold(bytes, |product: u64, axis| product.saturating_mul(*axis)).min(1 << 16);
            texts.push(format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{begin},{end}]}}"#));
        }
        let header = format!("{{{}}}", texts.join(","));
        file(&header, header.len() as u64, end as usize)
    })
}

/// Inputs of a small call, as a file.
fn valid() -> Vec<u8> {
    let header = r#"{"x":{"dtype":"BF16","shape":[2,4],"data_offsets":[0,16]},"scale":{"dtype":"BF16","shape":[4],"data_offsets":[16,24]},"shift":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]},"act_scale":{"dtype":"F32","shape":[1],"data_offsets":[32,36]}}"#;
    file(header, header.len() as u64, 36)
}

#[test]
fn the_valid_file_is_valid() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in");
    fs::write(&path, valid()).unwrap();
    let mut file = TensorFile::open(&path).unwrap();
    assert_eq!(file.names(), ["act_scale", "scale", "shift", "x"]);
    assert_eq!(file.read("x").unwrap().shape, [2, 4]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survives(&bytes)?;
    }

    #[test]
    fn any_header_length(length in size(), text in ".{0,60}", data in 0..100usize) {
        survives(&file(&text, length, data))?;
    }

    #[test]
    fn any_entries(entries in prop::collection::vec(entry(), 0..6), data in 0..200usize) {
        let header = format!("{{{}}}", entries.join(","));
        survives(&file(&header, header.len() as u64, data))?;
    }

    #[test]
    fn entries_that_fit(bytes in plausible()) {
        survives(&bytes)?;
    }

    #[test]
    fn a_valid_file_with_changed_bytes(changes in prop::collection::vec((any::<Index>(), any::<u8>()), 1..4)) {
        let mut bytes = valid();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        survives(&bytes)?;
    }

    #[test]
    fn a_valid_file_with_changed_numbers(at in any::<Index>(), number in size()) {
        let bytes = valid();
        let header = String::from_utf8(bytes[8..bytes.len() - 36].to_vec()).unwrap();
        let digits: Vec<usize> = header.match_indices(|c: char| c.is_ascii_digit()).map(|(at, _)| at).collect();
        let at = *at.get(&digits);
        let header = format!("{}{number}{}", &header[..at], &header[at + 1..]);
        survives(&file(&header, header.len() as u64, 36))?;
    }

    #[test]
    fn a_valid_file_cut_or_continued(len in 0..600usize) {
        let mut bytes = valid();
        bytes.resize(len, 0);
        survives(&bytes)?;
    }
}

/// A shape that has no elements, with an axis whose double is past all numbers.
#[test]
fn axes_of_empty_outputs_are_checked() {
    let half = 1u64 << 63;
    let header = format!(
        r#"{{"packed":{{"dtype":"U8","shape":[0,{half}],"data_offsets":[0,0]}},"sf_swizzled":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}}}"#
    );
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("in");
    fs::write(&path, file(&header, header.len() as u64, 0)).unwrap();
    let path = path.to_str().unwrap();
    let failure = Cli::try_parse_from(["adaln", "--quiet", "diff", path, path]).unwrap().run().unwrap_err();
    assert_eq!(failure.to_string(), format!("packed: shape [0, {half}] is too large"));
}
