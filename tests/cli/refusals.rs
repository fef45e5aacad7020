//! What the program refuses: one sentence, exit code 2, and no file.
use crate::program::{ADA_FP8, Folder, adaln, refused, run, small};
use adaptive_layernorm_producers::bf16;
use adaptive_layernorm_producers::named::{Tensor, Tensors};
use predicates::prelude::PredicateBooleanExt;
use predicates::str::contains;
use safetensors::Dtype;
use safetensors::tensor::TensorView;
use std::fs;

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
    refused(
        &with("act_scale", Tensor::new([2], vec![1.0f32; 2])),
        &["operand act_scale has shape [2], expected [] or [1]"],
    );
    refused(&with("x", Tensor::new([2, 3], vec![bf16::ONE; 6])), &["operand scale has shape [4], expected [D=3]"]);
    refused(&with("x", Tensor::new([4], vec![bf16::ONE; 4])), &["operand x has shape [4], expected [R, D];"]);
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
    // Not bound, it is taken by the recipe that reads one, and only by that; which is said.
    let note = "global_scale is not read by recipe flashrt-sm120, only by transformer-engine";
    run(nvfp4, &input, &output, &["--recipe", "flashrt-sm120"]).success().stderr(contains(note));
    run(nvfp4, &input, &output, &["--recipe", "flashrt-sm120", "--quiet"]).success().stderr("");
    run(nvfp4, &input, &output, &[]).success().stderr(contains("global_scale").not());
}

#[test]
fn options_that_would_change_nothing() {
    let folder = Folder::new();
    let (input, output) = (folder.write("in", &small()), folder.text("out"));
    let refused = |assert, what: &[&str]| refused(&folder, &["in"], assert, what);
    for option in ["--shift-idx", "--scale-idx"] {
        let what = [option, "the operator reads no table; leave it out"];
        refused(run(ADA_FP8, &input, &output, &[option, "0"]), &what);
    }
    let six = "adaln_modulation6_bf16";
    refused(run(six, &input, &output, &["--eps", "1e-6"]), &[six, "--eps", "has no variance; leave it out"]);
    for command in ["demo", "bench"] {
        let recipe = [command, "-q", "--shape", "2x16", "--operator", ADA_FP8, "--recipe", "flashrt-sm110"];
        refused(adaln(&recipe), &["recipe flashrt-sm110", "leave out --recipe"]);
    }
    for option in [["--step", "32"], ["--megabytes", "1"], ["--plot", "sweep.svg"]] {
        let bench = ["bench", "-q", "--backend", "cpu", "--operator", ADA_FP8, option[0], option[1]];
        adaln(&bench).code(2).stderr(contains("--sweep"));
        adaln(&[&bench[..], &["--shape", "2x16"]].concat()).code(2).stderr(contains("cannot be used with"));
    }
    for shape in ["0x64", "4x0", "2x0x16"] {
        let bench = ["bench", "-q", "--backend", "cpu", "--operator", ADA_FP8, "--shape", shape];
        refused(adaln(&bench), &[shape, "nothing to measure"]);
    }
    // No multiple of it is as small as the widest D.
    adaln(&["bench", "--sweep", "--step", "16385"])
        .code(2)
        .stderr(contains("16385").and(contains("expected a whole number from 1 to 16384")));
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
    let none = folder.text("none");
    refused(run(ADA_FP8, &input, &folder.text("none/out"), &[]), &["none/out: there is no folder", &none, "make it"]);
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
        .stderr(contains("this build has no ptx-vm"))
        .stderr(contains("cargo run --release -p adaln-vm"));
    adaln(&["check", "--target", "sm_110a"]).code(2).stderr(contains("--target sm_110a is for --backend ptx-vm only"));
    adaln(&["--help"]).success().stdout(contains("Exit codes"));
}

/// A shape that no machine has the memory for is refused before anything is drawn.
#[test]
fn shapes_beyond_all_memory() {
    let folder = Folder::new();
    for shape in ["99999999999x65536", "4000000000x16384", "4294967295x16777216"] {
        for command in ["bench", "demo"] {
            let command = ["--quiet", command, "--backend", "cpu", "--operator", ADA_FP8, "--shape", shape];
            refused(&folder, &[], adaln(&command), &[shape, "of memory; choose a smaller shape"]);
        }
    }
}

#[test]
fn numbers_out_of_range() {
    for eps in ["-1", "-1e-5", "nan", "inf", "1e50"] {
        adaln(&["run", ADA_FP8, "--input", "a", "--output", "b", "--eps", eps])
            .code(2)
            .stderr(contains("expected a number of at least 0 that an f32 holds").and(contains(eps)));
    }
    let run = ["run", ADA_FP8, "--input", "a", "--output", "b"];
    let calls: [(&[&str], &str, &str, &str); 7] = [
        (&["check"], "--cases", "0", "1 to"),
        (&["check"], "--cases", "-1", "1 to"),
        (&["check"], "--cases", "abc", "1 to"),
        (&["check"], "--seed", "-1", "0 to"),
        (&["check"], "--seed", "18446744073709551616", "0 to 18446744073709551615"),
        (&["bench"], "--runs", "0", "1 to"),
        (&run, "--shift-idx", "-1", "0 to"),
    ];
    for (command, option, value, range) in calls {
        let expected = format!("expected a whole number from {range}");
        adaln(&[command, &[option, value]].concat())
            .code(2)
            .stderr(contains(option).and(contains(value)).and(contains(expected)));
    }
}

#[test]
#[cfg(not(feature = "cuda"))]
fn a_build_without_cuda_says_how_to_get_it() {
    adaln(&["check", "--backend", "cuda"]).code(2).stderr(contains("--features cuda"));
}
