//! `CudaBuilder`, the part of the published crate's interface that this workspace uses.

use crate::arch::NvvmArch;
use crate::compile::{Job, Ptx};
use crate::compiler::Compiler;
use crate::error::{CudaBuilderError, Result};
use crate::targets::TargetList;
use crate::workspace::target_dir;
use std::path::{Path, PathBuf};

/// Compiles a device crate to PTX, for use in build scripts.
///
/// The crate's folder holds a `targets.toml`, the target list; [`arch`](Self::arch) picks from it.
///
/// ```no_run
/// use cuda_builder::{CudaBuilder, NvvmArch};
/// CudaBuilder::new("kernels-gpu").arch(NvvmArch::Compute90).copy_to("kernels.ptx").build()?;
/// # Ok::<(), cuda_builder::CudaBuilderError>(())
/// ```
#[derive(Debug)]
pub struct CudaBuilder {
    path_to_crate: PathBuf,
    /// The architecture to build for.
    pub arch: NvvmArch,
    /// Where the PTX is copied to, if anywhere.
    pub ptx_file_copy_path: Option<PathBuf>,
    /// More arguments for rustc.
    pub build_args: Vec<String>,
}

impl CudaBuilder {
    /// A builder for the crate in a folder, with the oldest architecture of the list.
    pub fn new(path_to_crate_root: impl AsRef<Path>) -> Self {
        let path_to_crate = path_to_crate_root.as_ref().to_owned();
        Self { path_to_crate, arch: NvvmArch::Compute80, ptx_file_copy_path: None, build_args: vec![] }
    }

    /// The architecture to build for.
    #[must_use]
    pub fn arch(mut self, arch: NvvmArch) -> Self {
        self.arch = arch;
        self
    }

    /// More arguments for rustc.
    #[must_use]
    pub fn build_args(mut self, args: &[impl AsRef<str>]) -> Self {
        self.build_args.extend(args.iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Copies the PTX there after the build.
    #[must_use]
    pub fn copy_to(mut self, path: impl AsRef<Path>) -> Self {
        self.ptx_file_copy_path = Some(path.as_ref().to_owned());
        self
    }

    /// Builds, tells cargo what the build depends on, and gives the path of the PTX.
    ///
    /// # Errors
    /// No such folder, no compiler, no such architecture in the target list, a compile error, a failed copy.
    pub fn build(self) -> Result<PathBuf> {
        println!("cargo:rerun-if-changed={}", self.path_to_crate.display());
        let built = self.compile()?;
        let Some(destination) = self.ptx_file_copy_path else { return Ok(built.path) };
        std::fs::write(&destination, built.text).map_err(CudaBuilderError::FailedToCopyPtxFile)?;
        Ok(destination)
    }

    fn compile(&self) -> Result<Ptx> {
        let missing = |_| CudaBuilderError::CratePathDoesntExist(self.path_to_crate.clone());
        let device_crate = self.path_to_crate.canonicalize().map_err(missing)?;
        let list = TargetList::read(&device_crate.join("targets.toml"))?;
        let target = list.get(self.arch.target())?;
        let job = Job {
            compiler: &Compiler::find()?,
            list: &list,
            target,
            device_crate: &device_crate,
            target_dir: &target_dir(&device_crate, 0),
            build_args: &self.build_args,
        };
        job.ptx()
    }
}
