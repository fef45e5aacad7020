//! A parsed module.

use std::sync::Arc;

use crate::error::{Fault, ParseError};
use crate::lower::lower_entry;
use crate::program::Program;
use crate::text;
use crate::text::parser::line_text;

/// A PTX module whose entries can be launched.
#[derive(Clone, Debug)]
pub struct Module {
    text: Arc<str>,
    version: String,
    target: String,
    programs: Vec<Program>,
}

/// An entry of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its parameters, in order.
    pub parameters: Vec<EntryParameter>,
    /// `.reqntid`
    pub required_threads: Option<[u32; 3]>,
    /// `.maxntid`
    pub maximum_threads: Option<[u32; 3]>,
    /// Static instructions, calls inlined.
    pub instructions: usize,
}

/// A parameter of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryParameter {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: usize,
    /// Its alignment.
    pub align: u64,
}

impl Module {
    /// Parses and decodes a module. Every instruction of every entry must be one that the machine defines.
    ///
    /// # Errors
    /// [`ParseError`], with the line.
    pub fn parse(source: &str) -> Result<Self, ParseError> {
        let tree = text::parse(source).map_err(|failure| failure.quote(source))?;
        let mut programs = Vec::new();
        for function in tree.functions.iter().filter(|function| function.entry) {
            if let Some(body) = &function.body {
                programs.push(lower_entry(&tree, function, body).map_err(|failure| failure.quote(source))?);
            }
        }
        Ok(Self { text: source.into(), version: tree.version, target: tree.target, programs })
    }

    /// The `.version` of the PTX ISA.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The `.target`, such as `sm_90`.
    #[must_use]
    pub fn target(&self) -> &str {
        &self.target
    }

    /// The entries, in the order of the text.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.programs.iter().map(|program| Entry {
            name: program.name.clone(),
            parameters: program
                .parameters
                .iter()
                .map(|p| EntryParameter { name: p.name.clone(), bytes: p.bytes, align: p.align })
                .collect(),
            required_threads: program.required_threads,
            maximum_threads: program.maximum_threads,
            instructions: program.code.len().saturating_sub(1),
        })
    }

    pub(crate) fn program(&self, entry: &str) -> Option<&Program> {
        self.programs.iter().find(|program| program.name == entry)
    }

    /// Adds the text of its line to a fault.
    pub(crate) fn quote(&self, fault: Fault) -> Fault {
        Fault { text: line_text(&self.text, fault.line), ..fault }
    }
}
