//! One target's images: compile, assemble, audit, compress.

use crate::audit::{audit_ptx, audit_resources, audit_target, count};
use crate::compile::{Job, Ptx};
use crate::digest::sha256_hex;
use crate::error::{CudaBuilderError, Result};
use crate::manifest::{Entry, File, Image};
use crate::ptx;
use crate::ptxas::{Ptxas, Resources};
use crate::targets::Kind;
use std::path::Path;

/// zstd's strongest level without a larger window; a megabyte of PTX takes about a second.
const LEVEL: i32 = 19;

/// A target's images and what the compiler had to say.
#[derive(Debug)]
pub(crate) struct Built {
    /// What the manifest records.
    pub image: Image,
    /// The compiler's warnings.
    pub warnings: String,
}

/// Builds the images of one target into a folder, and leaves them uncompressed in another if one is given.
pub(crate) fn build(job: &Job<'_>, ptxas: &Ptxas, folder: &Path, dump: Option<&Path>) -> Result<Built> {
    let Ptx { text, warnings, .. } = job.ptx()?;
    keep(dump, &format!("{}.ptx", job.target.name), text.as_bytes())?;
    let (cubin, resources) = assemble(&job.target.name, ptxas, &text)?;
    keep(dump, &format!("{}.cubin", job.target.name), &cubin)?;
    let findings = [audit_target(&text, job.target), audit_ptx(&text, job.list), audit_resources(&resources)].concat();
    if !findings.is_empty() {
        return Err(CudaBuilderError::Audit { target: job.target.name.clone(), findings });
    }
    let mut files = vec![pack(folder, &job.target.name, Kind::Ptx, text.as_bytes())?];
    if job.target.kind == Kind::Cubin {
        files.push(pack(folder, &job.target.name, Kind::Cubin, &cubin)?);
    }
    let (target, kind, ptx_version) = (job.target.name.clone(), job.target.kind, job.target.ptx_version());
    let image = Image { target, kind, ptx_version, files, entries: with_counts(resources, &text) };
    Ok(Built { image, warnings })
}

/// Assembles in a folder of its own under fixed names, so that nothing of this machine can reach the cubin.
fn assemble(target: &str, ptxas: &Ptxas, text: &str) -> Result<(Vec<u8>, Vec<Resources>)> {
    let folder = tempfile::tempdir().map_err(|e| CudaBuilderError::file(&std::env::temp_dir(), e))?;
    let (ptx, cubin) = (folder.path().join("kernels.ptx"), folder.path().join("kernels.cubin"));
    write(&ptx, text.as_bytes())?;
    let resources = ptxas.assemble(target, &ptx, &cubin)?;
    let bytes = std::fs::read(&cubin).map_err(|e| CudaBuilderError::file(&cubin, e))?;
    Ok((bytes, resources))
}

fn with_counts(resources: Vec<Resources>, text: &str) -> Vec<Entry> {
    let entries = ptx::entries(text);
    let counts = |name: &str| entries.iter().find(|entry| entry.name == name).map(count).unwrap_or_default();
    resources.into_iter().map(|needs| Entry { counts: counts(&needs.name), needs }).collect()
}

/// Compresses and writes one file.
fn pack(folder: &Path, target: &str, kind: Kind, content: &[u8]) -> Result<File> {
    let file = format!("{target}.{}.zst", kind.name());
    let path = folder.join(&file);
    let packed = zstd::bulk::compress(content, LEVEL).map_err(|e| CudaBuilderError::file(&path, e))?;
    write(&path, &packed)?;
    let (sha256, packed_sha256) = (sha256_hex(content), sha256_hex(&packed));
    Ok(File { file, kind, bytes: content.len(), sha256, packed_bytes: packed.len(), packed_sha256 })
}

fn keep(dump: Option<&Path>, name: &str, content: &[u8]) -> Result<()> {
    let Some(folder) = dump else { return Ok(()) };
    std::fs::create_dir_all(folder).map_err(|e| CudaBuilderError::file(folder, e))?;
    write(&folder.join(name), content)
}

fn write(path: &Path, content: &[u8]) -> Result<()> {
    std::fs::write(path, content).map_err(|e| CudaBuilderError::file(path, e))
}
