//! Static buffers, one captured launch, replayed with changed inputs: nothing is allocated, copied or synchronised by the launch.
//!
//! `cargo run --release --features cuda --example cuda_graph`; needs a GPU.
use adaptive_layernorm_producers::{Broadcast, Matrix, Producers};
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::stream::{Stream, StreamFlags};
use cust::sys::{self, CUresult, CUstreamCaptureMode};
use std::error::Error;
use std::ptr::null_mut;

const ROWS: usize = 64;
const DIM: usize = 3072;

fn main() -> Result<(), Box<dyn Error>> {
    let _context = cust::quick_init()?;
    let producers = Producers::load(&cust::device::Device::get_device(0)?)?;
    let stream = Stream::new(StreamFlags::DEFAULT, None)?; // waits for copies, which go to the default stream

    // bf16 1.0 is 0x3F80, -1.0 is 0xBF80: every row alternates, so it is its own normalised value.
    let row = |i: usize| if i.is_multiple_of(2) { 0x3f80u16 } else { 0xbf80 };
    let x = DeviceBuffer::from_slice(&(0..ROWS * DIM).map(row).collect::<Vec<_>>())?;
    let (scale, shift) = (DeviceBuffer::<u16>::zeroed(DIM)?, DeviceBuffer::<u16>::zeroed(DIM)?);
    let mut act_scale = DeviceBuffer::from_slice(&[1.0f32])?;
    let mut out = DeviceBuffer::<u8>::zeroed(ROWS * DIM)?;

    let graph = capture(&stream, || {
        let modulation = Broadcast { scale: &scale, shift: &shift };
        producers.ada_layer_norm_quant_fp8_bf16(
            &stream,
            Matrix::new(&x, ROWS, DIM),
            modulation,
            &act_scale,
            1e-5,
            &mut out,
        )
    })?;
    // The graph holds addresses, so a replay sees what the buffers hold then: here, another act_scale.
    for value in [1.0f32, 0.5, 0.25] {
        act_scale.copy_from(&[value])?;
        // SAFETY: the graph, the stream and every buffer of the captured launch are alive.
        check(unsafe { sys::cuGraphLaunch(graph, stream.as_inner()) })?;
        stream.synchronize()?;
        let mut codes = vec![0u8; ROWS * DIM];
        out.copy_to(&mut codes)?;
        println!("act_scale {value}: codes {:#04x} {:#04x}", codes[0], codes[1]);
    }
    // SAFETY: made above, destroyed once.
    check(unsafe { sys::cuGraphExecDestroy(graph) })
}

/// An executable graph of what `enqueue` puts on the stream.
fn capture<E: Error + 'static>(
    stream: &Stream,
    enqueue: impl FnOnce() -> Result<(), E>,
) -> Result<sys::CUgraphExec, Box<dyn Error>> {
    let (mut graph, mut executable) = (null_mut(), null_mut());
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
    // SAFETY: a live stream.
    check(unsafe { sys::cuStreamBeginCapture_v2(stream.as_inner(), mode) })?;
    enqueue()?;
    // SAFETY: the capture begun above; each handle is used only after the call that makes it has succeeded.
    unsafe {
        check(sys::cuStreamEndCapture(stream.as_inner(), &raw mut graph))?;
        check(sys::cuGraphInstantiateWithFlags(&raw mut executable, graph, 0))?;
        check(sys::cuGraphDestroy(graph))?;
    }
    Ok(executable)
}

fn check(result: CUresult) -> Result<(), Box<dyn Error>> {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(format!("the driver says {result:?}").into()) }
}
