//! The architectures, under the names of the published crate.

/// The GPU architecture to build for. The published crate ends at `Compute80`; the later ones follow its spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum NvvmArch {
    /// Ampere.
    Compute80,
    /// Jetson Orin.
    Compute87,
    /// Ada.
    Compute89,
    /// Hopper.
    Compute90,
    /// Data-centre Blackwell, with its own instructions.
    Compute100a,
    /// Thor, with its own instructions.
    Compute110a,
    /// Consumer Blackwell, with its own instructions.
    Compute120a,
}

impl NvvmArch {
    /// The name in the target list.
    pub fn target(self) -> &'static str {
        match self {
            Self::Compute80 => "sm_80",
            Self::Compute87 => "sm_87",
            Self::Compute89 => "sm_89",
            Self::Compute90 => "sm_90",
            Self::Compute100a => "sm_100a",
            Self::Compute110a => "sm_110a",
            Self::Compute120a => "sm_120a",
        }
    }
}
