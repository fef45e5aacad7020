//! What was measured, and how it is shown.
use crate::backend::Measured;
use crate::inputs::Extents;
use crate::table::{Cell, Column, Table};
use adaptive_layernorm_producers::Sizes;
use adaptive_layernorm_producers::named::Call;
use std::time::Duration;

/// One call on one shape under one condition.
#[derive(Clone, Debug)]
pub struct Record {
    /// The call.
    pub call: Call,
    /// Its shape.
    pub extents: Extents,
    /// The same as numbers.
    pub sizes: Sizes,
    /// Read and written.
    pub bytes: u64,
    /// How long it took.
    pub measured: Measured,
}

const COLUMNS: &[Column] = &[
    Column("operator", "operator"),
    Column("recipe", "recipe"),
    Column("shape", "shape"),
    Column("backend", "backend"),
    Column("condition", "condition"),
    Column("bytes", "bytes"),
    Column("time (µs)", "time_us"),
    Column("GB/s", "gb_per_s"),
    Column("rows/s", "rows_per_s"),
    Column("copy (µs)", "copy_us"),
    Column("time/copy", "ratio"),
];

/// The records of one run, each with the medians of its times over all runs.
pub fn medians(runs: &[Vec<Record>]) -> Vec<Record> {
    let Some(first) = runs.first() else { return Vec::new() };
    let of_all = |index: usize, pick: fn(&Measured) -> Duration| {
        let mut times: Vec<Duration> = runs.iter().map(|run| pick(&run[index].measured)).collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    let record = |(index, record): (usize, &Record)| {
        let (time, copy) = (of_all(index, |measured| measured.time), of_all(index, |measured| measured.copy));
        Record { measured: Measured { time, copy, ..record.measured }, ..record.clone() }
    };
    first.iter().enumerate().map(record).collect()
}

/// A row for each record.
pub fn table(records: &[Record], backend: &str) -> Table {
    let mut table = Table::new(COLUMNS);
    for Record { call, extents, sizes, bytes, measured } in records {
        let (time, copy) = (measured.time.as_secs_f64(), measured.copy.as_secs_f64());
        table.push([
            Cell::text(call.operator),
            call.recipe.map_or(Cell::Missing, Cell::text),
            Cell::text(extents),
            Cell::text(backend),
            Cell::text(measured.condition),
            Cell::Integer(*bytes),
            Cell::Number(time * 1e6, 2),
            Cell::Number(*bytes as f64 / time / 1e9, 1),
            Cell::Number(f64::from(sizes.rows) / time, 0),
            Cell::Number(copy * 1e6, 2),
            Cell::Number(time / copy, 3),
        ]);
    }
    table
}
