//! Draws one tile of the 128x4 scale layout: where the scale bytes of 128 rows and 4 block columns lie in 512 bytes.
//!
//! `cargo run --release --example swizzle_svg > docs/img/scale-layout.svg`
use adaptive_layernorm_producers::contract::swizzle::{TILE_BYTES, TILE_ROWS, offset};

/// Bytes in a line of the drawing.
const LINE: u64 = 16;
/// Block columns of a tile, and groups of them in the matrix drawn: one tile.
const COLUMNS: u32 = 4;
const GROUPS: u32 = 1;
/// Sizes in pixels. 128 rows of the matrix are as high as 32 lines of memory.
const BYTE: (u64, u64) = (28, 20);
const ROW_HEIGHT: u64 = 5;
/// Left edges of matrix and memory, upper edge of both.
const MATRIX: u64 = 60;
const MEMORY: u64 = 260;
const TOP: u64 = 60;
/// One colour for each 32 rows.
const COLOURS: [&str; 4] = ["#cfe0f5", "#f5dfc2", "#d4ebcf", "#ecd2e6"];

const HEAD: &str = r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 720" width="720" height="720" font-family="system-ui, sans-serif" font-size="12">
<title>One tile of the 128x4 scale layout</title>
<rect width="720" height="720" fill="#fff"/>
<g stroke="#777" stroke-width=".5">"##;

fn main() {
    println!("{HEAD}");
    for row in 0..TILE_ROWS {
        in_matrix(row);
        in_memory(row);
    }
    println!("</g>");
    labels();
    println!("</svg>");
}

/// The scale bytes of a row as the matrix has them.
fn in_matrix(row: u32) {
    strip((MATRIX, TOP + u64::from(row) * ROW_HEIGHT), ROW_HEIGHT, row);
}

/// The same bytes where memory has them: the four columns lie together.
fn in_memory(row: u32) {
    assert!((0..COLUMNS).all(|column| offset(row, column, GROUPS) == offset(row, 0, GROUPS) + u64::from(column)));
    strip(place(row, 0), BYTE.1, row);
}

/// Where the drawing of memory has a byte.
fn place(row: u32, column: u32) -> (u64, u64) {
    let at = offset(row, column, GROUPS);
    (MEMORY + at % LINE * BYTE.0, TOP + at / LINE * BYTE.1)
}

/// The bytes of a row.
fn strip((x, y): (u64, u64), height: u64, row: u32) {
    let (width, colour) = (u64::from(COLUMNS) * BYTE.0, COLOURS[(row / 32) as usize]);
    println!(r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{colour}"/>"#);
}

fn labels() {
    text(MATRIX, 24, "start", "scales, 128 rows x 4 block columns");
    text(MEMORY + 60, 24, "start", "memory, 512 bytes: row . block column of each byte");
    for row in (0..TILE_ROWS).step_by(32) {
        text(MATRIX - 8, TOP + u64::from(row) * ROW_HEIGHT + 12, "end", &row.to_string());
    }
    println!(r#"<g font-size="8.5" text-anchor="middle">"#);
    for (row, column) in (0..TILE_ROWS).flat_map(|row| (0..COLUMNS).map(move |column| (row, column))) {
        let (x, y) = place(row, column);
        println!(r#"<text x="{}" y="{}">{row}.{column}</text>"#, x + BYTE.0 / 2, y + 13);
    }
    println!("</g>");
    for at in (0..TILE_BYTES).step_by(16) {
        text(MEMORY - 6, TOP + at / LINE * BYTE.1 + 14, "end", &at.to_string());
    }
    for column in 0..COLUMNS {
        text(MATRIX + u64::from(column) * BYTE.0 + 14, TOP - 8, "middle", &column.to_string());
    }
    for byte in 0..LINE {
        text(MEMORY + byte * BYTE.0 + 14, TOP - 8, "middle", &format!("+{byte}"));
    }
}

fn text(x: u64, y: u64, anchor: &str, text: &str) {
    println!(r#"<text x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>"#);
}
