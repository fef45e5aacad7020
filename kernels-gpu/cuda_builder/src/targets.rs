//! The target list, `targets.toml`: the one place that says which images there are.

use crate::error::{CudaBuilderError, Result};
use serde::Deserialize;
use std::path::Path;

/// The list and the audit rules that go with it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetList {
    /// The targets, in the order of the manifest.
    #[serde(rename = "target")]
    pub targets: Vec<Target>,
    /// What is expected of an entry; the first rule that matches holds.
    #[serde(rename = "rule")]
    pub rules: Vec<Rule>,
    /// Register limits; the first that matches holds.
    #[serde(default)]
    pub registers: Vec<RegisterLimit>,
}

/// One GPU architecture that images are built for.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The name LLVM and ptxas know it by, for example `sm_100a`.
    pub name: String,
    /// What is shipped for it.
    pub kind: Kind,
    /// PTX ISA version times ten.
    pub ptx: u32,
    /// Capabilities handed to the device crate as `--cfg`.
    pub cfg: Vec<String>,
}

/// What is shipped for a target: PTX for the driver to translate, or machine code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// PTX only.
    Ptx,
    /// A cubin; the PTX it was made from is kept for the tests.
    Cubin,
}

/// What the audit expects of the entries whose name contains a word.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The word; the empty one is part of every name.
    pub entry: String,
    /// Block-wide barriers in the PTX.
    pub barriers: usize,
    /// Whether a 16-byte load must be there.
    #[serde(default = "yes")]
    pub wide_loads: bool,
}

/// The most registers that a thread of some entries may take.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegisterLimit {
    /// The name of an entry, or a star and the end of names.
    pub entry: String,
    /// Registers.
    pub limit: u32,
    /// The targets that it holds for; all if there are none.
    #[serde(default)]
    pub targets: Vec<String>,
}

impl RegisterLimit {
    fn is_for(&self, entry: &str, target: &Target) -> bool {
        let named = match self.entry.strip_prefix('*') {
            Some(end) => entry.ends_with(end),
            None => entry == self.entry,
        };
        named && (self.targets.is_empty() || self.targets.contains(&target.name))
    }
}

fn yes() -> bool {
    true
}

impl TargetList {
    /// Reads the list.
    pub fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| CudaBuilderError::file(path, e))?;
        toml::from_str(&text).map_err(|e| CudaBuilderError::file(path, e))
    }

    /// The target of a name.
    pub fn get(&self, name: &str) -> Result<&Target> {
        self.targets.iter().find(|t| t.name == name).ok_or_else(|| CudaBuilderError::UnknownTarget {
            name: name.to_owned(),
            known: self.targets.iter().map(|t| t.name.clone()).collect(),
        })
    }

    /// Every capability name that any target has, for rustc's `--check-cfg`.
    pub fn capabilities(&self) -> Vec<&str> {
        let mut all: Vec<&str> = self.targets.iter().flat_map(|t| &t.cfg).map(String::as_str).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The register limit of an entry, if it has one.
    pub fn register_limit(&self, entry: &str, target: &Target) -> Option<u32> {
        self.registers.iter().find(|rule| rule.is_for(entry, target)).map(|rule| rule.limit)
    }

    /// The rule of an entry.
    pub fn rule(&self, entry: &str) -> Option<&Rule> {
        self.rules.iter().find(|rule| entry.contains(&rule.entry))
    }
}

impl Target {
    /// The PTX ISA as written in PTX, for example `8.1`.
    pub fn ptx_version(&self) -> String {
        format!("{}.{}", self.ptx / 10, self.ptx % 10)
    }
}

impl Kind {
    /// The word of the target list and the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_limit_that_matches_holds() {
        let text = "target = []\nrule = []\n[[registers]]\nentry = \"*v2s\"\nlimit = 80\n\
                    [[registers]]\nentry = \"a__w1v2\"\nlimit = 64\ntargets = [\"sm_90\"]\n";
        let list: TargetList = toml::from_str(text).expect("a list");
        let target = |name: &str| Target { name: name.to_owned(), kind: Kind::Ptx, ptx: 70, cfg: vec![] };
        assert_eq!(list.register_limit("a__w1v2s", &target("sm_87")), Some(80));
        assert_eq!(list.register_limit("a__w1v2", &target("sm_90")), Some(64));
        assert_eq!(list.register_limit("a__w1v2", &target("sm_87")), None);
        assert_eq!(list.register_limit("b_a__w1v2", &target("sm_90")), None);
    }
}
