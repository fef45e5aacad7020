//! The project's kernels for every target, against the reference, byte for byte.
//!
//! Every output byte must be written, none twice with two values; inputs are read-only and lie on the alignment that an entry asks
//! for and on no better one; every launch that fits a shape must give the same bytes.

mod kernels;

use adaln_vm::images::TARGETS;
use adaln_vm::launches::{Alignment, stem};
use adaptive_layernorm_producers::Operator;
use adaptive_layernorm_producers::contract::geometry::{Kind as ShapeKind, SHAPES};
use adaptive_layernorm_producers::named::{Call, Data, Tensors};
use kernels::support::random::{Kind, Problem, Random};
use kernels::support::{calls, tries};
use kernels::{Case, module, problem_launches, sharp};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use ptx_vm::Schedule;
use rayon::prelude::*;
use std::collections::BTreeSet;

/// Runs problems on targets, in parallel; says how many launches that were.
fn check(problems: &[Problem], targets: &[&str]) -> usize {
    check_aligned(problems, targets, &Alignment::ALL)
}

fn check_aligned(problems: &[Problem], targets: &[&str], alignments: &[Alignment]) -> usize {
    let total = problems.par_iter().map(|problem| {
        let case = Case::new(*problem);
        let schedule = Schedule::Random(problem.seed);
        let run =
            |target: &&str| case.run_all(&module(target), alignments, schedule).unwrap_or_else(|what| panic!("{what}"));
        targets.par_iter().map(run).sum::<usize>()
    });
    total.sum()
}

/// The largest D of each class of shapes, or one that leaves lanes without a chunk, or without a pair of chunks.
fn edges(call: Call, full: bool) -> impl Iterator<Item = usize> {
    let step = if call.operator.has_pairs() { 16 } else { usize::max(8, call.operator.dim_divisor() as usize) };
    let classes = [16, 32, 64, 128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 10_240, 12_288, 16_384];
    classes.into_iter().map(move |last: usize| if full { last } else { (last - step).max(step) })
}

#[test]
fn every_image_has_every_entry() {
    let of_call = |call: Call| -> Vec<String> {
        let shapes: Vec<&str> = match call.operator {
            Operator::AdalnModulation6Bf16 => vec!["aligned", "any"],
            _ => SHAPES
                .iter()
                .filter(|s| s.kind != ShapeKind::Stream || call.operator.has_streams())
                .filter(|s| s.kind != ShapeKind::Pairs || call.operator.has_pairs())
                // Where blocks stay, pairs are for rows of eight warps of single lanes.
                .filter(|s| s.kind != ShapeKind::Pairs || !call.operator.has_residents() || s.warps == 4)
                .filter(|s| s.kind != ShapeKind::Resident || call.operator.has_residents())
                .map(|s| s.name)
                .collect(),
        };
        shapes.into_iter().map(|shape| format!("{}__{shape}", stem(&call))).collect()
    };
    let expected: BTreeSet<String> = calls().into_iter().flat_map(of_call).collect();
    for target in TARGETS {
        let module = module(target);
        assert_eq!(module.target(), target);
        let entries: BTreeSet<String> = module.entries().map(|entry| entry.name).collect();
        assert_eq!(entries, expected, "{target}");
    }
}

/// Every entry of every target, at an edge of its class. NVFP4 pads 127 rows, so its larger classes run on one target each.
#[test]
fn every_entry() {
    let mut ran = BTreeSet::new();
    let mut count = 0;
    for (number, call) in calls().into_iter().enumerate() {
        let nvfp4 = call.recipe.is_some();
        for (index, dim) in edges(call, number % 2 == 0).enumerate() {
            let problem = Problem { call, rows: 1, dim, chunks: 2, kind: Kind::Outlier, seed: dim as u64 };
            let one = [TARGETS[(number + index) % TARGETS.len()]];
            let targets: &[&str] = if nvfp4 && dim > 1024 { &one } else { &TARGETS };
            let wide = [Alignment::Vector, Alignment::Pairs];
            let alignments: &[Alignment] = if dim > 512 { &wide } else { &Alignment::ALL };
            count += check_aligned(&[problem], targets, alignments);
            for alignment in alignments {
                ran.extend(problem_launches(&problem, *alignment).into_iter().map(|launch| launch.name));
            }
        }
    }
    let module = module("sm_90");
    let all = module.entries().map(|entry| entry.name);
    let missing: Vec<String> = all.filter(|name| !ran.contains(name)).collect();
    assert!(missing.is_empty(), "entries never run: {missing:?}");
    println!("every_entry: {count} launches");
}

/// The shapes of field reports.
#[test]
fn shapes_of_field_reports() {
    let mut random = Random(17);
    let mut problems = Vec::new();
    for call in calls() {
        let divisor = call.operator.dim_divisor() as usize;
        for dim in [2, 6, 14, 16, 30, 48, 80, 256, 272, 1000, 1152, 1536, 2048, 3072] {
            let rows: &[usize] = match dim {
                ..=48 => &[1, 3, 129],
                49..=272 => &[1, 3],
                _ => &[2],
            };
            for rows in rows.iter().filter(|_| dim % divisor == 0) {
                let kind = random.pick(&Kind::ALL);
                problems.push(Problem { call, rows: *rows, dim, chunks: 3, kind, seed: random.bits() });
            }
        }
    }
    println!("shapes_of_field_reports: {} launches", check(&problems, &TARGETS));
}

/// NaN, infinities, zeros of both signs, subnormals, any bits, constant rows.
#[test]
fn special_values() {
    let mut random = Random(31);
    let mut problems = Vec::new();
    for call in calls() {
        for kind in [Kind::Specials, Kind::Bits, Kind::Integers, Kind::Constant, Kind::Wide] {
            for dim in [16, 80, 528] {
                problems.push(Problem { call, rows: 5, dim, chunks: 2, kind, seed: random.bits() });
            }
        }
    }
    println!("special_values: {} launches", check(&problems, &TARGETS));
}

/// Inputs that make the last bit of an intermediate, and every tie between two codes, visible.
#[test]
fn last_bits_and_ties() {
    for call in calls() {
        for (dim, alignment) in
            [(128, Alignment::Vector), (256, Alignment::Vector), (496, Alignment::Vector), (784, Alignment::Pairs)]
        {
            let cases = sharp::cases(call, 2, dim, 6);
            cases.par_iter().for_each(|case| {
                for target in TARGETS {
                    let run = case.run_all(&module(target), &[alignment], Schedule::InOrder);
                    run.unwrap_or_else(|what| panic!("{what}"));
                }
            });
        }
    }
}

/// Rows, modulations and scalars that are all zero, of either sign.
#[test]
fn zeros() {
    let zero = |sign: f32, tensors: &mut Tensors| {
        for tensor in tensors.values_mut() {
            match &mut tensor.data {
                Data::Bf16(data) => data.fill(half::bf16::from_f32(sign)),
                Data::F32(data) => data.fill(sign),
                Data::E4m3(data) => data.fill(adaptive_layernorm_producers::E4m3::from_f32(sign)),
                Data::U8(_) => {}
            }
        }
    };
    for call in calls() {
        for (sign, eps) in [(0.0, 1e-5), (-0.0, 1e-5), (0.0, 0.0)] {
            let call = Call { eps, ..call };
            let problem = Problem { call, rows: 2, dim: 64, chunks: 2, kind: Kind::Normal, seed: 1 };
            let mut inputs = problem.inputs();
            zero(sign, &mut inputs);
            let case = Case::with_inputs(problem, inputs);
            for target in TARGETS {
                case.run_all(&module(target), &Alignment::ALL, Schedule::RoundRobin)
                    .unwrap_or_else(|what| panic!("{what}"));
            }
        }
    }
}

/// Several rows a team, in streams and in blocks that stay.
#[test]
fn walking_teams() {
    let mut problems = Vec::new();
    let mut staying = Vec::new();
    for call in calls().into_iter().filter(|call| call.operator.has_residents()) {
        // Four teams, so three turns and one more row; and rows to 128 that only pad.
        for dim in [784, 1168, 1808, 2576, 3600, 5136, 7184] {
            staying.push(Problem { call, rows: 13, dim, chunks: 2, kind: Kind::Wide, seed: 78 });
        }
    }
    let targets = |index: usize| [TARGETS[index % TARGETS.len()]];
    let stayed = staying.iter().enumerate().map(|(i, p)| check_aligned(&[*p], &targets(i), &[Alignment::Pairs]));
    println!("walking_teams: {} launches of blocks that stay", stayed.sum::<usize>());
    for call in calls().into_iter().filter(|call| call.operator.has_streams()) {
        for (dim, rows) in [(264, 21), (768, 20), (1024, 7), (1304, 5), (2048, 6), (3072, 11), (4096, 5), (5120, 5)] {
            problems.push(Problem { call, rows, dim, chunks: 2, kind: Kind::Wide, seed: 77 });
        }
    }
    println!("walking_teams: {} launches", check(&problems, &TARGETS));
}

/// The order of threads changes no byte.
#[test]
fn schedules() {
    let orders =
        [Schedule::InOrder, Schedule::Reversed, Schedule::RoundRobin, Schedule::Random(1), Schedule::Random(0xDEC0DE)];
    for (index, call) in calls().into_iter().enumerate() {
        for (rows, dim) in [(3, 96), (2, 1040)] {
            let case = Case::new(Problem { call, rows, dim, chunks: 2, kind: Kind::Normal, seed: 5 });
            let module = module(TARGETS[index % TARGETS.len()]);
            for order in orders {
                case.run_all(&module, &Alignment::ALL, order).unwrap_or_else(|what| panic!("{what}"));
            }
        }
    }
}

/// Rows longer than most, one target each.
#[test]
fn large_rows() {
    let mut target = 0;
    for call in calls() {
        for dim in [8192, 12_288, 16_384, 16_400] {
            target += 1;
            let problem = Problem { call, rows: 1, dim, chunks: 2, kind: Kind::Offset, seed: dim as u64 };
            check(&[problem], &[TARGETS[target % TARGETS.len()]]);
        }
    }
}

/// A fresh seed each time, printed: `ADALN_SEED` repeats, `PROPTEST_CASES` prolongs.
#[test]
fn random_problems() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    let given = std::env::var("ADALN_SEED").ok().map(|seed| seed.parse().expect("a number"));
    let seed: u64 = given.unwrap_or_else(|| u64::try_from(now.as_nanos() & u128::from(u64::MAX)).unwrap_or(0));
    println!("random_problems: ADALN_SEED={seed}");
    let mut runner = TestRunner::new(tries(60));
    let strategy = (any::<u32>(), 1u64..=140, 1u64..=600, 0..TARGETS.len());
    let done = runner.run(&strategy, |(salt, rows, dim, target)| {
        let mut random = Random(seed ^ u64::from(salt) << 20);
        let problem = Problem::random(&mut random, rows, dim);
        let schedule = random.pick(&[Schedule::Random(random.0), Schedule::Reversed, Schedule::RoundRobin]);
        let run = Case::new(problem).run_all(&module(TARGETS[target]), &Alignment::ALL, schedule);
        run.map(|_| ()).map_err(TestCaseError::fail)
    });
    done.unwrap_or_else(|failure| panic!("ADALN_SEED={seed}: {failure}"));
}
