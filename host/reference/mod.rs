//! The plain reference: contract.md, sentence by sentence, one value at a time.
//!
//! Nothing here is fast and nothing is shared with the fast paths except the order of summation and the scale layout, which
//! the contract fixes. Everything else is checked against this. Reading order: [`statistics`], [`modulation`], [`e4m3`],
//! [`nvfp4`].
pub mod e4m3;
pub mod modulation;
pub mod nvfp4;
pub mod statistics;

use crate::check::{self, RowParts, Sizes};
use crate::contract::swizzle;
use crate::convert::{to_index, to_u32, to_usize};
use crate::error::Result;
use crate::formats::bf16::round;
use crate::operand::{Host, Matrix, Modulation, Sink, SixWay};
use half::bf16;

/// Runs a row operator: statistics, modulation, bf16, sink, for each row in turn.
///
/// # Errors
/// As [`Cpu::run`](crate::Cpu::run).
pub fn run(x: Matrix<&[bf16]>, modulation: Modulation<'_>, eps: f32, sink: Sink<'_>) -> Result<()> {
    let call = check::row_operator::<Host>(x, modulation, sink)?;
    let sizes = call.sizes();
    let RowParts { x, modulation, sink } = call.into_parts();
    let row = |r: usize| modulation::row(&x.data[r * x.dim..][..x.dim], &modulation, eps, r);
    match sink {
        Sink::Bf16(sink) => {
            for (r, out) in sink.out.chunks_exact_mut(x.dim).enumerate() {
                out.copy_from_slice(&row(r));
            }
        }
        Sink::Fp8(sink) => {
            for (r, out) in sink.out.chunks_exact_mut(x.dim).enumerate() {
                for (v, code) in row(r).iter().zip(out) {
                    *code = e4m3::static_scale(v.to_f32(), sink.act_scale[0]);
                }
            }
        }
        Sink::AwqFp8(sink) => {
            for (r, out) in sink.out.chunks_exact_mut(x.dim).enumerate() {
                for ((v, inv_s), code) in row(r).iter().zip(sink.inv_s).zip(out) {
                    *code = e4m3::static_scale(v.to_f32() * inv_s.to_f32(), sink.act_scale[0]);
                }
            }
        }
        Sink::Nvfp4(sink) => {
            let scales = check::elements(sizes, &crate::operator::SF_SWIZZLED)?;
            // Fits: checked against the buffer's length.
            sink.sf_swizzled[..to_index(scales)].fill(0);
            let global_scale = sink.global_scale.map(|scale| scale[0]);
            for (r, packed) in sink.packed.chunks_exact_mut(x.dim / 2).enumerate() {
                for (c, (block, codes)) in row(r).chunks_exact(16).zip(packed.chunks_exact_mut(8)).enumerate() {
                    let scale = nvfp4::block(sink.recipe, global_scale, block, codes);
                    let at = swizzle::offset(to_u32(r), to_u32(c), swizzle::column_groups(sizes.dim));
                    sink.sf_swizzled[to_index(at)] = scale;
                }
            }
        }
    }
    Ok(())
}

/// Runs modulation6: `out_k[r, d] = bf16(params[r, k, d] + modulation[k, d])`.
///
/// # Errors
/// As [`Cpu::run_six_way`](crate::Cpu::run_six_way).
pub fn run_six_way(parts: SixWay<'_>) -> Result<()> {
    let call = check::six_way::<Host>(parts)?;
    let Sizes { rows, dim, .. } = call.sizes();
    let parts = call.into_parts();
    let (rows, dim) = (to_usize(rows), to_usize(dim));
    for (k, out) in parts.out.into_iter().enumerate() {
        for r in 0..rows {
            for d in 0..dim {
                out[r * dim + d] =
                    six_way(parts.adaln_params[(r * 6 + k) * dim + d], parts.layer_modulation[k * dim + d]);
            }
        }
    }
    Ok(())
}

/// `bf16(param + modulation)`.
pub fn six_way(param: f32, modulation: f32) -> bf16 {
    round(param + modulation)
}
