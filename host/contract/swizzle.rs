//! The 128x4 layout of NVFP4 block scales, as CUTLASS and the tensor cores read it.
//!
//! Rows in tiles of 128, block columns (16 elements each) in groups of 4; a tile-group is 512 bytes:
//! `offset = ((r/128)·C4 + c/4)·512 + (r%32)·16 + ((r%128)/32)·4 + c%4` with `C4 = ceil(K/4)`, `K = D/16`.

/// Elements that share one scale byte.
pub const BLOCK: u32 = 16;

/// Rows of a tile: the layout has rows up to a multiple of it.
pub const TILE_ROWS: u32 = 128;

/// Bytes of a tile-group: 128 rows x 4 block columns.
pub const TILE_BYTES: u64 = 512;

/// `C4`: groups of four block columns in a row of `dim` elements.
pub const fn column_groups(dim: u32) -> u32 {
    (dim / BLOCK).div_ceil(4)
}

/// Byte offset of the scale of row `row`, block column `column`, in a matrix with `column_groups` groups.
#[inline(always)]
pub const fn offset(row: u32, column: u32, column_groups: u32) -> u64 {
    row_offset(row, column_groups) + column_offset(column)
}

/// The part of [`offset`] that depends on the row.
#[inline(always)]
pub const fn row_offset(row: u32, column_groups: u32) -> u64 {
    (row / 128) as u64 * column_groups as u64 * TILE_BYTES + ((row % 32) * 16 + (row % 128) / 32 * 4) as u64
}

/// The part of [`offset`] that depends on the block column.
#[inline(always)]
pub const fn column_offset(column: u32) -> u64 {
    (column / 4) as u64 * TILE_BYTES + (column % 4) as u64
}
