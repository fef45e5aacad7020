//! The decoded form of an entry: what the machine runs.
//!
//! Every operand is a slot of the thread's register file. Constants and special registers have slots too, filled when the
//! thread starts, so that an operand is one array access whatever it was in the text. Arithmetic instructions hold the
//! function that defines them.

use crate::isa::compare::Comparison;
use crate::isa::convert::Conversion;
use crate::isa::memory::AtomicOp;
use crate::isa::warp::WarpOp;

/// Index into a thread's register file.
pub(crate) type Slot = u32;

/// The guard of an instruction that has none.
pub(crate) const NO_GUARD: Slot = Slot::MAX;

/// One decoded instruction.
#[derive(Clone, Debug)]
pub(crate) struct Inst {
    pub guard: Slot,
    pub negated: bool,
    pub op: Op,
}

/// A range of [`Program::pool`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slots {
    pub first: u32,
    pub count: u32,
}

pub(crate) type F1 = fn(u64) -> u64;
pub(crate) type F2 = fn(u64, u64) -> u64;
pub(crate) type F3 = fn(u64, u64, u64) -> u64;
pub(crate) type FMany = fn([u64; 4]) -> [u64; 2];
pub(crate) type FChecked = fn([u64; 4]) -> Option<u64>;

/// What an instruction does.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Unary {
        f: F1,
        d: Slot,
        a: Slot,
    },
    Binary {
        f: F2,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    /// As `Many` with one result, which does not exist for some operands: then the text says why.
    Checked {
        f: FChecked,
        d: Slot,
        s: [Slot; 4],
        why: &'static str,
    },
    Ternary {
        f: F3,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// Up to four sources and two destinations.
    Many {
        f: FMany,
        d: [Slot; 2],
        s: [Slot; 4],
    },
    Convert {
        plan: u32,
        d: Slot,
        a: Slot,
        b: Slot,
    },
    Compare {
        plan: u32,
        d: [Slot; 2],
        a: Slot,
        b: Slot,
        c: Slot,
    },
    /// Copies a value, defined or not.
    Move {
        d: Slot,
        a: Slot,
    },
    /// `d = p ? a : b`; only the chosen source is read.
    Select {
        d: Slot,
        a: Slot,
        b: Slot,
        p: Slot,
    },
    /// Elements of `bits` each, the first lowest.
    Pack {
        d: Slot,
        parts: Slots,
        bits: u32,
    },
    Unpack {
        a: Slot,
        parts: Slots,
        bits: u32,
    },
    Jump {
        target: u32,
    },
    /// Indexed branch through [`Program::targets`].
    Table {
        index: Slot,
        targets: Slots,
    },
    Exit,
    Trap,
    Nothing,
    Load {
        access: Access,
        to: Slots,
    },
    Store {
        access: Access,
        from: Slots,
    },
    Atomic {
        access: Access,
        op: AtomicOp,
        d: Slot,
        b: Slot,
        c: Slot,
    },
    /// `cp.async`
    Copy {
        to: Access,
        from: Access,
        source_bytes: Slot,
    },
    CopyCommit,
    /// Waits until at most `pending` groups are on their way.
    CopyWait {
        pending: u64,
    },
    CopyWaitAll,
    Barrier(Barrier),
    Warp(WarpOp),
}

/// The memory side of a load, store or atomic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub space: AccessSpace,
    /// Slot of the base address.
    pub base: Slot,
    pub offset: i64,
    /// Bytes of one element.
    pub bytes: u8,
    /// Sign-extend a loaded element from its width to this many bits; 0: zero-extend.
    pub sign_to: u8,
    /// `.nc`
    pub non_coherent: bool,
    /// A strong (`.relaxed`, `.acquire`, `.release`) or atomic access: two of them do not race.
    pub strong: bool,
}

/// State space of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AccessSpace {
    Generic,
    Global,
    Shared,
    Local,
    Param,
}

/// A block-wide barrier instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Barrier {
    pub id: Slot,
    /// Thread count, or all threads.
    pub count: Option<Slot>,
    pub aligned: bool,
    pub kind: BarrierKind,
}

/// What a barrier does beside waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    Sync,
    Arrive,
    Reduce { op: Reduction, d: Slot, p: Slot, negated: bool },
}

/// Reduction of `barrier.red`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reduction {
    Count,
    All,
    Any,
}

/// A special register that has a value when a thread starts (PTX ISA, "Special Registers").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Lane,
    Warp,
    Warps,
    MaskEq,
    MaskLt,
    MaskLe,
    MaskGt,
    MaskGe,
    DynamicShared,
}

/// A variable at a fixed place of a per-block or per-thread space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub start: u64,
    pub end: u64,
}

/// A parameter of an entry.
#[derive(Clone, Debug)]
pub(crate) struct Parameter {
    pub name: String,
    pub bytes: usize,
    pub align: u64,
    /// Address in the param space.
    pub address: u64,
}

/// A `.global` or `.const` variable; it becomes a buffer of the launch.
#[derive(Clone, Debug)]
pub(crate) struct ModuleBuffer {
    pub bytes: Vec<u8>,
    pub align: u64,
    pub read_only: bool,
    /// Constant slot that takes the address.
    pub slot: Slot,
}

/// An entry, ready to run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Program {
    pub name: String,
    pub code: Vec<Inst>,
    /// Per instruction: its line and opcode.
    pub sites: Vec<(u32, String)>,
    pub slots: usize,
    pub slot_names: Vec<String>,
    pub constants: Vec<(Slot, u64)>,
    pub specials: Vec<(Slot, Special)>,
    pub pool: Vec<Slot>,
    pub targets: Vec<u32>,
    pub conversions: Vec<Conversion>,
    pub comparisons: Vec<Comparison>,
    pub parameters: Vec<Parameter>,
    pub shared: Vec<Extent>,
    /// Base of the unsized `.extern .shared` array, if there is one.
    pub dynamic_shared: Option<u64>,
    pub local: Vec<Extent>,
    /// Entry parameters and the parameters of inlined calls; the entry's come first.
    pub param: Vec<Extent>,
    pub buffers: Vec<ModuleBuffer>,
    pub required_threads: Option<[u32; 3]>,
    pub maximum_threads: Option<[u32; 3]>,
    /// Whether an atomic or strong access makes the order of blocks visible.
    pub ordered: bool,
}

impl Program {
    /// The slots of a range.
    pub(crate) fn slots_of(&self, range: Slots) -> &[Slot] {
        let first = usize::try_from(range.first).unwrap_or(0);
        let count = usize::try_from(range.count).unwrap_or(0);
        &self.pool[first..first + count]
    }
}
