//! Normalises, modulates and rounds a row.
use super::statistics::{Statistics, widen};
use crate::convert::to_usize;
use crate::formats::{E4m3, bf16::NAN};
use crate::operand::{Modulation, NoAffine};
use half::bf16;

/// A modulation's operands for one row.
pub(super) enum RowModulation<'a> {
    None,
    Affine { scale: &'a [bf16], shift: &'a [bf16] },
    Table { scale: TableRow<'a>, shift: TableRow<'a> },
    Fp8 { scale: &'a [E4m3], shift: &'a [E4m3], scale_deq: f32, shift_deq: f32 },
}

/// One chunk of the table form.
pub(super) struct TableRow<'a> {
    temb: &'a [bf16],
    table: &'a [f32],
}

impl<'a> RowModulation<'a> {
    /// The operands of row `r`.
    pub fn of(modulation: &Modulation<'a>, r: usize, dim: usize) -> Self {
        match modulation {
            Modulation::NoAffine(NoAffine) => Self::None,
            Modulation::Broadcast(m) => Self::Affine { scale: m.scale, shift: m.shift },
            Modulation::PerToken(m) => {
                Self::Affine { scale: &m.scale[r * dim..][..dim], shift: &m.shift[r * dim..][..dim] }
            }
            Modulation::PerTokenTable(m) => {
                let chunks = m.table.len() / dim;
                let part = |index: u32| TableRow {
                    temb: &m.temb[(r * chunks + to_usize(index)) * dim..][..dim],
                    table: &m.table[to_usize(index) * dim..][..dim],
                };
                Self::Table { scale: part(m.scale_idx), shift: part(m.shift_idx) }
            }
            Modulation::BroadcastFp8(m) => {
                Self::Fp8 { scale: m.scale, shift: m.shift, scale_deq: m.scale_deq[0], shift_deq: m.shift_deq[0] }
            }
        }
    }

    /// `v` of a row, rounded to bf16 and widened again.
    #[inline(always)]
    pub fn apply(&self, x: &[bf16], statistics: Statistics, v: &mut [f32]) {
        let Statistics { mean, rstd } = statistics;
        let n = |x: &bf16| (widen(*x) - mean) * rstd;
        match self {
            Self::None => {
                for (v, x) in v.iter_mut().zip(x) {
                    *v = round(n(x));
                }
            }
            Self::Affine { scale, shift } => {
                for ((v, x), (scale, shift)) in v.iter_mut().zip(x).zip(scale.iter().zip(*shift)) {
                    *v = round(n(x).mul_add(1.0 + widen(*scale), widen(*shift)));
                }
            }
            Self::Table { scale, shift } => {
                for ((v, x), (scale, shift)) in v.iter_mut().zip(x).zip(scale.entries().zip(shift.entries())) {
                    *v = round(n(x).mul_add(1.0 + scale, shift));
                }
            }
            Self::Fp8 { scale, shift, scale_deq, shift_deq } => {
                for ((v, x), (scale, shift)) in v.iter_mut().zip(x).zip(scale.iter().zip(*shift)) {
                    let factor = scale.to_f32().mul_add(*scale_deq, 1.0);
                    *v = round(shift.to_f32().mul_add(*shift_deq, factor * n(x)));
                }
            }
        }
    }
}

impl<'a> TableRow<'a> {
    /// `table + temb` in f32.
    #[inline(always)]
    fn entries(&self) -> impl Iterator<Item = f32> + 'a {
        self.table.iter().zip(self.temb).map(|(table, temb)| table + widen(*temb))
    }
}

/// Rounds to bf16 and widens again; NaN becomes [`NAN`].
#[inline(always)]
fn round(value: f32) -> f32 {
    let bits = value.to_bits();
    let rounded = (bits.wrapping_add(0x7fff + (bits >> 16 & 1))) & 0xffff_0000;
    f32::from_bits(if value.is_nan() { u32::from(NAN.to_bits()) << 16 } else { rounded })
}
