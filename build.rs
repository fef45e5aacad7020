//! Embeds the checked-in kernel images after verifying them.
//!
//! A user of the crate needs stable Rust and nothing else: no CUDA, no ptxas, no compiler for kernels. Nothing is written outside
//! `OUT_DIR`. Two variables change what happens:
//! - `ADALN_BUILD_KERNELS=1`, in the workspace: build the images from source and embed those.
//! - `ADALN_STALE_IMAGES=error`: images that were not built from the device sources beside them are an error, not a warning.

#[allow(dead_code, reason = "for its version only")]
#[path = "host/contract/mod.rs"]
mod contract;
#[path = "host/images/digest.rs"]
mod digest;

use serde::Deserialize;
use std::env;
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Deserialize)]
struct Manifest {
    contract_version: u32,
    source_digest: String,
    tools: Tools,
    image: Vec<Image>,
}

#[derive(Deserialize)]
struct Tools {
    ptxas: String,
}

#[derive(Deserialize)]
struct Image {
    target: String,
    kind: String,
    ptx_version: String,
    files: Vec<File>,
    entries: Vec<Entry>,
}

impl Image {
    /// The file that the library embeds.
    fn shipped(&self) -> Option<&File> {
        self.files.iter().find(|file| file.kind == self.kind)
    }
}

#[derive(Deserialize)]
struct File {
    file: String,
    kind: String,
    bytes: usize,
    sha256: String,
    packed_sha256: String,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    registers: u32,
    shared: u32,
    local: u32,
    spills: u32,
}

fn main() {
    if let Err(error) = run() {
        println!("cargo::error={error}");
    }
}

fn run() -> Result<()> {
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    declare_inputs(&root);
    let built_now = env::var_os("ADALN_BUILD_KERNELS").is_some_and(|value| value == "1");
    let folder = if built_now { build_kernels(&root, &out)? } else { root.join("host/images") };
    let path = folder.join("MANIFEST.toml");
    if !path.is_file() {
        report_stale("there are no kernel images yet; run `cargo kernels`");
        return Ok(fs::write(out.join("images.rs"), table(&Manifest::empty())?)?);
    }
    let manifest: Manifest =
        toml::from_str(&fs::read_to_string(&path)?).map_err(|e| format!("{}: {e}", path.display()))?;
    verify(&folder, &manifest)?;
    check_stale(&root, &manifest)?;
    // Beside the table: cargo shares this folder between copies of the package in one target folder, and the other copy may go.
    for file in manifest.image.iter().filter_map(Image::shipped) {
        fs::copy(folder.join(&file.file), out.join(&file.file))?;
    }
    Ok(fs::write(out.join("images.rs"), table(&manifest)?)?)
}

/// What makes cargo run this again. The device sources are not in the published package.
fn declare_inputs(root: &Path) {
    for name in ["ADALN_BUILD_KERNELS", "ADALN_STALE_IMAGES"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let inputs = ["build.rs", "Cargo.toml", "host/images", "host/contract", "kernels-gpu"];
    for input in inputs.iter().filter(|input| root.join(input).exists()) {
        println!("cargo::rerun-if-changed={input}");
    }
}

/// Runs the builder as a program, so that the published package does not depend on it.
fn build_kernels(root: &Path, out: &Path) -> Result<PathBuf> {
    if !root.join("kernels-gpu/targets.toml").is_file() {
        return Err(
            "ADALN_BUILD_KERNELS works in the project's repository only; the package has no device sources".into()
        );
    }
    let images = out.join("images");
    let status = Command::new(env::var("CARGO")?)
        .current_dir(root)
        .args(["run", "--release", "--quiet", "-p", "cuda_builder", "--", "--output"])
        .arg(&images)
        .env("CARGO_TARGET_DIR", out.join("builder")) // cargo holds the lock of the outer one
        .status()?;
    if status.success() {
        Ok(images)
    } else {
        Err("the kernels could not be built; the builder's own message is above".into())
    }
}

/// Compares every file that is there with its digest. The PTX behind the cubins is not in the published package.
fn verify(folder: &Path, manifest: &Manifest) -> Result<()> {
    for image in &manifest.image {
        for file in &image.files {
            let path = folder.join(&file.file);
            if file.kind != image.kind && !path.exists() {
                continue;
            }
            let packed = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            if digest::sha256_hex(&packed) != file.packed_sha256 {
                return Err(format!("{} is not the file that MANIFEST.toml describes", path.display()).into());
            }
        }
    }
    Ok(())
}

fn check_stale(root: &Path, manifest: &Manifest) -> Result<()> {
    let (expected, got) = (contract::CONTRACT_VERSION, manifest.contract_version);
    if got != expected {
        report_stale(&format!(
            "the kernel images keep version {got} of the contract, expected {expected}; run `cargo kernels`"
        ));
    }
    if root.join("kernels-gpu/targets.toml").is_file() && digest::source_digest(root)? != manifest.source_digest {
        report_stale("the kernel images were not built from the device sources beside them; run `cargo kernels`");
    }
    Ok(())
}

fn report_stale(message: &str) {
    let level =
        if env::var_os("ADALN_STALE_IMAGES").is_some_and(|value| value == "error") { "error" } else { "warning" };
    println!("cargo::{level}={message}");
}

/// The Rust table that host/images.rs includes.
fn table(manifest: &Manifest) -> Result<String> {
    let mut text = String::from("pub static IMAGES: &[Image] = &[\n");
    let toolkit = numbers(&manifest.tools.ptxas)?;
    for image in &manifest.image {
        let shipped =
            image.shipped().ok_or_else(|| format!("MANIFEST.toml names no {} for {}", image.kind, image.target))?;
        write_image(&mut text, image, shipped, toolkit)?;
    }
    text.push_str("];\n");
    Ok(text)
}

fn write_image(out: &mut String, image: &Image, shipped: &File, toolkit: (u32, u32)) -> Result<()> {
    let Image { target, kind, ptx_version, entries, .. } = image;
    let File { file, bytes, sha256, .. } = shipped;
    let kind = if kind == "cubin" { "Cubin" } else { "Ptx" };
    let ptx_version = numbers(ptx_version)?;
    writeln!(
        out,
        "Image {{ target: {target:?}, kind: ImageKind::{kind}, ptx_version: {ptx_version:?}, toolkit: {toolkit:?},"
    )?;
    writeln!(out, "bytes: {bytes}, sha256: {sha256:?}, packed: include_bytes!({file:?}), entries: &[")?;
    for Entry { name, registers, shared, local, spills } in entries {
        writeln!(
            out,
            "Entry {{ name: {name:?}, registers: {registers}, shared: {shared}, local: {local}, spills: {spills} }},"
        )?;
    }
    Ok(writeln!(out, "] }},")?)
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Result<(u32, u32)> {
    let mut parts = version.split('.').map(str::parse);
    match (parts.next(), parts.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => Err(format!("MANIFEST.toml has the version `{version}`, which is none").into()),
    }
}

impl Manifest {
    fn empty() -> Self {
        Self {
            contract_version: contract::CONTRACT_VERSION,
            source_digest: String::new(),
            tools: Tools { ptxas: "0.0".to_owned() },
            image: vec![],
        }
    }
}
