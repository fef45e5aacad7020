//! From the device crate to the PTX of one target.

use crate::compiler::{Compiler, clean_environment};
use crate::error::{CudaBuilderError, Result};
use crate::ptx;
use crate::targets::{Target, TargetList};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Flags that are the same for every target; the manifest records them.
///
/// - unroll-threshold: below it register arrays of the row land in local memory (48 to 192 bytes of stack without, none with it).
/// - JumpThreading off: it copies barriers into divergent branches (rust-lang/rust#137086).
/// - immediate-abort: no panic function is left that ptxas could not resolve.
/// - linker: fat LTO happens before linking and the PTX is the assembly, so nothing is left to link.
pub const FLAGS: [&str; 6] = [
    "-Cllvm-args=-unroll-threshold=20000",
    "-Zmir-enable-passes=-JumpThreading",
    "-Zunstable-options",
    "-Cpanic=immediate-abort",
    "-Zlocation-detail=none",
    "-Clinker=true",
];

const TRIPLE: &str = "nvptx64-nvidia-cuda";

/// Everything one compilation needs to know.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    pub compiler: &'a Compiler,
    pub list: &'a TargetList,
    pub target: &'a Target,
    /// Folder of the device crate.
    pub device_crate: &'a Path,
    /// Cargo's target folder. Targets that share one share `core`, which has no target's flags; they must not build at a time.
    pub target_dir: &'a Path,
    /// The user's own arguments for rustc.
    pub build_args: &'a [String],
}

/// What a compilation gives.
pub(crate) struct Ptx {
    /// The compiler's file.
    pub path: PathBuf,
    /// The PTX as it is shipped.
    pub text: String,
    /// What the compiler had to say.
    pub warnings: String,
}

impl Job<'_> {
    /// Gives the compiler's PTX file and its warnings.
    fn run(&self) -> Result<(PathBuf, String)> {
        let output = self.command().output().map_err(|source| {
            let program = self.compiler.cargo.clone();
            CudaBuilderError::Spawn { program, source }
        })?;
        let messages = messages(&output);
        if !output.status.success() {
            return Err(CudaBuilderError::BuildFailed { target: self.target.name.clone(), messages });
        }
        Ok((self.assembly()?, messages))
    }

    /// Compiles, and gives the normalised PTX with the list's register limits.
    pub fn ptx(&self) -> Result<Ptx> {
        let (path, warnings) = self.run()?;
        let text = std::fs::read_to_string(&path).map_err(|e| CudaBuilderError::file(&path, e))?;
        let limit = |entry: &str| self.list.register_limit(entry, self.target);
        let text = ptx::limit_registers(&ptx::normalise(&text), limit);
        Ok(Ptx { path, text, warnings })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.compiler.cargo);
        clean_environment(&mut command);
        command
            .current_dir(self.device_crate)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("RUSTC", &self.compiler.rustc)
            .env("CARGO_TARGET_DIR", self.target_dir)
            .env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"))
            .args(["rustc", "--lib", "--quiet", "--profile", "kernels", "-Zbuild-std=core", "--target", TRIPLE])
            .args(["--", "--emit=asm"])
            .args(self.target_flags())
            .args(self.build_args);
        command
    }

    /// Flags of the device crate alone; what it uses of other crates is inlined into it.
    fn target_flags(&self) -> Vec<String> {
        let mut flags = vec![format!("-Ctarget-cpu={}", self.target.name)];
        flags.push(format!("-Ctarget-feature=+ptx{}", self.target.ptx));
        flags.extend(self.target.cfg.iter().map(|name| format!("--cfg={name}")));
        flags.extend(self.list.capabilities().iter().map(|name| format!("--check-cfg=cfg({name})")));
        flags.push(format!("--remap-path-prefix={}=device", self.device_crate.display()));
        flags
    }

    fn assembly(&self) -> Result<PathBuf> {
        let name = crate_name(self.device_crate)?.replace('-', "_");
        let path = self.target_dir.join(TRIPLE).join("kernels/deps").join(format!("{name}.s"));
        if path.is_file() { Ok(path) } else { Err(CudaBuilderError::file(&path, "the compiler wrote no PTX here")) }
    }
}

fn crate_name(device_crate: &Path) -> Result<String> {
    let path = device_crate.join("Cargo.toml");
    let text = std::fs::read_to_string(&path).map_err(|e| CudaBuilderError::file(&path, e))?;
    let table: toml::Table = toml::from_str(&text).map_err(|e| CudaBuilderError::file(&path, e))?;
    let name = table.get("package").and_then(|package| package.get("name")).and_then(|name| name.as_str());
    name.map(str::to_owned).ok_or_else(|| CudaBuilderError::file(&path, "has no package name"))
}

/// The compiler's messages without the one it gives for every `+ptx` feature.
fn messages(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let paragraphs = text.split("\n\n").map(str::trim).filter(|paragraph| {
        let noise =
            ["unstable feature specified", "unknown and unstable feature", "this feature is not stably supported"];
        !paragraph.is_empty() && !noise.iter().any(|noise| paragraph.contains(noise))
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}
