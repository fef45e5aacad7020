//! Sinks: what becomes of the modulated row (contract section 3).
//!
//! A sink owns the bf16 rounding, its conversion and its stores. It rounds all chunks of a row before it stores the first, so that the shuffles
//! of NVFP4 overlap and its packed words take the place of twice as many f32 registers; FP8 keeps f32, which saves the unpacking.
mod bf16;
mod fp8;
mod nvfp4;

pub use bf16::Bf16;
pub use fp8::{Awq, Fp8Static};
pub use nvfp4::{FlashRtSm110, FlashRtSm120, InShared, Nvfp4, TransformerEngine};

use crate::contract::{abi::RowArguments, geometry};
use crate::ptx;
use crate::view::Place;
use cuda_std::shared::SharedArray;

/// Shared memory for a sink's look-up table, and the threads that fill it.
#[derive(Clone, Copy)]
pub struct Table {
    /// [`Table::ENTRIES`] entries.
    pub words: SharedArray,
    /// Index of the thread among those that share the table.
    pub thread: u32,
    /// How many they are.
    pub threads: u32,
}

impl Table {
    /// One for each non-negative e4m3 byte.
    pub const ENTRIES: u32 = 128;
    /// Words of an entry.
    pub const WORDS: u32 = geometry::TABLE_WORDS / Self::ENTRIES;
}

/// One sink.
pub trait Sink {
    /// What does not depend on the chunk.
    type Constants: Copy;
    /// A chunk rounded to bf16, packed or as f32.
    type Rounded: Copy;
    /// Raw operands of a chunk (AWQ's inv_s).
    type Operands: Copy;

    /// What the conversion of a chunk looks up.
    type Entry: Copy;

    /// Addresses that the chunks of a thread share.
    type Row: Copy;

    /// Device-resident scalars, as loaded.
    type Scalars: Copy;

    /// Loads the scalars, and fills `table` where [`Self::TABLE`]; the next barrier makes it visible.
    fn begin(arguments: &RowArguments, table: Table) -> Self::Scalars;
    /// The arithmetic on the scalars; apart from their load so that it does not hold up other loads.
    fn prepare(scalars: Self::Scalars) -> Self::Constants;
    /// Reads the operands at `place`; they never depend on the row.
    fn load<P: Place>(arguments: &RowArguments, place: P) -> Self::Operands;
    /// The bf16 rounding of eight modulated values, as the sink likes it.
    fn round(v: [f32; 8]) -> Self::Rounded;
    /// Looks up what the conversion of a chunk needs. For all chunks before the first is stored: a load does not pass a store.
    fn look_up(constants: Self::Constants, rounded: Self::Rounded) -> Self::Entry;
    /// Where row `row` goes; `thread` is the thread's own part of its chunks' numbers.
    fn row(arguments: &RowArguments, row: u32, thread: u32) -> Self::Row;
    /// What the two chunks of a block of NVFP4 agree on: neighbours in a thread of `LANES` = 2, or in a warp, whose threads then call it
    /// together.
    #[inline(always)]
    fn share<const LANES: usize, const CHUNKS: usize>(rounded: [Self::Rounded; CHUNKS]) -> [Self::Rounded; CHUNKS] {
        rounded
    }
    /// Converts and stores `LANES` chunks side by side, of which `place` is the first; nothing where it does not exist.
    fn store<P: Place, const LANES: usize>(
        row: Self::Row,
        constants: Self::Constants,
        operands: [Self::Operands; LANES],
        place: P,
        entry: Self::Entry,
        rounded: [Self::Rounded; LANES],
    );
    /// Whether [`begin`](Self::begin) fills the table in shared memory.
    const TABLE: bool = false;
    /// Whether the layout has rows past R.
    const PADS_ROWS: bool = false;
    /// Writes what the layout has to the right of `row`; `thread` of `threads`.
    #[inline(always)]
    fn pad_columns(_arguments: &RowArguments, _row: u32, _thread: u32, _threads: u32) {}
    /// Writes what the layout has for a row past R; `thread` of `threads`.
    #[inline(always)]
    fn pad_row(_arguments: &RowArguments, _row: u32, _thread: u32, _threads: u32) {}
}

/// bf16 of eight values, in order, two a word.
#[inline(always)]
fn round_pairs(v: [f32; 8]) -> [u32; 4] {
    [ptx::bf16x2(v[1], v[0]), ptx::bf16x2(v[3], v[2]), ptx::bf16x2(v[5], v[4]), ptx::bf16x2(v[7], v[6])]
}
