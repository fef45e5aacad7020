//! Safetensors files: tensors by name, read with suspicion and written whole or not at all.
mod draft;
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use draft::Draft;
pub use read::TensorFile;
pub use write::to_bytes;

use adaptive_layernorm_producers::DType;
use safetensors::Dtype;

/// The library's name of an element type, if it has the type.
fn known(dtype: Dtype) -> Option<DType> {
    match dtype {
        Dtype::BF16 => Some(DType::Bf16),
        Dtype::F32 => Some(DType::F32),
        Dtype::F8_E4M3 => Some(DType::E4m3),
        Dtype::U8 => Some(DType::U8),
        _ => None,
    }
}

/// The file format's name of an element type.
const fn stored(dtype: DType) -> Dtype {
    match dtype {
        DType::Bf16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::E4m3 => Dtype::F8_E4M3,
        DType::U8 => Dtype::U8,
    }
}
