//! Fundamental and packed types (PTX ISA, "Types").

/// A type as it stands in a modifier or a declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ty {
    Pred,
    B(u32),
    U(u32),
    S(u32),
    F16,
    Bf16,
    F32,
    F64,
    U16x2,
    S16x2,
    F16x2,
    Bf16x2,
    F32x2,
    E4m3x2,
    E5m2x2,
    E2m1x2,
    E2m3x2,
    E3m2x2,
}

/// Names without the leading dot.
const NAMES: [(&str, Ty); 28] = [
    ("pred", Ty::Pred),
    ("b8", Ty::B(8)),
    ("b16", Ty::B(16)),
    ("b32", Ty::B(32)),
    ("b64", Ty::B(64)),
    ("u8", Ty::U(8)),
    ("u16", Ty::U(16)),
    ("u32", Ty::U(32)),
    ("u64", Ty::U(64)),
    ("s8", Ty::S(8)),
    ("s16", Ty::S(16)),
    ("s32", Ty::S(32)),
    ("s64", Ty::S(64)),
    ("f16", Ty::F16),
    ("bf16", Ty::Bf16),
    ("f32", Ty::F32),
    ("f64", Ty::F64),
    ("u16x2", Ty::U16x2),
    ("s16x2", Ty::S16x2),
    ("f16x2", Ty::F16x2),
    ("bf16x2", Ty::Bf16x2),
    ("f32x2", Ty::F32x2),
    ("e4m3x2", Ty::E4m3x2),
    ("e5m2x2", Ty::E5m2x2),
    ("e2m1x2", Ty::E2m1x2),
    ("e2m3x2", Ty::E2m3x2),
    ("e3m2x2", Ty::E3m2x2),
    ("b128", Ty::B(128)),
];

impl Ty {
    /// The type of this name (`u32`, not `.u32`).
    pub(crate) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(n, _)| *n == name).map(|(_, ty)| *ty)
    }

    /// Width of a register that holds one.
    pub(crate) const fn bits(self) -> u32 {
        match self {
            Self::Pred => 1,
            Self::B(n) | Self::U(n) | Self::S(n) => n,
            Self::E2m1x2 => 8,
            Self::F16 | Self::Bf16 | Self::E4m3x2 | Self::E5m2x2 | Self::E2m3x2 | Self::E3m2x2 => 16,
            Self::F32 | Self::U16x2 | Self::S16x2 | Self::F16x2 | Self::Bf16x2 => 32,
            Self::F64 | Self::F32x2 => 64,
        }
    }

    /// Bytes in memory.
    pub(crate) fn bytes(self) -> u64 {
        u64::from(self.bits().div_ceil(8))
    }

    pub(crate) const fn is_signed(self) -> bool {
        matches!(self, Self::S(_))
    }

    pub(crate) const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }
}
