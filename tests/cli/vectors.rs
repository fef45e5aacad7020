//! `adaln vectors`.
use crate::program::{Folder, adaln, read};
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::{Cpu, Operator};
use assert_cmd::Command;
use predicates::str::contains;
use std::fs;

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
