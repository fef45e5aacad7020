//! What goes wrong on the GPU: a typed error, and later calls that work or say why they cannot.
//!
//! Each test has a process of its own, since what it breaks stays broken there.
use crate::device_call::DeviceCall;
use crate::gpu::{gpu, sanitizer, say};
use crate::parity::stream;
use crate::support::random::{Kind, Problem};
use crate::support::{calls, first_difference};
use adaptive_layernorm_producers::{Cpu, DeviceView, DeviceViewMut, E4m3, Error, Matrix, Producers, Staged, bf16};
use cust::context::Context;
use cust::context::legacy::{Context as LegacyContext, ContextFlags};
use cust::device::Device;
use cust::error::CudaError;
use cust::memory::DeviceBuffer;
use std::mem::forget;
use std::process::Command;

/// Set in the process of its own.
const ALONE: &str = "ADALN_ALONE";

/// Whether this is the process of its own; starts it where there is a GPU, and fails if it failed.
fn alone() -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    if gpu().is_some() {
        let test = std::thread::current().name().unwrap().to_owned();
        let program = std::env::current_exe().unwrap();
        let run = Command::new(program).args(["--exact", &test, "--nocapture"]).env(ALONE, "1").output().unwrap();
        let text = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success() && text.contains("1 passed"), "{}: {text}", run.status);
    }
    false
}

fn device() -> Device {
    cust::init(cust::CudaFlags::empty()).unwrap();
    Device::get_device(0).unwrap()
}

fn problem() -> Problem {
    Problem { call: calls()[0], rows: 4, dim: 64, chunks: 1, kind: Kind::Normal, seed: 1 }
}

/// The kernels give the CPU's bytes.
fn works(producers: &Producers) {
    let (problem, inputs) = (problem(), problem().inputs());
    let got = problem.call.run(&Staged::new(producers).unwrap(), &inputs).unwrap();
    assert_eq!(first_difference(&problem.call.run(&Cpu, &inputs).unwrap(), &got), None);
}

/// A pointer to nothing: the launch is accepted, the wait fails, and from then on every call says what happened.
#[test]
fn an_illegal_address_fails_every_later_call() {
    if sanitizer() {
        say("SKIPPED an_illegal_address_fails_every_later_call: compute-sanitizer stops the access itself");
        return;
    }
    if !alone() {
        return;
    }
    let device = device();
    let _context = Context::new(device).unwrap();
    let producers = Producers::load(&device).unwrap();
    let stream = stream();
    let good = DeviceCall::new(problem(), &problem().inputs(), 0);
    let act_scale = DeviceBuffer::from_slice(&[1.0f32]).unwrap();
    // SAFETY: it is not safe: nothing lies at this address. The GPU faults, and only this process with it.
    let (x, out) = unsafe {
        (DeviceView::<bf16>::from_raw_parts(0x1000, 256), DeviceViewMut::<E4m3>::from_raw_parts(0x2000, 256))
    };
    let x = Matrix::new(x, 4, 64);
    producers.layer_norm_no_affine_quant_fp8_static_bf16(&stream, x, &act_scale, 1e-5, out).unwrap();
    assert_eq!(stream.synchronize(), Err(CudaError::IllegalAddress));
    let launched = good.launch_with(&producers, &stream);
    assert!(matches!(&launched, Err(Error::Driver { code: 700, .. })), "{launched:?}");
    let loaded = Producers::load(&device).map(drop).unwrap_err().to_string();
    assert!(loaded.contains("illegal memory access"), "{loaded}");
    // Nothing can be given back any more.
    forget((producers, stream, good, act_scale));
}

/// Kernels whose context was destroyed are refused; the next context works.
#[test]
fn a_destroyed_context_is_refused() {
    if !alone() {
        return;
    }
    let device = device();
    let doomed = LegacyContext::create_and_push(ContextFlags::SCHED_AUTO, device).unwrap();
    let producers = Producers::load(&device).unwrap();
    let (on, call) = (stream(), DeviceCall::new(problem(), &problem().inputs(), 0));
    works(&producers);
    drop(doomed);
    let result = call.launch_with(&producers, &on);
    assert!(matches!(result, Err(Error::WrongContext { .. } | Error::Driver { .. })), "{result:?}");
    // Their memory went with the context.
    forget((producers, on, call));
    let _context = Context::new(device).unwrap();
    works(&Producers::load(&device).unwrap());
}

/// The caller's share in the primary context may go before the kernels: the next one is the same context.
#[test]
fn kernels_keep_the_primary_context_alive() {
    if !alone() {
        return;
    }
    let device = device();
    let context = Context::new(device).unwrap();
    let producers = Producers::load(&device).unwrap();
    drop(context);
    works(&producers);
    let _context = Context::new(device).unwrap();
    works(&producers);
}
