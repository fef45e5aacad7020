//! On a GPU: candle's tensors are `cudarc` slices, which are lent to the launch on candle's stream.
use crate::{AdaLn, Sink, range, scale_bytes, sizes};
use adaptive_layernorm_producers::{Broadcast, Matrix, Nvfp4, Producers, bf16, lend, lend_mut};
use candle_core::backend::BackendStorage;
use candle_core::cuda::CudaDType;
use candle_core::cuda::cudarc::driver::{CudaStream, CudaView};
use candle_core::{CudaStorage, Device, Error, Layout, Result, Shape, Storage, WithDType};
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
        let x = view::<bf16>("x", x, stream)?;
        let (scale, shift) = (view::<bf16>("scale", scale, stream)?, view::<bf16>("shift", shift, stream)?);
        let (x, scale, shift) = (lend(&x, stream), lend(&scale, stream), lend(&shift, stream));
        let (x, modulation) = (Matrix::new(&x, rows, dim), Broadcast { scale: &scale, shift: &shift });
        match &self.sink {
            Sink::Fp8 { act_scale } => {
                let (storage, layout) = act_scale.storage_and_layout();
                let Storage::Cuda(storage) = &*storage else {
                    candle_core::bail!("operand act_scale is on the CPU, expected the GPU of x")
                };
                let act_scale = view::<f32>("act_scale", (storage, layout), stream)?;
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

/// An operand's elements, if work on them is ordered before and after work on x's stream.
///
/// Of another stream they are not: candle's kernels do not record in the events of a `cudarc` slice that they wrote it.
fn view<'a, T: CudaDType + WithDType>(
    operand: &'static str,
    (storage, layout): Operand<'a>,
    stream: &CudaStream,
) -> Result<CudaView<'a, T>> {
    if *storage.device.cuda_stream() != *stream {
        candle_core::bail!("operand {operand} is on another GPU or stream than x, expected the same");
    }
    let range = range::<T>(operand, storage.dtype(), layout)?;
    Ok(storage.as_cuda_slice::<T>()?.slice(range))
}
