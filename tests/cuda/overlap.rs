//! A launch begins while the one before ends: nothing that this one writes may be read early.
use crate::device_call::output_and_its_last_word;
use crate::gpu::{gpu_alone, repeats};
use crate::parity::stream;
use crate::support::random::{Kind, Random, values};
use adaptive_layernorm_producers::{Broadcast, Cpu, E4m3, Matrix, bf16};
use cust::memory::{CopyDestination, DeviceBuffer};

fn normal(len: usize, seed: u64) -> Vec<bf16> {
    values(Kind::Normal, len, len, &mut Random(seed)).into_iter().map(bf16::from_f32).collect()
}

fn upload(values: &[bf16]) -> DeviceBuffer<u16> {
    DeviceBuffer::from_slice(&values.iter().map(|v| v.to_bits()).collect::<Vec<_>>()).unwrap()
}

/// The first launch takes long (D is no multiple of 8, so it goes element by element, in eight blocks that are resident at once and let the
/// next launch start early) and writes last what the second has for its scale: four codes of 2.0, which are an f32 of 3.00392. Images that
/// read operands with `ld.global.nc` took the zero that stood there before, and gave codes of saturated values.
#[test]
fn a_launch_waits_for_the_scale_that_the_one_before_writes_last() {
    let Some(gpu) = gpu_alone() else { return };
    let (stream, eps) = (stream(), 1e-5);
    let (long_rows, long_dim) = (8, 262_146);
    let row = [-1.0, 1.0].map(|v| vec![bf16::from_f32(v); long_dim / 2]).concat();
    let (long_x, half) = (upload(&row.repeat(long_rows)), DeviceBuffer::from_slice(&[0.5f32]).unwrap());
    let mut long_out = DeviceBuffer::from_slice(&vec![0u8; long_rows * long_dim]).unwrap();
    let zeros = vec![0u8; long_rows * long_dim];

    let (rows, dim) = (64, 3072);
    let (x, scale, shift) = (normal(rows * dim, 1), normal(dim, 2), normal(dim, 3));
    let act_scale = [f32::from_bits(0x4040_4040)];
    let mut expected = vec![E4m3::default(); rows * dim];
    let modulation = Broadcast { scale: &scale, shift: &shift };
    Cpu.ada_layer_norm_quant_fp8_bf16(Matrix::new(&x, rows, dim), modulation, &act_scale, eps, &mut expected).unwrap();
    let expected: Vec<u8> = expected.into_iter().map(E4m3::to_bits).collect();
    let (x, scale, shift) = (upload(&x), upload(&scale), upload(&shift));
    let out = DeviceBuffer::from_slice(&vec![0u8; rows * dim]).unwrap();

    for repeat in 0..repeats(50) {
        long_out.copy_from(&zeros).unwrap();
        let (first, act_scale) = output_and_its_last_word(&long_out);
        let long = Matrix::new(&long_x, long_rows, long_dim);
        gpu.producers.layer_norm_no_affine_quant_fp8_static_bf16(&stream, long, &half, eps, first).unwrap();
        let (second, _) = output_and_its_last_word(&out);
        let modulation = Broadcast { scale: &scale, shift: &shift };
        let x = Matrix::new(&x, rows, dim);
        gpu.producers.ada_layer_norm_quant_fp8_bf16(&stream, x, modulation, act_scale, eps, second).unwrap();
        stream.synchronize().unwrap();
        let mut last = [0; 4];
        long_out.index(long_rows * long_dim - 4..).copy_to(&mut last).unwrap();
        assert_eq!(last, [0x40; 4], "the first launch's last codes");
        let mut got = vec![0; rows * dim];
        out.copy_to(&mut got).unwrap();
        let wrong = got.iter().zip(&expected).filter(|(got, expected)| got != expected).count();
        assert_eq!(wrong, 0, "of {} codes, in repeat {repeat}", got.len());
    }
}
