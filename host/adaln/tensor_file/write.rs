//! Tensors as the bytes of a safetensors file.
use super::stored;
use crate::failure::{Failure, Outcome};
use adaptive_layernorm_producers::named::{Tensor, Tensors};
use safetensors::tensor::TensorView;
use std::collections::HashMap;

/// The file, the same bytes every time; `about` is kept in its header under the key `adaln`.
pub fn to_bytes(tensors: &Tensors, about: &impl serde::Serialize) -> Outcome<Vec<u8>> {
    let failed = |error: &dyn std::fmt::Display| Failure::input(format!("cannot write safetensors: {error}"));
    // One key only: the format's library does not order several.
    let about = serde_json::to_string(about).map_err(|error| failed(&error))?;
    let facts = HashMap::from([("adaln".to_owned(), about)]);
    let bytes: Vec<(&String, &Tensor, Vec<u8>)> =
        tensors.iter().map(|(name, tensor)| (name, tensor, tensor.data.to_le_bytes())).collect();
    let views = bytes.iter().map(|(name, tensor, bytes)| {
        let view = TensorView::new(stored(tensor.data.dtype()), tensor.shape.clone(), bytes);
        view.map(|view| (name.as_str(), view))
    });
    let views = views.collect::<Result<Vec<_>, _>>().map_err(|error| failed(&error))?;
    safetensors::serialize(views, Some(facts)).map_err(|error| failed(&error))
}
