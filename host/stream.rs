//! Streams that a launch can go to.
//!
//! Every CUDA library has a stream type of its own around the same driver handle. A launch needs the handle, alive, and the stream's
//! context current; [`LaunchStream`] is what can give that.
use crate::error::Result;
use cust::sys::CUstream;
use sealed::Sealed;
use std::ffi::c_void;
use std::marker::PhantomData;

/// A stream that launches can be enqueued on: a `cust` stream, a `cudarc` stream (feature `cudarc`), or the [`RawStream`] of any other
/// library.
pub trait LaunchStream: Sealed {}

/// A live stream's handle.
#[derive(Clone, Copy, Debug)]
pub struct Handle<'a> {
    raw: CUstream,
    stream: PhantomData<&'a ()>,
}

impl Handle<'_> {
    /// The driver's handle, valid as long as this borrow lives.
    pub(crate) const fn raw(self) -> CUstream {
        self.raw
    }
}

mod sealed {
    use super::{Handle, Result};

    pub trait Sealed {
        /// The handle, once whatever this library does ahead of every call is done.
        fn handle(&self) -> Result<Handle<'_>>;
    }
}

/// The handle behind a stream.
pub(crate) fn handle(stream: &impl LaunchStream) -> Result<Handle<'_>> {
    stream.handle()
}

/// The stream of a library that this one knows nothing of, by its driver handle.
#[derive(Clone, Copy, Debug)]
pub struct RawStream(CUstream);

impl RawStream {
    /// A `CUstream`, which is a `cudaStream_t` too. Null is the context's default stream.
    ///
    /// # Safety
    /// The stream is alive for as long as this value is used.
    #[expect(unsafe_code, reason = "the caller vouches for the stream")]
    pub const unsafe fn from_raw(stream: *mut c_void) -> Self {
        Self(stream.cast())
    }
}

impl LaunchStream for RawStream {}
impl Sealed for RawStream {
    fn handle(&self) -> Result<Handle<'_>> {
        Ok(Handle { raw: self.0, stream: PhantomData })
    }
}

impl LaunchStream for cust::stream::Stream {}
impl Sealed for cust::stream::Stream {
    fn handle(&self) -> Result<Handle<'_>> {
        Ok(Handle { raw: self.as_inner(), stream: PhantomData })
    }
}

/// As every call of `cudarc` does, a launch makes the stream's context current.
#[cfg(feature = "cudarc")]
mod of_cudarc {
    use super::{Handle, LaunchStream, Result, Sealed};
    use crate::error::Error;
    use cudarc::driver::CudaStream;
    use std::marker::PhantomData;
    use std::sync::Arc;

    impl LaunchStream for CudaStream {}
    impl Sealed for CudaStream {
        fn handle(&self) -> Result<Handle<'_>> {
            self.context().bind_to_thread().map_err(|error| Error::cudarc("cuCtxSetCurrent", error))?;
            Ok(Handle { raw: self.cu_stream().cast(), stream: PhantomData })
        }
    }

    impl LaunchStream for Arc<CudaStream> {}
    impl Sealed for Arc<CudaStream> {
        fn handle(&self) -> Result<Handle<'_>> {
            self.as_ref().handle()
        }
    }
}
