//! `MANIFEST.toml`: what the images were built from and with, and what is in them.

use crate::audit::Counts;
use crate::compile::FLAGS;
use crate::contract::CONTRACT_VERSION;
use crate::error::{CudaBuilderError, Result};
use crate::ptxas::Resources;
use crate::targets::{Kind, TargetList};
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// The source digest of a manifest whose images were not all built from the same sources.
pub const MIXED: &str = "mixed";

/// The manifest.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Manifest {
    /// The version of the byte contract that the kernels keep.
    pub contract_version: u32,
    /// Digest of the device sources, or [`MIXED`].
    pub source_digest: String,
    /// What built the images.
    pub tools: Tools,
    /// One record a target.
    #[serde(rename = "image")]
    pub images: Vec<Image>,
}

/// The versions of the tools.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Tools {
    /// First line of `rustc -vV`.
    pub rustc: String,
    /// rustc's LLVM.
    pub llvm: String,
    /// ptxas.
    pub ptxas: String,
}

/// One target's images.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Image {
    /// The target's name.
    pub target: String,
    /// What the library embeds for it.
    pub kind: Kind,
    /// PTX ISA version.
    pub ptx_version: String,
    /// The PTX and, where there is one, the cubin.
    pub files: Vec<File>,
    /// Every entry, sorted by name.
    pub entries: Vec<Entry>,
}

/// A file of host/images.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct File {
    /// Its name.
    pub file: String,
    /// What it holds.
    pub kind: Kind,
    /// Bytes of the content.
    pub bytes: usize,
    /// Digest of the content.
    pub sha256: String,
    /// Bytes as compressed.
    pub packed_bytes: usize,
    /// Digest as compressed.
    pub packed_sha256: String,
}

/// One kernel: what it needs and what the audit counted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Entry {
    /// From ptxas.
    #[serde(flatten)]
    pub needs: Resources,
    /// From the PTX.
    #[serde(flatten)]
    pub counts: Counts,
}

impl Manifest {
    /// A manifest of images that keep the contract as it is now.
    pub fn new(source_digest: String, tools: Tools, images: Vec<Image>) -> Self {
        Self { contract_version: CONTRACT_VERSION, source_digest, tools, images }
    }

    /// Reads a manifest.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| CudaBuilderError::file(path, e))?;
        toml::from_str(&text).map_err(|e| CudaBuilderError::file(path, e))
    }

    /// Puts in the records of some targets, in the order of the list, and says that the images no longer belong together.
    pub fn replace(&mut self, images: Vec<Image>, tools: Tools, list: &TargetList) {
        self.images.retain(|old| images.iter().all(|new| new.target != old.target));
        self.images.extend(images);
        self.images.sort_by_key(|image| list.targets.iter().position(|target| target.name == image.target));
        self.tools = tools;
        self.contract_version = CONTRACT_VERSION;
        MIXED.clone_into(&mut self.source_digest);
    }

    /// Whether a file of host/images is in the manifest.
    pub fn describes(&self, name: &str) -> bool {
        self.images.iter().flat_map(|image| &image.files).any(|file| file.file == name)
    }

    /// The manifest as text. Written by hand to keep a file or an entry on one line: a change then shows as one.
    pub fn render(&self) -> String {
        let Tools { rustc, llvm, ptxas } = &self.tools;
        let mut text = String::from(
            "# Written by `cargo kernels`; build.rs and tests/images.rs check the files beside it against this.\n",
        );
        text += &format!("contract_version = {}\n", self.contract_version);
        text += &format!("source_digest = \"{}\"\n\n[tools]\n", self.source_digest);
        text += &format!("rustc = \"{rustc}\"\nllvm = \"{llvm}\"\nptxas = \"{ptxas}\"\nrustflags = {FLAGS:?}\n");
        for image in &self.images {
            image.render(&mut text).expect("writing to a string cannot fail");
        }
        text
    }
}

impl Image {
    fn render(&self, out: &mut String) -> std::fmt::Result {
        let Self { target, kind, ptx_version, .. } = self;
        writeln!(
            out,
            "\n[[image]]\ntarget = \"{target}\"\nkind = \"{}\"\nptx_version = \"{ptx_version}\"\nfiles = [",
            kind.name()
        )?;
        for File { file, kind, bytes, sha256, packed_bytes, packed_sha256 } in &self.files {
            write!(
                out,
                "  {{ file = \"{file}\", kind = \"{}\", bytes = {bytes}, sha256 = \"{sha256}\", ",
                kind.name()
            )?;
            writeln!(out, "packed_bytes = {packed_bytes}, packed_sha256 = \"{packed_sha256}\" }},")?;
        }
        writeln!(out, "]\nentries = [")?;
        for Entry { needs, counts } in &self.entries {
            let Resources { name, registers, shared, local, spills } = needs;
            write!(
                out,
                "  {{ name = \"{name}\", registers = {registers}, shared = {shared}, local = {local}, spills = {spills}, "
            )?;
            let Counts { barriers, fma, wide_loads } = counts;
            writeln!(out, "barriers = {barriers}, fma = {fma}, wide_loads = {wide_loads} }},")?;
        }
        writeln!(out, "]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(target: &str, registers: usize) -> Image {
        let needs = Resources { name: "k".to_owned(), registers, shared: 64, local: 0, spills: 0 };
        let entry = Entry { needs, counts: Counts { barriers: 2, fma: 5, wide_loads: 1 } };
        let [sha256, packed_sha256] = ["aa", "bb"].map(str::to_owned);
        let file = format!("{target}.ptx.zst");
        let file = File { file, kind: Kind::Ptx, bytes: 3, sha256, packed_bytes: 2, packed_sha256 };
        let (target, ptx_version) = (target.to_owned(), "7.8".to_owned());
        Image { target, kind: Kind::Cubin, ptx_version, files: vec![file], entries: vec![entry] }
    }

    fn manifest() -> Manifest {
        let [rustc, llvm, ptxas] = ["rustc 1.96.0", "22", "13.5"].map(str::to_owned);
        let images = vec![image("sm_80", 40), image("sm_90", 40)];
        Manifest::new("cc".to_owned(), Tools { rustc, llvm, ptxas }, images)
    }

    #[test]
    fn a_rendered_manifest_reads_back() {
        let read: Manifest = toml::from_str(&manifest().render()).expect("valid");
        assert_eq!(read, manifest());
    }

    #[test]
    fn a_partial_build_keeps_the_order_and_marks_the_digest() {
        let list =
            ["sm_80", "sm_89", "sm_90"].map(|name| format!("[[target]]\nname='{name}'\nkind='ptx'\nptx=70\ncfg=[]\n"));
        let list: TargetList =
            toml::from_str(&format!("{}[[rule]]\nentry=''\nbarriers=0", list.concat())).expect("valid");
        let mut partial = Manifest { contract_version: 0, ..manifest() };
        partial.replace(vec![image("sm_89", 40), image("sm_80", 50)], manifest().tools, &list);
        assert_eq!((partial.contract_version, &*partial.source_digest), (CONTRACT_VERSION, MIXED));
        assert_eq!(partial.images, [image("sm_80", 50), image("sm_89", 40), image("sm_90", 40)]);
    }
}
