//! `MANIFEST.toml`: what the images were built from and with, and what is in them.

use crate::audit::Counts;
use crate::compile::FLAGS;
use crate::error::{CudaBuilderError, Result};
use crate::ptxas::Resources;
use crate::targets::Kind;
use serde::Deserialize;
use std::fmt::Write;
use std::path::Path;

/// The versions of the tools, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Tools {
    /// First line of `rustc -vV`.
    pub rustc: String,
    /// rustc's LLVM.
    pub llvm: String,
    /// ptxas.
    pub ptxas: String,
}

/// A file of host/images.
#[derive(Debug, Clone)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Bytes and digest of its content.
    pub content: (usize, String),
    /// Bytes and digest as compressed.
    pub packed: (usize, String),
}

/// One target's images.
#[derive(Debug, Clone)]
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
    pub entries: Vec<(Resources, Counts)>,
}

/// The manifest as text. Written by hand to keep an entry on a line: a change then shows as one.
pub fn render(source_digest: &str, tools: &Tools, images: &[Image]) -> String {
    let mut text = String::from(
        "# Written by `cargo kernels`; build.rs and tests/images.rs check the files beside it against this.\n",
    );
    text += &format!("source_digest = \"{source_digest}\"\n\n[tools]\n");
    for (name, value) in [("rustc", &tools.rustc), ("llvm", &tools.llvm), ("ptxas", &tools.ptxas)] {
        text += &format!("{name} = \"{value}\"\n");
    }
    text += &format!("rustflags = {FLAGS:?}\n");
    for image in images {
        image.render(&mut text);
    }
    text
}

impl Image {
    fn render(&self, out: &mut String) {
        let (target, kind, ptx) = (&self.target, self.kind.name(), &self.ptx_version);
        *out += &format!("\n[[image]]\ntarget = \"{target}\"\nkind = \"{kind}\"\nptx_version = \"{ptx}\"\nfiles = [\n");
        for File { name, content, packed } in &self.files {
            let kind = if name.contains(".cubin") { "cubin" } else { "ptx" };
            *out += &format!(
                "  {{ file = \"{name}\", kind = \"{kind}\", bytes = {}, sha256 = \"{}\", ",
                content.0, content.1
            );
            *out += &format!("packed_bytes = {}, packed_sha256 = \"{}\" }},\n", packed.0, packed.1);
        }
        *out += "]\nentries = [\n";
        for (needs, counts) in &self.entries {
            let Resources { name, registers, shared, local, spills } = needs;
            let Counts { barriers, fma, wide_loads } = counts;
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "  {{ name = \"{name}\", registers = {registers}, shared = {shared}, local = {local}, spills = {spills}, \
                 barriers = {barriers}, fma = {fma}, wide_loads = {wide_loads} }},"
            );
        }
        *out += "]\n";
    }
}

/// The tools that the checked-in images were made with.
pub fn recorded_tools(manifest: &Path) -> Result<Tools> {
    #[derive(Deserialize)]
    struct Recorded {
        tools: Tools,
    }
    let text = std::fs::read_to_string(manifest).map_err(|e| CudaBuilderError::file(manifest, e))?;
    let recorded: Recorded = toml::from_str(&text).map_err(|e| CudaBuilderError::file(manifest, e))?;
    Ok(recorded.tools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rendered_manifest_reads_back() {
        let tools = Tools { rustc: "rustc 1.96.0".to_owned(), llvm: "22".to_owned(), ptxas: "13.5".to_owned() };
        let needs = Resources { name: "k".to_owned(), registers: 40, ..Resources::default() };
        let file =
            File { name: "sm_90.ptx.zst".to_owned(), content: (3, "aa".to_owned()), packed: (2, "bb".to_owned()) };
        let image = Image {
            target: "sm_90".to_owned(),
            kind: Kind::Ptx,
            ptx_version: "7.8".to_owned(),
            files: vec![file],
            entries: vec![(needs, Counts { barriers: 2, fma: 5, wide_loads: 1 })],
        };
        let table: toml::Table = toml::from_str(&render("cc", &tools, &[image])).expect("valid TOML");
        let image = &table["image"][0];
        assert_eq!(table["source_digest"].as_str(), Some("cc"));
        assert_eq!(image["files"][0]["packed_bytes"].as_integer(), Some(2));
        assert_eq!(image["entries"][0]["registers"].as_integer(), Some(40));
        assert_eq!(image["entries"][0]["barriers"].as_integer(), Some(2));
    }
}
