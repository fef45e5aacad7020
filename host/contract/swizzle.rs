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
    tile_offset(row, column_groups) + (offset_in_tile(row) + column_offset(column)) as u64
}

/// The part of [`offset`] that depends on the row.
#[inline(always)]
pub const fn row_offset(row: u32, column_groups: u32) -> u64 {
    tile_offset(row, column_groups) + offset_in_tile(row) as u64
}

/// The part of [`offset`] that depends on the block column; below 2^32, since D is at most [`MAX_DIM`](super::sum_tree::MAX_DIM).
#[inline(always)]
pub const fn column_offset(column: u32) -> u32 {
    column / 4 * TILE_BYTES as u32 + column % 4
}

/// Where the tiles of a row begin: one product of 32 by 32 bits.
#[inline(always)]
const fn tile_offset(row: u32, column_groups: u32) -> u64 {
    (row / TILE_ROWS) as u64 * (column_groups * TILE_BYTES as u32) as u64
}

/// Where a row lies in a tile-group.
#[inline(always)]
const fn offset_in_tile(row: u32) -> u32 {
    row % 32 * 16 + row % TILE_ROWS / 32 * 4
}
