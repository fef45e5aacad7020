//! Adaptive LayerNorm producers.

pub mod images;
