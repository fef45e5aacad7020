//! AdaLN producers as operations of candle: a bf16 activation and its scale and shift become the FP8 or NVFP4 operand of a GEMM.
//!
//! ```
//! use adaln_candle::{AdaLn, Sink};
//! use candle_core::{DType, Device, Tensor};
//! let device = Device::Cpu; // or Device::new_cuda(0)?, with the feature `cuda`
//! let x = Tensor::randn(0f32, 1., (2, 8, 64), &device)?.to_dtype(DType::BF16)?;
//! let (scale, shift) = (Tensor::zeros(64, DType::BF16, &device)?, Tensor::zeros(64, DType::BF16, &device)?);
//! let fp8 = AdaLn::new(Sink::Fp8 { act_scale: Tensor::new(&[0.025f32], &device)? }, 1e-5, &device)?;
//! let y = x.apply_op3_no_bwd(&scale, &shift, &fp8)?;
//! assert_eq!((y.dtype(), y.dims()), (DType::F8E4M3, &[2, 8, 64][..]));
//! # Ok::<(), candle_core::Error>(())
//! ```
//!
//! With the feature `cuda` candle needs a CUDA toolkit: nvcc, no newer than the driver, cublas, curand, nvrtc and cudart. `CUDA_COMPUTE_CAP=90`
//! builds for a GPU that is not in this machine. `docs/interop.md` of the library has more.
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;

use adaptive_layernorm_producers::Nvfp4Recipe;
use adaptive_layernorm_producers::formats::swizzled_sf_size;
use candle_core::{CpuStorage, CustomOp3, DType, Device, Error, Layout, Result, Shape, Tensor, WithDType};

/// What becomes of the modulated rows.
#[derive(Clone, Debug)]
pub enum Sink {
    /// An F8E4M3 tensor of x's shape.
    Fp8 {
        /// f32, one element, on the device of x.
        act_scale: Tensor,
    },
    /// A U8 tensor of one axis: the packed codes, `rows · dim / 2` bytes, then the scale bytes in the 128x4 layout; [`split`] parts them.
    Nvfp4(Nvfp4Recipe),
}

/// `x.apply_op3_no_bwd(&scale, &shift, &op)`: x is bf16 `[.., D]`, scale and shift are bf16 `[D]`, all contiguous and of one device
/// of candle's. A storage offset is fine.
#[derive(Debug)]
pub struct AdaLn {
    sink: Sink,
    eps: f32,
    #[cfg(feature = "cuda")]
    producers: Option<adaptive_layernorm_producers::Producers>,
}

impl AdaLn {
    /// An operation for tensors of a device. On a GPU this loads the kernels, so make it once.
    pub fn new(sink: Sink, eps: f32, device: &Device) -> Result<Self> {
        #[cfg(not(feature = "cuda"))]
        let _ = device;
        Ok(Self {
            sink,
            eps,
            #[cfg(feature = "cuda")]
            producers: cuda::load(device)?,
        })
    }
}

impl CustomOp3 for AdaLn {
    fn name(&self) -> &'static str {
        "ada_layer_norm_quant"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        x_layout: &Layout,
        scale: &CpuStorage,
        scale_layout: &Layout,
        shift: &CpuStorage,
        shift_layout: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        self.on_cpu((x, x_layout), (scale, scale_layout), (shift, shift_layout))
    }

    #[cfg(feature = "cuda")]
    fn cuda_fwd(
        &self,
        x: &candle_core::CudaStorage,
        x_layout: &Layout,
        scale: &candle_core::CudaStorage,
        scale_layout: &Layout,
        shift: &candle_core::CudaStorage,
        shift_layout: &Layout,
    ) -> Result<(candle_core::CudaStorage, Shape)> {
        self.on_cuda((x, x_layout), (scale, scale_layout), (shift, shift_layout))
    }
}

/// The packed codes `[rows, dim / 2]` and the scale bytes of what [`Sink::Nvfp4`] gives.
pub fn split(nvfp4: &Tensor, rows: usize, dim: usize) -> Result<(Tensor, Tensor)> {
    let codes = rows * dim / 2;
    let packed = nvfp4.narrow(0, 0, codes)?.reshape((rows, dim / 2))?;
    Ok((packed, nvfp4.narrow(0, codes, nvfp4.elem_count() - codes)?))
}

/// R and D of x.
fn sizes(x: &Layout) -> Result<(usize, usize)> {
    let dim = x.dims().last().copied().unwrap_or(0);
    Ok((x.shape().elem_count().checked_div(dim).unwrap_or(0), dim))
}

/// The first and one past the last element of a contiguous operand of type `T`.
fn range<T: WithDType>(operand: &'static str, dtype: DType, layout: &Layout) -> Result<std::ops::Range<usize>> {
    if dtype != T::DTYPE {
        return Err(Error::Msg(format!("operand {operand} is {dtype:?}, expected {:?}", T::DTYPE)));
    }
    let offsets = layout.contiguous_offsets();
    let strided = || Error::Msg(format!("operand {operand} has strides {:?}, expected it contiguous", layout.stride()));
    let (start, end) = offsets.ok_or_else(strided)?;
    Ok(start..end)
}

/// Bytes of the scale layout.
fn scale_bytes(rows: usize, dim: usize) -> Result<usize> {
    let number = |size| u32::try_from(size).map_err(Error::wrap);
    let bytes = swizzled_sf_size(number(rows)?, number(dim)?);
    bytes.ok_or_else(|| Error::Msg(format!("the scales of {rows} rows of {dim} are larger than memory can be")))
}
