//! The source digest changes with everything that reaches the kernels, and with nothing else.

use crate::digest::source_digest;
use std::fs;
use std::path::Path;

const PROFILE: &str = "[profile.kernels]\nopt-level = 3\n\n[profile.other]\nopt-level = 1\n";

/// A workspace with one file in every place that the digest reads.
fn workspace() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let files = [
        ("Cargo.toml", PROFILE),
        ("host/contract/mod.rs", "// contract\n"),
        ("kernels-gpu/Cargo.toml", "[package]\n"),
        ("kernels-gpu/targets.toml", "[[target]]\n"),
        ("kernels-gpu/cuda_std/Cargo.toml", "[package]\n"),
        ("kernels-gpu/cuda_std/src/lib.rs", "// library\n"),
        ("kernels-gpu/src/lib.rs", "// kernels\n"),
        ("kernels-gpu/src/sink/fp8.rs", "// sink\n"),
    ];
    for (name, text) in files {
        write(folder.path(), name, text);
    }
    folder
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().expect("a parent")).expect("created");
    fs::write(path, text).expect("written");
}

/// Whether the digest is another one after a change.
fn notices(change: impl Fn(&Path)) -> bool {
    let folder = workspace();
    let before = source_digest(folder.path()).expect("readable");
    change(folder.path());
    before != source_digest(folder.path()).expect("readable")
}

#[test]
fn two_checkouts_have_the_same_digest() {
    assert_eq!(source_digest(workspace().path()).ok(), source_digest(workspace().path()).ok());
}

#[test]
fn every_source_counts() {
    for name in ["host/contract/mod.rs", "kernels-gpu/targets.toml", "kernels-gpu/src/sink/fp8.rs"] {
        assert!(notices(|root| write(root, name, "// changed\n")), "{name}");
    }
    assert!(notices(|root| write(root, "kernels-gpu/cuda_std/src/lib.rs", "")));
    assert!(notices(|root| write(root, "kernels-gpu/Cargo.toml", "")));
    assert!(notices(|root| write(root, "kernels-gpu/src/new.rs", "")));
    assert!(notices(
        |root| fs::rename(root.join("kernels-gpu/src/lib.rs"), root.join("kernels-gpu/src/main.rs")).expect("renamed")
    ));
    assert!(notices(|root| write(root, "Cargo.toml", &PROFILE.replace("opt-level = 3", "opt-level = 2"))));
}

#[test]
fn text_moved_between_files_counts() {
    assert!(notices(|root| {
        write(root, "kernels-gpu/src/lib.rs", "");
        write(root, "kernels-gpu/src/sink/fp8.rs", "// kernels\n// sink\n");
    }));
}

#[test]
fn line_ends_other_profiles_and_other_files_do_not_count() {
    assert!(!notices(|root| write(root, "kernels-gpu/src/lib.rs", "// kernels\r\n")));
    assert!(!notices(|root| write(root, "Cargo.toml", &PROFILE.replace("opt-level = 1", "opt-level = 2"))));
    assert!(!notices(|root| write(root, "kernels-gpu/src/.lib.rs.swp", "editor")));
    assert!(!notices(|root| write(root, "host/lib.rs", "// host\n")));
}
