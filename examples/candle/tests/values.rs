//! Values worked out by hand, on the CPU and, with the feature `cuda`, on a GPU if there is one (`ADALN_REQUIRE_GPU=1`: or fail).
use adaln_candle::{AdaLn, Sink, split};
use adaptive_layernorm_producers::Nvfp4Recipe;
use candle_core::{DType, Device, Result, Tensor};

fn devices() -> Vec<Device> {
    let gpu = Device::new_cuda(0);
    if let Err(why) = &gpu {
        let required = std::env::var_os("ADALN_REQUIRE_GPU").is_some_and(|value| value == "1");
        assert!(!required, "ADALN_REQUIRE_GPU=1, but there is no GPU: {why}");
        eprintln!("SKIPPED the GPU: {}", why.to_string().lines().next().unwrap_or_default());
    }
    [Ok(Device::Cpu), gpu].into_iter().flatten().collect()
}

/// Rows of -1, 1, -1, 1, ..: mean 0, variance 1.
fn alternating(shape: (usize, usize, usize), device: &Device) -> Result<Tensor> {
    let values = (0..shape.0 * shape.1 * shape.2).map(|i| if i % 2 == 0 { -1f32 } else { 1. });
    Tensor::from_iter(values, device)?.reshape(shape)?.to_dtype(DType::BF16)
}

fn bf16(value: f32, len: usize, device: &Device) -> Result<Tensor> {
    Tensor::full(value, len, device)?.to_dtype(DType::BF16)
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
        let y = y.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
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
        let y = y.to_dtype(DType::F32)?.flatten_all()?.to_vec1::<f32>()?;
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

#[test]
fn wrong_operands_are_refused() -> Result<()> {
    let device = Device::Cpu;
    let op = AdaLn::new(Sink::Nvfp4(Nvfp4Recipe::FlashRtSm120), 1e-5, &device)?;
    let (x, one) = (alternating((1, 2, 32), &device)?, bf16(1., 32, &device)?);
    let said = |result: Result<Tensor>| result.expect_err("refused").to_string();
    let short = said(x.apply_op3_no_bwd(&one, &bf16(1., 16, &device)?, &op));
    assert!(short.contains("operand shift has 16 elements, expected 32"), "{short}");
    let strided = said(x.transpose(1, 2)?.apply_op3_no_bwd(&one, &one, &op));
    assert!(strided.contains("x has strides, expected it contiguous"), "{strided}");
    let f32s = said(x.to_dtype(DType::F32)?.apply_op3_no_bwd(&one, &one, &op));
    assert!(f32s.contains("BF16") && f32s.contains("F32"), "{f32s}");
    Ok(())
}
