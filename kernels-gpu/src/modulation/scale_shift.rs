//! Scale and shift as bf16: `[D]`, the same for every row, or per token `[R, D]`.
use super::{Affine, Modulation, apply_affine, hold_affine};
use crate::contract::abi::RowArguments;
use crate::formats::widen;
use crate::view::{Place, row_address};

/// `fma(n, 1 + scale[d], shift[d])`, or with row r of each.
pub struct ScaleShift<const PER_TOKEN: bool>;

impl<const PER_TOKEN: bool> Modulation for ScaleShift<PER_TOKEN> {
    type Operands = [[u32; 4]; 2];
    type Held = Affine;
    type Constants = ();
    const SHARED_BY_ROWS: bool = !PER_TOKEN;

    #[inline(always)]
    fn begin(_: &RowArguments) {}

    #[inline(always)]
    fn load<P: Place>(a: &RowArguments, row: u32, place: P) -> Self::Operands {
        let row = if PER_TOKEN { row } else { 0 };
        [place.bf16(row_address(a.scale, row, a.dim * 2)), place.bf16(row_address(a.shift, row, a.dim * 2))]
    }

    #[inline(always)]
    fn hold(_: (), [scale, shift]: Self::Operands) -> Affine {
        hold_affine(widen(scale), widen(shift))
    }

    #[inline(always)]
    fn apply(_: (), held: Affine, n: [f32; 8]) -> [f32; 8] {
        apply_affine(held, n)
    }
}
