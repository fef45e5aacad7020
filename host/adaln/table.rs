//! A table as text, JSON or CSV.
use crate::failure::{Failure, Outcome};
use crate::ui;
use clap::ValueEnum;
use comfy_table::{CellAlignment, LineStyle, Table as TextTable, TableStyle, presets};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// How a table is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Columns for people.
    #[default]
    Table,
    /// An array of objects, numbers unrounded.
    Json,
    /// A header and one line a row, numbers unrounded.
    Csv,
    /// A table for Markdown documents.
    Markdown,
}

/// `--format`, for every command that prints a table.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct FormatArgs {
    /// How the table is printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
}

/// What stands in a row and a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Any text.
    Text(String),
    /// A count.
    Integer(u64),
    /// A measured value and the decimals that people want to see of it.
    Number(f64, usize),
    /// A digest in hexadecimal, of which people see the beginning.
    Digest(&'static str),
    /// Nothing to say here.
    Missing,
}

impl Cell {
    /// Text of anything that can be displayed.
    pub fn text(value: impl ToString) -> Self {
        Self::Text(value.to_string())
    }

    /// A count of any size.
    pub fn integer(value: usize) -> Self {
        Self::Integer(value as u64)
    }
}

/// A column: its title for people and its key for programs.
#[derive(Clone, Copy, Debug)]
pub struct Column(pub &'static str, pub &'static str);

/// Rows under columns.
#[derive(Clone, Debug)]
pub struct Table {
    columns: &'static [Column],
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows.
    pub const fn new(columns: &'static [Column]) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Adds a row, which has a cell for each column.
    pub fn push(&mut self, row: impl Into<Vec<Cell>>) {
        let row = row.into();
        debug_assert_eq!(row.len(), self.columns.len(), "a cell for each column");
        self.rows.push(row);
    }

    /// Prints the table to stdout.
    pub fn print(&self, format: Format) -> Outcome {
        ui::print(&match format {
            // One line, under the header.
            Format::Table => {
                self.to_text(TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─')))
            }
            Format::Markdown => self.to_text(presets::ASCII_MARKDOWN),
            Format::Json => json(self)?,
            Format::Csv => self.to_csv()?,
        })
    }

    /// The table for people.
    fn to_text(&self, style: TableStyle) -> String {
        let mut text = TextTable::new();
        text.load_style(style);
        text.set_header(self.columns.iter().map(|column| column.0));
        for row in &self.rows {
            text.add_row(row.iter().map(shown));
        }
        for (index, column) in text.column_iter_mut().enumerate() {
            if self.rows.iter().all(|row| !matches!(row[index], Cell::Text(_) | Cell::Digest(_))) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        text.trim_fmt() + "\n"
    }

    fn to_csv(&self) -> Outcome<String> {
        let failed = |error: &dyn std::fmt::Display| Failure::input(format!("cannot write CSV: {error}"));
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(self.columns.iter().map(|column| column.1)).map_err(|e| failed(&e))?;
        for row in &self.rows {
            writer.write_record(row.iter().map(unrounded)).map_err(|e| failed(&e))?;
        }
        let bytes = writer.into_inner().map_err(|e| failed(&e))?;
        String::from_utf8(bytes).map_err(|e| failed(&e))
    }
}

/// Anything as indented JSON with a final newline.
pub fn json(value: &impl Serialize) -> Outcome<String> {
    let text = serde_json::to_string_pretty(value);
    text.map(|text| text + "\n").map_err(|error| Failure::input(format!("cannot write JSON: {error}")))
}

fn shown(cell: &Cell) -> String {
    match cell {
        Cell::Text(text) => text.clone(),
        Cell::Integer(value) => value.to_string(),
        Cell::Number(value, decimals) => format!("{value:.decimals$}"),
        Cell::Digest(digest) => digest.chars().take(12).collect(),
        Cell::Missing => "-".to_owned(),
    }
}

fn unrounded(cell: &Cell) -> String {
    match cell {
        Cell::Number(value, _) => value.to_string(),
        Cell::Digest(digest) => (*digest).to_owned(),
        Cell::Missing => String::new(),
        Cell::Text(_) | Cell::Integer(_) => shown(cell),
    }
}

impl Serialize for Table {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(Some(self.rows.len()))?;
        for cells in &self.rows {
            rows.serialize_element(&Row { columns: self.columns, cells })?;
        }
        rows.end()
    }
}

/// A row as an object, its keys in the order of the columns.
struct Row<'a> {
    columns: &'a [Column],
    cells: &'a [Cell],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(self.cells.len()))?;
        for (column, cell) in self.columns.iter().zip(self.cells) {
            object.serialize_entry(column.1, cell)?;
        }
        object.end()
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Integer(value) => serializer.serialize_u64(*value),
            // JSON has no infinity and no NaN; serde_json writes null.
            Self::Number(value, _) => serializer.serialize_f64(*value),
            Self::Digest(digest) => serializer.serialize_str(digest),
            Self::Missing => serializer.serialize_none(),
        }
    }
}
