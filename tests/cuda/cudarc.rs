//! `cudarc` contexts, streams and memory, alone and beside `cust`.
use crate::gpu::{gpu, gpu_alone};
use crate::parity;
use crate::support::random::{Kind, Problem};
use crate::support::{bf16s, calls, first_difference};
use adaptive_layernorm_producers::named::{Data, Tensors};
use adaptive_layernorm_producers::{
    Broadcast, Cpu, DType, Error, LaunchStream, Lent, Matrix, Operator, Producers, RawStream, bf16, lend, lend_mut,
};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, sys};
use cust::context::legacy::{Context as LegacyContext, ContextFlags};
use cust::device::Device;
use cust::memory::{CopyDestination, DeviceBuffer};
use std::ops::Range;
use std::sync::Arc;

/// AdaLN to FP8 of a size that keeps a GPU busy for longer than a host needs for the next call.
fn problem(seed: u64) -> Problem {
    let call = calls().into_iter().find(|call| call.operator == Operator::AdaLayerNormQuantFp8Bf16).unwrap();
    Problem { call, rows: 4096, dim: 3072, chunks: 1, kind: Kind::Normal, seed }
}

fn bits(inputs: &Tensors, name: &str) -> Vec<u16> {
    bf16s(&inputs[name]).iter().map(|value| value.to_bits()).collect()
}

fn act_scale(inputs: &Tensors) -> [f32; 1] {
    match &inputs["act_scale"].data {
        Data::F32(values) => [values[0]],
        other => panic!("expected f32, got {}", other.dtype()),
    }
}

fn expected(problem: &Problem, inputs: &Tensors) -> Vec<u8> {
    problem.call.run(&Cpu, inputs).unwrap()["out"].data.to_le_bytes()
}

/// The operands of a problem in `cudarc` memory.
struct Slices {
    problem: Problem,
    x: CudaSlice<u16>,
    scale: CudaSlice<u16>,
    shift: CudaSlice<u16>,
    act_scale: CudaSlice<f32>,
    out: CudaSlice<u8>,
}

impl Slices {
    fn new(problem: Problem, inputs: &Tensors, stream: &Arc<CudaStream>) -> Self {
        let up = |name: &str| stream.clone_htod(&bits(inputs, name)).unwrap();
        let act_scale = stream.clone_htod(&act_scale(inputs)).unwrap();
        let out = stream.clone_htod(&vec![0x5a; problem.rows * problem.dim]).unwrap();
        Self { problem, x: up("x"), scale: up("scale"), shift: up("shift"), act_scale, out }
    }

    /// Enqueues the call on `on`, with operands lent to `lent_to`: another value of the same stream, as a rule.
    fn launch(&mut self, producers: &Producers, on: &impl LaunchStream, lent_to: &CudaStream) -> Result<(), Error> {
        let Problem { rows, dim, call, .. } = self.problem;
        let (scale, shift) = (lend(&self.scale, lent_to), lend(&self.shift, lent_to));
        producers.ada_layer_norm_quant_fp8_bf16(
            on,
            Matrix::new(&lend(&self.x, lent_to), rows, dim),
            Broadcast { scale: &scale, shift: &shift },
            &lend(&self.act_scale, lent_to),
            call.eps,
            &mut lend_mut(&mut self.out, lent_to),
        )
    }
}

/// Kernels loaded through either library run on the streams of either, on memory of either.
#[test]
fn cust_and_cudarc_share_the_primary_context() {
    let Some(gpu) = gpu() else { return };
    let mut of_cust = std::ptr::null_mut();
    // SAFETY: writes one pointer into a live local.
    let result = unsafe { cust::sys::cuCtxGetCurrent(&raw mut of_cust) };
    assert_eq!(result, cust::sys::CUresult::CUDA_SUCCESS);
    let context = CudaContext::new(0).unwrap();
    assert_eq!(context.cu_ctx().addr(), of_cust.addr(), "two contexts of one device");
    let loaded_by_cudarc = Producers::load_cudarc(&context).unwrap();
    let (of_cudarc, of_cust) = (context.new_stream().unwrap(), parity::stream());

    let problem = problem(1);
    let inputs = problem.inputs();
    let expected = expected(&problem, &inputs);
    for producers in [&gpu.producers, &loaded_by_cudarc] {
        // cudarc's memory on cudarc's streams, the default one included ..
        for stream in [&of_cudarc, &context.default_stream()] {
            let mut slices = Slices::new(problem, &inputs, stream);
            slices.launch(producers, stream, stream).unwrap();
            assert!(stream.clone_dtoh(&slices.out).unwrap() == expected);
        }
        // .. and on a stream of cust's, which cudarc has to know for its events.
        // SAFETY: the stream belongs to this context and outlives both values.
        let (wrapped, raw) = unsafe {
            let handle = of_cust.as_inner();
            (context.wrap_borrowed_stream(handle.cast()), RawStream::from_raw(handle.cast()))
        };
        let mut slices = Slices::new(problem, &inputs, &wrapped);
        slices.launch(producers, &of_cust, &wrapped).unwrap();
        assert!(wrapped.clone_dtoh(&slices.out).unwrap() == expected);
        slices.launch(producers, &raw, &wrapped).unwrap();
        assert!(wrapped.clone_dtoh(&slices.out).unwrap() == expected);
        // cust's memory on cudarc's stream.
        let up = |name: &str| DeviceBuffer::from_slice(&bits(&inputs, name)).unwrap();
        let (x, scale, shift) = (up("x"), up("scale"), up("shift"));
        let act_scale = DeviceBuffer::from_slice(&act_scale(&inputs)).unwrap();
        let mut out = DeviceBuffer::<u8>::zeroed(expected.len()).unwrap();
        // cust fills them on the default stream, which cudarc's streams do not wait for.
        cust::context::CurrentContext::synchronize().unwrap();
        let x = Matrix::new(&x, problem.rows, problem.dim);
        let modulation = Broadcast { scale: &scale, shift: &shift };
        let eps = problem.call.eps;
        producers.ada_layer_norm_quant_fp8_bf16(&of_cudarc, x, modulation, &act_scale, eps, &mut out).unwrap();
        of_cudarc.synchronize().unwrap();
        let mut codes = vec![0; expected.len()];
        out.copy_to(&mut codes).unwrap();
        assert!(codes == expected);
    }
}

/// A second stream reads the output and overwrites the input while the first is busy; nothing synchronises but what was lent.
#[test]
fn streams_wait_for_what_was_lent() {
    let Some(gpu) = gpu() else { return };
    let context = CudaContext::new(0).unwrap();
    let (first, second) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let problems = [problem(2), problem(3)];
    let inputs = problems.map(|problem| problem.inputs());
    let expected = [0, 1].map(|i| expected(&problems[i], &inputs[i]));
    let mut slices = Slices::new(problems[0], &inputs[0], &first);
    for _ in 0..3 {
        for now in [0, 1] {
            let [x, scale, shift] = ["x", "scale", "shift"].map(|name| bits(&inputs[now], name));
            second.memcpy_htod(&x, &mut slices.x).unwrap();
            second.memcpy_htod(&scale, &mut slices.scale).unwrap();
            second.memcpy_htod(&shift, &mut slices.shift).unwrap();
            second.memcpy_htod(&act_scale(&inputs[now]), &mut slices.act_scale).unwrap();
            for _ in 0..100 {
                slices.launch(&gpu.producers, &first, &first).unwrap();
            }
            assert!(second.clone_dtoh(&slices.out).unwrap() == expected[now]);
        }
    }
}

/// Views of parts of a slice, bf16 as itself, and the checks of every operand.
#[test]
fn parts_of_a_slice() {
    let Some(gpu) = gpu() else { return };
    let stream = CudaContext::new(0).unwrap().new_stream().unwrap();
    let problem = Problem { rows: 130, dim: 80, ..problem(4) };
    let inputs = problem.inputs();
    let (size, dim) = (problem.rows * problem.dim, problem.dim);
    let all = [bits(&inputs, "x"), bits(&inputs, "scale"), bits(&inputs, "shift")].concat();
    let all = stream.clone_htod(&all).unwrap();
    let act_scale = stream.clone_htod(&act_scale(&inputs)).unwrap();
    let mut out = stream.clone_htod(&vec![0x5a; size + 2 * dim]).unwrap();
    let (x, rest) = all.split_at(size);
    let (scale, shift) = rest.split_at(dim);
    // SAFETY: bf16 has the size of its bits.
    let x = unsafe { x.transmute::<bf16>(size) }.unwrap();
    let (x, scale, shift) = (lend(&x, &stream), lend(&scale, &stream), lend(&shift, &stream));
    let mut launch = |x: &Lent<'_, bf16>, rows, range: Range<usize>| {
        let modulation = Broadcast { scale: &scale, shift: &shift };
        let (x, act_scale) = (Matrix::new(x, rows, dim), lend(&act_scale, &stream));
        let mut part = out.slice_mut(range);
        let mut out = lend_mut(&mut part, &stream);
        gpu.producers.ada_layer_norm_quant_fp8_bf16(&stream, x, modulation, &act_scale, problem.call.eps, &mut out)
    };
    launch(&x, problem.rows, dim..dim + size).unwrap();
    let short = launch(&x, problem.rows, 0..size - 1);
    assert!(matches!(short, Err(Error::Length { operand: "out", .. })), "{short:?}");
    let got = stream.clone_dtoh(&out).unwrap();
    assert!(got[..dim].iter().chain(&got[dim + size..]).all(|byte| *byte == 0x5a), "written outside the view");
    let outputs = problem.call.run(&Cpu, &inputs).unwrap();
    let mut of_gpu = outputs.clone();
    of_gpu.get_mut("out").unwrap().data = Data::from_le_bytes(DType::E4m3, &got[dim..dim + size]);
    assert_eq!(first_difference(&outputs, &of_gpu), None);
}

/// Lent before a capture and given back after it, the events stay outside the graph.
#[test]
fn cudarc_captures_a_launch() {
    let Some(gpu) = gpu_alone() else { return };
    let stream = CudaContext::new(0).unwrap().new_stream().unwrap();
    let problem = problem(5);
    let inputs = problem.inputs();
    let mut slices = Slices::new(problem, &inputs, &stream);
    let graph = {
        let [x, scale, shift] = [&slices.x, &slices.scale, &slices.shift].map(|slice| lend(slice, &stream));
        let act_scale = lend(&slices.act_scale, &stream);
        let mut out = lend_mut(&mut slices.out, &stream);
        stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL).unwrap();
        let x = Matrix::new(&x, problem.rows, problem.dim);
        let modulation = Broadcast { scale: &scale, shift: &shift };
        let eps = problem.call.eps;
        gpu.producers.ada_layer_norm_quant_fp8_bf16(&stream, x, modulation, &act_scale, eps, &mut out).unwrap();
        stream.end_capture(sys::CUgraphInstantiate_flags(0)).unwrap().unwrap()
    };
    graph.launch().unwrap();
    assert!(stream.clone_dtoh(&slices.out).unwrap() == expected(&problem, &inputs));
}

/// A `cudarc` stream brings its own context, which must be that of the kernels.
#[test]
fn kernels_of_another_context_are_refused() {
    let Some(gpu) = gpu_alone() else { return };
    let stream = CudaContext::new(0).unwrap().new_stream().unwrap();
    let device = Device::get_device(0).unwrap();
    let other = LegacyContext::create_and_push(ContextFlags::SCHED_AUTO, device).unwrap();
    let elsewhere = Producers::load(&device).unwrap();
    let problem = Problem { rows: 4, dim: 64, ..problem(6) };
    let mut slices = Slices::new(problem, &problem.inputs(), &stream);
    let refused = slices.launch(&elsewhere, &stream, &stream);
    assert!(matches!(refused, Err(Error::WrongContext { what: "the current context", .. })), "{refused:?}");
    // The launch has made the stream's context current, as cudarc does.
    slices.launch(&gpu.producers, &stream, &stream).unwrap();
    stream.synchronize().unwrap();
    drop(elsewhere);
    drop(other);
    gpu.attach();
}
