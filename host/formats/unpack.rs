//! NVFP4 output back to f32.
use super::{E4m3, e2m1, scale_layout};
use crate::convert::to_index;
use crate::error::{Error, Result};
use crate::operator::{PACKED, SF_SWIZZLED};
use crate::reference::nvfp4::effective_global_scale;

/// The `[rows, dim]` matrix that packed codes and swizzled scales stand for: code times block scale, times `1/global_scale`.
///
/// `packed` is u8 `[rows, dim/2]`, `sf_swizzled` at least [`scale_layout::swizzled_sf_size`] bytes, `global_scale` what the
/// `TransformerEngine` recipe was given (`None`: 1), within the limits that the recipe keeps it to. The result is row major.
///
/// A scale byte is decoded as e4m3 whatever the recipe: that is the decoded value of contract section 3.3, and what a tensor core reads.
/// `FlashRtSm120` takes its byte 1 for 1.125 · 2^-7 when it quantises, 4.5 times the e4m3 value; that is the recipe's error.
///
/// ```
/// use adaptive_layernorm_producers::formats::unpack_nvfp4;
/// let (packed, mut scales) = ([0x21; 8], [0; 512]);
/// scales[0] = 0x40; // e4m3 2.0
/// assert_eq!(unpack_nvfp4(&packed, &scales, 1, 16, None)?[..2], [1.0, 2.0]);
/// # Ok::<(), adaptive_layernorm_producers::Error>(())
/// ```
///
/// # Errors
/// `dim` not a positive multiple of 16, or a buffer too short.
pub fn unpack_nvfp4(
    packed: &[u8],
    sf_swizzled: &[u8],
    rows: u32,
    dim: u32,
    global_scale: Option<f32>,
) -> Result<Vec<f32>> {
    let scales = unswizzle(sf_swizzled, rows, dim)?;
    let expected =
        usize::try_from(u64::from(rows) * u64::from(dim / 2)).map_err(|_| Error::LayoutTooLarge { rows, dim })?;
    if packed.len() != expected {
        return Err(Error::LayoutLength { operand: PACKED.name, expected, got: packed.len() });
    }
    let factor = 1.0 / effective_global_scale(global_scale);
    let block = |(bytes, scale): (&[u8], &E4m3)| {
        let scale = scale.to_f32() * factor;
        bytes
            .iter()
            .flat_map(move |byte| e2m1::split(*byte))
            .map(move |nibble| e2m1::decode(nibble) * scale)
            .collect::<Vec<_>>()
    };
    Ok(packed.chunks(8).zip(&scales).flat_map(block).collect())
}

/// The block scales as a row-major `[rows, dim/16]` matrix.
///
/// # Errors
/// As [`unpack_nvfp4`].
pub fn unswizzle(sf_swizzled: &[u8], rows: u32, dim: u32) -> Result<Vec<E4m3>> {
    if dim == 0 || !dim.is_multiple_of(scale_layout::BLOCK) {
        return Err(Error::LayoutDim { got: dim });
    }
    let expected = scale_layout::swizzled_sf_size(rows, dim).ok_or(Error::LayoutTooLarge { rows, dim })?;
    if sf_swizzled.len() < expected {
        return Err(Error::LayoutLength { operand: SF_SWIZZLED.name, expected, got: sf_swizzled.len() });
    }
    let columns = dim / scale_layout::BLOCK;
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| scale_layout::offset(row, column, dim)));
    Ok(places.map(|at| E4m3::from_bits(sf_swizzled[to_index(at)])).collect())
}
