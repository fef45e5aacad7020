//! Per-token table: temb bf16 `[R, C, D]` plus table f32 `[C, D]`, two chunks of which scale and shift.
use super::{Affine, Modulation, apply_affine, hold_affine};
use crate::contract::abi::RowArguments;
use crate::formats::widen;
use crate::view::{Place, row_address};

/// `fma(n, 1 + s, h)` with `s = table[scale_idx] + temb[r, scale_idx]`, `h` likewise; neither is narrowed.
pub struct PerTokenTable;

impl Modulation for PerTokenTable {
    /// temb as bf16 and table as f32, for scale and for shift.
    type Operands = [([u32; 4], [f32; 8]); 2];
    type Held = Affine;
    type Constants = ();
    const SHARED_BY_ROWS: bool = false;

    #[inline(always)]
    fn begin(_: &RowArguments) {}

    #[inline(always)]
    fn load<P: Place>(a: &RowArguments, row: u32, place: P) -> Self::Operands {
        let part = |index: u32| {
            // The row of temb seen as [R·C, D]: 64 bits, as R·C may pass 2^32.
            let temb = a.scale + (row as u64 * a.table_chunks as u64 + index as u64) * (a.dim * 2) as u64;
            (place.bf16(temb), place.f32(row_address(a.table, index, a.dim * 4)))
        };
        [part(a.scale_idx), part(a.shift_idx)]
    }

    #[inline(always)]
    fn hold(_: (), [scale, shift]: Self::Operands) -> Affine {
        hold_affine(sum(scale), sum(shift))
    }

    #[inline(always)]
    fn apply(_: (), held: Affine, n: [f32; 8]) -> [f32; 8] {
        apply_affine(held, n)
    }
}

#[inline(always)]
fn sum((temb, table): ([u32; 4], [f32; 8])) -> [f32; 8] {
    let temb = widen(temb);
    let mut s = table;
    let mut e = 0;
    while e < 8 {
        s[e] = table[e] + temb[e];
        e += 1;
    }
    s
}
