//! `adaln diff`: two files of outputs, code by code.
mod histogram;
mod pairs;

use crate::difference::{self, Difference};
use crate::failure::{Failure, Outcome};
use crate::table::{Cell, Column, Format, FormatArgs, Table};
use crate::tensor_file::TensorFile;
use crate::ui::{self, Ui};
use adaptive_layernorm_producers::compare::Report;
use histogram::Histogram;
use std::path::PathBuf;

/// Compare the outputs in two safetensors files code by code
///
/// Tensors of the same name are compared: e4m3 and bf16 as they are, `packed` with its `sf_swizzled` as NVFP4. The distance of two codes
/// counts the codes between their values. Exit code 0: equal; 1: not.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// What is expected
    #[arg(value_name = "A.safetensors")]
    expected: PathBuf,
    /// What was got
    #[arg(value_name = "B.safetensors")]
    got: PathBuf,
    /// Compare tensor X of A with tensor Y of B, and nothing that is not named so (repeat for more)
    #[arg(long, value_name = "X=Y", value_parser = pairs::names)]
    pair: Vec<(String, String)>,
    /// Accept what the contract (section 5) accepts of the original kernels: a few adjacent FP8 codes, blocks of scale 0
    #[arg(long)]
    as_original: bool,
    #[command(flatten)]
    format: FormatArgs,
}

const EXAMPLES: &str = "\
Examples:
  adaln diff theirs.safetensors ours.safetensors
  adaln diff golden.safetensors ours.safetensors --pair c00.out.ada_fp8=out --as-original";

const COLUMNS: &[Column] = &[
    Column("output", "output"),
    Column("codes", "part"),
    Column("values", "values"),
    Column("differing", "differing"),
    Column("largest distance", "largest_distance"),
    Column("p99 |difference|", "p99_abs"),
    Column("max |difference|", "max_abs"),
    Column("cosine", "cosine"),
    Column("first row", "first_row"),
    Column("first column", "first_column"),
];

/// A part of an output, compared.
struct Compared {
    part: &'static str,
    report: Report,
    first: Option<Difference>,
    histogram: Histogram,
}

/// Compares and prints.
pub fn run(args: &Args, ui: Ui) -> Outcome {
    let (mut expected, mut got) = (TensorFile::open(&args.expected)?, TensorFile::open(&args.got)?);
    let (pairs, others) = pairs::all(args, &expected, &got)?;
    if !others.is_empty() {
        ui.note(&format!("not compared: {}", others.join(", ")));
    }
    if let Some(pair) = pairs.iter().find(|pair| args.pair.is_empty() && pairs::is_operand(&pair.name)) {
        ui.note(&format!("{} is an operand, not an output: are these the files that `adaln run` wrote?", pair.name));
    }
    let mut table = Table::new(COLUMNS);
    let (mut details, mut equal, mut agree) = (String::new(), true, true);
    for pair in &pairs {
        let (compared, agrees) = pair.compare(&mut expected, &mut got)?;
        agree &= agrees;
        for part in &compared {
            table.push(row(&pair.name, part));
            if let Some(first) = &part.first {
                equal = false;
                details += &format!("\n{}\n{}", first, part.histogram);
            }
        }
    }
    table.print(args.format.format)?;
    if args.format.format == Format::Table {
        ui::print(&details)?;
    }
    let accepted = equal || args.as_original && agree;
    accepted
        .then_some(())
        .ok_or_else(|| Failure::Check(format!("{} and {} differ", args.expected.display(), args.got.display())))
}

fn row(name: &str, Compared { part, report, first, .. }: &Compared) -> Vec<Cell> {
    let place =
        |place: fn(&Difference) -> u64| first.as_ref().map_or(Cell::Missing, |first| Cell::Integer(place(first)));
    vec![
        Cell::text(name),
        Cell::text(part),
        Cell::integer(report.values),
        Cell::integer(report.differing),
        Cell::Integer(report.largest_distance.into()),
        Cell::Number(report.p99.into(), 6),
        Cell::Number(report.max_abs.into(), 6),
        Cell::Number(report.cosine, 9),
        place(|first| first.row),
        place(|first| first.column),
    ]
}

impl Compared {
    fn new(name: &str, part: &'static str, kind: difference::Kind, tensors: pairs::Both<'_>, report: Report) -> Self {
        let (a, b) = tensors;
        Self { part, report, first: difference::between(name, kind, a, b), histogram: Histogram::of(kind, a, b) }
    }
}
