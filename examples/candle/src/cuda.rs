//! On a GPU: candle's tensors are `cudarc` slices, which are lent to the launch on candle's stream.
use crate::{AdaLn, Sink, range, scale_bytes, sizes};
use adaptive_layernorm_producers::{Broadcast, Matrix, Nvfp4, Producers, bf16, lend, lend_mut};
use candle_core::cuda::CudaDType;
use candle_core::cuda::cudarc::driver::CudaView;
use candle_core::{CudaStorage, Device, Error, Layout, Result, Shape, Storage};
use float8::F8E4M3;

type Operand<'a> = (&'a CudaStorage, &'a Layout);

/// The kernels, in the context of a device of candle's; none for the CPU.
pub fn load(device: &Device) -> Result<Option<Producers>> {
    let Device::Cuda(device) = device else { return Ok(None) };
    Producers::load_cudarc(device.cuda_stream().context()).map(Some).map_err(Error::wrap)
}

impl AdaLn {
    pub(crate) fn on_cuda(
        &self,
        x: Operand<'_>,
        scale: Operand<'_>,
        shift: Operand<'_>,
    ) -> Result<(CudaStorage, Shape)> {
        let Some(producers) = &self.producers else {
            candle_core::bail!("AdaLn was made for the CPU, and x is on a GPU")
        };
        let (device, stream) = (&x.0.device, &x.0.device.cuda_stream());
        let (rows, dim) = sizes(x.1)?;
        let shape = x.1.shape().clone();
        let (x, scale, shift) = (view::<bf16>("x", x)?, view::<bf16>("scale", scale)?, view::<bf16>("shift", shift)?);
        let (x, scale, shift) = (lend(&x, stream), lend(&scale, stream), lend(&shift, stream));
        let (x, modulation) = (Matrix::new(&x, rows, dim), Broadcast { scale: &scale, shift: &shift });
        match &self.sink {
            Sink::Fp8 { act_scale } => {
                let (storage, layout) = act_scale.storage_and_layout();
                let Storage::Cuda(storage) = &*storage else { candle_core::bail!("act_scale is not on the GPU, x is") };
                let act_scale = view::<f32>("act_scale", (storage, layout))?;
                let act_scale = lend(&act_scale, stream);
                // SAFETY: the kernel writes every element.
                let mut out = unsafe { device.alloc::<F8E4M3>(rows * dim)? };
                // SAFETY: F8E4M3 is a byte, its bits.
                let bytes = unsafe { out.transmute_mut::<u8>(rows * dim) };
                let Some(mut bytes) = bytes else { candle_core::bail!("e4m3 is not one byte") };
                let mut lent = lend_mut(&mut bytes, stream);
                producers
                    .ada_layer_norm_quant_fp8_bf16(stream, x, modulation, &act_scale, self.eps, &mut lent)
                    .map_err(Error::wrap)?;
                drop(lent);
                Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), shape))
            }
            Sink::Nvfp4(recipe) => {
                let codes = rows * dim / 2;
                let len = codes + scale_bytes(rows, dim)?;
                // SAFETY: the kernel writes every byte.
                let mut out = unsafe { device.alloc::<u8>(len)? };
                {
                    let (mut packed, mut sf_swizzled) = out.split_at_mut(codes);
                    let (mut packed, mut sf_swizzled) =
                        (lend_mut(&mut packed, stream), lend_mut(&mut sf_swizzled, stream));
                    let sink = Nvfp4::new(*recipe, &mut packed, &mut sf_swizzled);
                    producers
                        .ada_layer_norm_quant_nvfp4_swizzled_bf16(stream, x, modulation, self.eps, sink)
                        .map_err(Error::wrap)?;
                }
                Ok((CudaStorage::wrap_cuda_slice(out, device.clone()), len.into()))
            }
        }
    }
}

fn view<'a, T: CudaDType>(operand: &'static str, (storage, layout): Operand<'a>) -> Result<CudaView<'a, T>> {
    Ok(storage.as_cuda_slice::<T>()?.slice(range(operand, layout)?))
}
