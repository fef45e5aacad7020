//! How long a producer takes in the machine: `cargo run --release -p ptx-vm --example speed`.

#[path = "../tests/kernels/mod.rs"]
mod kernels;

use std::time::Instant;

use adaln_vm::images::TARGETS;
use adaln_vm::launches::Alignment;
use kernels::support::random::{Kind, Problem};
use kernels::{Case, module, problem_launches, support};
use ptx_vm::Schedule;

fn main() -> Result<(), String> {
    for call in support::calls() {
        let case = Case::new(Problem { call, rows: 64, dim: 3072, chunks: 2, kind: Kind::Normal, seed: 1 });
        let launch = &problem_launches(&case.problem, Alignment::Vector)[0];
        for target in TARGETS {
            let module = module(target);
            let start = Instant::now();
            case.run(&module, launch, Alignment::Vector, Schedule::InOrder)?;
            println!("{:>8} {:.3} s  {launch}", target, start.elapsed().as_secs_f64());
        }
    }
    Ok(())
}
