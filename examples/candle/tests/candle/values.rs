//! Values worked out by hand, views, and what is refused.
use crate::devices::devices;
use adaln_candle::{AdaLn, Sink, split};
use adaptive_layernorm_producers::Nvfp4Recipe;
use candle_core::{DType, Device, Result, Tensor};
use float8::F8E4M3;

/// Rows of -1, 1, -1, 1, ..: mean 0, variance 1.
fn alternating(shape: (usize, usize, usize), device: &Device) -> Result<Tensor> {
    let values = (0..shape.0 * shape.1 * shape.2).map(|i| if i % 2 == 0 { -1f32 } else { 1. });
    Tensor::from_iter(values, device)?.reshape(shape)?.to_dtype(DType::BF16)
}

fn bf16(value: f32, len: usize, device: &Device) -> Result<Tensor> {
    Tensor::full(value, len, device)?.to_dtype(DType::BF16)
}

/// Cast on the CPU: candle casts no F8E4M3 on a GPU.
fn numbers(y: &Tensor) -> Result<Vec<f32>> {
    y.to_device(&Device::Cpu)?.to_dtype(DType::F32)?.flatten_all()?.to_vec1()
}

#[test]
fn fp8() -> Result<()> {
    for device in devices() {
        let op = AdaLn::new(Sink::Fp8 { act_scale: Tensor::new(&[0.25f32], &device)? }, 1e-5, &device)?;
        let x = alternating((2, 3, 64), &device)?;
        let (scale, shift) = (bf16(1., 64, &device)?, bf16(0.5, 64, &device)?);
        let y = x.apply_op3_no_bwd(&scale, &shift, &op)?;
        assert_eq!((y.dtype(), y.dims()), (DType::F8E4M3, &[2, 3, 64][..]));
        // (±1 · (1 + 1) + 0.5) / 0.25
        let y = numbers(&y)?;
        assert!(y.iter().enumerate().all(|(i, y)| *y == if i % 2 == 0 { -6. } else { 10. }), "{device:?}: {y:?}");
    }
    Ok(())
}

/// Views into a larger tensor: rows 1 and 2 of x, scale and shift as chunks of one modulation.
#[test]
fn fp8_of_views() -> Result<()> {
    for device in devices() {
        let op =
            AdaLn::new(Sink::Fp8 { act_scale: Tensor::new(&[9f32, 0.5], &device)?.narrow(0, 1, 1)? }, 1e-5, &device)?;
        let x =
            Tensor::cat(&[alternating((1, 1, 32), &device)?.affine(0., 7.)?, alternating((1, 2, 32), &device)?], 1)?;
        let modulation = Tensor::cat(&[bf16(9., 32, &device)?, bf16(2., 32, &device)?, bf16(-1., 32, &device)?], 0)?;
        let (scale, shift) = (modulation.narrow(0, 32, 32)?, modulation.narrow(0, 64, 32)?);
        let y = x.narrow(1, 1, 2)?.apply_op3_no_bwd(&scale, &shift, &op)?;
        // (±1 · (1 + 2) - 1) / 0.5
        let y = numbers(&y)?;
        assert!(y.iter().enumerate().all(|(i, y)| *y == if i % 2 == 0 { -8. } else { 4. }), "{device:?}: {y:?}");
    }
    Ok(())
}

#[test]
fn nvfp4() -> Result<()> {
    for device in devices() {
        let op = AdaLn::new(Sink::Nvfp4(Nvfp4Recipe::FlashRtSm120), 1e-5, &device)?;
        let x = alternating((1, 2, 32), &device)?;
        let y = x.apply_op3_no_bwd(&bf16(2., 32, &device)?, &bf16(0., 32, &device)?, &op)?;
        assert_eq!(y.dims1()?, 2 * 16 + 512);
        // ±3 in every block: scale 3 / 6 = 0.5, which is e4m3 0x30; codes ±6 are 0xF and 0x7, the first in the low nibble.
        let (packed, sf) = split(&y, 2, 32)?;
        assert_eq!(packed.to_vec2::<u8>()?, [[0x7f; 16], [0x7f; 16]]);
        let sf = sf.to_vec1::<u8>()?;
        let set: Vec<usize> = (0..512).filter(|i| sf[*i] != 0).collect();
        assert_eq!((set, sf[0]), (vec![0, 1, 16, 17], 0x30)); // row r, block c at 16 r + c
    }
    Ok(())
}

/// What narrows to no rows has no bytes.
#[test]
fn no_rows() -> Result<()> {
    for device in devices() {
        let (x, one) = (alternating((1, 2, 32), &device)?.narrow(1, 0, 0)?, bf16(1., 32, &device)?);
        let fp8 = AdaLn::new(Sink::Fp8 { act_scale: Tensor::new(&[1f32], &device)? }, 1e-5, &device)?;
        let y = x.apply_op3_no_bwd(&one, &one, &fp8)?;
        assert_eq!((y.dims(), y.flatten_all()?.to_vec1::<F8E4M3>()?), (&[1, 0, 32][..], vec![]));
        let nvfp4 = AdaLn::new(Sink::Nvfp4(Nvfp4Recipe::TransformerEngine), 1e-5, &device)?;
        let y = x.apply_op3_no_bwd(&one, &one, &nvfp4)?;
        assert!(y.to_vec1::<u8>()?.is_empty());
    }
    Ok(())
}

/// Every call is refused with one sentence that names the operand, what was expected and what it is; the next call works.
#[test]
fn wrong_operands_are_refused() -> Result<()> {
    for device in devices() {
        let (x, one) = (alternating((1, 2, 32), &device)?, bf16(1., 32, &device)?);
        let act_scale = |values: &[f32]| Tensor::new(values, &device);
        let fp8 = |act_scale: Tensor| AdaLn::new(Sink::Fp8 { act_scale }, 1e-5, &device);
        let (fp8_op, nvfp4) =
            (fp8(act_scale(&[1.])?)?, AdaLn::new(Sink::Nvfp4(Nvfp4Recipe::FlashRtSm120), 1e-5, &device)?);
        let refused = |what: &str, x: &Tensor, scale: &Tensor, shift: &Tensor, op: &AdaLn| {
            let said = x.apply_op3_no_bwd(scale, shift, op).expect_err(what).to_string();
            let first = said.lines().next().unwrap_or_default();
            assert!(first.contains(what), "on {:?}: expected .. {what} .., got {said}", device.location());
        };
        for op in [&fp8_op, &nvfp4] {
            let short = bf16(1., 16, &device)?;
            refused("operand scale has 16 elements, expected 32", &x, &short, &one, op);
            refused("operand shift has 16 elements, expected 32", &x, &one, &short, op);
            let columns = Tensor::stack(&[&one, &one], 1)?.narrow(1, 1, 1)?;
            refused("operand scale has strides [2, 1], expected it contiguous", &x, &columns, &one, op);
            refused("operand x has strides [64, 1, 32], expected it contiguous", &x.transpose(1, 2)?, &one, &one, op);
            let half = &x.narrow(2, 16, 16)?;
            refused("operand x has strides [64, 32, 1], expected it contiguous", half, &short, &short, op);
            refused("operand x is F32, expected BF16", &x.to_dtype(DType::F32)?, &one, &one, op);
            refused("operand shift is F16, expected BF16", &x, &one, &one.to_dtype(DType::F16)?, op);
            // Copied to where it has no strides, and with operands that fit, it is taken.
            half.contiguous()?.apply_op3_no_bwd(&short, &short, op)?;
        }
        let (odd, column) = (alternating((1, 2, 31), &device)?, bf16(1., 31, &device)?);
        refused("expected an even number", &odd, &column, &column, &fp8_op);
        let (narrow, eight) = (alternating((1, 2, 8), &device)?, bf16(1., 8, &device)?);
        refused("expected a multiple of 16", &narrow, &eight, &eight, &nvfp4);
        let two = fp8(act_scale(&[1., 2.])?)?;
        refused("operand act_scale is a scalar, expected 1 element, got 2", &x, &one, &one, &two);
        let of_bf16 = fp8(bf16(1., 1, &device)?)?;
        refused("operand act_scale is BF16, expected F32", &x, &one, &one, &of_bf16);
    }
    Ok(())
}
