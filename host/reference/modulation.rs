//! From a row of x to a row of v (contract section 2).
use super::e4m3;
use super::statistics::{normalise, statistics};
use crate::convert::to_usize;
use crate::formats::bf16::round;
use crate::operand::{Modulation, NoAffine};
use half::bf16;

/// Row `r` of v: normalised, modulated, rounded to bf16.
pub fn row(x: &[bf16], modulation: &Modulation<'_>, eps: f32, r: usize) -> Vec<bf16> {
    let dim = x.len();
    let x: Vec<f32> = x.iter().map(|x| x.to_f32()).collect();
    let statistics = statistics(&x, eps);
    let n = x.iter().map(|x| normalise(*x, statistics));
    n.enumerate().map(|(d, n)| round(modulate(n, modulation, Place { r, d, dim }))).collect()
}

/// Which element: row, column, and D.
struct Place {
    r: usize,
    d: usize,
    dim: usize,
}

/// The modulated value, before its rounding to bf16.
fn modulate(n: f32, modulation: &Modulation<'_>, Place { r, d, dim }: Place) -> f32 {
    match modulation {
        Modulation::NoAffine(NoAffine) => n,
        Modulation::Broadcast(m) => affine(n, m.scale[d].to_f32(), m.shift[d].to_f32()),
        Modulation::PerToken(m) => affine(n, m.scale[r * dim + d].to_f32(), m.shift[r * dim + d].to_f32()),
        Modulation::PerTokenTable(m) => {
            let chunks = m.table.len() / dim;
            let entry = |index: u32| {
                let index = to_usize(index);
                m.table[index * dim + d] + m.temb[(r * chunks + index) * dim + d].to_f32()
            };
            affine(n, entry(m.scale_idx), entry(m.shift_idx))
        }
        Modulation::BroadcastFp8(m) => {
            let a = e4m3::decode(m.scale[d]).mul_add(m.scale_deq[0], 1.0);
            let b = a * n;
            e4m3::decode(m.shift[d]).mul_add(m.shift_deq[0], b)
        }
    }
}

/// `fma(n, 1 + scale, shift)`.
pub fn affine(n: f32, scale: f32, shift: f32) -> f32 {
    n.mul_add(1.0 + scale, shift)
}
