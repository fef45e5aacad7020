//! Broadcast: scale and shift bf16 `[D]`, the same for every row.
use super::{Affine, Modulation, apply_affine, hold_affine};
use crate::contract::abi::RowArguments;
use crate::formats::widen;
use crate::view::Place;

/// `fma(n, 1 + scale[d], shift[d])`.
pub struct Broadcast;

impl Modulation for Broadcast {
    type Operands = [[u32; 4]; 2];
    type Held = Affine;
    type Constants = ();
    const SHARED_BY_ROWS: bool = true;

    #[inline(always)]
    fn begin(_: &RowArguments) {}

    #[inline(always)]
    fn load<P: Place>(a: &RowArguments, _: u32, place: P) -> Self::Operands {
        [place.bf16(a.scale), place.bf16(a.shift)]
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
