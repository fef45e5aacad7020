//! ptxas: finding it, fetching it, and what it reports about every entry.

use crate::compiler::{output, version};
use crate::error::{CudaBuilderError, Result};
use serde::Deserialize;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The oldest release that knows sm_110a.
const MINIMUM: &str = "13.0";

/// The wheel that `--fetch-ptxas` installs; the checked-in cubins were made with it.
const WHEEL: &str = "nvidia-cuda-nvcc==13.5.37";

/// An assembler for PTX.
#[derive(Debug, Clone)]
pub struct Ptxas {
    /// The program.
    pub path: PathBuf,
    /// Its version, for example `13.5.37`.
    pub version: String,
}

/// What an entry needs, as ptxas reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Resources {
    /// The entry.
    pub name: String,
    /// Registers of a thread.
    pub registers: usize,
    /// Static shared memory of a block, in bytes.
    pub shared: usize,
    /// Local memory of a thread, in bytes.
    pub local: usize,
    /// Spill stores and loads of a thread, in bytes.
    pub spills: usize,
}

impl Ptxas {
    /// Finds one: `ADALN_PTXAS`, else what [`Ptxas::fetch`] installed, else a CUDA toolkit, else the `PATH`.
    pub fn find(venv: &Path) -> Result<Self> {
        let candidates = match env::var_os("ADALN_PTXAS") {
            Some(named) => vec![named.into()],
            None => candidates(venv),
        };
        let found: Vec<Self> = candidates.iter().filter_map(|path| Self::probe(path)).collect();
        let old =
            found.first().map_or(String::new(), |old| format!(" (only {} at {})", old.version, old.path.display()));
        let recent = found.into_iter().find(|ptxas| version(&ptxas.version) >= version(MINIMUM));
        recent.ok_or(CudaBuilderError::NoPtxas { minimum: MINIMUM, found: old })
    }

    fn probe(path: &Path) -> Option<Self> {
        let text = output(path, &["--version"])?;
        let version = text.split(", V").nth(1)?.split_whitespace().next()?.to_owned();
        Some(Self { path: path.to_owned(), version })
    }

    /// Installs the pinned wheel from PyPI in a virtual environment of its own.
    pub fn fetch(venv: &Path) -> Result<Self> {
        let made = venv.join("bin/pip").is_file();
        if !made {
            succeed(Command::new("python3").args(["-m", "venv"]).arg(venv))?;
        }
        succeed(Command::new(venv.join("bin/pip")).args(["install", "--quiet", "--no-deps", WHEEL]))?;
        Self::find(venv)
    }

    /// Assembles a PTX file to a cubin, and gives the report of every entry in the order of their names.
    pub fn assemble(&self, target: &str, ptx: &Path, cubin: &Path) -> Result<Vec<Resources>> {
        let mut command = Command::new(&self.path);
        command.args(["-v", "-arch", target]).arg(ptx).arg("-o").arg(cubin);
        let output =
            command.output().map_err(|source| CudaBuilderError::Spawn { program: self.path.clone(), source })?;
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
        if !output.status.success() {
            return Err(CudaBuilderError::PtxasFailed { target: target.to_owned(), messages: text });
        }
        Ok(report(&text))
    }
}

fn candidates(venv: &Path) -> Vec<PathBuf> {
    let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(env::var_os).map(PathBuf::from);
    let bins = toolkits.chain(["/usr/local/cuda".into()]).map(|toolkit| toolkit.join("bin"));
    let path = env::var_os("PATH").unwrap_or_default();
    let installed = bins.chain(env::split_paths(&path)).map(|folder| folder.join("ptxas"));
    in_venv(venv).into_iter().chain(installed).filter(|path| path.is_file()).collect()
}

/// The wheel puts its programs below `site-packages`, in a folder named after the Python release and the CUDA release.
fn in_venv(venv: &Path) -> Vec<PathBuf> {
    let pythons = children(&venv.join("lib")).into_iter();
    let toolkits = pythons.flat_map(|python| children(&python.join("site-packages/nvidia")));
    toolkits.map(|toolkit| toolkit.join("bin/ptxas")).collect()
}

fn children(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

fn succeed(command: &mut Command) -> Result<()> {
    let failed =
        |messages: String| CudaBuilderError::FetchFailed { command: format!("{command:?}").replace('"', ""), messages };
    match Command::new(command.get_program()).args(command.get_args()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
        Err(error) => Err(failed(error.to_string())),
    }
}

/// Reads the report of `ptxas -v`.
fn report(text: &str) -> Vec<Resources> {
    let mut all: Vec<Resources> = Vec::new();
    for line in text.lines() {
        if let Some((_, rest)) = line.split_once("Compiling entry function '") {
            let name = rest.split('\'').next().unwrap_or_default().to_owned();
            all.push(Resources { name, ..Resources::default() });
        } else if let Some(entry) = all.last_mut() {
            entry.read(line);
        }
    }
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

impl Resources {
    fn read(&mut self, line: &str) {
        for item in line.split(" : ").last().unwrap_or_default().split(',') {
            let words: Vec<&str> = item.trim().trim_start_matches("Used ").splitn(2, ' ').collect();
            let [number, what] = words[..] else { continue };
            let Ok(number) = number.parse::<usize>() else { continue };
            match what {
                "registers" => self.registers = number,
                "bytes smem" => self.shared = number,
                "bytes stack frame" | "bytes lmem" => self.local = self.local.max(number),
                "bytes spill stores" | "bytes spill loads" => self.spills += number,
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_of_two_entries() {
        let text = "ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'b' for 'sm_90'\n\
                    ptxas info    : Function properties for b\n    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n\
                    ptxas info    : Used 64 registers, used 1 barriers, 512 bytes smem\nptxas info    : Compile time = 83.951 ms\n\
                    ptxas info    : Compiling entry function 'a' for 'sm_90'\n\
                    ptxas info    : Used 40 registers, 24 bytes lmem, 400 bytes cmem[0]\n";
        let b = Resources { name: "b".to_owned(), registers: 64, shared: 512, local: 16, spills: 12 };
        let a = Resources { name: "a".to_owned(), registers: 40, shared: 0, local: 24, spills: 0 };
        assert_eq!(report(text), [a, b]);
    }
}
