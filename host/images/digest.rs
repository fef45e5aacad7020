//! The digest of everything the kernel images are built from.
//!
//! Written once and compiled into three places: the builder records the digest in `MANIFEST.toml`, `build.rs` warns when it is not that
//! of the sources beside it, and `tests/images.rs` fails then.

use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};

/// Files and folders that reach the kernels, from the workspace's root.
const SOURCES: [&str; 6] = [
    "host/contract",
    "kernels-gpu/Cargo.toml",
    "kernels-gpu/cuda_std/Cargo.toml",
    "kernels-gpu/cuda_std/src",
    "kernels-gpu/src",
    "kernels-gpu/targets.toml",
];

/// SHA-256 as lower-case hexadecimal.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 over names and contents of the device sources in sorted order, and the `kernels` profile.
///
/// # Errors
/// A file that cannot be read.
pub fn source_digest(workspace: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    for file in source_files(workspace)? {
        add(&mut hash, &slashed(&file), &std::fs::read_to_string(workspace.join(&file))?);
    }
    let manifest = std::fs::read_to_string(workspace.join("Cargo.toml"))?;
    add(&mut hash, "profile", &kernels_profile(&manifest));
    Ok(hex(&hash.finalize()))
}

/// One named part; its length keeps neighbours apart, and a checkout with other line ends gives the same digest.
fn add(hash: &mut Sha256, name: &str, text: &str) {
    let text = text.replace("\r\n", "\n");
    hash.update(format!("{name}\n{}\n", text.len()));
    hash.update(text);
}

/// The source files, relative to the workspace's root and sorted.
fn source_files(workspace: &Path) -> io::Result<Vec<PathBuf>> {
    let mut open: Vec<PathBuf> = SOURCES.iter().map(PathBuf::from).collect();
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        if workspace.join(&path).is_dir() {
            for entry in std::fs::read_dir(workspace.join(&path))? {
                open.push(path.join(entry?.file_name()));
            }
        } else if path.extension().is_some_and(|extension| extension == "rs" || extension == "toml") {
            files.push(path);
        }
    }
    files.sort_by_key(|path| slashed(path));
    Ok(files)
}

fn slashed(path: &Path) -> String {
    let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("/")
}

/// The lines of `[profile.kernels]` that say something.
fn kernels_profile(manifest: &str) -> String {
    let lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[profile.kernels]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
