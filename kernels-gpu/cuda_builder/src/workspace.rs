//! Building the whole target list, and comparing a rebuild with what is checked in.

use crate::compile::Job;
use crate::compiler::Compiler;
use crate::digest::source_digest;
use crate::error::{CudaBuilderError, Result};
use crate::image::{self, Built};
use crate::manifest::{self, Image, Tools};
use crate::ptxas::Ptxas;
use crate::targets::{Target, TargetList};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

/// The manifest's file name.
const MANIFEST: &str = "MANIFEST.toml";

/// The workspace: where the device crate is and where its images go.
#[derive(Debug)]
pub struct Workspace {
    root: PathBuf,
    list: TargetList,
    compiler: Compiler,
    ptxas: Ptxas,
}

/// How a rebuild compares with the checked-in images.
#[derive(Debug, PartialEq, Eq)]
pub enum Comparison {
    /// Every file has the same bytes.
    Same,
    /// Other tools made the checked-in images, so bytes say nothing; the rebuild passed the audit.
    OtherTools(Tools),
}

impl Workspace {
    /// Opens the workspace at a root, and finds the tools.
    pub fn open(root: &Path) -> Result<Self> {
        let list = TargetList::read(&root.join("kernels-gpu/targets.toml"))?;
        let compiler = Compiler::find()?;
        let ptxas = Ptxas::find(&venv(root))?;
        Ok(Self { root: root.to_owned(), list, compiler, ptxas })
    }

    /// The tools found.
    pub fn tools(&self) -> Tools {
        let Compiler { version, llvm, .. } = &self.compiler;
        Tools { rustc: version.clone(), llvm: llvm.clone(), ptxas: self.ptxas.version.clone() }
    }

    /// Builds every target into host/images and writes the manifest.
    pub fn build_all(&self) -> Result<()> {
        self.build_list(&self.images())
    }

    /// Builds some targets into host/images and leaves the manifest as it is, so the images count as stale.
    pub fn build_some(&self, names: &[String]) -> Result<()> {
        let targets: Vec<&Target> = names.iter().map(|name| self.list.get(name)).collect::<Result<_>>()?;
        self.build(&targets, &self.images()).map(drop)
    }

    /// Rebuilds every target elsewhere and compares.
    pub fn check(&self) -> Result<Comparison> {
        let folder = tempfile::tempdir().map_err(|e| CudaBuilderError::file(&std::env::temp_dir(), e))?;
        self.build_list(folder.path())?;
        let recorded = manifest::recorded_tools(&self.images().join(MANIFEST))?;
        if recorded != self.tools() {
            return Ok(Comparison::OtherTools(recorded));
        }
        let different = differences(folder.path(), &self.images())?;
        if different.is_empty() { Ok(Comparison::Same) } else { Err(CudaBuilderError::Differ(different)) }
    }

    fn images(&self) -> PathBuf {
        self.root.join("host/images")
    }

    fn build_list(&self, folder: &Path) -> Result<()> {
        let digest = source_digest(&self.root).map_err(|e| CudaBuilderError::file(&self.root, e))?;
        let targets: Vec<&Target> = self.list.targets.iter().collect();
        let images = self.build(&targets, folder)?;
        let path = folder.join(MANIFEST);
        let text = manifest::render(&digest, &self.tools(), &images);
        std::fs::write(&path, text).map_err(|e| CudaBuilderError::file(&path, e))
    }

    /// Builds targets, a few at a time; the images come in the order of the targets.
    fn build(&self, targets: &[&Target], folder: &Path) -> Result<Vec<Image>> {
        let queue = Mutex::new(targets.iter().enumerate());
        let done: Mutex<Vec<(usize, Result<Built>)>> = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for _ in 0..workers(targets.len()) {
                scope.spawn(|| {
                    while let Some((at, target)) = next(&queue) {
                        let built = self.build_one(target, folder);
                        lock(&done).push((at, built));
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        done.sort_by_key(|(at, _)| *at);
        let built: Vec<Built> = done.into_iter().map(|(_, built)| built).collect::<Result<_>>()?;
        print_warnings(&built);
        Ok(built.into_iter().map(|built| built.image).collect())
    }

    fn build_one(&self, target: &Target, folder: &Path) -> Result<Built> {
        let start = Instant::now();
        let job = Job {
            compiler: &self.compiler,
            list: &self.list,
            target,
            device_crate: &self.root.join("kernels-gpu"),
            target_dir: &target_dir(&self.root, &target.name),
            build_args: &[],
        };
        let built = image::build(&job, &self.ptxas, folder)?;
        eprintln!("{}, {:.0} s", summary(&built.image), start.elapsed().as_secs_f64());
        Ok(built)
    }
}

/// The virtual environment that ptxas is fetched into.
pub fn venv(root: &Path) -> PathBuf {
    root.join("target/ptxas-venv")
}

/// Cargo's target folder of one target.
pub(crate) fn target_dir(root: &Path, target: &str) -> PathBuf {
    let all = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    std::path::absolute(&all).unwrap_or(all).join("kernels").join(target)
}

/// Two at a time keep two cores busy; more than four would only need more memory.
fn workers(targets: usize) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    targets.min(cores).min(4)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn next<T>(queue: &Mutex<impl Iterator<Item = T>>) -> Option<T> {
    lock(queue).next()
}

/// The same source gives the same warnings for every target, mostly; each is shown once.
fn print_warnings(built: &[Built]) {
    let mut seen: Vec<&str> = Vec::new();
    for warning in built.iter().flat_map(|built| built.warnings.split("\n\n")) {
        if !seen.contains(&warning) && !warning.is_empty() {
            eprintln!("{warning}\n");
            seen.push(warning);
        }
    }
}

fn summary(image: &Image) -> String {
    let most = |what: fn(&crate::ptxas::Resources) -> usize| {
        image.entries.iter().map(|(needs, _)| what(needs)).max().unwrap_or(0)
    };
    let files = image.files.iter().map(|file| format!("{} {} -> {} bytes", file.name, file.content.0, file.packed.0));
    let files = files.collect::<Vec<_>>().join(", ");
    let (registers, shared) = (most(|needs| needs.registers), most(|needs| needs.shared));
    let (target, entries) = (&image.target, image.entries.len());
    format!("{target}: {entries} entries, at most {registers} registers and {shared} bytes shared, {files}")
}

/// Names of the built files that are missing or different in the other folder, and of files too many there.
fn differences(built: &Path, checked_in: &Path) -> Result<Vec<String>> {
    let mut names = [generated(built)?, generated(checked_in)?].concat();
    names.sort();
    names.dedup();
    let content = |folder: &Path, name: &str| std::fs::read(folder.join(name)).ok();
    Ok(names.into_iter().filter(|name| content(built, name) != content(checked_in, name)).collect())
}

fn generated(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).map_err(|e| CudaBuilderError::file(folder, e))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Ok(names.filter(|name| name.ends_with(".zst") || name == MANIFEST).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_a_missing_and_a_leftover_image_are_differences() {
        let folders = [tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder")];
        let [built, checked_in] = folders.each_ref().map(|folder| folder.path());
        let write = |folder: &Path, name: &str, text: &str| std::fs::write(folder.join(name), text).expect("written");
        for name in ["same.zst", "changed.zst", "missing.zst"] {
            write(built, name, "new");
        }
        write(checked_in, "same.zst", "new");
        write(checked_in, "changed.zst", "old");
        write(checked_in, "leftover.zst", "old");
        write(checked_in, "digest.rs", "not an image");
        let different = differences(built, checked_in).expect("readable");
        assert_eq!(different, ["changed.zst", "leftover.zst", "missing.zst"]);
    }
}
