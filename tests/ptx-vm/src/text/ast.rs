//! The syntax tree of a module.

use super::number::Number;
use crate::ty::Ty;

#[derive(Debug, Default)]
pub(crate) struct Module {
    pub version: String,
    pub target: String,
    pub variables: Vec<Variable>,
    pub functions: Vec<Function>,
}

/// A state space of a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StateSpace {
    Global,
    Const,
    Shared,
    Local,
    Param,
}

#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub space: StateSpace,
    pub name: String,
    pub ty: Ty,
    pub align: u64,
    /// `None` for an unsized `.extern .shared` array.
    pub bytes: Option<u64>,
    /// Initial bytes; shorter than the variable means zeros behind.
    pub initial: Option<Vec<u8>>,
    pub line: u32,
}

#[derive(Debug)]
pub(crate) struct Function {
    pub name: String,
    pub entry: bool,
    pub results: Vec<Variable>,
    pub parameters: Vec<Variable>,
    pub required_threads: Option<[u32; 3]>,
    pub maximum_threads: Option<[u32; 3]>,
    /// `None` for a declaration.
    pub body: Option<Vec<Statement>>,
    pub line: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Statement {
    Scope(Vec<Statement>),
    Registers { ty: Ty, name: String, count: Option<u32>, line: u32 },
    Variable(Variable),
    Label { name: String, line: u32 },
    Targets { name: String, labels: Vec<String>, line: u32 },
    Instruction(Instruction),
}

#[derive(Clone, Debug)]
pub(crate) struct Instruction {
    pub line: u32,
    /// Predicate register and whether it is negated.
    pub guard: Option<(String, bool)>,
    /// The opcode with all its modifiers.
    pub opcode: String,
    pub operands: Vec<Operand>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand {
    /// A register, variable, label, function or special register.
    Name(String),
    /// `!p`
    Not(String),
    Constant {
        number: Number,
        negative: bool,
    },
    Vector(Vec<Operand>),
    Address {
        base: Box<Operand>,
        offset: i64,
    },
    /// `p|q`
    Pair(Box<Operand>, Box<Operand>),
    /// `(a, b)` of a call
    List(Vec<Operand>),
    /// `_`
    Sink,
}
