//! The compiler: a rustc that brings the sources of `core`, and the cargo beside it.

use crate::error::{CudaBuilderError, Result};
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest release that has every flag of [`compile`](crate::compile).
const MINIMUM: &str = "1.96";

/// A rustc with the sources of `core`, and its cargo.
#[derive(Debug, Clone)]
pub struct Compiler {
    /// The compiler proper.
    pub rustc: PathBuf,
    /// The cargo beside it.
    pub cargo: PathBuf,
    /// First line of `rustc -vV`.
    pub version: String,
    /// Its LLVM.
    pub llvm: String,
}

impl Compiler {
    /// Finds one: `ADALN_RUSTC`, else Debian's in `/usr/bin`, else rustup's nightly.
    pub fn find() -> Result<Self> {
        let candidates: Vec<PathBuf> = match env::var_os("ADALN_RUSTC") {
            Some(named) => vec![named.into()],
            None => ["/usr/bin/rustc".into()].into_iter().chain(rustup_nightly()).collect(),
        };
        candidates.iter().find_map(|rustc| Self::probe(rustc)).ok_or(CudaBuilderError::NoCompiler { minimum: MINIMUM })
    }

    fn probe(rustc: &Path) -> Option<Self> {
        let verbose = output(rustc, &["-vV"])?;
        let release = field(&verbose, "release: ")?;
        let sysroot = output(rustc, &["--print", "sysroot"])?;
        let core = Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/core/src/lib.rs");
        if version(release) < version(MINIMUM) || !core.is_file() {
            return None;
        }
        Some(Self {
            rustc: rustc.to_owned(),
            cargo: rustc.with_file_name("cargo"),
            version: verbose.lines().next()?.to_owned(),
            llvm: field(&verbose, "LLVM version: ")?.to_owned(),
        })
    }
}

fn rustup_nightly() -> Option<PathBuf> {
    let path = output(Path::new("rustup"), &["which", "--toolchain", "nightly", "rustc"])?;
    Some(path.trim().into())
}

/// A release such as `1.96.0-nightly` as numbers that compare.
pub(crate) fn version(text: &str) -> (u32, u32) {
    let mut parts = text.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name))
}

/// What a program prints, or nothing if it is missing or fails.
pub(crate) fn output(program: &Path, arguments: &[&str]) -> Option<String> {
    let mut command = Command::new(program);
    clean_environment(&mut command);
    let output = command.args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

/// Removes what an outer `cargo run` of another toolchain leaves in the environment.
pub(crate) fn clean_environment(command: &mut Command) {
    let inherited = ["RUSTFLAGS", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "RUSTUP_TOOLCHAIN", "LD_LIBRARY_PATH"];
    for name in inherited {
        command.env_remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_compare_by_number() {
        assert_eq!(version("1.96.0"), (1, 96));
        assert_eq!(version("1.100.0-nightly"), (1, 100));
        assert!(version("1.100.0-nightly") > version("1.96"));
    }
}
