//! The command line: which commands there are, and what all of them share.
use crate::failure::Outcome;
use crate::ui::Ui;
use crate::{accuracy, bench, check, demo, diff, info, manual, run, vectors};
use adaptive_layernorm_producers::{Nvfp4Recipe, Operator};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// LayerNorm, adaptive modulation and FP8 or NVFP4 quantisation in one kernel, the same bytes on every GPU and on the CPU.
#[derive(Debug, Parser)]
#[command(name = "adaln", version, propagate_version = true, after_help = EXAMPLES)]
pub struct Cli {
    /// Print results and errors only: no progress bars, no notes
    #[arg(short, long, global = true)]
    quiet: bool,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  adaln demo                                    every operator: time, bandwidth, accuracy
  adaln run ada_layer_norm_quant_fp8_bf16 --input in.safetensors --output out.safetensors
  adaln check --cases 1000                      random calls against the plain reference
  adaln bench --format json --runs 3            times beside a copy of the same bytes
  adaln diff theirs.safetensors ours.safetensors
  adaln info                                    kernel images shipped, GPU found, image chosen

In the repository, the kernels of any GPU without it, on the CPU:
  cargo run --release -p adaln-vm -- check --backend ptx-vm --target sm_110a --cases 50

Exit codes: 0 all is well, 1 a check failed, 2 wrong usage or bad input.";

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::Args),
    Run(run::Args),
    Check(check::Args),
    Bench(bench::Args),
    Diff(diff::Args),
    Accuracy(accuracy::Args),
    Vectors(vectors::Args),
    Info(info::Args),
    Completions(manual::CompletionsArgs),
    Man(manual::ManArgs),
}

impl Cli {
    /// Does what was asked for.
    pub fn run(&self) -> Outcome {
        let ui = Ui { quiet: self.quiet };
        match &self.command {
            Command::Demo(args) => demo::run(args, ui),
            Command::Run(args) => run::run(args, ui),
            Command::Check(args) => check::run(args, ui),
            Command::Bench(args) => bench::run(args, ui),
            Command::Diff(args) => diff::run(args, ui),
            Command::Accuracy(args) => accuracy::run(args, ui),
            Command::Vectors(args) => vectors::run(args, ui),
            Command::Info(args) => info::run(args, ui),
            Command::Completions(args) => manual::completions(args),
            Command::Man(args) => manual::man(args),
        }
    }
}

#[cfg(test)]
mod tests;

/// A whole number in a range, which the sentence names where it is not one.
pub fn whole<T: FromStr + PartialOrd + Display>(text: &str, range: RangeInclusive<T>) -> Result<T, String> {
    let (least, most) = (range.start(), range.end());
    match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("expected a whole number from {least} to {most}")),
    }
}

/// Reads the name of an operator.
pub fn operator() -> impl TypedValueParser<Value = Operator> {
    PossibleValuesParser::new(Operator::ALL.map(Operator::name)).try_map(|name| name.parse::<Operator>())
}

/// Reads the name of a recipe.
pub fn recipe() -> impl TypedValueParser<Value = Nvfp4Recipe> {
    PossibleValuesParser::new(Nvfp4Recipe::ALL.map(Nvfp4Recipe::name)).try_map(|name| name.parse::<Nvfp4Recipe>())
}
