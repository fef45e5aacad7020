//! The operation on the CPU and, with the feature `cuda`, on a GPU if there is one (`ADALN_REQUIRE_GPU=1`: or fail).
mod devices;
#[cfg(feature = "cuda")]
mod gpu;
mod values;
