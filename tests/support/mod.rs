//! What several test programs need.
#![allow(dead_code, reason = "each test program uses a part")]

pub mod golden;
pub mod random;

use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
use adaptive_layernorm_producers::{Backend, Cpu, DType, Nvfp4Recipe, Operator, Reference};
use safetensors::{Dtype, SafeTensors};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The backends every machine has.
pub fn backends() -> [(&'static str, &'static dyn Backend); 2] {
    [("reference", &Reference), ("cpu", &Cpu)]
}

/// Every operator with every recipe it takes.
pub fn calls() -> Vec<Call> {
    let with_recipes = |operator: Operator| {
        let recipes = if operator.outputs().any(|output| output.name == "packed") {
            Nvfp4Recipe::ALL.map(Some).to_vec()
        } else {
            vec![None]
        };
        recipes.into_iter().map(move |recipe| Call { recipe, ..Call::new(operator) })
    };
    Operator::ALL.into_iter().flat_map(with_recipes).collect()
}

/// A file of tests/fixtures, wherever the test program runs: `ADALN_FIXTURES`, the source tree, or the current directory.
pub fn fixture(name: &str) -> PathBuf {
    let places = [
        std::env::var_os("ADALN_FIXTURES").map(PathBuf::from),
        Some(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")),
        Some(PathBuf::from("tests/fixtures")),
    ];
    let found = places.into_iter().flatten().map(|place| place.join(name)).find(|path| path.exists());
    found.unwrap_or_else(|| panic!("no fixture {name}: set ADALN_FIXTURES to the folder tests/fixtures"))
}

/// Whether this is the published package, which has no recordings of other implementations: 3.1 MB that do not compress.
pub fn recordings_are_left_out() -> bool {
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml.orig").exists();
    if packed {
        println!("SKIPPED {}: the package has no recordings", std::thread::current().name().unwrap_or("a test"));
    }
    packed
}

/// The recorded outputs of the original kernels.
pub const ORIGINAL: &str = "flashrt_golden.safetensors";

/// A case of a golden file.
pub struct Case {
    pub name: String,
    /// What the metadata says: rows, dim, eps, ..
    pub facts: HashMap<String, String>,
    /// Tensors by the rest of their name.
    pub tensors: Tensors,
}

impl Case {
    pub fn fact<T: std::str::FromStr>(&self, key: &str) -> T
    where
        T::Err: std::fmt::Debug,
    {
        self.facts[key].parse().unwrap()
    }

    pub fn tensor(&self, name: &str) -> &Tensor {
        self.tensors.get(name).unwrap_or_else(|| panic!("{}: no tensor {name}", self.name))
    }
}

/// The cases of a golden file, in order.
pub fn cases(file: &str) -> Vec<Case> {
    let bytes = std::fs::read(fixture(file)).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let metadata = header.metadata().clone().unwrap();
    let mut cases: Vec<Case> = metadata.iter().map(|(name, facts)| case(name, facts, &tensors)).collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

fn case(name: &str, facts: &str, all: &SafeTensors<'_>) -> Case {
    let facts = facts.split(' ').map(|fact| fact.split_once('=').unwrap());
    let mut tensors = Tensors::new();
    for (full, view) in all.tensors() {
        if let Some(rest) = full.strip_prefix(name).and_then(|rest| rest.strip_prefix('.')) {
            let dtype = match view.dtype() {
                Dtype::BF16 => DType::Bf16,
                Dtype::F32 => DType::F32,
                Dtype::F8_E4M3 => DType::E4m3,
                Dtype::U8 => DType::U8,
                other => panic!("{full} is {other:?}"),
            };
            tensors.insert(rest.to_owned(), Tensor::new(view.shape(), Data::from_le_bytes(dtype, view.data())));
        }
    }
    Case {
        name: name.to_owned(),
        facts: facts.map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        tensors,
    }
}

pub fn e4m3(tensor: &Tensor) -> &[adaptive_layernorm_producers::E4m3] {
    match &tensor.data {
        Data::E4m3(data) => data,
        other => panic!("expected e4m3, got {}", other.dtype()),
    }
}

pub fn bf16s(tensor: &Tensor) -> &[half::bf16] {
    match &tensor.data {
        Data::Bf16(data) => data,
        other => panic!("expected bf16, got {}", other.dtype()),
    }
}

pub fn bytes(tensor: &Tensor) -> &[u8] {
    match &tensor.data {
        Data::U8(data) => data,
        other => panic!("expected u8, got {}", other.dtype()),
    }
}

/// How often a proptest tries, unless `PROPTEST_CASES` says otherwise; failing seeds are printed, not stored.
pub fn tries(cases: u32) -> proptest::test_runner::Config {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(cases);
    proptest::test_runner::Config { cases, failure_persistence: None, ..Default::default() }
}

/// The first byte in which two sets of outputs differ, in words.
pub fn first_difference(expected: &Tensors, got: &Tensors) -> Option<String> {
    assert!(expected.keys().eq(got.keys()));
    for (name, tensor) in expected {
        let (a, b) = (tensor.data.to_le_bytes(), got[name].data.to_le_bytes());
        assert_eq!(a.len(), b.len(), "{name}");
        if let Some(at) = (0..a.len()).find(|at| a[*at] != b[*at]) {
            let count = a.iter().zip(&b).filter(|(a, b)| a != b).count();
            let (shape, expected, got) = (&tensor.shape, a[at], b[at]);
            return Some(format!(
                "{name} {shape:?}: byte {at} is {got:#04x}, expected {expected:#04x}; {count} bytes differ"
            ));
        }
    }
    None
}
