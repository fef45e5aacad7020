//! The catalogue: which operators exist, of which parts, with which operands.
//!
//! [`Operator::ALL`] is what tests, benches, the command line and the docs iterate. Adding an operator is one row of the table
//! at the end of this file and one method in `methods.rs`.
use crate::element::DType;
use crate::error::ParseError;
use std::fmt;
use std::str::FromStr;

/// What happens between the normalised row and its bf16 rounding (contract section 2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModulationKind {
    /// Plain LayerNorm.
    None,
    /// bf16 scale and shift `[D]`.
    Broadcast,
    /// bf16 scale and shift `[R, D]`.
    PerToken,
    /// bf16 temb `[R, C, D]` plus f32 table `[C, D]`.
    PerTokenTable,
    /// e4m3 scale and shift `[D]` with f32 factors.
    BroadcastFp8,
    /// No normalisation: f32 params `[R, 6, D]` plus f32 modulation `[6, D]`.
    SixWay,
}

/// What becomes of the modulated row (contract section 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SinkKind {
    /// bf16 as it is.
    Bf16,
    /// e4m3 with a static scale.
    Fp8,
    /// A factor per column, then e4m3 with a static scale.
    AwqFp8,
    /// e2m1 codes and swizzled block scales, by one of three recipes.
    Nvfp4,
    /// Six bf16 matrices.
    SixBf16,
}

/// One axis of an operand's shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Axis {
    /// R, or any number of leading axes whose product is R (`[B, S, D]` is `[R, D]` with R = B·S).
    Rows,
    /// D.
    Dim,
    /// D/2: two codes a byte.
    HalfDim,
    /// C, the chunks of temb and table.
    Chunks,
    /// 6.
    Six,
    /// One element; the axis may be absent.
    Scalar,
    /// The bytes of the 128x4 scale layout, or more.
    ScaleLayout,
}

/// An operand: its name in contract.md, files and errors, its dtype and shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperandSpec {
    /// The name.
    pub name: &'static str,
    /// The element type.
    pub dtype: DType,
    /// The axes, outermost first.
    pub shape: &'static [Axis],
    /// Whether it may be absent.
    pub optional: bool,
}

const fn operand(name: &'static str, dtype: DType, shape: &'static [Axis]) -> OperandSpec {
    OperandSpec { name, dtype, shape, optional: false }
}

const BY_COLUMN: &[Axis] = &[Axis::Dim];
const BY_ROW: &[Axis] = &[Axis::Rows, Axis::Dim];
const SCALAR: &[Axis] = &[Axis::Scalar];

const X: OperandSpec = operand("x", DType::Bf16, BY_ROW);
const SCALE: OperandSpec = operand("scale", DType::Bf16, BY_COLUMN);
const SHIFT: OperandSpec = operand("shift", DType::Bf16, BY_COLUMN);
const ROW_SCALE: OperandSpec = operand("scale", DType::Bf16, BY_ROW);
const ROW_SHIFT: OperandSpec = operand("shift", DType::Bf16, BY_ROW);
const TEMB: OperandSpec = operand("temb", DType::Bf16, &[Axis::Rows, Axis::Chunks, Axis::Dim]);
const TABLE: OperandSpec = operand("table", DType::F32, &[Axis::Chunks, Axis::Dim]);
const SCALE_FP8: OperandSpec = operand("scale_fp8", DType::E4m3, BY_COLUMN);
const SHIFT_FP8: OperandSpec = operand("shift_fp8", DType::E4m3, BY_COLUMN);
const SCALE_DEQ: OperandSpec = operand("scale_deq", DType::F32, SCALAR);
const SHIFT_DEQ: OperandSpec = operand("shift_deq", DType::F32, SCALAR);
const ADALN_PARAMS: OperandSpec = operand("adaln_params", DType::F32, &[Axis::Rows, Axis::Six, Axis::Dim]);
const LAYER_MODULATION: OperandSpec = operand("layer_modulation", DType::F32, &[Axis::Six, Axis::Dim]);
const ACT_SCALE: OperandSpec = operand("act_scale", DType::F32, SCALAR);
const INV_S: OperandSpec = operand("inv_s", DType::Bf16, BY_COLUMN);
const GLOBAL_SCALE: OperandSpec = OperandSpec { optional: true, ..operand("global_scale", DType::F32, SCALAR) };
const OUT: OperandSpec = operand("out", DType::Bf16, BY_ROW);
const FP8_OUT: OperandSpec = operand("out", DType::E4m3, BY_ROW);
pub(crate) const PACKED: OperandSpec = operand("packed", DType::U8, &[Axis::Rows, Axis::HalfDim]);
pub(crate) const SF_SWIZZLED: OperandSpec = operand("sf_swizzled", DType::U8, &[Axis::ScaleLayout]);
const SIX_OUT: [OperandSpec; 6] = [
    OperandSpec { name: "out0", ..OUT },
    OperandSpec { name: "out1", ..OUT },
    OperandSpec { name: "out2", ..OUT },
    OperandSpec { name: "out3", ..OUT },
    OperandSpec { name: "out4", ..OUT },
    OperandSpec { name: "out5", ..OUT },
];

impl ModulationKind {
    /// What an operator with this modulation reads apart from the sink's operands.
    pub const fn inputs(self) -> &'static [OperandSpec] {
        match self {
            Self::None => &[X],
            Self::Broadcast => &[X, SCALE, SHIFT],
            Self::PerToken => &[X, ROW_SCALE, ROW_SHIFT],
            Self::PerTokenTable => &[X, TEMB, TABLE],
            Self::BroadcastFp8 => &[X, SCALE_FP8, SHIFT_FP8, SCALE_DEQ, SHIFT_DEQ],
            Self::SixWay => &[ADALN_PARAMS, LAYER_MODULATION],
        }
    }
}

impl Operator {
    /// Whether there are kernels of this operator that walk over rows and hold the modulation that they share.
    pub const fn has_streams(self) -> bool {
        let held = matches!(self.modulation(), ModulationKind::Broadcast | ModulationKind::BroadcastFp8);
        held && matches!(self.sink(), SinkKind::Fp8 | SinkKind::AwqFp8)
    }

    /// Whether there are kernels of this operator whose threads take pairs of lanes: where rows share a modulation or have none, but for FP8
    /// after a modulation in bf16, whose streams are faster.
    pub const fn has_pairs(self) -> bool {
        matches!(
            (self.modulation(), self.sink()),
            (ModulationKind::None | ModulationKind::BroadcastFp8, SinkKind::Fp8) | (_, SinkKind::Nvfp4)
        ) && self.modulation().is_shared_by_rows()
    }

    /// Whether an image for GPUs of a compute capability is to run the operator in pairs. Without the conversion from e4m3, which came with
    /// 8.9, it is cheaper to hold a modulation in fp8 than to decode it for each row: on sm_87 28 instructions an element in a stream, 42 in
    /// pairs.
    pub fn uses_pairs(self, capability: (u32, u32)) -> bool {
        self.has_pairs() && (capability >= (8, 9) || !self.has_streams())
    }

    /// Whether there are kernels of this operator whose blocks stay and keep the modulation: where rows share one and the sink is NVFP4. FP8
    /// gains nothing: 16384 rows of 3072 take 40.0 us with the modulation in fp8 kept, and 38.4 in pairs; in bf16 41.1, and 38.9 in a stream.
    pub const fn has_residents(self) -> bool {
        let kept = matches!(self.modulation(), ModulationKind::Broadcast | ModulationKind::BroadcastFp8);
        kept && matches!(self.sink(), SinkKind::Nvfp4)
    }
}

impl ModulationKind {
    /// Whether every row is modulated with the same operands.
    pub const fn is_shared_by_rows(self) -> bool {
        match self {
            Self::None | Self::Broadcast | Self::BroadcastFp8 | Self::SixWay => true,
            Self::PerToken | Self::PerTokenTable => false,
        }
    }
}

impl SinkKind {
    /// What the sink reads.
    pub const fn inputs(self) -> &'static [OperandSpec] {
        match self {
            Self::Bf16 | Self::SixBf16 => &[],
            Self::Fp8 => &[ACT_SCALE],
            Self::AwqFp8 => &[INV_S, ACT_SCALE],
            Self::Nvfp4 => &[GLOBAL_SCALE],
        }
    }

    /// What the sink writes.
    pub const fn outputs(self) -> &'static [OperandSpec] {
        match self {
            Self::Bf16 => &[OUT],
            Self::Fp8 | Self::AwqFp8 => &[FP8_OUT],
            Self::Nvfp4 => &[PACKED, SF_SWIZZLED],
            Self::SixBf16 => &SIX_OUT,
        }
    }

    /// What D must be a multiple of.
    pub const fn dim_divisor(self) -> u32 {
        match self {
            Self::Bf16 | Self::Fp8 | Self::AwqFp8 => 2,
            Self::Nvfp4 => 16,
            Self::SixBf16 => 1,
        }
    }
}

impl Operator {
    /// What the operator reads, in the order of contract.md.
    pub fn inputs(self) -> impl Iterator<Item = &'static OperandSpec> {
        self.modulation().inputs().iter().chain(self.sink().inputs())
    }

    /// What the operator writes.
    pub fn outputs(self) -> impl Iterator<Item = &'static OperandSpec> {
        self.sink().outputs().iter()
    }

    /// The operand of that name.
    pub fn operand(self, name: &str) -> Option<&'static OperandSpec> {
        self.inputs().chain(self.outputs()).find(|operand| operand.name == name)
    }

    /// What D must be a multiple of: 16 for NVFP4, 2 for the other row operators, 1 for modulation6.
    pub const fn dim_divisor(self) -> u32 {
        self.sink().dim_divisor()
    }

    /// The operator made of these two parts, if it is in the catalogue.
    pub fn of(modulation: ModulationKind, sink: SinkKind) -> Option<Self> {
        Self::ALL.into_iter().find(|operator| (operator.modulation(), operator.sink()) == (modulation, sink))
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Operator {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<Self, ParseError> {
        let known = || Self::ALL.map(Self::name).join(", ");
        Self::ALL
            .into_iter()
            .find(|operator| operator.name() == name)
            .ok_or_else(|| ParseError::new("operator", name, known()))
    }
}

/// Turns the table into the enum and its `match`es.
macro_rules! operators {
    ($($(#[$doc:meta])* $variant:ident = $name:literal: $modulation:ident, $sink:ident;)*) => {
        /// The operators of contract section 4, by the names they have in the original package.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Operator {
            $($(#[$doc])* $variant,)*
        }

        impl Operator {
            /// Every operator.
            pub const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// The name: of the method, of the kernel entry's first part, on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Its modulation.
            pub const fn modulation(self) -> ModulationKind {
                match self {
                    $(Self::$variant => ModulationKind::$modulation,)*
                }
            }

            /// Its sink.
            pub const fn sink(self) -> SinkKind {
                match self {
                    $(Self::$variant => SinkKind::$sink,)*
                }
            }
        }
    };
}

operators! {
    /// AdaLN to FP8.
    AdaLayerNormQuantFp8Bf16 = "ada_layer_norm_quant_fp8_bf16": Broadcast, Fp8;
    /// AdaLN with a scale and shift per token, to FP8.
    AdaLayerNormQuantFp8PtokBf16 = "ada_layer_norm_quant_fp8_ptok_bf16": PerToken, Fp8;
    /// AdaLN with a modulation table, to FP8.
    AdaLayerNormQuantFp8PtokTableBf16 = "ada_layer_norm_quant_fp8_ptok_table_bf16": PerTokenTable, Fp8;
    /// AdaLN with FP8 scale and shift, to FP8.
    AdaLayerNormQuantFp8Modfp8Bf16 = "ada_layer_norm_quant_fp8_modfp8_bf16": BroadcastFp8, Fp8;
    /// AdaLN, AWQ column factors, FP8.
    AwqAdaLayerNormQuantFp8Bf16 = "awq_ada_layer_norm_quant_fp8_bf16": Broadcast, AwqFp8;
    /// AdaLN to NVFP4.
    AdaLayerNormQuantNvfp4SwizzledBf16 = "ada_layer_norm_quant_nvfp4_swizzled_bf16": Broadcast, Nvfp4;
    /// AdaLN with FP8 scale and shift, to NVFP4.
    AdaLayerNormQuantNvfp4SwizzledModfp8Bf16 = "ada_layer_norm_quant_nvfp4_swizzled_modfp8_bf16": BroadcastFp8, Nvfp4;
    /// AdaLN with a modulation table, to NVFP4.
    AdaLayerNormQuantNvfp4SwizzledPtokTableBf16 = "ada_layer_norm_quant_nvfp4_swizzled_ptok_table_bf16": PerTokenTable, Nvfp4;
    /// LayerNorm to FP8.
    LayerNormNoAffineQuantFp8StaticBf16 = "layer_norm_no_affine_quant_fp8_static_bf16": None, Fp8;
    /// LayerNorm to NVFP4.
    LayerNormNoAffineQuantNvfp4SwizzledBf16 = "layer_norm_no_affine_quant_nvfp4_swizzled_bf16": None, Nvfp4;
    /// AdaLN with a modulation table, in bf16.
    AdaLayerNormPtokTableBf16 = "ada_layer_norm_ptok_table_bf16": PerTokenTable, Bf16;
    /// The six-way modulation of a DiT block.
    AdalnModulation6Bf16 = "adaln_modulation6_bf16": SixWay, SixBf16;
}
