//! The instruction set: one file per family, one place per instruction, the section of the PTX ISA document named there.
//!
//! Sections are named by title ("Integer Arithmetic Instructions: bfe"), because their numbers move between versions.

mod arithmetic;
mod bits;
pub(crate) mod compare;
mod control;
pub(crate) mod convert;
mod copy;
mod float;
mod half;
mod integer;
pub(crate) mod memory;
mod mods;
mod moves;
mod packed;
pub(crate) mod warp;

use crate::error::ParseErrorKind;
use crate::lower::{Lower, Operands};
use crate::program::Op;
use crate::text::ast::Instruction;
use mods::Mods;

type Decoded = Result<Op, ParseErrorKind>;

/// Decodes one instruction, or says that it is not supported.
pub(crate) fn decode(instruction: &Instruction, lower: &mut Lower<'_>) -> Decoded {
    let (name, mods) = Mods::split(&instruction.opcode);
    let operands = Operands::new(lower, instruction);
    match name {
        "add" | "sub" | "mul" | "mad" | "fma" | "div" | "rem" | "abs" | "neg" | "min" | "max" | "rcp" | "sqrt"
        | "copysign" | "addc" | "subc" | "madc" | "mul24" | "mad24" | "sad" => arithmetic::decode(name, mods, operands),
        "and" | "or" | "xor" | "not" | "cnot" | "lop3" | "shl" | "shr" | "shf" | "bfe" | "bfi" | "bfind" | "brev"
        | "popc" | "clz" | "prmt" | "szext" | "bmsk" => bits::decode(name, mods, operands),
        "setp" | "set" | "selp" | "slct" | "testp" => compare::decode(name, mods, operands),
        "cvt" => convert::decode(mods, operands),
        "mov" | "cvta" | "isspacep" => moves::decode(name, mods, operands),
        "ld" | "st" | "atom" | "red" | "prefetch" => memory::decode(name, mods, operands),
        "cp" => copy::decode(mods, operands),
        "shfl" | "vote" | "match" | "redux" | "elect" => warp::decode(name, mods, operands),
        "bar" | "barrier" | "bra" | "brx" | "ret" | "exit" | "trap" | "membar" | "fence" | "griddepcontrol" => {
            control::decode(name, mods, operands)
        }
        _ => Err(mods.unsupported()),
    }
}
