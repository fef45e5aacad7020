//! bf16: the modulated row itself.
use super::{Sink, Table, round_pairs};
use crate::contract::abi::RowArguments;
use crate::view::{Place, row_address};

/// Stores `v`.
pub struct Bf16;

impl Sink for Bf16 {
    type Scalars = ();
    type Constants = ();
    type Rounded = [u32; 4];
    type Operands = ();
    type Entry = ();
    type Row = u64;

    #[inline(always)]
    fn begin(_: &RowArguments, _: Table) {}

    #[inline(always)]
    fn prepare(_: ()) {}

    #[inline(always)]
    fn load<P: Place>(_: &RowArguments, _: P) {}

    #[inline(always)]
    fn round(v: [f32; 8]) -> [u32; 4] {
        round_pairs(v)
    }

    #[inline(always)]
    fn look_up(_: (), _: [u32; 4]) {}

    #[inline(always)]
    fn row(a: &RowArguments, row: u32, _: u32) -> u64 {
        row_address(a.out, row, a.dim * 2)
    }

    #[inline(always)]
    fn store<P: Place, const LANES: usize>(row: u64, _: (), _: [(); LANES], place: P, _: (), words: [[u32; 4]; LANES]) {
        const { assert!(LANES == 1, "no entry with pairs of lanes stores bf16") };
        place.store_bf16(row, words[0]);
    }
}
