//! The program `adaln` as its users see it: files, text and exit codes.
mod support;

use adaptive_layernorm_producers::compare::{self, Nvfp4Output};
use adaptive_layernorm_producers::named::{Call, Data, Tensor, Tensors};
use adaptive_layernorm_producers::{Cpu, DType, E4m3, Nvfp4Recipe, Operator, bf16};
use assert_cmd::Command;
use assert_cmd::assert::Assert;
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::fs;
use std::path::{Path, PathBuf};
use support::{bf16s, bytes, cases, e4m3, fixture};
use tempfile::TempDir;

const GOLDEN: &str = "flashrt_golden.safetensors";

fn adaln(args: &[&str]) -> Assert {
    Command::new(env!("CARGO_BIN_EXE_adaln")).args(args).assert()
}

/// A folder with what a test writes.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Files in the folder, hidden ones too.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }

    fn write(&self, name: &str, tensors: &Tensors) -> String {
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

    fn read(&self, name: &str) -> Tensors {
        read(&self.path(name))
    }
}

fn read(path: &Path) -> Tensors {
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
fn small() -> Tensors {
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

const ADA_FP8: &str = "ada_layer_norm_quant_fp8_bf16";

fn run(operator: &str, input: &str, output: &str, more: &[&str]) -> Assert {
    adaln(&[&["run", operator, "--input", input, "--output", output, "--backend", "cpu"], more].concat())
}

/// One sentence on stderr, exit code 2, and no file beside the inputs.
fn refused(folder: &Folder, inputs: &[&str], assert: Assert, what: &[&str]) {
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

/// The options that give a golden case to an operator.
fn golden_options(case: &support::Case, operator: Operator, renamed: &[(&str, &str)]) -> Vec<String> {
    let mut options = Vec::new();
    for spec in operator.inputs().filter(|spec| !spec.optional) {
        let source = renamed.iter().find(|(to, _)| *to == spec.name).map_or(spec.name, |(_, from)| from);
        options.extend(["--bind".to_owned(), format!("{}={}.in.{source}", spec.name, case.name)]);
    }
    for (option, fact) in [("--eps", "eps"), ("--shift-idx", "shift_idx"), ("--scale-idx", "scale_idx")] {
        options.extend([option.to_owned(), case.facts[fact].clone()]);
    }
    options
}

/// Runs a golden case through the program.
fn run_golden(
    case: &support::Case,
    operator: Operator,
    renamed: &[(&str, &str)],
    recipe: Option<Nvfp4Recipe>,
) -> Tensors {
    let folder = Folder::new();
    let mut options = golden_options(case, operator, renamed);
    if let Some(recipe) = recipe {
        options.extend(["--recipe".to_owned(), recipe.to_string()]);
    }
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    run(operator.name(), fixture(GOLDEN).to_str().unwrap(), &folder.text("out.safetensors"), &options).success();
    assert_eq!(folder.files(), ["out.safetensors"]);
    folder.read("out.safetensors")
}

#[test]
fn run_reproduces_every_golden_fp8() {
    let per_token: &[(&str, &str)] = &[("scale", "ptok_scale"), ("shift", "ptok_shift")];
    let recorded = [
        ("ada_fp8", Operator::AdaLayerNormQuantFp8Bf16, &[][..]),
        ("awq_fp8", Operator::AwqAdaLayerNormQuantFp8Bf16, &[]),
        ("modfp8_fp8", Operator::AdaLayerNormQuantFp8Modfp8Bf16, &[]),
        ("ptok_fp8", Operator::AdaLayerNormQuantFp8PtokBf16, per_token),
        ("ptok_table_fp8", Operator::AdaLayerNormQuantFp8PtokTableBf16, &[]),
        ("ln_fp8", Operator::LayerNormNoAffineQuantFp8StaticBf16, &[]),
    ];
    let mut compared = 0;
    for case in cases(GOLDEN) {
        for (output, operator, renamed) in recorded {
            let got = run_golden(&case, operator, renamed, None);
            let expected = case.tensor(&format!("out.{output}"));
            assert_eq!(got["out"].shape, expected.shape, "{} {output}", case.name);
            let report = compare::fp8(e4m3(expected), e4m3(&got["out"])).unwrap();
            assert!(report.agrees_with_original(), "{} {output}: {report:?}", case.name);
            compared += 1;
        }
    }
    assert_eq!(compared, 60, "ten cases of six outputs");
}

#[test]
fn run_reproduces_bf16_nvfp4_and_modulation6() {
    let case = cases(GOLDEN).swap_remove(0);
    let table = run_golden(&case, Operator::AdaLayerNormPtokTableBf16, &[], None);
    assert!(
        compare::bf16(bf16s(case.tensor("out.ptok_table_bf16")), bf16s(&table["out"])).unwrap().agrees_with_original()
    );

    let renamed = [("adaln_params", "params"), ("layer_modulation", "mod")];
    let six = run_golden(&case, Operator::AdalnModulation6Bf16, &renamed, None);
    assert_eq!(six.keys().collect::<Vec<_>>(), ["out0", "out1", "out2", "out3", "out4", "out5"]);
    let six: Vec<bf16> = six.values().flat_map(|tensor| bf16s(tensor).to_vec()).collect();
    assert!(compare::bf16(bf16s(case.tensor("out.mod6")), &six).unwrap().is_equal());

    let sm110 = Some(Nvfp4Recipe::FlashRtSm110);
    let got = run_golden(&case, Operator::AdaLayerNormQuantNvfp4SwizzledBf16, &[], sm110);
    let output = |packed, sf| Nvfp4Output { packed: bytes(packed), sf_swizzled: bytes(sf) };
    let expected = output(case.tensor("out.ada_nvfp4_sm110.packed"), case.tensor("out.ada_nvfp4_sm110.sf"));
    let got = output(&got["packed"], &got["sf_swizzled"]);
    assert!(
        compare::nvfp4(expected, got, case.fact("rows"), case.fact("dim")).unwrap().agrees_with_original(),
        "{}",
        case.name
    );
}

#[test]
fn the_same_call_gives_the_same_file() {
    let folder = Folder::new();
    let input = folder.write("in.safetensors", &small());
    for output in ["a", "b"] {
        run(ADA_FP8, &input, &folder.text(output), &[]).success();
    }
    assert_eq!(fs::read(folder.path("a")).unwrap(), fs::read(folder.path("b")).unwrap());
}

#[test]
fn missing_and_misnamed_tensors() {
    let folder = Folder::new();
    let mut tensors = small();
    let scale = tensors.remove("scale").unwrap();
    tensors.insert("gamma".to_owned(), scale);
    let input = folder.write("in", &tensors);
    let output = folder.text("out");
    let refused = |assert, what: &[&str]| refused(&folder, &["in"], assert, what);
    refused(run(ADA_FP8, &input, &output, &[]), &["operand scale (bf16) is missing", "--bind scale=TENSOR"]);
    refused(run(ADA_FP8, &input, &output, &["--bind", "scale=beta"]), &["no tensor beta", "gamma"]);
    refused(
        run(ADA_FP8, &input, &output, &["--bind", "sale=gamma"]),
        &["sale", "reads x, scale, shift, act_scale only"],
    );
    let twice = ["--bind", "scale=gamma", "--bind", "scale=shift"];
    refused(run(ADA_FP8, &input, &output, &twice), &["scale", "twice"]);
    run(ADA_FP8, &input, &output, &["--bind", "scale=gamma"]).success();
}

#[test]
fn wrong_dtypes_and_shapes() {
    let folder = Folder::new();
    let output = folder.text("out");
    let with = |name: &str, tensor: Tensor| {
        let mut tensors = small();
        tensors.insert(name.to_owned(), tensor);
        folder.write("in", &tensors)
    };
    let refused = |input: &str, what: &[&str]| refused(&folder, &["in"], run(ADA_FP8, input, &output, &[]), what);
    refused(
        &with("scale", Tensor::new([4], vec![1.0f32; 4])),
        &["operand scale is f32, expected bf16", "--bind scale"],
    );
    refused(&with("scale", Tensor::new([5], vec![bf16::ONE; 5])), &["operand scale has shape [5], expected [D=4]"]);
    refused(&with("act_scale", Tensor::new([2], vec![1.0f32; 2])), &["operand act_scale has shape [2]"]);
    refused(&with("x", Tensor::new([2, 3], vec![bf16::ONE; 6])), &["operand scale has shape [4], expected [D=3]"]);
    refused(&with("x", Tensor::new([4], vec![bf16::ONE; 4])), &["operand x has shape [4]"]);
    let mut odd = small();
    for (name, shape) in [("x", &[2, 3][..]), ("scale", &[3]), ("shift", &[3])] {
        odd.insert(name.to_owned(), Tensor::new(shape, vec![bf16::ONE; shape.iter().product()]));
    }
    refused(&folder.write("in", &odd), &["D, the last dimension of x, is 3, expected an even number", "pad"]);
}

#[test]
fn a_dtype_that_the_library_does_not_have() {
    let folder = Folder::new();
    let bytes = [0u8; 16];
    let views = [("x", TensorView::new(Dtype::F16, vec![2, 4], &bytes).unwrap())];
    fs::write(folder.path("in"), safetensors::serialize(views, None).unwrap()).unwrap();
    let assert = run("layer_norm_no_affine_quant_fp8_static_bf16", &folder.text("in"), &folder.text("out"), &[]);
    refused(&folder, &["in"], assert, &["operand x is f16, expected bf16"]);
}

#[test]
fn chunk_indices_and_recipes() {
    let folder = Folder::new();
    let (output, dim) = (folder.text("out"), 16);
    let tensors: Tensors = [
        ("x", Tensor::new([1, dim], vec![bf16::ONE; dim])),
        ("temb", Tensor::new([1, 2, dim], vec![bf16::ONE; 2 * dim])),
        ("table", Tensor::new([2, dim], vec![1.0f32; 2 * dim])),
        ("act_scale", Tensor::new([], vec![1.0f32])),
        ("scale", Tensor::new([dim], vec![bf16::ONE; dim])),
        ("shift", Tensor::new([dim], vec![bf16::ONE; dim])),
        ("global_scale", Tensor::new([], vec![2.0f32])),
    ]
    .map(|(name, tensor)| (name.to_owned(), tensor))
    .into();
    let input = folder.write("in", &tensors);
    let refused = |assert, what: &[&str]| refused(&folder, &["in"], assert, what);
    let table = "ada_layer_norm_quant_fp8_ptok_table_bf16";
    refused(
        run(table, &input, &output, &["--scale-idx", "2"]),
        &["scale_idx is 2, expected less than 2", "--scale-idx"],
    );
    refused(
        run(ADA_FP8, &input, &output, &["--recipe", "flashrt-sm110"]),
        &["recipe flashrt-sm110", "leave out --recipe"],
    );
    let nvfp4 = "ada_layer_norm_quant_nvfp4_swizzled_bf16";
    let bound = ["--recipe", "flashrt-sm120", "--bind", "global_scale=global_scale"];
    refused(run(nvfp4, &input, &output, &bound), &["global_scale", "expected it with transformer-engine only"]);
    // Not bound, it is taken by the recipe that reads one, and only by that.
    run(nvfp4, &input, &output, &["--recipe", "flashrt-sm120"]).success();
    run(nvfp4, &input, &output, &[]).success();
}

#[test]
fn broken_files() {
    let folder = Folder::new();
    let whole = fs::read(folder.write("in", &small())).unwrap();
    let output = folder.text("out");
    let hostile = |bytes: &[u8], what: &[&str]| {
        fs::write(folder.path("in"), bytes).unwrap();
        let begin = std::time::Instant::now();
        refused(&folder, &["in"], run(ADA_FP8, &folder.text("in"), &output, &[]), what);
        assert!(begin.elapsed().as_secs() < 10, "{what:?} took {:?}", begin.elapsed());
    };
    hostile(b"", &["no complete safetensors file", "0 bytes"]);
    hostile(&whole[..7], &["no complete safetensors file", "7 bytes"]);
    hostile(&whole[..40], &["header claims"]);
    hostile(&whole[..whole.len() - 1], &["bytes of data"]);
    hostile(&[&whole[..], &[0]].concat(), &["bytes of data"]);
    hostile(&[&u64::MAX.to_le_bytes()[..], b"{}"].concat(), &["header claims 18446744073709551615 bytes"]);
    hostile(&[&(1u64 << 40).to_le_bytes()[..], b"{}"].concat(), &["header claims"]);
    let header = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    hostile(&header("not json"), &["its header"]);
    hostile(&header(&"[".repeat(100_000)), &["its header"]);
    hostile(&header(r#"{"x":{"dtype":"BF16","shape":[4611686018427387904,4],"data_offsets":[0,0]}}"#), &["its header"]);
    hostile(
        &header(r#"{"x":{"dtype":"BF16","shape":[2,4],"data_offsets":[0,16]}}"#),
        &["describes 16 bytes of data, it has 0"],
    );
    hostile(&header(r#"{"x":{"dtype":"BF16","shape":[2,4],"data_offsets":[16,0]}}"#), &["its header"]);
}

#[test]
fn places_that_cannot_be_read_or_written() {
    let folder = Folder::new();
    let input = folder.write("in", &small());
    fs::create_dir(folder.path("dir")).unwrap();
    let refused = |assert, what: &[&str]| refused(&folder, &["dir", "in"], assert, what);
    refused(
        run(ADA_FP8, &folder.text("absent"), &folder.text("out"), &[]),
        &["absent", "cannot read it", "No such file"],
    );
    refused(run(ADA_FP8, &folder.text("dir"), &folder.text("out"), &[]), &["dir is not a regular file"]);
    refused(run(ADA_FP8, &input, &folder.text("dir"), &[]), &["dir is not a regular file"]);
    refused(run(ADA_FP8, &input, &folder.text("none/out"), &[]), &["none/out: cannot write it", "No such file"]);
    refused(run(ADA_FP8, &input, &input, &[]), &["is the input too"]);
    assert_eq!(folder.read("in"), small(), "the input is as it was");
}

#[test]
fn a_failed_run_leaves_an_older_output_alone() {
    let folder = Folder::new();
    let mut tensors = small();
    tensors.remove("shift");
    let input = folder.write("in", &tensors);
    fs::write(folder.path("out"), "older").unwrap();
    refused(&folder, &["in", "out"], run(ADA_FP8, &input, &folder.text("out"), &[]), &["shift"]);
    assert_eq!(fs::read_to_string(folder.path("out")).unwrap(), "older");
}

#[test]
fn usage_errors_have_exit_code_2() {
    adaln(&[]).code(2);
    adaln(&["run", "no_such_operator", "--input", "a", "--output", "b"]).code(2).stderr(contains("no_such_operator"));
    adaln(&["check", "--cases", "many"]).code(2).stderr(contains("--cases"));
    adaln(&["check", "--backend", "ptx-vm", "--target", "sm_110a"])
        .code(2)
        .stderr(contains("this build has no ptx-vm"));
    adaln(&["--help"]).success().stdout(contains("Exit codes"));
}

#[test]
#[cfg(not(feature = "cuda"))]
fn a_build_without_cuda_says_how_to_get_it() {
    adaln(&["check", "--backend", "cuda"]).code(2).stderr(contains("--features cuda"));
}

#[test]
fn check_finds_the_cpu_equal_to_the_reference() {
    let assert = adaln(&["--quiet", "check", "--backend", "cpu", "--seed", "7", "--cases", "24"]).success();
    let assert = assert.stdout(contains("24 cases")).stdout(contains("seed 7"));
    assert!(assert.get_output().stderr.is_empty(), "--quiet says nothing else");
}

#[test]
fn diff_shows_a_planted_difference() {
    let folder = Folder::new();
    let codes = |bits: [u8; 8]| -> Tensors {
        [("out".to_owned(), Tensor::new([2, 4], bits.map(E4m3::from_bits).to_vec()))].into()
    };
    let a = folder.write("a", &codes([0x38, 0x39, 0x3a, 0x40, 0x00, 0x01, 0x02, 0x7e]));
    let b = folder.write("b", &codes([0x38, 0x39, 0x3a, 0x40, 0x80, 0x01, 0x05, 0x7f]));
    adaln(&["diff", &a, &a]).success();
    // -0 for +0 at row 1, column 0; distance 3; NaN for 448.
    let assert =
        adaln(&["diff", &a, &b]).code(1).stdout(contains("out at row 1, column 0: expected 0x00 = 0, got 0x80 = -0"));
    assert.stdout(contains("3 to 4")).stdout(contains("NaN against a number")).stderr(contains("differ"));
    let assert = adaln(&["diff", &a, &b, "--format", "json"]).code(1);
    let report: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!((&report[0]["differing"], &report[0]["largest_distance"]), (&3.into(), &u32::MAX.into()));
}

#[test]
fn diff_compares_nvfp4_by_code_and_scale() {
    let folder = Folder::new();
    let output = |code: u8, scale: u8| -> Tensors {
        let (mut packed, mut scales) = (vec![0u8; 2 * 8], vec![0u8; 512]);
        packed[8] = code << 4;
        scales[16] = scale; // row 1
        [("packed", Tensor::new([2, 8], packed)), ("sf_swizzled", Tensor::new([512], scales))]
            .map(|(name, tensor)| (name.to_owned(), tensor))
            .into()
    };
    let (a, b) = (folder.write("a", &output(3, 0x38)), folder.write("b", &output(5, 0x39)));
    let assert = adaln(&["diff", &a, &b]).code(1);
    let assert = assert.stdout(contains("packed at row 1, column 1: expected 0x3 = 1.5, got 0x5 = 3"));
    assert.stdout(contains("sf_swizzled at row 1, column 0: expected 0x38 = 1, got 0x39 = 1.125"));
}

#[test]
fn diff_accepts_the_golden_differences_only_when_asked() {
    let folder = Folder::new();
    let golden = fixture(GOLDEN);
    let golden = golden.to_str().unwrap();
    // The 99th percentile of a small output would see a single code.
    let case = cases(GOLDEN).into_iter().max_by_key(|case| case.tensor("out.ada_fp8").data.len()).unwrap();
    let out = [("out".to_owned(), case.tensor("out.ada_fp8").clone())].into();
    let same = folder.write("same", &out);
    let pair = format!("{}.out.ada_fp8=out", case.name);
    adaln(&["diff", golden, &same, "--pair", &pair]).success();
    let mut codes = e4m3(case.tensor("out.ada_fp8")).to_vec();
    let at = codes.iter().position(|code| (0x10..0x70).contains(&code.to_bits())).unwrap();
    codes[at] = E4m3::from_bits(codes[at].to_bits() + 1);
    let shape = case.tensor("out.ada_fp8").shape.clone();
    let adjacent = folder.write("adjacent", &[("out".to_owned(), Tensor::new(shape, codes))].into());
    adaln(&["diff", golden, &adjacent, "--pair", &pair]).code(1);
    adaln(&["diff", golden, &adjacent, "--pair", &pair, "--as-original"]).success();
}

#[test]
fn diff_refuses_what_cannot_be_compared() {
    let folder = Folder::new();
    let one = |name: &str, shape: [usize; 2]| -> Tensors {
        [(name.to_owned(), Tensor::new(shape, vec![bf16::ONE; shape[0] * shape[1]]))].into()
    };
    let a = folder.write("a", &one("out", [2, 4]));
    let b = folder.write("b", &one("out", [4, 2]));
    let c = folder.write("c", &one("other", [2, 4]));
    let refused = |assert, what: &[&str]| refused(&folder, &["a", "b", "c"], assert, what);
    refused(adaln(&["diff", &a, &b]), &["bf16 [2, 4]", "bf16 [4, 2]", "expected the same"]);
    refused(adaln(&["diff", &a, &c]), &["has no tensor other", "--pair"]);
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
fn vectors_are_what_every_backend_gives() {
    let folder = Folder::new();
    for out in ["a", "b"] {
        adaln(&["vectors", "--out", &folder.text(out)]).success();
    }
    let file = |out: &str, name: &str| fs::read(folder.path(out).join(name)).unwrap();
    for name in ["index.json", "vectors.safetensors"] {
        assert_eq!(file("a", name), file("b", name), "{name} is the same every time");
    }
    let tensors = read(&folder.path("a").join("vectors.safetensors"));
    let index: serde_json::Value = serde_json::from_slice(&file("a", "index.json")).unwrap();
    let cases = index["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 20 * 6, "eight operators and four with three recipes, six sets of values");
    for case in cases {
        let named = |key: &str| -> Tensors {
            let names = case[key].as_object().unwrap().iter();
            names.map(|(operand, name)| (operand.clone(), tensors[name.as_str().unwrap()].clone())).collect()
        };
        let operator: Operator = case["operator"].as_str().unwrap().parse().unwrap();
        let call = Call {
            operator,
            recipe: case["recipe"].as_str().map(|recipe| recipe.parse().unwrap()),
            eps: case["eps"].as_f64().unwrap() as f32,
            shift_idx: case["shift_idx"].as_u64().unwrap() as u32,
            scale_idx: case["scale_idx"].as_u64().unwrap() as u32,
        };
        let got = call.run(&Cpu, &named("inputs")).unwrap();
        for (output, expected) in named("outputs") {
            // As bytes: a NaN is equal to itself.
            assert_eq!(got[&output].data.to_le_bytes(), expected.data.to_le_bytes(), "{} {output}", case["name"]);
        }
    }
}

/// Run where Python has numpy and ml_dtypes; `ADALN_PYTHON` names it, and makes a skip a failure.
#[test]
fn vectors_agree_with_numpy() {
    let given = std::env::var("ADALN_PYTHON").ok();
    let python = given.clone().unwrap_or_else(|| "python3".to_owned());
    let imports = std::process::Command::new(&python).args(["-c", "import numpy, ml_dtypes"]).output();
    if !imports.is_ok_and(|output| output.status.success()) {
        assert!(given.is_none(), "{python} has no numpy and ml_dtypes");
        println!("skipped: {python} has no numpy and ml_dtypes; name another with ADALN_PYTHON");
        return;
    }
    let folder = Folder::new();
    adaln(&["vectors", "--out", &folder.text("v")]).success();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/read.py");
    Command::new(python).arg(script).arg(folder.path("v")).assert().success().stdout(contains("120 calls"));
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
    adaln(&["man", "walk"]).code(2).stderr(contains("no command walk, expected one of demo, run"));
}
