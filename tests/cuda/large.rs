//! Sizes past 2^31 elements.
use crate::gpu::{gpu_alone, sanitizer, say};
use crate::parity::stream;
use crate::support::random::{Kind, Problem, Random, values};
use adaptive_layernorm_producers::named::{Call, Tensor};
use adaptive_layernorm_producers::{Broadcast, Cpu, Matrix, Nvfp4, Nvfp4Recipe, Operator};
use cust::memory::{CopyDestination, DeviceBuffer};
use half::bf16;

/// Distinct rows; the matrix repeats them. A prime, so that a wrong row shows.
const PATTERN: usize = 997;

/// Item 16 of the field reports: 700,000 x 3072 is 2.15e9 elements. Every row is compared with the row of the pattern it repeats.
#[test]
fn more_than_2_to_the_31_elements() {
    let Some(gpu) = gpu_alone() else { return };
    if sanitizer() {
        say(
            "SKIPPED more_than_2_to_the_31_elements: compute-sanitizer needs hours and shadow memory for 6 billion accesses",
        );
        return;
    }
    let (rows, dim) = (700_000, 3072);
    let (free, _) = cust::memory::mem_get_info().unwrap();
    if free < 12 << 30 {
        say(&format!(
            "SKIPPED more_than_2_to_the_31_elements: needs 12 GiB of free device memory, there are {free} bytes"
        ));
        return;
    }
    let stream = stream();
    let pattern: Vec<bf16> =
        values(Kind::Normal, PATTERN * dim, dim, &mut Random(16)).into_iter().map(bf16::from_f32).collect();
    let bits: Vec<u16> = pattern.iter().map(|v| v.to_bits()).collect();
    // SAFETY: written completely by the loop below before anything reads it.
    let x = unsafe { DeviceBuffer::<u16>::uninitialized(rows * dim) }.unwrap();
    for first in (0..rows).step_by(PATTERN) {
        let count = PATTERN.min(rows - first) * dim;
        x.index(first * dim..first * dim + count).copy_from(&bits[..count]).unwrap();
    }
    let problem = Problem {
        call: Call::new(Operator::AdaLayerNormQuantFp8Bf16),
        rows: PATTERN,
        dim,
        chunks: 1,
        kind: Kind::Normal,
        seed: 1,
    };
    let mut inputs = problem.inputs();
    inputs.insert("x".into(), Tensor::new([PATTERN, dim], pattern));
    let device_bits = |name: &str| {
        let bits: Vec<u16> = crate::support::bf16s(&inputs[name]).iter().map(|v| v.to_bits()).collect();
        DeviceBuffer::from_slice(&bits).unwrap()
    };
    let (scale, shift) = (device_bits("scale"), device_bits("shift"));
    let modulation = Broadcast { scale: &scale, shift: &shift };
    let act_scale = DeviceBuffer::from_slice(&[0.02f32]).unwrap();
    inputs.insert("act_scale".into(), Tensor::new([1], vec![0.02f32]));

    let mut out = DeviceBuffer::<u8>::zeroed(rows * dim).unwrap();
    let matrix = Matrix::new(&x, rows, dim);
    gpu.producers
        .ada_layer_norm_quant_fp8_bf16(&stream, matrix, modulation, &act_scale, problem.call.eps, &mut out)
        .unwrap();
    stream.synchronize().unwrap();
    let expected = problem.call.run(&Cpu, &inputs).unwrap();
    repeats(&out, rows, dim, &expected["out"].data.to_le_bytes());
    drop(out);

    let call = Call { operator: Operator::AdaLayerNormQuantNvfp4SwizzledBf16, ..problem.call }
        .with_recipe(Nvfp4Recipe::FlashRtSm110);
    let mut packed = DeviceBuffer::<u8>::zeroed(rows * dim / 2).unwrap();
    let size = adaptive_layernorm_producers::formats::swizzled_sf_size(rows as u32, dim as u32).unwrap();
    let mut sf = DeviceBuffer::<u8>::zeroed(size).unwrap();
    let sink = Nvfp4::new(Nvfp4Recipe::FlashRtSm110, &mut packed, &mut sf);
    gpu.producers
        .ada_layer_norm_quant_nvfp4_swizzled_bf16(&stream, Matrix::new(&x, rows, dim), modulation, call.eps, sink)
        .unwrap();
    stream.synchronize().unwrap();
    let expected = call.run(&Cpu, &inputs).unwrap();
    repeats(&packed, rows, dim / 2, crate::support::bytes(&expected["packed"]));
    let mut scales = vec![0; size];
    sf.copy_to(&mut scales).unwrap();
    let offset = adaptive_layernorm_producers::formats::scale_layout::offset;
    for row in (0..rows as u32).step_by(101).chain(rows as u32 - 200..rows as u32) {
        for column in 0..dim as u32 / 16 {
            let at = offset(row % PATTERN as u32, column, dim as u32) as usize;
            let expected = crate::support::bytes(&expected["sf_swizzled"])[at];
            assert_eq!(
                scales[offset(row, column, dim as u32) as usize],
                expected,
                "scale of row {row}, column {column}"
            );
        }
    }
}

/// Every row of the output is the row of the pattern.
fn repeats(out: &DeviceBuffer<u8>, rows: usize, bytes: usize, pattern: &[u8]) {
    let mut got = vec![0; PATTERN * bytes];
    for first in (0..rows).step_by(PATTERN) {
        let count = PATTERN.min(rows - first) * bytes;
        out.index(first * bytes..first * bytes + count).copy_to(&mut got[..count]).unwrap();
        assert!(got[..count] == pattern[..count], "rows {first} to {}", first + count / bytes);
    }
}
