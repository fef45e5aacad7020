//! Every operator on its seed shapes: `{backend}/{operator}[/{recipe}]/{R}x{D}`, with the bytes it reads and writes as throughput.
//!
//! The CPU always, the GPU with the feature `cuda`. Before anything is timed, the first tile of 128 rows is compared with the
//! reference. On the GPU launches follow each other on a stream, so shapes of few rows show what a launch costs the processor;
//! `adaln bench` measures inside a CUDA graph and beside a copy.
#[cfg(feature = "cuda")]
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/cuda/device_call.rs"]
mod device_call;
#[cfg(feature = "cuda")]
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/cuda/gpu.rs"]
mod gpu;
mod painted;
#[path = "../tests/support/mod.rs"]
mod support;

use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::operator::SinkKind;
use adaptive_layernorm_producers::{Cpu, Reference};
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use painted::inputs;
use std::time::Duration;

/// R and D.
type Shape = (usize, usize);

const ROWS: [Shape; 5] = [(16, 2048), (64, 3072), (256, 3072), (2520, 3072), (4096, 3072)];
const SIX_WAY: [Shape; 3] = [(51, 1536), (2520, 3072), (5070, 3072)];
/// Rows of a tile of the scale layout: the first tile's bytes do not depend on how many follow.
const TILE: usize = 128;

fn shapes(call: &Call) -> &'static [Shape] {
    match call.operator.sink() {
        SinkKind::SixBf16 => &SIX_WAY,
        SinkKind::Bf16 | SinkKind::Fp8 | SinkKind::AwqFp8 | SinkKind::Nvfp4 => &ROWS,
    }
}

fn bytes(tensors: &Tensors) -> u64 {
    tensors.values().map(|tensor| tensor.data.len() as u64 * tensor.data.dtype().bytes()).sum()
}

/// Compares the beginning of every output with the reference.
fn check(call: &Call, (rows, dim): Shape, outputs: &Tensors) {
    let expected = call.run(&Reference, &inputs(call, rows.min(TILE), dim)).unwrap();
    for (name, expected) in expected {
        let (expected, got) = (expected.data.to_le_bytes(), outputs[&name].data.to_le_bytes());
        assert!(got.starts_with(&expected), "{} {rows}x{dim}: {name} differs from the reference", call.operator);
    }
}

/// Runs a benchmark of every call and shape in a group.
fn each(
    c: &mut Criterion,
    backend: &str,
    bench: impl Fn(&mut BenchmarkGroup<'_, WallTime>, BenchmarkId, &Call, Shape),
) {
    for call in support::calls() {
        let name = match call.recipe {
            Some(recipe) => format!("{backend}/{}/{recipe}", call.operator),
            None => format!("{backend}/{}", call.operator),
        };
        let mut group = c.benchmark_group(name);
        group.sample_size(10).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_secs(1));
        for &(rows, dim) in shapes(&call) {
            bench(&mut group, BenchmarkId::from_parameter(format!("{rows}x{dim}")), &call, (rows, dim));
        }
        group.finish();
    }
}

fn cpu(c: &mut Criterion) {
    each(c, "cpu", |group, id, call, (rows, dim)| {
        let inputs = inputs(call, rows, dim);
        let mut outputs = call.run(&Cpu, &inputs).unwrap();
        check(call, (rows, dim), &outputs);
        group.throughput(Throughput::Bytes(bytes(&inputs) + bytes(&outputs)));
        group.bench_function(id, |b| b.iter(|| call.run_into(&Cpu, &inputs, &mut outputs).unwrap()));
    });
}

#[cfg(feature = "cuda")]
fn cuda(c: &mut Criterion) {
    use cust::event::{Event, EventFlags};
    use cust::stream::{Stream, StreamFlags};
    use support::random::{Kind, Problem};

    let Some(gpu) = gpu::gpu_alone() else { return };
    let stream = Stream::new(StreamFlags::DEFAULT, None).unwrap();
    let (begin, end) = (Event::new(EventFlags::DEFAULT).unwrap(), Event::new(EventFlags::DEFAULT).unwrap());
    each(c, "cuda", |group, id, call, (rows, dim)| {
        let inputs = inputs(call, rows, dim);
        let problem = Problem { call: *call, rows, dim, chunks: painted::CHUNKS, kind: Kind::Normal, seed: 0 };
        let on_device = device_call::DeviceCall::new(problem, &inputs, 0);
        on_device.launch(&gpu, &stream).unwrap();
        stream.synchronize().unwrap();
        let outputs = on_device.outputs();
        check(call, (rows, dim), &outputs);
        group.throughput(Throughput::Bytes(bytes(&inputs) + bytes(&outputs)));
        group.bench_function(id, |b| {
            b.iter_custom(|launches| {
                begin.record(&stream).unwrap();
                for _ in 0..launches {
                    on_device.launch(&gpu, &stream).unwrap();
                }
                end.record(&stream).unwrap();
                end.synchronize().unwrap();
                end.elapsed(&begin).unwrap()
            });
        });
    });
}

#[cfg(not(feature = "cuda"))]
criterion_group!(benches, cpu);
#[cfg(feature = "cuda")]
criterion_group!(benches, cpu, cuda);
criterion_main!(benches);
