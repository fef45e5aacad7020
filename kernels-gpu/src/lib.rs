//! The device code: LayerNorm, modulation and quantisation of a row in one kernel, which reads it once (`generic` three times).
//!
//! Reading order: `produce` (the body), `resident` (the same where blocks stay), `statistics` (the one reduction), `modulation` and `sink` (the parts that differ),
//! `entries` (the table of kernels), `modulation6`, `generic` (any D and alignment); then `view`, `formats`, `ptx`.
//! Everything is inlined into its entry; there is no call, no panic and no local memory in the result.
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch, macro_metavar_expr_concat))]
#![cfg(target_arch = "nvptx64")]

#[allow(dead_code, reason = "shared with the host, which uses the rest")]
#[path = "../../host/contract/mod.rs"]
mod contract;
mod entries;
mod formats;
mod generic;
mod modulation;
mod modulation6;
mod produce;
mod ptx;
mod resident;
mod sink;
mod statistics;
mod team;
mod view;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
