//! The launch: everything that needs `unsafe` on the way to the GPU.
//!
//! Three levels: the driver's C functions (`cust::sys`); here, safe functions that take nothing but checked calls; above,
//! [`Producers`](crate::Producers) and its methods.
#![expect(unsafe_code, reason = "calls the CUDA driver; every block has its proof")]

use crate::arguments;
use crate::check::{CheckedRows, CheckedSixWay};
use crate::contract::geometry::{self, Request};
use crate::error::{Error, Result};
use crate::kernels::Kernels;
use crate::operand::Device;
use crate::operator::{Operator, SinkKind};
use crate::stream::Handle;
use cust::function::FunctionAttribute;
use cust::module::Module;
use cust::sys;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::ptr::{null, null_mut};

/// A context's address, for comparison only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ContextId(usize);

impl ContextId {
    /// The calling thread's current context; none if it has none.
    pub fn current() -> Result<Option<Self>> {
        let mut context = null_mut();
        // SAFETY: writes one pointer into a live local.
        driver("cuCtxGetCurrent", unsafe { sys::cuCtxGetCurrent(&raw mut context) })?;
        Ok((!context.is_null()).then(|| Self(context.addr())))
    }

    /// The context a stream belongs to.
    pub fn of(stream: Handle<'_>) -> Result<Self> {
        let mut context = null_mut();
        // SAFETY: a `Handle` borrows a live stream; writes one pointer into a live local.
        driver("cuStreamGetCtx", unsafe { sys::cuStreamGetCtx(stream.raw(), &raw mut context) })?;
        Ok(Self(context.addr()))
    }
}

impl fmt::Display for ContextId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A share in a device's primary context, which lives until the last share is gone.
///
/// Without one, kernels would be gone with the caller's share, and the next primary context of the device has the same address: a launch
/// could not tell.
#[derive(Debug)]
pub(crate) struct PrimaryContext(sys::CUdevice);

impl PrimaryContext {
    /// A share, if the context is the device's primary one.
    pub fn share(device: &cust::device::Device, current: ContextId) -> Result<Option<Self>> {
        let device = device.as_raw();
        let (mut flags, mut active, mut context) = (0, 0, null_mut());
        // SAFETY: the device exists, since a `Device` is only ever given for one that does; writes two numbers into live locals.
        let state = unsafe { sys::cuDevicePrimaryCtxGetState(device, &raw mut flags, &raw mut active) };
        driver("cuDevicePrimaryCtxGetState", state)?;
        if active == 0 {
            return Ok(None); // asking for it would make it
        }
        // SAFETY: as above; writes one pointer into a live local. `drop` gives the share back.
        driver("cuDevicePrimaryCtxRetain", unsafe { sys::cuDevicePrimaryCtxRetain(&raw mut context, device) })?;
        let share = Self(device);
        Ok((context.addr() == current.0).then_some(share))
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: gives back the one share that `share` took.
        unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.0) };
    }
}

/// A kernel that was found in a module; its owner ([`Kernels`]) keeps the module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel(sys::CUfunction);

// SAFETY: a CUfunction is a handle that the driver lets every thread use, valid as long as its module is loaded, which the owner of
// every `Kernel` takes care of.
unsafe impl Send for Kernel {}
// SAFETY: as above; nothing changes a `Kernel`.
unsafe impl Sync for Kernel {}

impl Kernel {
    /// Finds an entry and makes the driver load its code now, rather than at the first launch, which may be inside a capture.
    pub fn resolve(module: &Module, entry: &str) -> Result<Self> {
        let function = module.get_function(entry).map_err(|error| Error::driver("cuModuleGetFunction", error))?;
        let loaded = function.get_attribute(FunctionAttribute::NumRegisters);
        loaded.map_err(|error| Error::driver("cuFuncGetAttribute", error))?;
        Ok(Self(function.to_raw()))
    }

    /// Lets launches take so much dynamic shared memory, where it is more than the driver gives without asking.
    pub fn allow_shared_bytes(self, bytes: u32) -> Result<()> {
        const WITHOUT_ASKING: u32 = 48 << 10;
        if bytes <= WITHOUT_ASKING {
            return Ok(());
        }
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is that of a loaded module; sets a number.
        driver("cuFuncSetAttribute", unsafe { sys::cuFuncSetAttribute(self.0, attribute, bytes as i32) })
    }
}

/// Enqueues a row operator; nothing for no rows.
pub(crate) fn rows(
    kernels: &Kernels,
    stream: Handle<'_>,
    call: &CheckedRows<'_, '_, '_, Device>,
    eps: f32,
) -> Result<()> {
    let (sizes, parts) = (call.sizes(), call.parts());
    same_context(kernels, sizes.operator, stream)?;
    if sizes.rows == 0 {
        return Ok(());
    }
    call.scale_bytes_alignment()?;
    let launch = geometry::choose(&Request {
        nvfp4: sizes.operator.sink() == SinkKind::Nvfp4,
        streams: sizes.operator.has_streams(),
        rows: sizes.rows,
        dim: sizes.dim,
        aligned: call.is_aligned(),
        pairs: sizes.operator.uses_pairs(kernels.image.capability()) && call.is_aligned_in_pairs(),
        residents: sizes.operator.has_residents(),
        multiprocessors: kernels.multiprocessors,
    });
    let kernel = kernels.get((sizes.operator, parts.sink.recipe(), launch.shape.name))?;
    let arguments = arguments::rows(sizes, parts, eps, launch.team);
    let geometry = Geometry { grid: launch.grid, block: launch.block, shared_bytes: launch.shared_bytes };
    // SAFETY: every row entry takes `RowArguments`. The addresses come from a `CheckedRows`: each operand covers what the kernel
    // touches for these sizes, outputs overlap nothing, and that they are device memory is what the views' constructors promise.
    // `choose` takes an entry with wide accesses only for aligned operands. Kernel, stream and current context agree.
    unsafe { enqueue(kernels, kernel, geometry, stream, &arguments) }
}

/// Enqueues modulation6; nothing for no rows.
pub(crate) fn six_way(kernels: &Kernels, stream: Handle<'_>, call: &CheckedSixWay<'_, Device>) -> Result<()> {
    let sizes = call.sizes();
    same_context(kernels, sizes.operator, stream)?;
    if sizes.rows == 0 {
        return Ok(());
    }
    let shape = if call.is_aligned() { "aligned" } else { "any" };
    let kernel = kernels.get((sizes.operator, None, shape))?;
    let arguments = arguments::six_way(sizes, call.parts());
    let grid = geometry::modulation6_grid(sizes.rows);
    let geometry = Geometry { grid, block: geometry::MODULATION6_BLOCK, shared_bytes: 0 };
    // SAFETY: as in `rows`; both entries of modulation6 take `Modulation6Arguments`, and the aligned one gets aligned operands.
    unsafe { enqueue(kernels, kernel, geometry, stream, &arguments) }
}

/// Refuses a launch outside the context that the kernels were loaded into.
fn same_context(kernels: &Kernels, operator: Operator, stream: Handle<'_>) -> Result<()> {
    let expected = kernels.context;
    let wrong = |what, got: Option<ContextId>| Error::WrongContext {
        operator,
        what,
        expected: expected.to_string(),
        got: got.map_or_else(|| "none".to_owned(), |context| context.to_string()),
    };
    let current = ContextId::current()?;
    if current != Some(expected) {
        return Err(wrong("the current context", current));
    }
    let of_stream = ContextId::of(stream)?;
    if of_stream == expected { Ok(()) } else { Err(wrong("the stream's context", Some(of_stream))) }
}

/// Grid, block and dynamic shared memory of a launch.
struct Geometry {
    /// Blocks.
    grid: u32,
    /// Threads a block.
    block: u32,
    /// Dynamic shared memory a block, in bytes.
    shared_bytes: u32,
}

/// Enqueues one kernel with one argument by value.
///
/// # Safety
/// The kernel takes exactly one `A`, belongs to a loaded module of the stream's context, and may touch what its arguments' addresses
/// and sizes say.
unsafe fn enqueue<A: Copy>(
    kernels: &Kernels,
    kernel: Kernel,
    geometry: Geometry,
    stream: Handle<'_>,
    arguments: &A,
) -> Result<()> {
    let Geometry { grid, block, shared_bytes } = geometry;
    // The driver copies the argument before it returns, and never writes it.
    let mut parameters = [std::ptr::from_ref(arguments).cast_mut().cast::<c_void>()];
    if let Some(launch_kernel_ex) = kernels.overlap {
        let attribute = LaunchAttribute::OVERLAP;
        let configuration = LaunchConfiguration {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            shared_bytes,
            stream: stream.raw(),
            attributes: &raw const attribute,
            attribute_count: 1,
        };
        // SAFETY: the configuration points to one live attribute and has the layout of CUlaunchConfig; `parameters` as below. The
        // kernels of this image wait for the grid before them ahead of their first access, so starting early is no race.
        let result =
            unsafe { launch_kernel_ex.0(&raw const configuration, kernel.0, parameters.as_mut_ptr(), null_mut()) };
        return driver("cuLaunchKernelEx", result);
    }
    // SAFETY: `parameters` points to one pointer to a live `A`, the kernel's only parameter; no extra options; the stream is alive.
    // The rest is the caller's promise.
    let result = unsafe {
        sys::cuLaunchKernel(
            kernel.0,
            grid,
            1,
            1,
            block,
            1,
            1,
            shared_bytes,
            stream.raw(),
            parameters.as_mut_ptr(),
            null_mut(),
        )
    };
    driver("cuLaunchKernel", result)
}

/// cuLaunchKernelEx, through which a grid may start before the one ahead of it in the stream has drained (programmatic dependent
/// launch): it saves 0.25 to 0.35 us a launch in a chain on an H200. cust's bindings are older than the function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LaunchKernelEx(LaunchKernelExFunction);

type LaunchKernelExFunction = unsafe extern "C" fn(
    *const LaunchConfiguration,
    sys::CUfunction,
    *mut *mut c_void,
    *mut *mut c_void,
) -> sys::CUresult;

/// CUlaunchConfig of cuda.h.
#[repr(C)]
struct LaunchConfiguration {
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    stream: sys::CUstream,
    attributes: *const LaunchAttribute,
    attribute_count: u32,
}

/// CUlaunchAttribute of cuda.h: a kind, and a union of 64 bytes, of which the kind used here reads the first int.
#[repr(C)]
struct LaunchAttribute {
    kind: u32,
    padding: u32,
    value: [u64; 8],
}

impl LaunchAttribute {
    /// CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 1. (Little-endian, as every CUDA platform.)
    const OVERLAP: Self = Self { kind: 6, padding: 0, value: [1, 0, 0, 0, 0, 0, 0, 0] };
}

impl LaunchKernelEx {
    /// The function, if the driver has it (CUDA 11.8 and later).
    pub fn find() -> Option<Self> {
        const CUDA_11_8: i32 = 11_080;
        let mut address: *mut c_void = null_mut();
        // SAFETY: a string that ends with a zero, and one pointer written into a live local.
        let result = unsafe { sys::cuGetProcAddress(c"cuLaunchKernelEx".as_ptr(), &raw mut address, CUDA_11_8, 0) };
        if result != sys::CUresult::CUDA_SUCCESS || address.is_null() {
            return None;
        }
        // SAFETY: the driver gave this address for the symbol, whose C signature is the type's.
        Some(Self(unsafe { std::mem::transmute::<*mut c_void, LaunchKernelExFunction>(address) }))
    }
}

fn driver(call: &'static str, result: sys::CUresult) -> Result<()> {
    if result == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let mut text = null();
    // SAFETY: writes one pointer into a live local, null for an unknown number.
    let found = unsafe { sys::cuGetErrorString(result, &raw mut text) };
    let text = if found == sys::CUresult::CUDA_SUCCESS && !text.is_null() {
        // SAFETY: the driver's texts are constants that end with a zero.
        unsafe { CStr::from_ptr(text) }
    } else {
        c"unknown error"
    };
    Err(Error::Driver { call, code: result as u32, message: text.to_string_lossy().into_owned() })
}
