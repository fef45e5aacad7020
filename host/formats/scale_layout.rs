//! The 128x4 layout of NVFP4 block scales: size, place of a scale, and back.
//!
//! `K = D/16` scales a row; rows go in tiles of 128, columns in groups of 4, 512 bytes a tile-group. Bytes for rows past R and
//! columns past K are padding, which every producer writes as 0. The formula is in [`crate::contract::swizzle`].
use crate::contract::swizzle;
use crate::convert::{to_index, to_u64};

pub use crate::contract::swizzle::{BLOCK, TILE_BYTES, column_groups};

/// Bytes of the scale buffer of a `[rows, dim]` output: `ceil(rows/128) · ceil(dim/64) · 512`.
///
/// `None` when that overflows `usize`. A larger buffer may be handed in; only these bytes are touched.
///
/// ```
/// use adaptive_layernorm_producers::formats::swizzled_sf_size;
/// assert_eq!(swizzled_sf_size(2520, 3072), Some(20 * 48 * 512));
/// assert_eq!(swizzled_sf_size(1, 16), Some(512));
/// ```
pub const fn swizzled_sf_size(rows: u32, dim: u32) -> Option<usize> {
    // At most 2^25 tiles of 2^26 groups.
    let bytes = (rows.div_ceil(128) as u64 * column_groups(dim) as u64).checked_mul(TILE_BYTES);
    match bytes {
        Some(bytes) if bytes <= to_u64(usize::MAX) => Some(to_index(bytes)),
        _ => None,
    }
}

/// Byte offset of the scale of row `row`, block column `column` (element columns `16·column ..`) in a buffer for `dim` columns.
///
/// ```
/// use adaptive_layernorm_producers::formats::scale_layout::offset;
/// assert_eq!(offset(32, 0, 64), 4);
/// assert_eq!(offset(0, 4, 128), 512);
/// ```
pub const fn offset(row: u32, column: u32, dim: u32) -> u64 {
    swizzle::offset(row, column, column_groups(dim))
}

/// Row and block column whose scale lies at `offset`; may be padding (row past R or column past `D/16`). `None` if `dim` is
/// below 16: there is no scale then.
///
/// ```
/// use adaptive_layernorm_producers::formats::scale_layout::{offset, position};
/// assert_eq!(position(offset(130, 7, 128), 128), Some((130, 7)));
/// ```
pub const fn position(offset: u64, dim: u32) -> Option<(u64, u32)> {
    let groups = column_groups(dim) as u64;
    if groups == 0 {
        return None;
    }
    let (tile, within) = (offset / TILE_BYTES, offset % TILE_BYTES);
    let row = tile / groups * 128 + within % 16 / 4 * 32 + within / 16;
    let column = tile % groups * 4 + within % 4;
    Some((row, column as u32))
}
