//! The GPU backend: loads the best image once, then enqueues.
use crate::check;
use crate::error::Result;
use crate::formats::E4m3;
use crate::images::Image;
use crate::kernels::Kernels;
use crate::launch;
use crate::methods::operator_methods;
use crate::operand::{
    AwqFp8, Bf16, Broadcast, BroadcastFp8, Device, Fp8, Input, Matrix, Modulation, NoAffine, Nvfp4, OptionalInput,
    Output, PerToken, PerTokenTable, Sink, SixWay,
};
use crate::stream::{self, LaunchStream};
use half::bf16;
#[cfg(feature = "cudarc")]
use {crate::error::Error, cudarc::driver::CudaContext, cust::context::CurrentContext, std::sync::Arc};

/// The kernels, loaded for one context of one GPU.
///
/// A launch enqueues one kernel on the caller's stream and returns: it allocates, copies and synchronises nothing, so it can be
/// captured into a CUDA graph, and a replay sees new values of x, of act_scale and of every other operand. One `Producers` can be
/// used from many threads and streams of its context at once. It shares in its device's primary context, so that stays alive as long;
/// a context of another kind must outlive it. Dropped in its context, it waits for what is enqueued there; a captured graph must be
/// gone before.
///
/// Outputs are complete when the stream has come so far. Until then nothing else may write the operands or read the outputs.
///
/// ```no_run
/// use adaptive_layernorm_producers::{Broadcast, Matrix, Producers};
/// use cust::memory::DeviceBuffer;
/// use cust::stream::{Stream, StreamFlags};
/// let _context = cust::quick_init()?;
/// let producers = Producers::load(&cust::device::Device::get_device(0)?)?;
/// let stream = Stream::new(StreamFlags::DEFAULT, None)?; // waits for the copies below, which go to the default stream
///
/// let (rows, dim) = (2520, 3072);
/// let x = DeviceBuffer::<u16>::zeroed(rows * dim)?; // bf16 as its bits
/// let (scale, shift) = (DeviceBuffer::<u16>::zeroed(dim)?, DeviceBuffer::<u16>::zeroed(dim)?);
/// let act_scale = DeviceBuffer::from_slice(&[0.025f32])?;
/// let mut out = DeviceBuffer::<u8>::zeroed(rows * dim)?; // e4m3 as its bits
///
/// let modulation = Broadcast { scale: &scale, shift: &shift };
/// producers.ada_layer_norm_quant_fp8_bf16(&stream, Matrix::new(&x, rows, dim), modulation, &act_scale, 1e-5, &mut out)?;
/// stream.synchronize()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # In a CUDA graph
/// The buffers stay where they are; their contents may change from replay to replay.
///
/// ```no_run
/// # use adaptive_layernorm_producers::{Matrix, Producers};
/// # use cust::memory::{CopyDestination, DeviceBuffer};
/// # use cust::stream::{Stream, StreamFlags};
/// use cust::sys;
/// # let _context = cust::quick_init()?;
/// # let producers = Producers::load(&cust::device::Device::get_device(0)?)?;
/// # let stream = Stream::new(StreamFlags::DEFAULT, None)?;
/// let mut x = DeviceBuffer::<u16>::zeroed(64 * 3072)?;
/// let mut act_scale = DeviceBuffer::from_slice(&[0.025f32])?;
/// let mut out = DeviceBuffer::<u8>::zeroed(64 * 3072)?;
/// let (mut graph, mut executable) = (std::ptr::null_mut(), std::ptr::null_mut());
/// # let ok = |result: sys::CUresult| assert_eq!(result, sys::CUresult::CUDA_SUCCESS);
///
/// let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
/// // SAFETY: a live stream, which is not capturing.
/// ok(unsafe { sys::cuStreamBeginCapture_v2(stream.as_inner(), mode) });
/// let matrix = Matrix::new(&x, 64, 3072);
/// producers.layer_norm_no_affine_quant_fp8_static_bf16(&stream, matrix, &act_scale, 1e-5, &mut out)?;
/// // SAFETY: the stream is capturing; the handles are live locals.
/// ok(unsafe { sys::cuStreamEndCapture(stream.as_inner(), &mut graph) });
/// // SAFETY: the graph was just made.
/// ok(unsafe { sys::cuGraphInstantiateWithFlags(&mut executable, graph, 0) });
///
/// for step in 0..10u16 {
///     x.copy_from(&vec![0x3f80 + step; 64 * 3072])?;
///     act_scale.copy_from(&[0.025 + f32::from(step)])?;
///     // SAFETY: the executable graph, the stream and the buffers are alive.
///     ok(unsafe { sys::cuGraphLaunch(executable, stream.as_inner()) });
///     stream.synchronize()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Producers {
    kernels: Kernels,
    /// Dropped after the kernels, which lie in it.
    #[cfg(feature = "cudarc")]
    _context: Option<Arc<CudaContext>>,
}

impl Producers {
    /// Loads the best image for a device into the calling thread's current context, which must be of that device.
    ///
    /// # Errors
    /// [`Error::NoContext`](crate::Error::NoContext), [`Error::ContextOfOtherDevice`](crate::Error::ContextOfOtherDevice);
    /// [`Error::Image`](crate::Error::Image) if no image shipped runs on this GPU with this driver, in a sentence that says what is
    /// shipped; [`Error::Load`](crate::Error::Load) if the driver refuses all that should run.
    pub fn load(device: &cust::device::Device) -> Result<Self> {
        let kernels = Kernels::load(device)?;
        Ok(Self {
            kernels,
            #[cfg(feature = "cudarc")]
            _context: None,
        })
    }

    /// Loads the best image into a `cudarc` context and keeps it alive.
    ///
    /// `CudaContext::new` gives the device's primary context, and so does `cust`: what was loaded through one launches on streams and
    /// memory of either. A launch on a `cudarc` stream makes its context current, as `cudarc`'s own calls do.
    ///
    /// ```no_run
    /// use adaptive_layernorm_producers::{Broadcast, Matrix, Producers, lend, lend_mut};
    /// use cudarc::driver::CudaContext;
    ///
    /// let context = CudaContext::new(0)?;
    /// let producers = Producers::load_cudarc(&context)?;
    /// let stream = context.new_stream()?;
    ///
    /// let (rows, dim) = (2520, 3072);
    /// let x = stream.alloc_zeros::<u16>(rows * dim)?; // bf16 as its bits
    /// let (scale, shift) = (stream.alloc_zeros::<u16>(dim)?, stream.alloc_zeros::<u16>(dim)?);
    /// let act_scale = stream.clone_htod(&[0.025f32])?;
    /// let mut out = stream.alloc_zeros::<u8>(rows * dim)?; // e4m3 as its bits
    ///
    /// let modulation = Broadcast { scale: &lend(&scale, &stream), shift: &lend(&shift, &stream) };
    /// producers.ada_layer_norm_quant_fp8_bf16(
    ///     &stream,
    ///     Matrix::new(&lend(&x, &stream), rows, dim),
    ///     modulation,
    ///     &lend(&act_scale, &stream),
    ///     1e-5,
    ///     &mut lend_mut(&mut out, &stream),
    /// )?;
    /// let codes = stream.clone_dtoh(&out)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Producers::load`].
    #[cfg(feature = "cudarc")]
    pub fn load_cudarc(context: &Arc<CudaContext>) -> Result<Self> {
        context.bind_to_thread().map_err(|error| Error::cudarc("cuCtxSetCurrent", error))?;
        let current = CurrentContext::get_device().map_err(|error| Error::driver("cuCtxGetDevice", error))?;
        Ok(Self { kernels: Kernels::load(&current)?, _context: Some(Arc::clone(context)) })
    }

    /// The image that was chosen.
    pub const fn image(&self) -> &'static Image {
        self.kernels.image
    }

    /// Enqueues the operator that a modulation and a sink make: the composed form of the methods below.
    ///
    /// # Errors
    /// Before anything is enqueued: the errors of [`Cpu::run`](crate::Cpu::run), and
    /// [`Error::WrongContext`](crate::Error::WrongContext) if the current context or the stream's is not the one the kernels were
    /// loaded into. [`Error::Driver`](crate::Error::Driver) if the driver refuses the launch.
    pub fn run<'x, 'm, 's>(
        &self,
        stream: &impl LaunchStream,
        x: Matrix<impl Input<'x, bf16, Device>>,
        modulation: impl Into<Modulation<'m, Device>>,
        eps: f32,
        sink: impl Into<Sink<'s, Device>>,
    ) -> Result<()> {
        let call = check::row_operator(x.view(), modulation.into(), sink.into())?;
        launch::rows(&self.kernels, stream::handle(stream)?, &call, eps)
    }

    /// Enqueues modulation6 on its operands in one struct.
    ///
    /// # Errors
    /// As [`Producers::run`].
    pub fn run_six_way(&self, stream: &impl LaunchStream, parts: SixWay<'_, Device>) -> Result<()> {
        let call = check::six_way(parts)?;
        launch::six_way(&self.kernels, stream::handle(stream)?, &call)
    }
}

operator_methods!(Producers, Device, stream: &impl LaunchStream);
