//! Time per byte over D, as SVG.
use super::record::Record;
use crate::failure::{Failure, Outcome};
use crate::tensor_file::Draft;
use plotters::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// Colours that are told apart without seeing red and green (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 94, 240),
];

/// Points (D, picoseconds per byte) by name.
type Lines = BTreeMap<String, Vec<(f64, f64)>>;

/// Writes the plot, whole or not at all.
pub fn write(path: &Path, records: &[Record]) -> Outcome {
    let draft = Draft::begin(path)?;
    let mut svg = String::new();
    draw(&mut svg, &lines(records)).map_err(|error| Failure::input(format!("cannot draw the plot: {error}")))?;
    draft.finish(svg.as_bytes())
}

/// A line for each call, and one for the copy beside it.
fn lines(records: &[Record]) -> Lines {
    let mut lines = Lines::new();
    // The first condition is the one that bandwidth means something for.
    let first = records.first().map(|record| record.measured.condition);
    for record in records.iter().filter(|record| Some(record.measured.condition) == first) {
        let name = match record.call.recipe {
            Some(recipe) => format!("{} {recipe}", record.call.operator),
            None => record.call.operator.to_string(),
        };
        let point = |seconds: f64| (f64::from(record.sizes.dim), seconds * 1e12 / record.bytes as f64);
        lines.entry(format!("copy beside {name}")).or_default().push(point(record.measured.copy.as_secs_f64()));
        lines.entry(name).or_default().push(point(record.measured.time.as_secs_f64()));
    }
    lines
}

fn draw(svg: &mut String, lines: &Lines) -> Result<(), String> {
    fn failed(error: impl Display) -> String {
        error.to_string()
    }
    let all = || lines.values().flatten();
    let widest = all().map(|point| point.0).fold(16.0, f64::max);
    let slowest = all().map(|point| point.1).fold(0.0, f64::max);
    let area = SVGBackend::with_string(svg, (1200, 640)).into_drawing_area();
    area.fill(&WHITE).map_err(failed)?;
    let mut chart = ChartBuilder::on(&area)
        .margin(16)
        .x_label_area_size(48)
        .y_label_area_size(72)
        .build_cartesian_2d(0.0..widest, 0.0..slowest * 1.1)
        .map_err(failed)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("D").y_desc("picoseconds per byte read or written").light_line_style(TRANSPARENT);
    mesh.x_label_formatter(&|dim| format!("{dim:.0}")).y_label_formatter(&|time| format!("{time:.0}"));
    mesh.draw().map_err(failed)?;
    for (index, (name, points)) in lines.iter().enumerate() {
        let is_copy = name.starts_with("copy");
        let style = ShapeStyle::from(if is_copy { RGBColor(150, 150, 150) } else { COLOURS[index % COLOURS.len()] });
        let drawn = chart.draw_series(LineSeries::new(points.iter().copied(), style)).map_err(failed)?;
        drawn.label(name).legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], style));
    }
    let mut legend = chart.configure_series_labels();
    legend.background_style(WHITE.mix(0.8)).position(SeriesLabelPosition::UpperRight).draw().map_err(failed)?;
    area.present().map_err(failed)
}
