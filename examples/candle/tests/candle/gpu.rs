//! What only a GPU shows: the CPU's bytes, the order of candle's streams, and operands on the wrong side.
use crate::devices::gpus;
use adaln_candle::{AdaLn, Sink};
use adaptive_layernorm_producers::{Nvfp4Recipe, bf16};
use candle_core::{DType, Device, Result, Tensor};
use float8::F8E4M3;

const EPS: f32 = 1e-5;

fn fp8(device: &Device) -> Result<AdaLn> {
    AdaLn::new(Sink::Fp8 { act_scale: Tensor::new(&[0.025f32], device)? }, EPS, device)
}

/// Every operation, by name and with the smallest number that D is a multiple of.
fn operations(device: &Device) -> Result<Vec<(String, usize, AdaLn)>> {
    let mut all = vec![("fp8".to_owned(), 2, fp8(device)?)];
    for recipe in Nvfp4Recipe::ALL {
        all.push((format!("nvfp4 {recipe:?}"), 16, AdaLn::new(Sink::Nvfp4(recipe), EPS, device)?));
    }
    Ok(all)
}

/// Values of [-4, 4) in no order; what a seed gives is different from what others give.
fn values(seed: u32, len: usize) -> Vec<bf16> {
    let hash = |i: u32| i.wrapping_add(seed << 24).wrapping_mul(0x9e37_79b1) >> 16;
    (0..).take(len).map(|i| bf16::from_f32(hash(i) as f32 / 8192. - 4.)).collect()
}

/// A tensor whose first element is the storage's element `offset`.
fn tensor(values: &[bf16], offset: usize, shape: &[usize], device: &Device) -> Result<Tensor> {
    let all = [&vec![bf16::NAN; offset], values].concat();
    let len = all.len();
    Tensor::from_vec(all, len, device)?.narrow(0, offset, values.len())?.reshape(shape)
}

fn bytes(y: &Tensor) -> Result<Vec<u8>> {
    let y = y.flatten_all()?;
    if y.dtype() == DType::U8 {
        return y.to_vec1();
    }
    Ok(y.to_vec1::<F8E4M3>()?.into_iter().map(|code| code.to_bits()).collect())
}

/// Fails at the first byte that differs.
fn same(what: &str, of_gpu: &Tensor, of_cpu: &Tensor) -> Result<()> {
    assert_eq!((of_gpu.dtype(), of_gpu.dims()), (of_cpu.dtype(), of_cpu.dims()), "{what}");
    let (of_gpu, of_cpu) = (bytes(of_gpu)?, bytes(of_cpu)?);
    assert_eq!(of_gpu.len(), of_cpu.len(), "{what}");
    let first = of_gpu.iter().zip(&of_cpu).position(|(gpu, cpu)| gpu != cpu);
    assert!(first.is_none(), "{what}: byte {first:?} of {} differs", of_cpu.len());
    Ok(())
}

/// Shapes of one to four axes, few and many rows; operands at the start of their storage, and one element behind it, where no wide
/// access is aligned. The last row has a NaN.
#[test]
fn bytes_are_those_of_the_cpu() -> Result<()> {
    const SHAPES: [&[usize]; 8] =
        [&[16], &[1, 2], &[3, 66], &[2, 3, 80], &[130, 64], &[2, 2, 33, 1536], &[257, 4096], &[1, 2520, 3072]];
    for gpu in gpus() {
        let operations = operations(&gpu)?.into_iter().zip(operations(&Device::Cpu)?);
        for ((name, multiple, on_gpu), (.., on_cpu)) in operations {
            for (shape, offset) in SHAPES.iter().flat_map(|shape| [(shape, 0), (shape, 1)]) {
                let (len, dim) = (shape.iter().product(), shape[shape.len() - 1]);
                if dim % multiple != 0 {
                    continue;
                }
                let mut x = values(1, len);
                if len > dim {
                    x[len - 2] = bf16::NAN;
                }
                let (scale, shift) = (values(2, dim), values(3, dim));
                let run = |device: &Device, op: &AdaLn| {
                    let [scale, shift] = [&scale, &shift].map(|values| tensor(values, offset, &[dim], device));
                    tensor(&x, offset, shape, device)?.apply_op3_no_bwd(&scale?, &shift?, op)
                };
                let what = format!("{name} of {shape:?} at {offset}");
                same(&what, &run(&gpu, &on_gpu)?, &run(&Device::Cpu, &on_cpu)?)?;
            }
        }
    }
    Ok(())
}

/// Keeps a GPU's stream at work for about a millisecond, so that what is enqueued next is far from done when the host goes on.
fn keep_busy(device: &Device) -> Result<()> {
    if device.is_cuda() {
        let mut filler = Tensor::zeros(1 << 26, DType::F32, device)?;
        for _ in 0..8 {
            filler = filler.affine(1., 1.)?; // 0.5 GB of traffic
        }
    }
    Ok(())
}

/// x of step `step`, all of it integers below 2^8, which bf16 holds: cast and added by candle's kernels.
fn written(base: &Tensor, other: &Tensor, step: usize) -> Result<Tensor> {
    (base.affine(step as f64, 0.)? + other)?.to_dtype(DType::BF16)
}

fn integers(seed: u32, below: f32, shape: (usize, usize), device: &Device) -> Result<Tensor> {
    let values = values(seed, shape.0 * shape.1).into_iter().map(|value| (value.to_f32() / 4. * below).trunc());
    Tensor::from_iter(values.collect::<Vec<_>>(), device)?.reshape(shape)
}

/// x is written by candle's kernels just before, the result read by one just after, both freed in between; the host waits once.
///
/// The one that reads joins the result with itself by columns: no other kernel of candle 0.11 reads F8E4M3.
#[test]
fn operations_run_in_order_with_candles_own() -> Result<()> {
    const STEPS: usize = 16;
    let chain = |device: &Device| -> Result<Vec<Tensor>> {
        let shape = (512, 3072);
        let (base, other) = (integers(1, 8., shape, device)?, integers(2, 64., shape, device)?);
        let (scale, shift) =
            (tensor(&values(3, shape.1), 0, &[shape.1], device)?, tensor(&values(4, shape.1), 0, &[shape.1], device)?);
        let op = fp8(device)?;
        keep_busy(device)?;
        let step = |step| {
            let y = written(&base, &other, step)?.apply_op3_no_bwd(&scale, &shift, &op)?;
            Tensor::cat(&[&y, &y], 1)
        };
        (0..STEPS).map(step).collect()
    };
    let expected = chain(&Device::Cpu)?;
    for gpu in gpus() {
        chain(&gpu)?; // loads candle's kernels, which makes the host wait
        for (step, (of_gpu, of_cpu)) in chain(&gpu)?.iter().zip(&expected).enumerate() {
            same(&format!("step {step} on {gpu:?}"), of_gpu, of_cpu)?;
        }
    }
    Ok(())
}

/// The same storage holds one x, then another: each launch reads the one that was there.
#[test]
fn x_is_overwritten_between_two_launches() -> Result<()> {
    let (rows, dim) = (1024, 3072);
    let run = |device: &Device| -> Result<[Tensor; 2]> {
        let x = tensor(&values(1, rows * dim), 0, &[rows, dim], device)?;
        let next = tensor(&values(2, rows * dim), 0, &[rows, dim], device)?;
        let one = tensor(&values(3, dim), 0, &[dim], device)?;
        let op = fp8(device)?;
        keep_busy(device)?;
        let first = x.apply_op3_no_bwd(&one, &one, &op)?;
        x.slice_set(&next, 0, 0)?;
        Ok([first, x.apply_op3_no_bwd(&one, &one, &op)?])
    };
    let [first, second] = run(&Device::Cpu)?;
    for gpu in gpus() {
        run(&gpu)?; // loads candle's kernels, which makes the host wait
        let of_gpu = run(&gpu)?;
        same("before", &of_gpu[0], &first)?;
        same("after", &of_gpu[1], &second)?;
    }
    Ok(())
}

/// candle takes tensors of two streams of one GPU for tensors of one device, but does not order work on them.
#[test]
fn operands_of_another_stream_are_refused() -> Result<()> {
    let gpus = gpus();
    for (here, there) in gpus.iter().zip(gpus.iter().rev()) {
        let on = |device: &Device| tensor(&values(1, 64), 0, &[64], device);
        let (one, elsewhere, op) = (on(here)?, on(there)?, fp8(here)?);
        refused("operand scale is on another GPU or stream than x", &one, &elsewhere, &one, &op);
        refused("operand shift is on another GPU or stream than x", &one, &one, &elsewhere, &op);
        refused("operand act_scale is on another GPU or stream than x", &one, &one, &one, &fp8(there)?);
    }
    Ok(())
}

fn refused(what: &str, x: &Tensor, scale: &Tensor, shift: &Tensor, op: &AdaLn) {
    let said = x.apply_op3_no_bwd(scale, shift, op).expect_err(what).to_string();
    assert!(said.lines().next().unwrap_or_default().contains(what), "expected .. {what} .., got {said}");
}

/// Every mixture of CPU and GPU has a sentence, from candle or from the operation.
#[test]
fn operands_on_the_wrong_device_are_refused() -> Result<()> {
    for gpu in gpus() {
        let on = |device: &Device| -> Result<[Tensor; 2]> {
            Ok([tensor(&values(1, 4 * 64), 0, &[4, 64], device)?, tensor(&values(2, 64), 0, &[64], device)?])
        };
        let ([x, one], [x_on_cpu, one_on_cpu]) = (on(&gpu)?, on(&Device::Cpu)?);
        let (op, op_of_cpu) = (fp8(&gpu)?, fp8(&Device::Cpu)?);
        refused("device mismatch", &x, &one_on_cpu, &one, &op);
        refused("device mismatch", &x, &one, &one_on_cpu, &op);
        refused("device mismatch", &x_on_cpu, &one, &one, &op_of_cpu);
        refused("AdaLn was made for the CPU, and x is on a GPU", &x, &one, &one, &op_of_cpu);
        refused("act_scale is on a GPU, expected the CPU", &x_on_cpu, &one_on_cpu, &one_on_cpu, &op);
        let act_scale = Tensor::new(&[1f32], &Device::Cpu)?;
        let op_with_scale_on_cpu = AdaLn::new(Sink::Fp8 { act_scale }, EPS, &gpu)?;
        refused("act_scale is on the CPU, expected the GPU", &x, &one, &one, &op_with_scale_on_cpu);
        let (of_gpu, of_cpu) =
            (x.apply_op3_no_bwd(&one, &one, &op)?, x_on_cpu.apply_op3_no_bwd(&one_on_cpu, &one_on_cpu, &op_of_cpu)?);
        same("after refusals", &of_gpu, &of_cpu)?;
    }
    Ok(())
}
