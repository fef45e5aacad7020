//! Whole kernels as a compiler writes them.

mod support;

use half::bf16;
use ptx_vm::{FaultKind, Handle, Launch, LaunchError, Memory, Module, Report, Schedule};
use support::values::Random;
use support::{kind, parsed};

const FP8: &str = include_str!("fixtures/adaln_fp8.ptx");
const NVFP4: &str = include_str!("fixtures/adaln_nvfp4.ptx");
const DIM: usize = 3072;
const ACT_SCALE: f32 = 0.02;

/// bf16 values of a row-major tensor.
struct Inputs {
    x: Vec<f32>,
    scale: Vec<f32>,
    shift: Vec<f32>,
}

impl Inputs {
    fn new(rows: usize) -> Self {
        let mut random = Random(61);
        let mut uniform = |count: usize, width: f32| {
            let draw = |bits: u64| (f32::from(u16::try_from(bits >> 48).unwrap()) / 32768.0 - 1.0) * width;
            (0..count).map(|_| bf16::from_f32(draw(random.next())).to_f32()).collect::<Vec<f32>>()
        };
        Self { x: uniform(rows * DIM, 3.0), scale: uniform(DIM, 1.0), shift: uniform(DIM, 1.0) }
    }

    fn rows(&self) -> u32 {
        u32::try_from(self.x.len() / DIM).unwrap()
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| bf16::from_f32(*v).to_bits().to_le_bytes()).collect()
}

fn fp8(module: &Module, inputs: &Inputs, schedule: Schedule) -> (Result<Report, LaunchError>, Memory, Handle) {
    let mut memory = Memory::new();
    let [x, scale, shift] = [&inputs.x, &inputs.scale, &inputs.shift].map(|v| memory.input(bytes(v)));
    let act = memory.input(ACT_SCALE.to_le_bytes());
    let out = memory.output(inputs.x.len(), 0xEE);
    let launch = Launch::new(module, "adaln_fp8").grid(inputs.rows()).block(128).schedule(schedule);
    let launch = launch.arg(x).arg(scale).arg(shift).arg(act).arg(out).arg(3072u32).arg(1e-5f32).arg(inputs.rows());
    (launch.run(&mut memory), memory, out)
}

/// In f64, without the kernel's order of summation.
fn expected_fp8(inputs: &Inputs, row: usize, column: usize, statistics: (f64, f64)) -> u8 {
    let (mean, rstd) = statistics;
    let n = (f64::from(inputs.x[row * DIM + column]) - mean) * rstd;
    let v = bf16::from_f64(n * (1.0 + f64::from(inputs.scale[column])) + f64::from(inputs.shift[column])).to_f32();
    float8::F8E4M3::from_f32((v / ACT_SCALE).clamp(-448.0, 448.0)).to_bits()
}

fn statistics(row: &[f32]) -> (f64, f64) {
    let count = f64::from(u16::try_from(DIM).unwrap());
    let mean = row.iter().map(|v| f64::from(*v)).sum::<f64>() / count;
    let variance = row.iter().map(|v| (f64::from(*v) - mean).powi(2)).sum::<f64>() / count;
    (mean, 1.0 / (variance + 1e-5).sqrt())
}

#[test]
fn a_compiled_fp8_kernel_agrees_with_plain_arithmetic() {
    let module = parsed(FP8);
    let inputs = Inputs::new(4);
    let (report, memory, out) = fp8(&module, &inputs, Schedule::InOrder);
    let report = report.unwrap_or_else(|error| panic!("{error}"));
    memory.check_written(out).expect("every code");
    assert_eq!((report.barriers(), report.warp_operations()), (2 * 4, 2 * 5 * 4 * 4));
    assert!(report.lines_never_run().is_empty(), "{:?}", report.lines_never_run());
    let mut adjacent = 0;
    for (row, codes) in memory.bytes(out).chunks_exact(DIM).enumerate() {
        let statistics = statistics(&inputs.x[row * DIM..(row + 1) * DIM]);
        for (column, code) in codes.iter().enumerate() {
            let want = expected_fp8(&inputs, row, column, statistics);
            assert!(code.abs_diff(want) <= 1, "row {row}, column {column}: {code:#04x}, want {want:#04x}");
            adjacent += u32::from(*code != want);
        }
    }
    assert!(adjacent <= 4, "{adjacent} codes are adjacent to the expected ones");
}

#[test]
fn every_schedule_gives_the_same_bytes() {
    let module = parsed(FP8);
    let inputs = Inputs::new(2);
    let (_, first, out) = fp8(&module, &inputs, Schedule::InOrder);
    let mut schedules = vec![Schedule::Reversed, Schedule::RoundRobin];
    schedules.extend((0..6).map(Schedule::Random));
    for schedule in schedules {
        let (report, memory, again) = fp8(&module, &inputs, schedule);
        report.unwrap_or_else(|error| panic!("{schedule:?}: {error}"));
        assert_eq!(memory.bytes(again), first.bytes(out), "{schedule:?}");
    }
}

#[test]
fn a_dropped_barrier_is_caught_under_every_schedule() {
    let inputs = Inputs::new(1);
    for dropped in 0..FP8.matches("bar.sync").count() {
        let mut seen = 0;
        let lines = FP8.lines().filter(|line| {
            let barrier = line.contains("bar.sync");
            seen += usize::from(barrier);
            !(barrier && seen == dropped + 1)
        });
        let module = parsed(&lines.collect::<Vec<_>>().join("\n"));
        for schedule in [Schedule::InOrder, Schedule::Reversed, Schedule::RoundRobin, Schedule::Random(1)] {
            let found = kind(fp8(&module, &inputs, schedule).0);
            assert!(matches!(found, FaultKind::Race { .. } | FaultKind::UninitialisedRead { .. }), "{found:?}");
        }
    }
}

#[test]
fn a_compiled_nvfp4_kernel_runs() {
    let module = parsed(NVFP4);
    let inputs = Inputs::new(3);
    let mut memory = Memory::new();
    let [x, scale, shift] = [&inputs.x, &inputs.scale, &inputs.shift].map(|v| memory.input(bytes(v)));
    let (packed, scales) = (memory.output(inputs.x.len() / 2, 0xEE), memory.output(128 * DIM / 16, 0xEE));
    let launch = Launch::new(&module, "adaln_nvfp4").grid(inputs.rows()).block(128).arg(x).arg(scale).arg(shift);
    launch.arg(packed).arg(scales).arg(3072u32).arg(1e-5f32).run(&mut memory).unwrap_or_else(|error| panic!("{error}"));
    memory.check_written(packed).expect("every nibble");
    // This kernel writes the scale bytes of its three rows only.
    let written = 128 * DIM / 16 - memory.unwritten(scales).iter().map(ExactSizeIterator::len).sum::<usize>();
    assert_eq!(written, 3 * DIM / 16);
    // Every block of 16 has its largest code where the scale puts it: 6 or 7 (4 or 6 in value), never less.
    for block in memory.bytes(packed).chunks_exact(8) {
        let largest = block.iter().flat_map(|byte| [byte & 7, byte >> 4 & 7]).max();
        assert!(largest >= Some(6), "{block:02x?}");
    }
}
