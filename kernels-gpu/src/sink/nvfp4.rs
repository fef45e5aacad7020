//! NVFP4: e2m1 codes, two a byte, and one e4m3 scale byte per 16 columns in the 128x4 layout.
//!
//! A chunk is half a block; the two halves sit in neighbouring threads and agree on amax by one shuffle, or in one thread. bf16 words pair
//! element k with k + 4, so that the nibbles of both halves of a word move into place together: no per-element shifts.
mod recipe;

pub use recipe::{FlashRtSm110, FlashRtSm120, InShared, TransformerEngine};

use recipe::Recipe;

use super::{Sink, Table};
use crate::contract::{abi::RowArguments, swizzle};
use crate::ptx;
use crate::view::{Place, row_address};
use core::array::from_fn;
use core::marker::PhantomData;
use cuda_std::warp::shuffle_xor_u32;

/// NVFP4 by recipe `R`.
pub struct Nvfp4<R>(PhantomData<R>);

impl<R: Recipe> Sink for Nvfp4<R> {
    type Scalars = R::Constants;
    type Constants = R::Constants;
    type Rounded = Rounded<R::Values>;
    type Operands = ();
    /// Scale byte of the block, and what the recipe's table has for it.
    type Entry = (u32, R::Entry);
    /// Of the codes, and of the scale byte of the thread's first chunk.
    type Row = (u64, u64);
    const TABLE: bool = R::TABLE;
    const PADS_ROWS: bool = true;

    #[inline(always)]
    fn begin(a: &RowArguments, table: Table) -> R::Constants {
        R::begin(a, table)
    }

    #[inline(always)]
    fn prepare(constants: R::Constants) -> R::Constants {
        constants
    }

    #[inline(always)]
    fn load<P: Place>(_: &RowArguments, _: P) {}

    #[inline(always)]
    fn round(v: [f32; 8]) -> Rounded<R::Values> {
        let words =
            [ptx::bf16x2(v[4], v[0]), ptx::bf16x2(v[5], v[1]), ptx::bf16x2(v[6], v[2]), ptx::bf16x2(v[7], v[3])];
        let magnitudes = words.map(|word| word & 0x7fff_7fff);
        Rounded { values: R::values(words, magnitudes), amax: largest(magnitudes) }
    }

    #[inline(always)]
    fn share<const LANES: usize, const CHUNKS: usize>(rounded: [Self::Rounded; CHUNKS]) -> [Self::Rounded; CHUNKS] {
        from_fn(|i| {
            let amax = if LANES == 1 {
                let half = either_half(rounded[i].amax);
                ptx::max_nan_bf16x2(half, shuffle_xor_u32(half, 1))
            } else {
                either_half(ptx::max_nan_bf16x2(rounded[i & !1].amax, rounded[i | 1].amax))
            };
            Rounded { values: rounded[i].values, amax }
        })
    }

    #[inline(always)]
    fn look_up(c: R::Constants, Rounded { amax, .. }: Rounded<R::Values>) -> Self::Entry {
        let byte = R::scale_byte(c, amax);
        (byte, R::look_up(c, byte))
    }

    #[inline(always)]
    fn row(a: &RowArguments, row: u32, thread: u32) -> (u64, u64) {
        // Kept, since the compiler would compute it for each chunk inside of the branch there.
        let scale = ptx::keep(a.block_scales + swizzle::offset(row, thread / 2, a.column_groups));
        (row_address(a.out, row, a.dim / 2), scale)
    }

    #[inline(always)]
    fn store<P: Place, const LANES: usize>(
        (codes, scale): (u64, u64),
        _: R::Constants,
        _: [(); LANES],
        place: P,
        (byte, entry): Self::Entry,
        rounded: [Rounded<R::Values>; LANES],
    ) {
        place.store_nibbles(codes, rounded.map(|rounded| R::codes(entry, rounded.values)));
        let [thread, step] = place.chunk();
        if place.exists() && thread.is_multiple_of(2) {
            // The step of the first chunk is a multiple of 16 block columns, so the offset of the sum is the sum of the offsets.
            // SAFETY: the host checked that the scale buffer covers the swizzled layout of `rows x dim`.
            unsafe { ptx::store_8(scale + swizzle::column_offset(step / 2) as u64, byte) };
        }
    }

    /// At most three columns; a team of two threads takes two turns.
    #[inline(always)]
    fn pad_columns(a: &RowArguments, row: u32, thread: u32, threads: u32) {
        let pad = |column| {
            if column < a.column_groups * 4 {
                // SAFETY: a pad column of a real row, inside the layout.
                unsafe { ptx::store_8(a.block_scales + swizzle::offset(row, column, a.column_groups), 0) };
            }
        };
        if a.dim.is_multiple_of(4 * swizzle::BLOCK) {
            return;
        }
        let column = a.dim / swizzle::BLOCK + thread;
        pad(column);
        if threads < 4 {
            pad(column + threads);
        }
    }

    #[inline(always)]
    fn pad_row(a: &RowArguments, row: u32, thread: u32, threads: u32) {
        let at = a.block_scales + swizzle::row_offset(row, a.column_groups);
        let mut group = thread;
        while group < a.column_groups {
            // SAFETY: the grid covers rows up to the next multiple of 128, which the layout contains.
            unsafe { ptx::store_32(at + group as u64 * swizzle::TILE_BYTES, 0) };
            group += threads;
        }
    }
}

/// Half a block: its values as the recipe wants them, and the largest magnitude: of the half in each half of the word as [`Sink::round`]
/// leaves it, then of the block in both; NaN if any element is.
#[derive(Clone, Copy)]
pub struct Rounded<V> {
    values: V,
    amax: u32,
}

#[inline(always)]
fn largest([a, b, c, d]: [u32; 4]) -> u32 {
    ptx::max_nan_bf16x2(ptx::max_nan_bf16x2(a, b), ptx::max_nan_bf16x2(c, d))
}

/// The larger half of a word in both.
#[inline(always)]
fn either_half(word: u32) -> u32 {
    const SWAP_HALVES: u32 = 0x1032;
    ptx::max_nan_bf16x2(word, ptx::permute(word, word, SWAP_HALVES))
}
