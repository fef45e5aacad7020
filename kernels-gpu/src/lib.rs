//! Device code.
