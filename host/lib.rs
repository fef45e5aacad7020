//! Adaptive LayerNorm producers.
