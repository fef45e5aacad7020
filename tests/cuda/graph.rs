//! Launches inside a stream capture. They run alone: a synchronous copy of another thread invalidates a capture.
use crate::device_call::DeviceCall;
use crate::gpu::{gpu_alone, repeats};
use crate::parity::stream;
use crate::support::random::{Kind, Problem};
use crate::support::{calls, first_difference};
use adaptive_layernorm_producers::Cpu;
use adaptive_layernorm_producers::named::Tensor;
use cust::stream::Stream;
use cust::sys::{self, CUresult::CUDA_SUCCESS, CUstreamCaptureMode};
use std::ptr::null_mut;

/// A captured graph, ready to be launched.
pub struct Graph(sys::CUgraphExec);

impl Graph {
    /// What `enqueue` puts on the stream; the driver refuses any call of this thread that could synchronise or allocate.
    pub fn capture(stream: &Stream, enqueue: impl FnOnce()) -> Self {
        let (mut graph, mut executable) = (null_mut(), null_mut());
        // SAFETY: a live stream; the graph handles are used only after the calls that make them have succeeded.
        unsafe {
            let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
            assert_eq!(sys::cuStreamBeginCapture_v2(stream.as_inner(), mode), CUDA_SUCCESS);
            enqueue();
            assert_eq!(sys::cuStreamEndCapture(stream.as_inner(), &raw mut graph), CUDA_SUCCESS);
            assert_eq!(sys::cuGraphInstantiateWithFlags(&raw mut executable, graph, 0), CUDA_SUCCESS);
            assert_eq!(sys::cuGraphDestroy(graph), CUDA_SUCCESS);
        }
        Self(executable)
    }

    pub fn replay(&self, stream: &Stream) {
        // SAFETY: the executable graph and the stream are alive, and so are the buffers of the captured launches.
        assert_eq!(unsafe { sys::cuGraphLaunch(self.0, stream.as_inner()) }, CUDA_SUCCESS);
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `capture`, destroyed once.
        unsafe { sys::cuGraphExecDestroy(self.0) };
    }
}

/// Item 20 of the field reports: replays see new values of every operand, act_scale and global scale included.
#[test]
fn replays_see_new_inputs() {
    let Some(gpu) = gpu_alone() else { return };
    let stream = stream();
    for call in calls() {
        let problem = Problem { call, rows: 67, dim: 768, chunks: 2, kind: Kind::Normal, seed: 100 };
        let mut inputs = problem.inputs();
        if call.recipe.is_some_and(|recipe| recipe.takes_global_scale()) {
            inputs.insert("global_scale".into(), Tensor::new([1], vec![1.0f32]));
        }
        let mut on_device = DeviceCall::new(problem, &inputs, 0);
        let graph = Graph::capture(&stream, || on_device.launch(&gpu, &stream).unwrap());
        for seed in 0..10 {
            let fresh = Problem { seed, kind: Kind::Wide, ..problem }.inputs();
            for (name, tensor) in &fresh {
                if inputs.contains_key(name) {
                    on_device.overwrite(name, tensor);
                    inputs.insert(name.clone(), tensor.clone());
                }
            }
            graph.replay(&stream);
            stream.synchronize().unwrap();
            let expected = call.run(&Cpu, &inputs).unwrap();
            assert_eq!(first_difference(&expected, &on_device.outputs()), None, "{problem:?}, replay {seed}");
        }
    }
}

/// Ten thousand replays, each with another x and act_scale, each compared.
#[test]
fn thousands_of_replays_with_changing_inputs() {
    let Some(gpu) = gpu_alone() else { return };
    let stream = stream();
    let call = calls()[0];
    let problem = |seed| Problem { call, rows: 5, dim: 768, chunks: 2, kind: Kind::Normal, seed };
    let inputs: Vec<_> = (0..61).map(|seed| problem(seed).inputs()).collect();
    let shared = |name: &str| inputs[0][name].clone();
    let expected: Vec<_> = inputs
        .iter()
        .map(|inputs| {
            let mut inputs = inputs.clone();
            inputs.extend(["scale", "shift"].map(|name| (name.to_owned(), shared(name))));
            call.run(&Cpu, &inputs).unwrap()
        })
        .collect();
    let mut on_device = DeviceCall::new(problem(0), &inputs[0], 0);
    let graph = Graph::capture(&stream, || on_device.launch(&gpu, &stream).unwrap());
    for replay in 0..repeats(10_000) as usize {
        let at = replay * 7 % inputs.len();
        for name in ["x", "act_scale"] {
            on_device.overwrite(name, &inputs[at][name]);
        }
        graph.replay(&stream);
        stream.synchronize().unwrap();
        assert_eq!(first_difference(&expected[at], &on_device.outputs()), None, "replay {replay}");
    }
}

#[test]
fn thousands_of_replays() {
    let Some(gpu) = gpu_alone() else { return };
    let stream = stream();
    let call = calls()[0];
    let problem = Problem { call, rows: 64, dim: 3072, chunks: 2, kind: Kind::Normal, seed: 3 };
    let on_device = DeviceCall::new(problem, &problem.inputs(), 0);
    let graph = Graph::capture(&stream, || (0..32).for_each(|_| on_device.launch(&gpu, &stream).unwrap()));
    for _ in 0..repeats(10_000) {
        graph.replay(&stream);
    }
    stream.synchronize().unwrap();
    let expected = call.run(&Cpu, &problem.inputs()).unwrap();
    assert_eq!(first_difference(&expected, &on_device.outputs()), None);
}
