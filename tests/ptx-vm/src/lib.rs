//! A PTX virtual machine.
#![forbid(unsafe_code)]

mod error;
mod exec;
mod isa;
mod layout;
mod lower;
mod memory;
mod module;
mod program;
mod soft;
mod text;
mod ty;

pub use error::{Access, Fault, FaultKind, LaunchError, ParseError, ParseErrorKind, RaceKind, Space, Unwritten};
pub use exec::{Argument, Dim3, Launch, Report, Schedule};
pub use memory::{Buffer, Handle, Memory};
pub use module::{Entry, EntryParameter, Module};
