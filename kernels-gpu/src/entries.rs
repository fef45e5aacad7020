//! The table of kernels: one row an operator, one entry a shape class. No logic.
//!
//! Symbols are `{operator}[_{recipe}]__{shape class}`; the shape classes are those of `contract::geometry::SHAPES`.
use crate::contract::abi::{Modulation6Arguments, RowArguments};
use crate::modulation::{BroadcastFp8, NoAffine, PerTokenTable, ScaleShift};
use crate::modulation6::{modulation6_aligned, modulation6_any};
use crate::sink::{Awq, Bf16, FlashRtSm110, FlashRtSm120, Fp8Static, InShared, Nvfp4, TransformerEngine};
use crate::{generic::any, produce::produce, produce::stream, resident::resident};

type Broadcast = ScaleShift<false>;
type PerToken = ScaleShift<true>;

macro_rules! entry {
    ($name:ident, $arguments:ty, $body:expr) => {
        #[unsafe(no_mangle)]
        pub extern "ptx-kernel" fn $name(arguments: $arguments) {
            $body(&arguments)
        }
    };
}

/// An entry for each shape class: `produce` with constants WARPS (0: a launch parameter), LANES, CHUNKS, FULL, EARLY.
macro_rules! operator {
    ($name:ident, $modulation:ty, $sink:ty) => {
        entry!(${concat($name, __v1)}, RowArguments, produce::<$modulation, $sink, 0, 1, 1, 0, true>);
        entry!(${concat($name, __w1v2)}, RowArguments, produce::<$modulation, $sink, 1, 1, 2, 1, true>);
        entry!(${concat($name, __w1v3)}, RowArguments, produce::<$modulation, $sink, 1, 1, 3, 2, true>);
        entry!(${concat($name, __w2v2)}, RowArguments, produce::<$modulation, $sink, 2, 1, 2, 1, true>);
        entry!(${concat($name, __w2v3)}, RowArguments, produce::<$modulation, $sink, 2, 1, 3, 2, true>);
        entry!(${concat($name, __w4v2)}, RowArguments, produce::<$modulation, $sink, 4, 1, 2, 1, true>);
        entry!(${concat($name, __w4v3)}, RowArguments, produce::<$modulation, $sink, 4, 1, 3, 2, true>);
        entry!(${concat($name, __w8v2)}, RowArguments, produce::<$modulation, $sink, 8, 1, 2, 1, true>);
        entry!(${concat($name, __w8v3)}, RowArguments, produce::<$modulation, $sink, 8, 1, 3, 2, true>);
        entry!(${concat($name, __w8v4)}, RowArguments, produce::<$modulation, $sink, 8, 1, 4, 3, false>);
        entry!(${concat($name, __w8v5)}, RowArguments, produce::<$modulation, $sink, 8, 1, 5, 4, false>);
        entry!(${concat($name, __w8v6)}, RowArguments, produce::<$modulation, $sink, 8, 1, 6, 5, false>);
        entry!(${concat($name, __w8v8)}, RowArguments, produce::<$modulation, $sink, 8, 1, 8, 6, false>);
        entry!(${concat($name, __any)}, RowArguments, any::<$modulation, $sink>);
    };
}

/// As `operator`, and `stream`, for FP8 where rows share a modulation: constants WARPS, CHUNKS, FULL.
macro_rules! streamed_operator {
    ($name:ident, $modulation:ty, $sink:ty) => {
        operator!($name, $modulation, $sink);
        entry!(${concat($name, __w1v2s)}, RowArguments, stream::<$modulation, $sink, 1, 2, 1>);
        entry!(${concat($name, __w1v3s)}, RowArguments, stream::<$modulation, $sink, 1, 3, 2>);
        entry!(${concat($name, __w2v2s)}, RowArguments, stream::<$modulation, $sink, 2, 2, 1>);
        entry!(${concat($name, __w2v3s)}, RowArguments, stream::<$modulation, $sink, 2, 3, 2>);
        entry!(${concat($name, __w4v2s)}, RowArguments, stream::<$modulation, $sink, 4, 2, 1>);
        entry!(${concat($name, __w4v3s)}, RowArguments, stream::<$modulation, $sink, 4, 3, 2>);
        entry!(${concat($name, __w8v2s)}, RowArguments, stream::<$modulation, $sink, 8, 2, 1>);
        entry!(${concat($name, __w8v3s)}, RowArguments, stream::<$modulation, $sink, 8, 3, 2>);
        entry!(${concat($name, __w8v4s)}, RowArguments, stream::<$modulation, $sink, 8, 4, 3>);
    };
}

/// As `operator`, and all pairs.
macro_rules! paired_operator {
    ($name:ident, $modulation:ty, $sink:ty) => {
        operator!($name, $modulation, $sink);
        pairs!($name, $modulation, $sink);
    };
}

/// Threads with pairs of lanes: constants as for `operator`.
macro_rules! pairs {
    ($name:ident, $modulation:ty, $sink:ty) => {
        entry!(${concat($name, __w1v4p)}, RowArguments, produce::<$modulation, $sink, 1, 2, 4, 2, false>);
        entry!(${concat($name, __w1v6p)}, RowArguments, produce::<$modulation, $sink, 1, 2, 6, 4, false>);
        entry!(${concat($name, __w2v4p)}, RowArguments, produce::<$modulation, $sink, 2, 2, 4, 2, false>);
        entry!(${concat($name, __w2v6p)}, RowArguments, produce::<$modulation, $sink, 2, 2, 6, 4, false>);
        long_pairs!($name, $modulation, $sink);
    };
}

/// Those of rows that take eight warps of single lanes.
macro_rules! long_pairs {
    ($name:ident, $modulation:ty, $sink:ty) => {
        entry!(${concat($name, __w4v4p)}, RowArguments, produce::<$modulation, $sink, 4, 2, 4, 2, false>);
        entry!(${concat($name, __w4v6p)}, RowArguments, produce::<$modulation, $sink, 4, 2, 6, 4, false>);
        entry!(${concat($name, __w4v8p)}, RowArguments, produce::<$modulation, $sink, 4, 2, 8, 6, false>);
    };
}

/// As `operator`, long pairs, and teams that stay, whose recipe may have another form: constants WARPS, LANES, CHUNKS, FULL.
macro_rules! resident_operator {
    ($name:ident, $modulation:ty, $sink:ty, $resident:ty) => {
        operator!($name, $modulation, $sink);
        long_pairs!($name, $modulation, $sink);
        entry!(${concat($name, __w1v4r)}, RowArguments, resident::<$modulation, $resident, 1, 2, 4, 2>);
        entry!(${concat($name, __w1v6r)}, RowArguments, resident::<$modulation, $resident, 1, 2, 6, 4>);
        entry!(${concat($name, __w2v4r)}, RowArguments, resident::<$modulation, $resident, 2, 2, 4, 2>);
        entry!(${concat($name, __w2v6r)}, RowArguments, resident::<$modulation, $resident, 2, 2, 6, 4>);
        entry!(${concat($name, __w4v4r)}, RowArguments, resident::<$modulation, $resident, 4, 2, 4, 2>);
        entry!(${concat($name, __w4v6r)}, RowArguments, resident::<$modulation, $resident, 4, 2, 6, 4>);
        entry!(${concat($name, __w4v8r)}, RowArguments, resident::<$modulation, $resident, 4, 2, 8, 6>);
    };
}

/// `resident_operator` for each recipe.
macro_rules! resident_recipes {
    ($name:ident, $modulation:ty) => {
        resident_operator!(${concat($name, _sm110)}, $modulation, Nvfp4<FlashRtSm110>, Nvfp4<InShared<FlashRtSm110>>);
        resident_operator!(${concat($name, _sm120)}, $modulation, Nvfp4<FlashRtSm120>, Nvfp4<InShared<FlashRtSm120>>);
        resident_operator!(${concat($name, _te)}, $modulation, Nvfp4<TransformerEngine>, Nvfp4<TransformerEngine>);
    };
}

/// `operator` or `paired_operator` for each recipe.
macro_rules! recipes {
    ($operator:ident, $name:ident, $modulation:ty) => {
        $operator!(${concat($name, _sm110)}, $modulation, Nvfp4<FlashRtSm110>);
        $operator!(${concat($name, _sm120)}, $modulation, Nvfp4<FlashRtSm120>);
        $operator!(${concat($name, _te)}, $modulation, Nvfp4<TransformerEngine>);
    };
}

streamed_operator!(ada_layer_norm_quant_fp8_bf16, Broadcast, Fp8Static);
operator!(ada_layer_norm_quant_fp8_ptok_bf16, PerToken, Fp8Static);
operator!(ada_layer_norm_quant_fp8_ptok_table_bf16, PerTokenTable, Fp8Static);
streamed_operator!(ada_layer_norm_quant_fp8_modfp8_bf16, BroadcastFp8, Fp8Static);
// Launched by images for 8.9 and later (`Operator::uses_pairs`); in the others too, so that every image has the same entries.
pairs!(ada_layer_norm_quant_fp8_modfp8_bf16, BroadcastFp8, Fp8Static);
streamed_operator!(awq_ada_layer_norm_quant_fp8_bf16, Broadcast, Awq<Fp8Static>);
resident_recipes!(ada_layer_norm_quant_nvfp4_swizzled_bf16, Broadcast);
resident_recipes!(ada_layer_norm_quant_nvfp4_swizzled_modfp8_bf16, BroadcastFp8);
recipes!(operator, ada_layer_norm_quant_nvfp4_swizzled_ptok_table_bf16, PerTokenTable);
paired_operator!(layer_norm_no_affine_quant_fp8_static_bf16, NoAffine, Fp8Static);
recipes!(paired_operator, layer_norm_no_affine_quant_nvfp4_swizzled_bf16, NoAffine);
operator!(ada_layer_norm_ptok_table_bf16, PerTokenTable, Bf16);
entry!(adaln_modulation6_bf16__aligned, Modulation6Arguments, modulation6_aligned);
entry!(adaln_modulation6_bf16__any, Modulation6Arguments, modulation6_any);
