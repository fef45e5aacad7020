//! The CPU backend gives the reference's bytes.
mod support;

use adaptive_layernorm_producers::{Cpu, Reference};
use proptest::prelude::*;
use support::random::{Kind, Problem, Random, problems};
use support::{calls, first_difference, tries};

fn check(problem: &Problem) -> Result<(), String> {
    let inputs = problem.inputs();
    let run = |backend: &dyn adaptive_layernorm_producers::Backend| {
        problem.call.run(backend, &inputs).map_err(|error| error.to_string())
    };
    first_difference(&run(&Reference)?, &run(&Cpu)?)
        .map_or(Ok(()), |difference| Err(format!("{problem:?}: {difference}")))
}

proptest! {
    #![proptest_config(tries(1000))]

    #[test]
    fn any_call(problem in problems(20, 300)) {
        check(&problem).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(tries(40))]

    #[test]
    fn long_rows(problem in problems(3, 20_000)) {
        check(&problem).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn many_rows(problem in problems(400, 64)) {
        check(&problem).map_err(TestCaseError::fail)?;
    }
}

/// D at and around every place where the order of summation changes.
#[test]
fn every_kind_at_every_edge_of_the_sum_tree() {
    let mut random = Random(7);
    for call in calls() {
        for dim in [2, 8, 16, 256, 752, 768, 784, 1536, 1552, 3072, 3088, 6144, 6160, 8192] {
            for kind in Kind::ALL {
                let dim = usize::next_multiple_of(dim, call.operator.dim_divisor() as usize);
                let problem = Problem { call, rows: 2, dim, chunks: 2, kind, seed: random.bits() };
                check(&problem).unwrap();
            }
        }
    }
}

/// A fresh seed each time, printed: `ADALN_SEED` and `ADALN_CASES` repeat or prolong it.
#[test]
fn fresh_seed() {
    let number = |name: &str| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = number("ADALN_SEED").unwrap_or(now.as_nanos() as u64);
    println!("ADALN_SEED={seed}");
    let mut random = Random(seed);
    for _ in 0..number("ADALN_CASES").unwrap_or(300) {
        check(&Problem::random(&mut random, 40, 2000)).unwrap();
    }
}
