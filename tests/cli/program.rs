//! The program under test, and files for it.
#![allow(dead_code, reason = "the tests of the backend ptx-vm use a part")]
use adaptive_layernorm_producers::named::{Data, Tensor, Tensors};
use adaptive_layernorm_producers::{DType, bf16};
use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::str::contains;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Runs the program; `ADALN_PROGRAM` says where it lies on a machine that did not build it.
pub fn adaln(args: &[&str]) -> Assert {
    let program = std::env::var_os("ADALN_PROGRAM").unwrap_or_else(|| crate::PROGRAM.into());
    Command::new(program).args(args).assert()
}

/// The backends of this build and machine; `ADALN_REQUIRE_GPU=1` makes a missing GPU a failure.
pub fn backends() -> Vec<&'static str> {
    let info: serde_json::Value =
        serde_json::from_slice(&adaln(&["info", "--format", "json"]).success().get_output().stdout).unwrap();
    let required = cfg!(feature = "cuda") && std::env::var_os("ADALN_REQUIRE_GPU").is_some_and(|value| value == "1");
    assert!(!required || info["gpu"].is_object(), "ADALN_REQUIRE_GPU=1, but {}", info["note"]);
    if info["gpu"].is_object() {
        return vec!["cpu", "cuda"];
    }
    println!("skipped: backend cuda ({})", info["note"]);
    vec!["cpu"]
}

/// A folder with what a test writes.
pub struct Folder(TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Files in the folder, hidden ones too.
    pub fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    pub fn write(&self, name: &str, tensors: &Tensors) -> String {
        let stored = |dtype| match dtype {
            DType::Bf16 => Dtype::BF16,
            DType::F32 => Dtype::F32,
            DType::E4m3 => Dtype::F8_E4M3,
            DType::U8 => Dtype::U8,
        };
        let all: Vec<_> = tensors.iter().map(|(name, t)| (name, t, t.data.to_le_bytes())).collect();
        let views = all.iter().map(|(name, tensor, bytes)| {
            (*name, TensorView::new(stored(tensor.data.dtype()), tensor.shape.clone(), bytes).unwrap())
        });
        fs::write(self.path(name), safetensors::serialize(views, None).unwrap()).unwrap();
        self.text(name)
    }

    pub fn read(&self, name: &str) -> Tensors {
        read(&self.path(name))
    }
}

pub fn read(path: &Path) -> Tensors {
    let file = fs::read(path).unwrap();
    let tensors = SafeTensors::deserialize(&file).unwrap();
    let known = |dtype| match dtype {
        Dtype::BF16 => DType::Bf16,
        Dtype::F32 => DType::F32,
        Dtype::F8_E4M3 => DType::E4m3,
        Dtype::U8 => DType::U8,
        other => panic!("{other:?}"),
    };
    let tensor = |(name, view): (String, TensorView<'_>)| {
        (name, Tensor::new(view.shape(), Data::from_le_bytes(known(view.dtype()), view.data())))
    };
    tensors.tensors().into_iter().map(tensor).collect()
}

/// Inputs of a small call of every FP8 operator with broadcast modulation: R = 2, D = 4.
pub fn small() -> Tensors {
    let values = |n: usize| (0..n).map(|i| bf16::from_f32(i as f32)).collect::<Vec<_>>();
    [
        ("x", Tensor::new([2, 4], values(8))),
        ("scale", Tensor::new([4], values(4))),
        ("shift", Tensor::new([4], values(4))),
        ("act_scale", Tensor::new([1], vec![0.5f32])),
    ]
    .map(|(name, tensor)| (name.to_owned(), tensor))
    .into()
}

pub const ADA_FP8: &str = "ada_layer_norm_quant_fp8_bf16";

pub fn run_on(backend: &str, operator: &str, input: &str, output: &str, more: &[&str]) -> Assert {
    adaln(&[&["run", operator, "--input", input, "--output", output, "--backend", backend], more].concat())
}

pub fn run(operator: &str, input: &str, output: &str, more: &[&str]) -> Assert {
    run_on("cpu", operator, input, output, more)
}

/// One sentence on stderr, exit code 2, and no file beside the inputs.
pub fn refused(folder: &Folder, inputs: &[&str], assert: Assert, what: &[&str]) {
    let mut assert = assert.code(2);
    for part in what {
        assert = assert.stderr(contains(*part));
    }
    let stderr = String::from_utf8(assert.get_output().stderr.clone()).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("error: "), "{stderr}");
    assert!(!stderr.contains('\u{1b}'), "no colour in a pipe: {stderr}");
    assert_eq!(folder.files(), inputs, "{stderr}");
}
