//! `adaln diff`.
use crate::program::{Folder, adaln, refused, small};
use crate::support::{self, ORIGINAL, cases, e4m3, fixture};
use adaptive_layernorm_producers::named::{Tensor, Tensors};
use adaptive_layernorm_producers::{E4m3, bf16};
use predicates::str::contains;

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
    if support::recordings_are_left_out() {
        return;
    }
    let folder = Folder::new();
    let golden = fixture(ORIGINAL);
    let golden = golden.to_str().unwrap();
    // The 99th percentile of a small output would see a single code.
    let case = cases(ORIGINAL).into_iter().max_by_key(|case| case.tensor("out.ada_fp8").data.len()).unwrap();
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

/// Files that `adaln run` reads, in place of those that it writes.
#[test]
fn diff_of_inputs_says_so() {
    let folder = Folder::new();
    let inputs = folder.write("inputs", &small());
    let outputs: Tensors = [("out".to_owned(), Tensor::new([2, 4], vec![E4m3::NAN; 8]))].into();
    let outputs = folder.write("outputs", &outputs);
    let refused = |assert, what: &[&str]| refused(&folder, &["inputs", "outputs"], assert, what);
    let f32 = "act_scale is f32, expected e4m3, bf16 or NVFP4; it is an operand: give files of outputs, or name";
    refused(adaln(&["diff", "-q", &inputs, &inputs]), &[f32]);
    let hint = "inputs holds operands such as act_scale: give files of outputs, or name the tensors";
    refused(adaln(&["diff", "-q", &outputs, &inputs]), &["outputs has no tensor act_scale; ", hint]);
    refused(adaln(&["diff", "-q", &inputs, &outputs]), &["inputs has no tensor out; ", hint]);
    // All of it can be compared, but not what was meant.
    let x: Tensors = [("x".to_owned(), Tensor::new([2, 4], vec![bf16::ONE; 8]))].into();
    let x = folder.write("x", &x);
    adaln(&["diff", &x, &x]).success().stderr(contains("x is an operand, not an output"));
    adaln(&["diff", &x, &x, "--pair", "x=x"]).success().stderr("");
}
