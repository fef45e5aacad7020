//! Building the target list, and comparing a rebuild with what is checked in.

use crate::compile::Job;
use crate::compiler::Compiler;
use crate::digest::source_digest;
use crate::error::{CudaBuilderError, Result};
use crate::image::{self, Built};
use crate::manifest::{Image, Manifest, Tools};
use crate::parallel;
use crate::ptxas::{Ptxas, Resources};
use crate::targets::{Target, TargetList};
use std::path::{Path, PathBuf};
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
    /// Where the images are: host/images, unless set otherwise.
    pub images: PathBuf,
    /// Where PTX and cubins are left uncompressed, also those that fail the audit.
    pub dump: Option<PathBuf>,
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
        let root = std::path::absolute(root).map_err(|e| CudaBuilderError::file(root, e))?;
        let list = TargetList::read(&root.join("kernels-gpu/targets.toml"))?;
        let compiler = Compiler::find()?;
        let ptxas = Ptxas::find(&venv(&root))?;
        Ok(Self { images: root.join("host/images"), root, list, compiler, ptxas, dump: None })
    }

    /// The tools found.
    pub fn tools(&self) -> Tools {
        let Compiler { version, llvm, .. } = &self.compiler;
        Tools { rustc: version.clone(), llvm: llvm.clone(), ptxas: self.ptxas.version.clone() }
    }

    /// Builds every target into the images' folder and writes the manifest.
    pub fn build_all(&self) -> Result<()> {
        self.build_list(&self.images)
    }

    /// Builds some targets into the images' folder; the manifest says from then on that the images do not belong together.
    pub fn build_some(&self, names: &[String]) -> Result<()> {
        let targets: Vec<&Target> = names.iter().map(|name| self.list.get(name)).collect::<Result<_>>()?;
        let images = self.build(&targets, &self.images)?;
        let path = self.images.join(MANIFEST);
        let empty = || Manifest { source_digest: String::new(), tools: self.tools(), images: vec![] };
        let mut manifest = if path.exists() { Manifest::read(&path)? } else { empty() };
        manifest.replace(images, self.tools(), &self.list);
        write(&path, &manifest)
    }

    /// Rebuilds every target elsewhere and compares.
    pub fn check(&self) -> Result<Comparison> {
        let folder = tempfile::tempdir().map_err(|e| CudaBuilderError::file(&std::env::temp_dir(), e))?;
        self.build_list(folder.path())?;
        let recorded = Manifest::read(&self.images.join(MANIFEST))?.tools;
        if recorded != self.tools() {
            return Ok(Comparison::OtherTools(recorded));
        }
        let different = differences(folder.path(), &self.images)?;
        if different.is_empty() { Ok(Comparison::Same) } else { Err(CudaBuilderError::Differ(different)) }
    }

    fn build_list(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).map_err(|e| CudaBuilderError::file(folder, e))?;
        let source_digest = source_digest(&self.root).map_err(|e| CudaBuilderError::file(&self.root, e))?;
        let images = self.build(&self.list.targets.iter().collect::<Vec<_>>(), folder)?;
        write(&folder.join(MANIFEST), &Manifest { source_digest, tools: self.tools(), images })
    }

    fn build(&self, targets: &[&Target], folder: &Path) -> Result<Vec<Image>> {
        let (built, mut failed) = parallel::map(targets, |target| self.build_one(target, folder));
        print_once(built.iter().flat_map(|built| built.warnings.split("\n\n")));
        match failed.pop() {
            None => Ok(built.into_iter().map(|built| built.image).collect()),
            Some(last) => {
                print_once(failed.iter().map(|error| format!("error: {error}")));
                Err(last)
            }
        }
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
        let built = image::build(&job, &self.ptxas, folder, self.dump.as_deref())?;
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

fn write(path: &Path, manifest: &Manifest) -> Result<()> {
    std::fs::write(path, manifest.render()).map_err(|e| CudaBuilderError::file(path, e))
}

/// The targets share their source, so most messages come several times; each is shown once.
fn print_once<T: AsRef<str>>(messages: impl Iterator<Item = T>) {
    let mut seen: Vec<T> = Vec::new();
    for message in messages {
        let text = message.as_ref();
        if !text.is_empty() && seen.iter().all(|old| old.as_ref() != text) {
            eprintln!("{text}\n");
            seen.push(message);
        }
    }
}

fn summary(image: &Image) -> String {
    let most = |what: fn(&Resources) -> usize| image.entries.iter().map(|entry| what(&entry.needs)).max().unwrap_or(0);
    let files =
        image.files.iter().map(|file| format!("{} {} -> {} bytes", file.kind.name(), file.bytes, file.packed_bytes));
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
