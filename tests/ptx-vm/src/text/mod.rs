//! From text to a syntax tree. Reading order: `lexer`, `ast`, `parser`, `declaration`, `statement`.

pub(crate) mod ast;
mod declaration;
mod lexer;
pub(crate) mod number;
pub(crate) mod parser;
mod statement;

pub(crate) use parser::parse;
