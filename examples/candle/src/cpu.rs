//! On the CPU: the library's own backend on candle's vectors.
use crate::{AdaLn, Sink, range, scale_bytes, sizes};
use adaptive_layernorm_producers::{Broadcast, Cpu, E4m3, Matrix, Nvfp4, bf16};
use candle_core::backend::BackendStorage;
use candle_core::{CpuStorage, Error, Layout, Result, Shape, Storage, WithDType};
use float8::F8E4M3;

type Operand<'a> = (&'a CpuStorage, &'a Layout);

impl AdaLn {
    pub(crate) fn on_cpu(&self, x: Operand<'_>, scale: Operand<'_>, shift: Operand<'_>) -> Result<(CpuStorage, Shape)> {
        let (rows, dim) = sizes(x.1)?;
        let shape = x.1.shape().clone();
        let x = Matrix::new(slice::<bf16>("x", x)?, rows, dim);
        let modulation = Broadcast { scale: slice::<bf16>("scale", scale)?, shift: slice::<bf16>("shift", shift)? };
        match &self.sink {
            Sink::Fp8 { act_scale } => {
                let (storage, layout) = act_scale.storage_and_layout();
                let Storage::Cpu(storage) = &*storage else {
                    candle_core::bail!("operand act_scale is on a GPU, expected the CPU as x")
                };
                let act_scale = slice::<f32>("act_scale", (storage, layout))?;
                let mut out = vec![E4m3::default(); rows * dim];
                let done = Cpu.ada_layer_norm_quant_fp8_bf16(x, modulation, act_scale, self.eps, &mut out);
                done.map_err(Error::wrap)?;
                let out = out.into_iter().map(|code| F8E4M3::from_bits(code.to_bits())).collect();
                Ok((CpuStorage::F8E4M3(out), shape))
            }
            Sink::Nvfp4(recipe) => {
                let mut out = vec![0; rows * dim / 2 + scale_bytes(rows, dim)?];
                let (packed, sf_swizzled) = out.split_at_mut(rows * dim / 2);
                let sink = Nvfp4::new(*recipe, packed, sf_swizzled);
                let done = Cpu.ada_layer_norm_quant_nvfp4_swizzled_bf16(x, modulation, self.eps, sink);
                done.map_err(Error::wrap)?;
                let len = out.len();
                Ok((CpuStorage::U8(out), len.into()))
            }
        }
    }
}

fn slice<'a, T: WithDType>(operand: &'static str, (storage, layout): Operand<'a>) -> Result<&'a [T]> {
    let range = range::<T>(operand, storage.dtype(), layout)?;
    Ok(&storage.as_slice()?[range])
}
