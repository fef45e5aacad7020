//! What a launch passes to a kernel: one structure by value per kernel family.
//!
//! Addresses are 64-bit device addresses; an operand an operator does not have is 0. Scalars that a captured graph may
//! change (act_scale, scale_deq, shift_deq, global scale) are addresses too: the kernel reads them.

/// Arguments of every row operator (all but modulation6).
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RowArguments {
    /// bf16 `[rows, dim]`.
    pub x: u64,
    /// bf16 `[dim]` (broadcast) or `[rows, dim]` (per token), e4m3 `[dim]` (broadcast fp8), bf16 `[rows, chunks, dim]` (temb of the table form).
    pub scale: u64,
    /// As `scale`; unused by the table form.
    pub shift: u64,
    /// f32 `[table_chunks, dim]`, table form.
    pub table: u64,
    /// f32 scalar, broadcast fp8.
    pub scale_deq: u64,
    /// f32 scalar, broadcast fp8.
    pub shift_deq: u64,
    /// bf16 `[dim]`, AWQ.
    pub inv_s: u64,
    /// f32 scalar: act_scale of the FP8 sinks, the optional global scale of the TransformerEngine recipe (0: absent, 1.0).
    pub sink_scale: u64,
    /// e4m3 `[rows, dim]`, bf16 `[rows, dim]`, or packed u8 `[rows, dim/2]`.
    pub out: u64,
    /// Swizzled scale bytes, NVFP4.
    pub block_scales: u64,
    /// R.
    pub rows: u32,
    /// D.
    pub dim: u32,
    /// C of temb and table.
    pub table_chunks: u32,
    /// Row of the table that shifts.
    pub shift_idx: u32,
    /// Row of the table that scales.
    pub scale_idx: u32,
    /// Added to the variance.
    pub eps: f32,
    /// `1 / f32(D)`, rounded once.
    pub inv_dim: f32,
    /// `C4` of the scale layout, NVFP4.
    pub column_groups: u32,
    /// Threads that share a row: 2, 4, 8, 16 or 32 of a warp, or 64, 128 or 256.
    pub team: u32,
}

/// Outputs of modulation6.
pub const PARTS: u32 = 6;

/// Arguments of modulation6.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modulation6Arguments {
    /// f32 `[rows, 6, dim]`.
    pub params: u64,
    /// f32 `[6, dim]`.
    pub modulation: u64,
    /// Six of bf16 `[rows, dim]`.
    pub out: [u64; 6],
    /// B·S.
    pub rows: u32,
    /// D.
    pub dim: u32,
}
