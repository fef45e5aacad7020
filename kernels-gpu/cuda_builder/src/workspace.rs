//! Building the target list, and comparing a rebuild with what is checked in.

use crate::compile::Job;
use crate::compiler::Compiler;
use crate::digest::source_digest;
use crate::error::{CudaBuilderError, Result};
use crate::image::{self, Built};
use crate::manifest::{Image, Manifest, Tools};
use crate::parallel;
use crate::ptxas::{Ptxas, Resources};
use crate::staged::{MANIFEST, Staged};
use crate::targets::{Target, TargetList};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

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
        let (staged, manifest) = self.stage_all()?;
        staged.publish(&self.images, &manifest)
    }

    /// Builds some targets into the images' folder; the manifest says from then on that the images do not belong together.
    pub fn build_some(&self, names: &[String]) -> Result<()> {
        let staged = self.stage(&names.iter().map(|name| self.list.get(name)).collect::<Result<Vec<_>>>()?)?;
        let path = self.images.join(MANIFEST);
        let empty = || Manifest::new(String::new(), self.tools(), vec![]);
        let mut manifest = if path.exists() { Manifest::read(&path)? } else { empty() };
        manifest.replace(staged.images.clone(), self.tools(), &self.list);
        staged.publish(&self.images, &manifest)
    }

    /// Rebuilds every target elsewhere and compares.
    pub fn check(&self) -> Result<Comparison> {
        let recorded = Manifest::read(&self.images.join(MANIFEST))?.tools;
        let (staged, manifest) = self.stage_all()?;
        if recorded != self.tools() {
            return Ok(Comparison::OtherTools(recorded));
        }
        let different = staged.differences(&self.images, &manifest)?;
        if different.is_empty() { Ok(Comparison::Same) } else { Err(CudaBuilderError::Differ(different)) }
    }

    /// Builds every target, from sources that stay the same while it does.
    fn stage_all(&self) -> Result<(Staged, Manifest)> {
        let digest = || source_digest(&self.root).map_err(|e| CudaBuilderError::file(&self.root, e));
        let source_digest = digest()?;
        let staged = self.stage(&self.list.targets.iter().collect::<Vec<_>>())?;
        if digest()? != source_digest {
            return Err(CudaBuilderError::SourcesChanged);
        }
        let manifest = Manifest::new(source_digest, self.tools(), staged.images.clone());
        Ok((staged, manifest))
    }

    fn stage(&self, targets: &[&Target]) -> Result<Staged> {
        let folder = tempfile::tempdir().map_err(|e| CudaBuilderError::file(&std::env::temp_dir(), e))?;
        let attempts = parallel::map(targets, |worker, target| {
            self.build_one(worker, target, folder.path())
                .inspect_err(|error| eprintln!("error: {error}"))
                .map_err(|_| target.name.clone())
        });
        let failed: Vec<String> = attempts.iter().filter_map(|attempt| attempt.as_ref().err().cloned()).collect();
        let built: Vec<Built> = attempts.into_iter().flatten().collect();
        print_once(built.iter().flat_map(|built| built.warnings.split("\n\n")));
        let images = built.into_iter().map(|built| built.image).collect();
        if failed.is_empty() { Ok(Staged { folder, images }) } else { Err(CudaBuilderError::TargetsFailed(failed)) }
    }

    fn build_one(&self, worker: usize, target: &Target, folder: &Path) -> Result<Built> {
        let start = Instant::now();
        let job = Job {
            compiler: &self.compiler,
            list: &self.list,
            target,
            device_crate: &self.root.join("kernels-gpu"),
            target_dir: &target_dir(&self.root, worker),
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

/// Cargo's target folder of one worker: two targets can build at a time, and `core` is built once a worker, not once a target.
/// In a build script it is below `OUT_DIR`.
pub(crate) fn target_dir(root: &Path, worker: usize) -> PathBuf {
    let given = ["CARGO_TARGET_DIR", "OUT_DIR"].into_iter().find_map(std::env::var_os);
    let all = given.map_or_else(|| root.join("target"), PathBuf::from);
    std::path::absolute(&all).unwrap_or(all).join(format!("kernels/{worker}"))
}

/// The targets share their source, so most warnings come several times; each is shown once.
fn print_once<'a>(messages: impl Iterator<Item = &'a str>) {
    let mut seen = BTreeSet::new();
    for message in messages.filter(|message| !message.is_empty()) {
        if seen.insert(message) {
            eprintln!("{message}\n");
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
