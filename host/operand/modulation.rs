//! The input and the modulations.
use super::space::{Host, Input, Mut, Ref, Space, View};
use crate::check::OperandList;
use crate::formats::E4m3;
use crate::operator::ModulationKind;
use half::bf16;

/// x: bf16 `[rows, dim]`, contiguous, row major.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<V> {
    /// The `rows · dim` elements.
    pub data: V,
    /// R; 0 is allowed, and every operator does nothing then.
    pub rows: usize,
    /// D.
    pub dim: usize,
}

impl<V> Matrix<V> {
    /// A matrix over `data`.
    pub const fn new(data: V, rows: usize, dim: usize) -> Self {
        Self { data, rows, dim }
    }

    /// The same over the view of `data`.
    pub(crate) fn view<'a, S: Space>(self) -> Matrix<Ref<'a, bf16, S>>
    where
        V: Input<'a, bf16, S>,
    {
        Matrix { data: self.data.view(), rows: self.rows, dim: self.dim }
    }
}

/// Plain LayerNorm: `v = bf16(n)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoAffine;

/// `v = bf16(fma(n, 1 + scale, shift))`, the same for every row.
#[derive(Clone, Copy, Debug)]
pub struct Broadcast<V> {
    /// bf16 `[D]`.
    pub scale: V,
    /// bf16 `[D]`.
    pub shift: V,
}

/// `v = bf16(fma(n, 1 + scale, shift))` with the row's own scale and shift.
#[derive(Clone, Copy, Debug)]
pub struct PerToken<V> {
    /// bf16 `[R, D]`.
    pub scale: V,
    /// bf16 `[R, D]`.
    pub shift: V,
}

/// Scale and shift as sums in f32 of a table and the row's embedding: `s = table[scale_idx] + temb[r, scale_idx]`.
#[derive(Clone, Copy, Debug)]
pub struct PerTokenTable<V, T> {
    /// bf16 `[R, C, D]`.
    pub temb: V,
    /// f32 `[C, D]`; its length gives C.
    pub table: T,
    /// Chunk of temb and table that shifts, below C.
    pub shift_idx: u32,
    /// Chunk of temb and table that scales, below C.
    pub scale_idx: u32,
}

/// Scale and shift in FP8: `v = bf16(fma(shift, shift_deq, fma(scale, scale_deq, 1) · n))`.
#[derive(Clone, Copy, Debug)]
pub struct BroadcastFp8<V, T> {
    /// e4m3 `[D]`.
    pub scale: V,
    /// e4m3 `[D]`.
    pub shift: V,
    /// f32, one element: factor of scale.
    pub scale_deq: T,
    /// f32, one element: factor of shift.
    pub shift_deq: T,
}

/// Any modulation, for the composed form `run`, which takes the structs above as well.
#[derive(Clone, Copy, Debug)]
pub enum Modulation<'a, S: Space = Host> {
    /// See [`NoAffine`].
    NoAffine(NoAffine),
    /// See [`Broadcast`].
    Broadcast(Broadcast<Ref<'a, bf16, S>>),
    /// See [`PerToken`].
    PerToken(PerToken<Ref<'a, bf16, S>>),
    /// See [`PerTokenTable`].
    PerTokenTable(PerTokenTable<Ref<'a, bf16, S>, Ref<'a, f32, S>>),
    /// See [`BroadcastFp8`].
    BroadcastFp8(BroadcastFp8<Ref<'a, E4m3, S>, Ref<'a, f32, S>>),
}

/// Everything modulation6 works on: `out_k = bf16(adaln_params[r, k] + layer_modulation[k])`.
///
/// D is a sixth of `layer_modulation`'s length, R a sixth of `adaln_params`' rows.
#[derive(Debug)]
pub struct SixWay<'a, S: Space = Host> {
    /// f32 `[B, S, 6, D]`.
    pub adaln_params: Ref<'a, f32, S>,
    /// f32 `[6, D]`.
    pub layer_modulation: Ref<'a, f32, S>,
    /// Six bf16 `[B, S, D]`.
    pub out: [Mut<'a, bf16, S>; 6],
}

impl<S: Space> Modulation<'_, S> {
    /// Which row of the catalogue's modulations this is.
    pub const fn kind(&self) -> ModulationKind {
        match self {
            Self::NoAffine(_) => ModulationKind::None,
            Self::Broadcast(_) => ModulationKind::Broadcast,
            Self::PerToken(_) => ModulationKind::PerToken,
            Self::PerTokenTable(_) => ModulationKind::PerTokenTable,
            Self::BroadcastFp8(_) => ModulationKind::BroadcastFp8,
        }
    }

    pub(crate) fn list(&self, list: &mut OperandList) {
        match self {
            Self::NoAffine(NoAffine) => {}
            Self::Broadcast(Broadcast { scale, shift }) | Self::PerToken(PerToken { scale, shift }) => {
                list.input("scale", scale.extent());
                list.input("shift", shift.extent());
            }
            Self::PerTokenTable(m) => {
                list.input("temb", m.temb.extent());
                list.input("table", m.table.extent());
            }
            Self::BroadcastFp8(m) => {
                list.input("scale_fp8", m.scale.extent());
                list.input("shift_fp8", m.shift.extent());
                list.input("scale_deq", m.scale_deq.extent());
                list.input("shift_deq", m.shift_deq.extent());
            }
        }
    }
}

impl<S: Space> SixWay<'_, S> {
    pub(crate) fn list(&self) -> OperandList {
        const OUT: [&str; 6] = ["out0", "out1", "out2", "out3", "out4", "out5"];
        let mut list = OperandList::default();
        list.input("adaln_params", self.adaln_params.extent());
        list.input("layer_modulation", self.layer_modulation.extent());
        for (name, out) in OUT.into_iter().zip(&self.out) {
            list.output(name, out.extent());
        }
        list
    }
}

impl<S: Space> From<NoAffine> for Modulation<'_, S> {
    fn from(part: NoAffine) -> Self {
        Self::NoAffine(part)
    }
}

impl<'a, S: Space, V: Input<'a, bf16, S>> From<Broadcast<V>> for Modulation<'a, S> {
    fn from(Broadcast { scale, shift }: Broadcast<V>) -> Self {
        Self::Broadcast(Broadcast { scale: scale.view(), shift: shift.view() })
    }
}

impl<'a, S: Space, V: Input<'a, bf16, S>> From<PerToken<V>> for Modulation<'a, S> {
    fn from(PerToken { scale, shift }: PerToken<V>) -> Self {
        Self::PerToken(PerToken { scale: scale.view(), shift: shift.view() })
    }
}

impl<'a, S: Space, V: Input<'a, bf16, S>, T: Input<'a, f32, S>> From<PerTokenTable<V, T>> for Modulation<'a, S> {
    fn from(PerTokenTable { temb, table, shift_idx, scale_idx }: PerTokenTable<V, T>) -> Self {
        Self::PerTokenTable(PerTokenTable { temb: temb.view(), table: table.view(), shift_idx, scale_idx })
    }
}

impl<'a, S: Space, V: Input<'a, E4m3, S>, T: Input<'a, f32, S>> From<BroadcastFp8<V, T>> for Modulation<'a, S> {
    fn from(m: BroadcastFp8<V, T>) -> Self {
        let (scale_deq, shift_deq) = (m.scale_deq.view(), m.shift_deq.view());
        Self::BroadcastFp8(BroadcastFp8 { scale: m.scale.view(), shift: m.shift.view(), scale_deq, shift_deq })
    }
}
