//! Launches on `cudarc` memory and a `cudarc` stream.
//!
//! `cargo run --release --features cudarc --example cudarc`; needs a GPU.
use adaptive_layernorm_producers::{Broadcast, Matrix, Producers, lend, lend_mut};
use cudarc::driver::CudaContext;
use std::error::Error;

const ROWS: usize = 64;
const DIM: usize = 3072;

fn main() -> Result<(), Box<dyn Error>> {
    let context = CudaContext::new(0)?;
    let producers = Producers::load_cudarc(&context)?;
    let stream = context.new_stream()?;

    // bf16 1.0 is 0x3F80, -1.0 is 0xBF80: every row alternates, so it is its own normalised value.
    let row = |i: usize| if i.is_multiple_of(2) { 0x3f80u16 } else { 0xbf80 };
    let x = stream.clone_htod(&(0..ROWS * DIM).map(row).collect::<Vec<_>>())?;
    let (scale, shift) = (stream.alloc_zeros::<u16>(DIM)?, stream.alloc_zeros::<u16>(DIM)?);
    let mut out = stream.alloc_zeros::<u8>(ROWS * DIM)?;

    for value in [1.0f32, 0.5, 0.25] {
        let act_scale = stream.clone_htod(&[value])?;
        // Lending orders the launch against other streams that use the same memory.
        let modulation = Broadcast { scale: &lend(&scale, &stream), shift: &lend(&shift, &stream) };
        producers.ada_layer_norm_quant_fp8_bf16(
            &stream,
            Matrix::new(&lend(&x, &stream), ROWS, DIM),
            modulation,
            &lend(&act_scale, &stream),
            1e-5,
            &mut lend_mut(&mut out, &stream),
        )?;
        let codes = stream.clone_dtoh(&out)?;
        println!("act_scale {value}: codes {:#04x} {:#04x}", codes[0], codes[1]);
    }
    Ok(())
}
