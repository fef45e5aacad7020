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
    fn store<P: Place>(a: &RowArguments, _: (), _: (), row: u32, place: P, words: [u32; 4]) {
        place.store_bf16(row_address(a.out, row, a.dim * 2), words);
    }
}
