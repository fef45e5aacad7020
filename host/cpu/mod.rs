//! The CPU backend: rows in parallel, each in loops the compiler vectorises; the bytes of the reference.
//!
//! Reading order: [`Cpu::run`] here, `row` (one row from x to its sink), `statistics`, `modulation`, `fp8`, `nvfp4`;
//! `dispatch` picks the widest instruction set of the machine.
mod dispatch;
mod fp8;
mod modulation;
mod nvfp4;
mod row;
mod six_way;
mod statistics;
#[cfg(test)]
mod tests;

use crate::check::{self, RowParts};
use crate::convert::to_usize;
use crate::error::Result;
use crate::formats::E4m3;
use crate::methods::operator_methods;
use crate::operand::{
    AwqFp8, Bf16, Broadcast, BroadcastFp8, Fp8, Host, Input, Matrix, Modulation, NoAffine, Nvfp4, OptionalInput,
    Output, PerToken, PerTokenTable, Sink, SixWay,
};
use half::bf16;

/// Runs operators on the CPU, rows in parallel on rayon's current thread pool.
///
/// ```
/// use adaptive_layernorm_producers::{Broadcast, Cpu, E4m3, Matrix, bf16};
/// let x = [1.0, 2.0, 3.0, 4.0].map(bf16::from_f32);
/// let (scale, shift) = ([bf16::ZERO; 4], [bf16::ZERO; 4]);
/// let mut out = [E4m3::default(); 4];
/// let modulation = Broadcast { scale: &scale, shift: &shift };
/// Cpu.ada_layer_norm_quant_fp8_bf16(Matrix::new(&x, 1, 4), modulation, &[0.5], 1e-5, &mut out)?;
/// assert_eq!(out.map(E4m3::to_f32), [-2.75, -0.875, 0.875, 2.75]);
/// # Ok::<(), adaptive_layernorm_producers::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Cpu {
    /// Runs the operator that a modulation and a sink make: the composed form of the methods below.
    ///
    /// ```
    /// use adaptive_layernorm_producers::{Bf16, Cpu, Matrix, PerTokenTable, bf16};
    /// let x = [1.0, 2.0, 3.0, 4.0].map(bf16::from_f32);
    /// let (temb, table) = ([bf16::ZERO; 8], [0.0; 8]);
    /// let mut out = [bf16::ZERO; 4];
    /// let modulation = PerTokenTable { temb: &temb, table: &table, shift_idx: 0, scale_idx: 1 };
    /// Cpu.run(Matrix::new(&x, 1, 4), modulation, 1e-5, Bf16 { out: &mut out })?;
    /// assert_eq!(out.map(bf16::to_f32), [-1.34375, -0.447265625, 0.447265625, 1.34375]);
    /// # Ok::<(), adaptive_layernorm_producers::Error>(())
    /// ```
    ///
    /// # Errors
    /// Before anything is written: a pair that is no operator ([`Error::NoSuchOperator`](crate::Error::NoSuchOperator)), or operands
    /// that do not fit together, one variant of [`Error`](crate::Error) for each way.
    pub fn run<'x, 'm, 's>(
        &self,
        x: Matrix<impl Input<'x, bf16, Host>>,
        modulation: impl Into<Modulation<'m>>,
        eps: f32,
        sink: impl Into<Sink<'s>>,
    ) -> Result<()> {
        let call = check::row_operator::<Host>(x.view(), modulation.into(), sink.into())?;
        let RowParts { x, modulation, sink } = call.into_parts();
        let source = row::Source { x: x.data, dim: x.dim, modulation, eps };
        match sink {
            Sink::Bf16(sink) => row::bf16(&source, sink),
            Sink::Fp8(sink) => row::fp8(&source, sink),
            Sink::AwqFp8(sink) => row::awq_fp8(&source, sink),
            Sink::Nvfp4(sink) => row::nvfp4(&source, sink),
        }
        Ok(())
    }

    /// Runs modulation6 on its operands in one struct.
    ///
    /// # Errors
    /// Before anything is written: lengths that do not fit together.
    pub fn run_six_way(&self, parts: SixWay<'_>) -> Result<()> {
        let call = check::six_way::<Host>(parts)?;
        let dim = to_usize(call.sizes().dim);
        six_way::run(call.into_parts(), dim);
        Ok(())
    }
}

operator_methods!(Cpu, Host);
