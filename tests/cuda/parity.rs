//! CPU bytes and GPU bytes are the same.
use crate::device_call::DeviceCall;
use crate::gpu::{Gpu, gpu, repeats, sanitizer, say, some};
use crate::support::golden::{self, RECORDED};
use crate::support::random::{Kind, Problem, Random};
use crate::support::{ORIGINAL, calls, cases, first_difference, recordings_are_left_out};
use adaptive_layernorm_producers::contract::geometry::{self, Request};
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::operator::{ModulationKind, SinkKind};
use adaptive_layernorm_producers::{Cpu, Nvfp4Recipe, Operator};
use cust::stream::{Stream, StreamFlags};

/// A stream that waits for the default stream, where the copies of the operands go.
pub fn stream() -> Stream {
    Stream::new(StreamFlags::DEFAULT, None).unwrap()
}

/// Runs a problem on both and compares.
pub fn check(gpu: &Gpu, stream: &Stream, problem: &Problem, offset: usize) {
    check_inputs(gpu, stream, problem, &problem.inputs(), offset);
}

fn check_inputs(gpu: &Gpu, stream: &Stream, problem: &Problem, inputs: &Tensors, offset: usize) -> Tensors {
    let expected = problem.call.run(&Cpu, inputs).unwrap();
    let call = DeviceCall::new(*problem, inputs, offset);
    call.launch(gpu, stream).unwrap();
    stream.synchronize().unwrap_or_else(|error| panic!("{problem:?} at offset {offset}: {error:?}"));
    let got = call.outputs();
    if let Some(difference) = first_difference(&expected, &got) {
        panic!("{problem:?} at offset {offset}: {difference}");
    }
    got
}

/// Every recorded output of the original: equal to the CPU, and in agreement with the record.
#[test]
fn golden_cases() {
    let Some(gpu) = gpu() else { return };
    if recordings_are_left_out() {
        return;
    }
    let stream = stream();
    for case in cases(ORIGINAL) {
        for recorded in &RECORDED {
            let suffix = if recorded.recipe.is_some() { ".packed" } else { "" };
            if case.tensors.contains_key(&format!("out.{}{suffix}", recorded.output)) {
                let (call, inputs) = (golden::call(&case, recorded), golden::inputs(&case, recorded));
                let (rows, dim, chunks) = (case.fact("rows"), case.fact("dim"), case.fact("chunks"));
                let problem = Problem { call, rows, dim, chunks, kind: Kind::Normal, seed: 0 };
                let outputs = check_inputs(&gpu, &stream, &problem, &inputs, 0);
                golden::check(&format!("cuda {} {}", case.name, recorded.output), &case, recorded, &outputs);
            }
        }
    }
    for case in cases("te_nvfp4_golden.safetensors") {
        let operator = Operator::AdaLayerNormQuantNvfp4SwizzledBf16;
        let call = Call { eps: case.fact("eps"), ..Call::new(operator) }.with_recipe(Nvfp4Recipe::TransformerEngine);
        let input = |name: &str| (name.to_owned(), case.tensor(&format!("in.{name}")).clone());
        let inputs: Tensors = ["x", "scale", "shift", "global_scale"].map(input).into();
        let problem =
            Problem { call, rows: case.fact("rows"), dim: case.fact("dim"), chunks: 1, kind: Kind::Normal, seed: 0 };
        check_inputs(&gpu, &stream, &problem, &inputs, 0);
    }
}

/// The shapes of the original package's benchmark.
#[test]
fn seed_shapes() {
    let Some(gpu) = gpu() else { return };
    let stream = stream();
    for call in calls() {
        let shapes: &[(usize, usize)] = match call.operator.modulation() {
            ModulationKind::SixWay => &[(51, 1536), (2520, 3072), (5070, 3072)],
            _ => &[(16, 2048), (64, 3072), (256, 3072), (2520, 3072), (4096, 3072)],
        };
        for (rows, dim) in shapes.iter().filter(|(rows, _)| *rows < 100 || !sanitizer()) {
            check(&gpu, &stream, &Problem { call, rows: *rows, dim: *dim, chunks: 2, kind: Kind::Normal, seed: 5 }, 0);
        }
    }
}

/// D at every edge of the sum tree and of the shape classes, for few and for many rows.
#[test]
fn every_shape_class() {
    let Some(gpu) = gpu() else { return };
    let stream = stream();
    let mut random = Random(11);
    let dims = [
        2, 6, 8, 14, 16, 24, 30, 32, 48, 64, 80, 128, 136, 240, 256, 272, 512, 752, 768, 784, 1000, 1152, 1536, 1552,
        2048, 3072, 3088, 3584, 4096, 5120, 5376, 6144, 6160, 8192, 8208, 10_240, 12_288, 12_304, 16_384, 16_400,
        20_000, 65_536,
    ];
    for call in calls() {
        let divisor = call.operator.dim_divisor() as usize;
        for dim in some(dims.into_iter().filter(|dim| *dim % divisor == 0)) {
            for rows in [1, 3, 130] {
                let rows = if dim > 8192 { rows.min(3) } else { rows };
                let kind = random.pick(&Kind::ALL);
                check(&gpu, &stream, &Problem { call, rows, dim, chunks: 3, kind, seed: random.bits() }, 0);
            }
        }
        // Thousands of rows each.
        let full: &[usize] =
            if sanitizer() { &[] } else { &[16, 128, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192] };
        // Where the last chunks of some threads are missing, a class of pairs each.
        let partial: &[usize] = match (call.operator.has_pairs(), sanitizer()) {
            (false, _) => &[],
            (true, false) => &[784, 1168, 1808, 2576, 3600, 5136, 7184],
            (true, true) => &[1168, 2576],
        };
        // Half a pair: streams of an operator whose other many rows run in pairs, a class each.
        let streamed = call.operator.has_streams() && call.operator.has_pairs() && !sanitizer();
        let half: &[usize] = if streamed { &[776, 1032, 1544, 2056, 3080, 4104, 6152] } else { &[] };
        for dim in full.iter().chain(partial).chain(half).copied().filter(|dim| *dim % divisor == 0) {
            for rows in many_rows(&call, dim as u32, gpu.producers.image().capability()) {
                let (rows, seed) = (rows as usize, random.bits());
                check(&gpu, &stream, &Problem { call, rows, dim, chunks: 2, kind: Kind::Normal, seed }, 0);
            }
        }
    }
}

/// So many rows that on any GPU up to 132 multiprocessors each team walks over several, so many that its threads stand for pairs of lanes, so
/// many that blocks stay, and a few more; 2000 where none is.
fn many_rows(call: &Call, dim: u32, capability: (u32, u32)) -> Vec<u32> {
    let kind = |rows| {
        let request = Request {
            nvfp4: call.operator.sink() == SinkKind::Nvfp4,
            streams: call.operator.has_streams(),
            rows,
            dim,
            aligned: true,
            pairs: call.operator.uses_pairs(capability) && dim.is_multiple_of(16),
            residents: call.operator.has_residents(),
            multiprocessors: 132,
        };
        geometry::choose(&request).shape.kind
    };
    let first = |of| (1..17).map(|power| 1 << power).find(|rows| kind(*rows) == of);
    let kinds = [geometry::Kind::Stream, geometry::Kind::Pairs, geometry::Kind::Resident];
    let many: Vec<u32> = kinds.into_iter().filter_map(first).collect();
    if many.is_empty() { vec![2077] } else { many.into_iter().map(|rows| rows + 77).collect() }
}

/// A fresh seed each time, printed: `ADALN_SEED` repeats, `ADALN_CASES` prolongs.
#[test]
fn random_problems() {
    let Some(gpu) = gpu() else { return };
    let stream = stream();
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = number("ADALN_SEED").unwrap_or(now.as_nanos() as u64);
    let cases = number("ADALN_CASES").unwrap_or(repeats(2000));
    say(&format!("random_problems: ADALN_SEED={seed} ADALN_CASES={cases}"));
    let mut random = Random(seed);
    for _ in 0..cases {
        let (rows, dim) =
            random.pick(some([(300, 300), (40, 4000), (4, 20_000), (2000, 64)]).collect::<Vec<_>>().as_slice());
        let problem = Problem::random(&mut random, rows, dim);
        let offset = random.pick(&[0, 0, 0, 1, 2, 3, 4, 5]);
        check(&gpu, &stream, &problem, offset);
    }
}

/// Operands that are aligned to their element and no more.
#[test]
fn odd_offsets() {
    let Some(gpu) = gpu() else { return };
    let stream = stream();
    for call in calls() {
        for (rows, dim) in [(5, 64), (3, 1024), (130, 272), (2, 3072)] {
            for offset in some([1, 2, 3, 4, 5, 8]) {
                check(&gpu, &stream, &Problem { call, rows, dim, chunks: 2, kind: Kind::Wide, seed: 9 }, offset);
            }
        }
    }
}

#[test]
fn special_values() {
    let Some(gpu) = gpu() else { return };
    let stream = stream();
    let mut random = Random(31);
    for call in calls() {
        for kind in Kind::ALL {
            for dim in some([16, 80, 768, 3072, 8208]) {
                for rows in [1, 7] {
                    check(&gpu, &stream, &Problem { call, rows, dim, chunks: 2, kind, seed: random.bits() }, 0);
                }
            }
        }
    }
}

/// Every bf16 as an element of a row, so that every magnitude meets every conversion.
#[test]
fn every_value() {
    let Some(gpu) = gpu() else { return };
    let stream = stream();
    for call in calls() {
        for seed in 0..repeats(20) {
            check(&gpu, &stream, &Problem { call, rows: 64, dim: 1024, chunks: 2, kind: Kind::Bits, seed }, 0);
            check(&gpu, &stream, &Problem { call, rows: 64, dim: 1024, chunks: 2, kind: Kind::Wide, seed }, 0);
        }
    }
}

#[test]
fn no_rows() {
    let Some(gpu) = gpu() else { return };
    let stream = stream();
    for call in calls() {
        check(&gpu, &stream, &Problem { call, rows: 0, dim: 64, chunks: 2, kind: Kind::Normal, seed: 1 }, 0);
    }
}
