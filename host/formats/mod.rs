//! Number formats and layouts of the outputs, for users who want to look at what was produced.
//!
//! [`E4m3`] (FP8), [`e2m1`] (the 4-bit codes of NVFP4), [`bf16`] rounding, [`scale_layout`] (the 128x4 layout of NVFP4 block
//! scales) and [`unpack`] (packed codes and swizzled scales back to f32).
pub mod bf16;
pub mod e2m1;
mod e4m3;
pub mod scale_layout;
pub mod unpack;

pub use e4m3::E4m3;
pub use scale_layout::swizzled_sf_size;
pub use unpack::unpack_nvfp4;
