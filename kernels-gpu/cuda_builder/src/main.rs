//! `cargo kernels`: builds, audits and checks the kernel images.
#![forbid(unsafe_code)]

use clap::Parser;
use cuda_builder::manifest::Tools;
use cuda_builder::ptxas::Ptxas;
use cuda_builder::workspace::{Comparison, Workspace, venv};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Builds the kernels of every target into host/images, audits them and writes MANIFEST.toml.
#[derive(Parser)]
#[command(name = "cargo kernels", version)]
struct Arguments {
    /// Rebuild elsewhere and compare with the checked-in images instead of writing them
    #[arg(long, conflicts_with = "target")]
    check: bool,
    /// Build only this target, for development; may be repeated
    #[arg(long, value_name = "SM")]
    target: Vec<String>,
    /// Write the images here instead of host/images
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Leave PTX and cubins uncompressed in this folder, also those that fail the audit
    #[arg(long, value_name = "DIR")]
    dump: Option<PathBuf>,
    /// Install ptxas from PyPI into target/ptxas-venv and stop
    #[arg(long, conflicts_with_all = ["check", "target"])]
    fetch_ptxas: bool,
    /// Root of the workspace
    #[arg(long, value_name = "DIR", default_value_os_t = here())]
    root: PathBuf,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(said) => {
            eprintln!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> cuda_builder::Result<String> {
    if arguments.fetch_ptxas {
        let Ptxas { path, version } = Ptxas::fetch(&venv(&arguments.root))?;
        return Ok(format!("ptxas {version} is at {}", path.display()));
    }
    let mut workspace = Workspace::open(&arguments.root)?;
    workspace.dump.clone_from(&arguments.dump);
    if let Some(folder) = &arguments.output {
        workspace.images.clone_from(folder);
    }
    let tools = workspace.tools();
    eprintln!("{}, LLVM {}, ptxas {}", tools.rustc, tools.llvm, tools.ptxas);
    if arguments.check {
        return workspace.check().map(verdict);
    }
    if arguments.target.is_empty() {
        return workspace.build_all().map(|()| format!("{} is up to date", workspace.images.display()));
    }
    workspace.build_some(&arguments.target)?;
    Ok("the images now come from different builds, and count as stale; run `cargo kernels` before committing"
        .to_owned())
}

fn verdict(comparison: Comparison) -> String {
    match comparison {
        Comparison::Same => "the rebuilt images are byte for byte the checked-in ones".to_owned(),
        Comparison::OtherTools(Tools { rustc, llvm, ptxas }) => format!(
            "the rebuilt images passed the audit; bytes were not compared, because the checked-in ones come from {rustc}, LLVM {llvm} \
             and ptxas {ptxas}"
        ),
    }
}

/// The workspace around the current folder.
fn here() -> PathBuf {
    std::env::current_dir()
        .ok()
        .and_then(|folder| {
            folder.ancestors().find(|at| at.join("kernels-gpu/targets.toml").is_file()).map(Path::to_owned)
        })
        .unwrap_or_else(|| PathBuf::from("."))
}
