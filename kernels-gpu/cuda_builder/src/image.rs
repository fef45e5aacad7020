//! One target's images: compile, assemble, audit, compress.

use crate::audit::{Counts, audit_ptx, audit_resources, count};
use crate::compile::Job;
use crate::digest::sha256_hex;
use crate::error::{CudaBuilderError, Result};
use crate::manifest::{File, Image};
use crate::ptx;
use crate::ptxas::{Ptxas, Resources};
use crate::targets::{Kind, Target};
use std::path::Path;

/// zstd's strongest level without a larger window; the kernels take less than a second.
const LEVEL: i32 = 19;

/// A target's images and what the compiler had to say.
#[derive(Debug)]
pub struct Built {
    /// What the manifest records.
    pub image: Image,
    /// The compiler's warnings.
    pub warnings: String,
}

/// Builds the images of one target into a folder.
pub(crate) fn build(job: &Job<'_>, ptxas: &Ptxas, folder: &Path) -> Result<Built> {
    let (assembly, warnings) = job.run()?;
    let text = std::fs::read_to_string(&assembly).map_err(|e| CudaBuilderError::file(&assembly, e))?;
    let text = ptx::normalise(&text);
    let (cubin, resources) = assemble(job.target, ptxas, &text)?;
    let findings = [audit_ptx(&text, job.list), audit_resources(&resources)].concat();
    if !findings.is_empty() {
        return Err(CudaBuilderError::Audit { target: job.target.name.clone(), findings });
    }
    let mut files = vec![pack(folder, &format!("{}.ptx", job.target.name), text.as_bytes())?];
    if job.target.kind == Kind::Cubin {
        files.push(pack(folder, &format!("{}.cubin", job.target.name), &cubin)?);
    }
    let image = Image {
        target: job.target.name.clone(),
        kind: job.target.kind,
        ptx_version: job.target.ptx_version(),
        files,
        entries: with_counts(resources, &text),
    };
    Ok(Built { image, warnings })
}

/// Assembles in a folder of its own under fixed names, so that nothing of this machine can reach the cubin.
fn assemble(target: &Target, ptxas: &Ptxas, text: &str) -> Result<(Vec<u8>, Vec<Resources>)> {
    let folder = tempfile::tempdir().map_err(|e| CudaBuilderError::file(&std::env::temp_dir(), e))?;
    let (ptx, cubin) = (folder.path().join("kernels.ptx"), folder.path().join("kernels.cubin"));
    std::fs::write(&ptx, text).map_err(|e| CudaBuilderError::file(&ptx, e))?;
    let resources = ptxas.assemble(&target.name, &ptx, &cubin)?;
    let bytes = std::fs::read(&cubin).map_err(|e| CudaBuilderError::file(&cubin, e))?;
    Ok((bytes, resources))
}

fn with_counts(resources: Vec<Resources>, text: &str) -> Vec<(Resources, Counts)> {
    let entries = ptx::entries(text);
    let counts = |name: &str| entries.iter().find(|entry| entry.name == name).map(count).unwrap_or_default();
    resources.into_iter().map(|needs| (needs.clone(), counts(&needs.name))).collect()
}

/// Compresses and writes one file.
fn pack(folder: &Path, name: &str, content: &[u8]) -> Result<File> {
    let name = format!("{name}.zst");
    let path = folder.join(&name);
    let packed = zstd::bulk::compress(content, LEVEL).map_err(|e| CudaBuilderError::file(&path, e))?;
    std::fs::write(&path, &packed).map_err(|e| CudaBuilderError::file(&path, e))?;
    let described = |bytes: &[u8]| (bytes.len(), sha256_hex(bytes));
    Ok(File { name, content: described(content), packed: described(&packed) })
}
