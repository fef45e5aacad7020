//! Contexts, streams, threads and errors of the run time.
use crate::device_call::DeviceCall;
use crate::gpu::{Gpu, gpu, gpu_alone, repeats, sanitizer, say};
use crate::parity::{check, stream};
use crate::support::random::{Kind, Problem, Random};
use crate::support::{calls, first_difference};
use adaptive_layernorm_producers::{Broadcast, Cpu, Error, Matrix, Nvfp4, Nvfp4Recipe, Operator, Producers, Staged};
use cust::context::legacy::{Context as LegacyContext, ContextFlags, ContextStack, CurrentContext};
use cust::device::Device;
use cust::memory::{CopyDestination, DeviceBuffer};

#[test]
fn many_threads_and_streams_share_the_kernels() {
    let Some(session) = gpu() else { return };
    let gpu: &Gpu = &session;
    std::thread::scope(|scope| {
        for thread in 0..8 {
            scope.spawn(move || {
                gpu.attach();
                let stream = stream();
                let mut random = Random(thread);
                for _ in 0..repeats(60) {
                    check(gpu, &stream, &Problem::random(&mut random, 50, 1500), 0);
                }
            });
        }
    });
}

/// Launches on several streams at once, and one wait at the end.
#[test]
fn streams_run_side_by_side() {
    let Some(gpu) = gpu() else { return };
    let streams: Vec<_> = (0..6).map(|_| stream()).collect();
    let mut random = Random(6);
    let problems: Vec<_> = (0..60).map(|_| Problem::random(&mut random, 300, 3000)).collect();
    let started: Vec<_> = problems.iter().map(|problem| DeviceCall::new(*problem, &problem.inputs(), 0)).collect();
    for (i, call) in started.iter().enumerate() {
        call.launch(&gpu, &streams[i % 6]).unwrap();
    }
    streams.iter().for_each(|stream| stream.synchronize().unwrap());
    for (problem, call) in problems.iter().zip(&started) {
        let expected = problem.call.run(&Cpu, &problem.inputs()).unwrap();
        assert_eq!(first_difference(&expected, &call.outputs()), None, "{problem:?}");
    }
}

/// Item 19 of the field reports.
#[test]
fn other_contexts_are_refused() {
    let Some(gpu) = gpu() else { return };
    let here = stream();
    let problem = Problem { call: calls()[0], rows: 4, dim: 64, chunks: 1, kind: Kind::Normal, seed: 1 };
    let call = DeviceCall::new(problem, &problem.inputs(), 0);
    let device = Device::get_device(0).unwrap();
    let other = LegacyContext::create_and_push(ContextFlags::SCHED_AUTO, device).unwrap();
    let there = stream();
    let operator = problem.call.operator;
    let wrong = |result: Result<(), Error>, which: &str| match result {
        Err(Error::WrongContext { operator: named, what, .. }) => assert_eq!((named, what), (operator, which)),
        other => panic!("expected WrongContext, got {other:?}"),
    };
    wrong(call.launch(&gpu, &here), "the current context");
    wrong(call.launch(&gpu, &there), "the current context");
    // Kernels of the other context work there.
    let producers = Producers::load(&device).unwrap();
    let inputs = problem.inputs();
    let expected = problem.call.run(&Cpu, &inputs).unwrap();
    let got = problem.call.run(&Staged::new(&producers).unwrap(), &inputs).unwrap();
    assert_eq!(first_difference(&expected, &got), None);
    drop(producers);
    let unowned = ContextStack::pop().unwrap();
    gpu.attach();
    wrong(call.launch(&gpu, &there), "the stream's context");
    // And nothing is broken here.
    call.launch(&gpu, &here).unwrap();
    here.synchronize().unwrap();
    assert_eq!(first_difference(&expected, &call.outputs()), None);
    ContextStack::push(&unowned).unwrap();
    CurrentContext::synchronize().unwrap();
    drop(there);
    drop(other);
    gpu.attach();
}

/// Without a current context, and for a device whose context is not current.
#[test]
fn loading_needs_a_context() {
    let Some(_) = gpu() else { return };
    let result = std::thread::spawn(|| Producers::load(&Device::get_device(0).unwrap()).map(drop)).join().unwrap();
    assert_eq!(result, Err(Error::NoContext));
    if let Ok(second) = Device::get_device(1) {
        assert!(matches!(Producers::load(&second), Err(Error::ContextOfOtherDevice { got: 0, .. })));
    }
}

/// The safe path: `cust` buffers, no raw pointer; a larger scale buffer, whose end stays as it was.
#[test]
fn cust_buffers_and_a_larger_scale_buffer() {
    let Some(gpu) = gpu() else { return };
    let stream = stream();
    let (rows, dim) = (130, 80);
    let problem = Problem {
        call: adaptive_layernorm_producers::named::Call::new(Operator::AdaLayerNormQuantNvfp4SwizzledBf16)
            .with_recipe(Nvfp4Recipe::FlashRtSm120),
        rows,
        dim,
        chunks: 1,
        kind: Kind::Normal,
        seed: 8,
    };
    let inputs = problem.inputs();
    let bits = |name: &str| crate::support::bf16s(&inputs[name]).iter().map(|v| v.to_bits()).collect::<Vec<u16>>();
    let x = DeviceBuffer::from_slice(&bits("x")).unwrap();
    let (scale, shift) =
        (DeviceBuffer::from_slice(&bits("scale")).unwrap(), DeviceBuffer::from_slice(&bits("shift")).unwrap());
    let needed = 2 * 2 * 512;
    let mut packed = DeviceBuffer::from_slice(&vec![POISON; rows * dim / 2]).unwrap();
    let mut sf = DeviceBuffer::from_slice(&vec![POISON; needed * 16]).unwrap();
    let modulation = Broadcast { scale: &scale, shift: &shift };
    let sink = Nvfp4::new(Nvfp4Recipe::FlashRtSm120, &mut packed, &mut sf);
    let x = Matrix::new(&x, rows, dim);
    gpu.producers.ada_layer_norm_quant_nvfp4_swizzled_bf16(&stream, x, modulation, problem.call.eps, sink).unwrap();
    stream.synchronize().unwrap();
    let expected = problem.call.run(&Cpu, &inputs).unwrap();
    let (mut codes, mut scales) = (vec![0; rows * dim / 2], vec![0; needed * 16]);
    packed.copy_to(&mut codes).unwrap();
    sf.copy_to(&mut scales).unwrap();
    assert_eq!(codes, crate::support::bytes(&expected["packed"]));
    assert_eq!(&scales[..needed], crate::support::bytes(&expected["sf_swizzled"]));
    assert!(scales[needed..].iter().all(|byte| *byte == POISON), "bytes behind the layout were touched");
}

const POISON: u8 = 0x5a;

#[test]
fn misaligned_scale_buffers_are_refused() {
    let Some(gpu) = gpu() else { return };
    let (stream, memory) = (stream(), DeviceBuffer::<u8>::zeroed(1 << 16).unwrap());
    let base = memory.as_device_ptr().as_raw();
    let view = |at: u64, len| {
        // SAFETY: inside `memory`; the launch is refused.
        unsafe { adaptive_layernorm_producers::DeviceViewMut::<u8>::from_raw_parts(base + at, len) }
    };
    // SAFETY: as above.
    let x = unsafe { adaptive_layernorm_producers::DeviceView::from_raw_parts(base, 16) };
    let sink = Nvfp4::new(Nvfp4Recipe::FlashRtSm110, view(1024, 8), view(2049, 512));
    let result =
        gpu.producers.layer_norm_no_affine_quant_nvfp4_swizzled_bf16(&stream, Matrix::new(x, 1, 16), 1e-5, sink);
    assert!(matches!(result, Err(Error::Misaligned { operand: "sf_swizzled", expected: 4, .. })), "{result:?}");
}

/// Bytes of this process in memory.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn free_bytes() -> usize {
    cust::memory::mem_get_info().unwrap().0
}

/// A hundred thousand launches leave device memory and host memory as they were.
#[test]
fn launches_leak_nothing() {
    let Some(gpu) = gpu_alone() else { return };
    if sanitizer() {
        return say("SKIPPED launches_leak_nothing: compute-sanitizer keeps records of launches in memory");
    }
    let stream = stream();
    let problem = Problem { call: calls()[0], rows: 16, dim: 2048, chunks: 1, kind: Kind::Normal, seed: 1 };
    let call = DeviceCall::new(problem, &problem.inputs(), 0);
    let launch = |times| {
        (0..times).for_each(|_| call.launch(&gpu, &stream).unwrap());
        stream.synchronize().unwrap();
    };
    launch(1000);
    let (free, resident) = (free_bytes(), resident_bytes());
    launch(100_000);
    let (lost, grown) = (free.saturating_sub(free_bytes()), resident_bytes().saturating_sub(resident));
    // The driver and the allocator may round what they keep for themselves; a leak of 16 bytes a launch would show.
    assert!(lost < 1 << 20, "{lost} bytes of device memory less are free");
    assert!(grown < 1 << 20, "the process has grown by {grown} bytes");
}

/// Nor does loading the kernels and dropping them.
#[test]
fn loading_leaks_nothing() {
    let Some(_gpu) = gpu_alone() else { return };
    let device = Device::get_device(0).unwrap();
    let load = |times| (0..times).for_each(|_| drop(Producers::load(&device).unwrap()));
    load(3);
    let (free, resident) = (free_bytes(), resident_bytes());
    load(repeats(50));
    let (lost, grown) = (free.saturating_sub(free_bytes()), resident_bytes().saturating_sub(resident));
    // The unpacked image is 1 to 5 MB; the driver allocates code in pieces of 2 MB.
    assert!(lost < 8 << 20, "{lost} bytes of device memory less are free");
    assert!(grown < 32 << 20, "the process has grown by {grown} bytes");
}

/// Operands that were copied a moment ago are there when the kernel reads them, though the default stream is far behind.
#[test]
fn launches_wait_for_copies_to_the_device() {
    let Some(gpu) = gpu_alone() else { return };
    let bytes = 256 << 20;
    let from = DeviceBuffer::<u8>::zeroed(bytes).unwrap();
    let mut to = DeviceBuffer::<u8>::zeroed(bytes).unwrap();
    let problem = Problem { call: calls()[0], rows: 4, dim: 256, chunks: 1, kind: Kind::Normal, seed: 12 };
    let inputs = problem.inputs();
    let expected = problem.call.run(&Cpu, &inputs).unwrap();
    for _ in 0..3 {
        // 0.1 ms each on an H200, on the default stream.
        (0..200).for_each(|_| to.copy_from(&from).unwrap());
        let got = problem.call.run(&Staged::new(&gpu.producers).unwrap(), &inputs).unwrap();
        assert_eq!(first_difference(&expected, &got), None);
        (0..200).for_each(|_| to.copy_from(&from).unwrap());
        check(&gpu, &stream(), &problem, 0);
    }
}

/// Kernels, stream and buffers may be dropped in any order, with the launch still under way.
#[test]
fn drops_in_any_order() {
    let Some(gpu) = gpu() else { return };
    let device = Device::get_device(0).unwrap();
    let problem = Problem { call: calls()[0], rows: 2000, dim: 3072, chunks: 1, kind: Kind::Normal, seed: 13 };
    let inputs = problem.inputs();
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut producers = Some(Producers::load(&device).unwrap());
        let (mut on, mut call) = (Some(stream()), Some(DeviceCall::new(problem, &inputs, 0)));
        call.as_ref().unwrap().launch_with(producers.as_ref().unwrap(), on.as_ref().unwrap()).unwrap();
        for which in order {
            match which {
                0 => drop(producers.take()),
                1 => drop(on.take()),
                _ => drop(call.take()),
            }
        }
        cust::context::CurrentContext::synchronize().unwrap_or_else(|error| panic!("{order:?}: {error:?}"));
    }
    check(&gpu, &stream(), &problem, 0);
}
