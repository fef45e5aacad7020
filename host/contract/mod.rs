//! What host and device must agree on, written once.
//!
//! `no_std`, no dependencies, no `unsafe`: the device crate includes this folder by path, the library publishes it as
//! [`contract`](self). Reading order: [`sum_tree`] (the order of summation), [`swizzle`] (the 128x4 scale layout),
//! [`abi`] (what a launch passes to a kernel), [`geometry`] (which compiled entry runs a shape).
pub mod abi;
pub mod geometry;
pub mod sum_tree;
pub mod swizzle;

/// Version of the byte contract: a change that makes any operator give other bytes for some input raises it.
pub const CONTRACT_VERSION: u32 = 1;
