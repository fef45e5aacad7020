//! CUDA graphs of captured work: the program's only `unsafe`.
#![expect(unsafe_code, reason = "cust has no capture; every block has its proof")]

use crate::failure::{Failure, Outcome};
use cust::memory::DeviceSlice;
use cust::stream::Stream;
use cust::sys;
use std::marker::PhantomData;
use std::ptr::null_mut;

/// Work that can be captured.
///
/// What `enqueue` puts on the stream touches nothing but device memory that `self` owns, so it is valid as long as `self` is.
pub trait Work {
    /// Enqueues piece `index` and nothing else.
    fn enqueue(&self, stream: &Stream, index: usize) -> Outcome;
}

/// Captured work that can be replayed while what it works on is borrowed.
pub struct Graph<'s, 'w, W> {
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
    stream: &'s Stream,
    work: PhantomData<&'w W>,
}

impl<'s, 'w, W: Work> Graph<'s, 'w, W> {
    /// Captures pieces of work.
    pub fn capture(stream: &'s Stream, work: &'w W, pieces: impl Iterator<Item = usize>) -> Outcome<Self> {
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: `stream` borrows a live stream, which is not capturing: only this function captures, and it ends what it began.
        done("cuStreamBeginCapture", unsafe { sys::cuStreamBeginCapture_v2(stream.as_inner(), mode) })?;
        let mut pieces = pieces;
        let enqueued = pieces.try_for_each(|piece| work.enqueue(stream, piece));
        let mut this = Self { graph: null_mut(), executable: null_mut(), stream, work: PhantomData };
        // SAFETY: the stream is capturing since the call above; writes one handle into a live local, which `drop` gives back.
        let ended =
            done("cuStreamEndCapture", unsafe { sys::cuStreamEndCapture(stream.as_inner(), &raw mut this.graph) });
        enqueued.and(ended)?;
        // SAFETY: `graph` is the valid graph just made; writes one handle into a live local, which `drop` gives back.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&raw mut this.executable, this.graph, 0) };
        done("cuGraphInstantiate", made)?;
        Ok(this)
    }

    /// Enqueues all of it.
    pub fn replay(&self) -> Outcome {
        // SAFETY: the executable is valid until `drop`. The memory it touches is owned by the `W` that is borrowed as long as this
        // graph lives, and `drop` waits for the stream, so no replay outlives it.
        done("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.executable, self.stream.as_inner()) })
    }
}

impl<W> Drop for Graph<'_, '_, W> {
    fn drop(&mut self) {
        // An error here is that of an earlier replay, which the measurement reports; there is nobody to tell it to in a drop.
        let _ = self.stream.synchronize();
        if !self.executable.is_null() {
            // SAFETY: made by `capture`, given back once, and no replay is running any more.
            unsafe { sys::cuGraphExecDestroy(self.executable) };
        }
        if !self.graph.is_null() {
            // SAFETY: made by `capture` and given back once.
            unsafe { sys::cuGraphDestroy(self.graph) };
        }
    }
}

/// Enqueues the driver's copy between two pieces of device memory of the same length.
///
/// For use in [`Work::enqueue`], whose `self` owns both.
pub fn copy(to: DeviceSlice<u8>, from: DeviceSlice<u8>, stream: &Stream) -> Outcome {
    let bytes = to.len().min(from.len());
    let (to, from) = (to.as_device_ptr().as_raw(), from.as_device_ptr().as_raw());
    // SAFETY: both slices cover `bytes`; the caller's `Work` owns them and is borrowed as long as the graph that is being captured.
    done("cuMemcpyDtoDAsync", unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, bytes, stream.as_inner()) })
}

fn done(call: &str, result: sys::CUresult) -> Outcome {
    if result == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    Err(Failure::input(format!("the GPU cannot be used: {call}: CUDA error {}", result as u32)))
}
