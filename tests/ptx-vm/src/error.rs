//! What can go wrong, typed.

use std::ops::Range;

/// The module's text is not PTX that this machine understands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PTX line {line}: {kind}: `{text}`")]
pub struct ParseError {
    /// Line in the module's text, from 1.
    pub line: u32,
    /// The text of that line.
    pub text: String,
    /// What is wrong with it.
    pub kind: ParseErrorKind,
}

/// The ways in which a line can fail to parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseErrorKind {
    /// The text breaks PTX syntax.
    #[error("syntax error, expected {0}")]
    Syntax(String),
    /// A name that nothing declares.
    #[error("`{0}` is not declared")]
    UnknownName(String),
    /// A name declared twice in one scope.
    #[error("`{0}` is declared twice")]
    Redeclared(String),
    /// An instruction, or a form of it, that the machine does not define; it never guesses.
    #[error("unsupported instruction: {0}")]
    UnsupportedInstruction(String),
    /// A directive or declaration that the machine does not define.
    #[error("unsupported declaration: {0}")]
    UnsupportedDeclaration(String),
    /// An operand of the wrong kind, width or number for its instruction.
    #[error("operand error: {0}")]
    Operand(String),
}

/// Why a launch did not complete.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// The module has no entry of this name.
    #[error("the module has no entry `{0}`")]
    UnknownEntry(String),
    /// The number of arguments differs from the number of parameters.
    #[error("`{entry}` takes {expected} arguments, {got} given")]
    ArgumentCount {
        /// Name of the entry.
        entry: String,
        /// Parameters of the entry.
        expected: usize,
        /// Arguments given.
        got: usize,
    },
    /// An argument's size differs from its parameter's.
    #[error("argument {index} (`{parameter}`) takes {expected} bytes, {got} given")]
    ArgumentSize {
        /// Position, from 0.
        index: usize,
        /// Name of the parameter.
        parameter: String,
        /// Bytes of the parameter.
        expected: usize,
        /// Bytes given.
        got: usize,
    },
    /// A grid or block that hardware or the entry's own directives refuse.
    #[error("bad launch geometry: {0}")]
    Geometry(String),
    /// The kernel did something that a correct kernel does not do.
    #[error(transparent)]
    Fault(#[from] Box<Fault>),
}

impl LaunchError {
    /// The fault, if it was one.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Fault(fault) => Some(fault),
            _ => None,
        }
    }
}

/// A fault of the kernel: who, where and what.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("block {block:?}, thread {thread:?}, PTX line {line} `{text}`: {kind}")]
pub struct Fault {
    /// `%ctaid` of the thread at fault.
    pub block: [u32; 3],
    /// `%tid` of the thread at fault.
    pub thread: [u32; 3],
    /// PTX line of the instruction.
    pub line: u32,
    /// The text of that line.
    pub text: String,
    /// What happened.
    pub kind: FaultKind,
}

/// A memory space as faults name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// `.global` (and `.const`) buffers.
    Global,
    /// `.shared`.
    Shared,
    /// `.local`.
    Local,
    /// `.param`.
    Param,
}

/// What two accesses of a race do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaceKind {
    /// Two writes.
    WriteWrite,
    /// An earlier read and a write.
    ReadWrite,
    /// An earlier write and a read.
    WriteRead,
}

/// The other party of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// `%ctaid`.
    pub block: [u32; 3],
    /// `%tid`.
    pub thread: [u32; 3],
    /// PTX line of its access.
    pub line: u32,
}

/// What a faulting instruction did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// An access outside every buffer or variable.
    #[error("out of bounds: {bytes} bytes at {address:#x} of {space:?} memory{hint}")]
    OutOfBounds {
        /// Space of the access.
        space: Space,
        /// Address in that space.
        address: u64,
        /// Bytes of the access.
        bytes: u64,
        /// The nearest buffer, in words.
        hint: String,
    },
    /// An address that is not a multiple of the access size.
    #[error("misaligned: {bytes} bytes at {address:#x} of {space:?} memory")]
    Misaligned {
        /// Space of the access.
        space: Space,
        /// Address in that space.
        address: u64,
        /// Bytes of the access.
        bytes: u64,
    },
    /// A write to a buffer that is declared read-only, or to constant memory.
    #[error("write to read-only memory at {address:#x}")]
    ReadOnly {
        /// Address.
        address: u64,
    },
    /// A register used before it was written.
    #[error("register `{name}` is used before it is written")]
    UndefinedRegister {
        /// Name in the PTX.
        name: String,
    },
    /// A byte read before it was written.
    #[error("uninitialised byte at {address:#x} of {space:?} memory is read")]
    UninitialisedRead {
        /// Space of the byte.
        space: Space,
        /// Address of the byte.
        address: u64,
    },
    /// Two threads touch a byte, one writes, and nothing orders them.
    #[error("{kind:?} race on the byte at {address:#x} of {space:?} memory with {other:?}")]
    Race {
        /// Space of the byte.
        space: Space,
        /// Address of the byte.
        address: u64,
        /// Which accesses meet.
        kind: RaceKind,
        /// The earlier access.
        other: Access,
    },
    /// A byte of an output written twice with different values.
    #[error("output byte at {address:#x} is written twice: {first:#04x}, then {second:#04x}")]
    WrittenTwice {
        /// Address of the byte.
        address: u64,
        /// The first value.
        first: u8,
        /// The second value.
        second: u8,
    },
    /// A `ld.global.nc` of a byte that this launch has written.
    #[error("non-coherent load of the byte at {address:#x}, which this kernel writes")]
    NonCoherentLoad {
        /// Address of the byte.
        address: u64,
    },
    /// An access to the destination of an asynchronous copy that its thread has not waited for.
    #[error("shared byte at {address:#x} is the destination of a copy on its way, issued by {copy:?}")]
    CopyPending {
        /// Address of the byte.
        address: u64,
        /// Who issued the copy.
        copy: Access,
    },
    /// The source of an asynchronous copy holds other bytes when the copy ends than when it was issued.
    #[error("the source of a copy on its way, at {address:#x}, was written")]
    CopySourceChanged {
        /// Address of the source.
        address: u64,
    },
    /// A barrier that some thread of the block never reaches.
    #[error("barrier {barrier} is reached by {arrived} of {expected} threads; thread {missing:?} {reason}")]
    PartialBarrier {
        /// Barrier resource, 0 to 15.
        barrier: u32,
        /// Threads that arrived.
        arrived: usize,
        /// Threads that must.
        expected: usize,
        /// `%tid` of one that did not.
        missing: [u32; 3],
        /// What that one does instead.
        reason: String,
    },
    /// Threads meet at one aligned barrier from different instructions.
    #[error("divergent barrier {barrier}: another thread waits for it at PTX line {other_line}")]
    DivergentBarrier {
        /// Barrier resource, 0 to 15.
        barrier: u32,
        /// The other instruction.
        other_line: u32,
    },
    /// A barrier number or thread count that the ISA does not allow.
    #[error("invalid barrier operands: {0}")]
    InvalidBarrier(String),
    /// A warp operation whose member mask leaves out the executing lane.
    #[error("member mask {mask:#010x} does not name the executing lane {lane}")]
    MaskWithoutSelf {
        /// Member mask.
        mask: u32,
        /// Lane that executes.
        lane: u32,
    },
    /// A warp operation waits for a lane that does not come: it has exited, was never there, or waits elsewhere.
    #[error("lane {lane} of member mask {mask:#010x} is absent: it {reason}")]
    AbsentLane {
        /// Member mask.
        mask: u32,
        /// Lane that is missing.
        lane: u32,
        /// What it does instead.
        reason: String,
    },
    /// A shuffle that reads a lane outside its member mask.
    #[error("shuffle reads lane {lane}, which is not in member mask {mask:#010x}")]
    ShuffleOutsideMask {
        /// Member mask.
        mask: u32,
        /// Lane read.
        lane: u32,
    },
    /// The `trap` instruction.
    #[error("trap")]
    Trap,
    /// More instructions than the launch allows a thread.
    #[error("a thread ran more than {limit} instructions")]
    StepLimit {
        /// The limit.
        limit: u64,
    },
    /// An operand for which the ISA leaves the result undefined.
    #[error("undefined result: {0}")]
    UndefinedResult(String),
}

/// Bytes of an output that no launch wrote.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bytes never written: {ranges:?}")]
pub struct Unwritten {
    /// Offsets in the buffer.
    pub ranges: Vec<Range<usize>>,
}
