//! Modulation: what happens between the normalised row and its bf16 rounding (contract section 2).
//!
//! A modulation owns `1 + scale` and the fma. Its vocabulary is the smallest the body needs: what a thread reads once
//! ([`Modulation::begin`]), what it reads for a chunk ([`Modulation::load`], issued early), and what it computes from both.
mod broadcast_fp8;
mod none;
mod scale_shift;
mod table;

pub use broadcast_fp8::BroadcastFp8;
pub use none::NoAffine;
pub use scale_shift::ScaleShift;
pub use table::PerTokenTable;

use crate::contract::abi::RowArguments;
use crate::view::Place;

/// One modulation.
pub trait Modulation {
    /// Raw operands of a chunk, as loaded.
    type Operands: Copy;
    /// Operands ready for the fma.
    type Held: Copy;
    /// What does not depend on the chunk (device-resident scalars).
    type Constants: Copy;
    /// Operands do not depend on the row, so rows that a thread holds together share one load.
    const SHARED_BY_ROWS: bool;

    /// Reads the scalars.
    fn begin(arguments: &RowArguments) -> Self::Constants;
    /// Reads the operands of `row` at `place`.
    fn load<P: Place>(arguments: &RowArguments, row: u32, place: P) -> Self::Operands;
    /// The part of the arithmetic that does not depend on x; computed once where rows share it.
    fn hold(constants: Self::Constants, operands: Self::Operands) -> Self::Held;
    /// Modulates eight normalised values; not yet rounded to bf16.
    fn apply(constants: Self::Constants, held: Self::Held, n: [f32; 8]) -> [f32; 8];
}

/// `1 + scale` (rounded once) and shift of a chunk.
pub type Affine = [[f32; 8]; 2];

#[inline(always)]
fn hold_affine(scale: [f32; 8], shift: [f32; 8]) -> Affine {
    [scale.map(|s| 1.0 + s), shift]
}

/// `fma(n, 1 + scale, shift)`.
#[inline(always)]
fn apply_affine([factor, shift]: Affine, n: [f32; 8]) -> [f32; 8] {
    let mut v = n;
    let mut e = 0;
    while e < 8 {
        v[e] = crate::ptx::fma(n[e], factor[e], shift[e]);
        e += 1;
    }
    v
}
