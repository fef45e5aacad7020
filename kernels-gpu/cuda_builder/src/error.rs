//! What can go wrong, each in one sentence that ends with the fix where there is one.

use std::path::{Path, PathBuf};

/// An error of the builder. The names shared with the published crate keep its spelling.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CudaBuilderError {
    /// The folder given to [`CudaBuilder::new`](crate::CudaBuilder::new) is not there.
    #[error("crate path {0} does not exist")]
    CratePathDoesntExist(PathBuf),
    /// The built file could not be copied to its destination.
    #[error("cannot copy the built PTX file: {0}")]
    FailedToCopyPtxFile(std::io::Error),
    /// The compiler refused the device crate; its own messages follow.
    #[error("the device crate does not compile for {target}:\n{messages}")]
    BuildFailed {
        /// The target's name.
        target: String,
        /// What the compiler wrote.
        messages: String,
    },
    /// No rustc with the sources of `core` was found.
    #[error(
        "no Rust compiler {minimum} or newer with the sources of core was found; on Debian run `apt-get install rustc-web cargo-web \
         rust-web-src`, elsewhere `rustup toolchain install nightly --component rust-src`, or set ADALN_RUSTC to one"
    )]
    NoCompiler {
        /// The oldest release accepted.
        minimum: &'static str,
    },
    /// No ptxas, or only ones that are too old.
    #[error(
        "no ptxas {minimum} or newer was found{found}; run `cargo kernels --fetch-ptxas` to get it from PyPI, install a CUDA 13 \
         toolkit, or set ADALN_PTXAS to one"
    )]
    NoPtxas {
        /// The oldest release accepted.
        minimum: &'static str,
        /// Which older ones were found, as a parenthesis, or nothing.
        found: String,
    },
    /// The PyPI wheel could not be installed.
    #[error("cannot fetch ptxas: `{command}` failed ({messages})")]
    FetchFailed {
        /// The command line.
        command: String,
        /// What it wrote.
        messages: String,
    },
    /// ptxas refused the PTX.
    #[error("ptxas refuses the PTX of {target}: {messages}")]
    PtxasFailed {
        /// The target's name.
        target: String,
        /// What ptxas wrote.
        messages: String,
    },
    /// The image breaks rules of the audit.
    #[error("the audit of {target} failed:\n  {}", .findings.join("\n  "))]
    Audit {
        /// The target's name.
        target: String,
        /// One sentence each.
        findings: Vec<String>,
    },
    /// Some targets failed; each said why as it did.
    #[error("no images for {}; the reasons are above", .0.join(", "))]
    TargetsFailed(Vec<String>),
    /// The device sources were edited during the build.
    #[error(
        "the device sources changed while the kernels were built, so the images may not belong together; run it again"
    )]
    SourcesChanged,
    /// A name that is not in the target list.
    #[error("{name} is not in the target list; it has {}", .known.join(", "))]
    UnknownTarget {
        /// The name asked for.
        name: String,
        /// The names there are.
        known: Vec<String>,
    },
    /// The rebuilt images are not the checked-in ones.
    #[error("the checked-in images differ from a rebuild: {}; run `cargo kernels` and commit host/images", .0.join(", "))]
    Differ(Vec<String>),
    /// A file is not what it should be.
    #[error("{path}: {what}")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A program could not be started.
    #[error("cannot run {program}: {source}")]
    Spawn {
        /// The program.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A result of the builder.
pub type Result<T> = std::result::Result<T, CudaBuilderError>;

impl CudaBuilderError {
    /// Says which file an error belongs to.
    pub(crate) fn file(path: &Path, what: impl ToString) -> Self {
        Self::File { path: path.to_owned(), what: what.to_string() }
    }
}
