//! The sinks.
use super::space::{Host, Input, Mut, Output, Ref, Space, View};
use crate::check::OperandList;
use crate::element::Element;
use crate::formats::E4m3;
use crate::operator::SinkKind;
use crate::recipe::Nvfp4Recipe;
use half::bf16;

/// Stores the modulated row. NaN is stored as `0x7FFF`.
#[derive(Debug)]
pub struct Bf16<O> {
    /// bf16 `[R, D]`.
    pub out: O,
}

/// `e4m3(v · 1/max(act_scale, 1e-12))`, saturating at ±448; NaN is stored as `0x7F`.
#[derive(Debug)]
pub struct Fp8<T, O> {
    /// f32, one element; read at run time, so a captured graph sees a new value.
    pub act_scale: T,
    /// e4m3 `[R, D]`.
    pub out: O,
}

/// [`Fp8`] of `v · inv_s[d]`: AWQ's factor per column.
#[derive(Debug)]
pub struct AwqFp8<V, T, O> {
    /// bf16 `[D]`.
    pub inv_s: V,
    /// f32, one element.
    pub act_scale: T,
    /// e4m3 `[R, D]`.
    pub out: O,
}

/// NVFP4: e2m1 codes, and one e4m3 scale per 16 columns in the 128x4 layout.
#[derive(Debug)]
pub struct Nvfp4<P, Q, G = Absent> {
    /// How scales and codes are chosen.
    pub recipe: Nvfp4Recipe,
    /// [`Absent`], `None`, or f32, one element, with [`Nvfp4Recipe::TransformerEngine`] only; absent means 1. Read at run time.
    pub global_scale: G,
    /// u8 `[R, D/2]`, element 2j in the low nibble of byte j.
    pub packed: P,
    /// u8, at least [`swizzled_sf_size`](crate::formats::swizzled_sf_size) bytes. Every one of these is written, padding as 0; later ones
    /// are left alone.
    pub sf_swizzled: Q,
}

impl<P, Q> Nvfp4<P, Q> {
    /// NVFP4 without a global scale.
    pub const fn new(recipe: Nvfp4Recipe, packed: P, sf_swizzled: Q) -> Self {
        Self { recipe, global_scale: Absent, packed, sf_swizzled }
    }
}

/// No global scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Absent;

/// An input that may be left out: [`Absent`], or an `Option` of an [`Input`].
pub trait OptionalInput<'a, T: Element, S: Space> {
    /// The view, if there is one.
    fn view(self) -> Option<Ref<'a, T, S>>;
}

impl<'a, T: Element, S: Space> OptionalInput<'a, T, S> for Absent {
    fn view(self) -> Option<Ref<'a, T, S>> {
        None
    }
}

impl<'a, T: Element, S: Space, V: Input<'a, T, S>> OptionalInput<'a, T, S> for Option<V> {
    fn view(self) -> Option<Ref<'a, T, S>> {
        self.map(V::view)
    }
}

/// Any sink, for the composed form `run`, which takes the structs above as well.
#[derive(Debug)]
pub enum Sink<'a, S: Space = Host> {
    /// See [`struct@Bf16`].
    Bf16(Bf16<Mut<'a, bf16, S>>),
    /// See [`struct@Fp8`].
    Fp8(Fp8<Ref<'a, f32, S>, Mut<'a, E4m3, S>>),
    /// See [`struct@AwqFp8`].
    AwqFp8(AwqFp8<Ref<'a, bf16, S>, Ref<'a, f32, S>, Mut<'a, E4m3, S>>),
    /// See [`struct@Nvfp4`].
    Nvfp4(Nvfp4Views<'a, S>),
}

/// Packed codes, block scales, global scale.
type Nvfp4Views<'a, S> = Nvfp4<Mut<'a, u8, S>, Mut<'a, u8, S>, Option<Ref<'a, f32, S>>>;

impl<S: Space> Sink<'_, S> {
    /// Which row of the catalogue's sinks this is.
    pub const fn kind(&self) -> SinkKind {
        match self {
            Self::Bf16(_) => SinkKind::Bf16,
            Self::Fp8(_) => SinkKind::Fp8,
            Self::AwqFp8(_) => SinkKind::AwqFp8,
            Self::Nvfp4(_) => SinkKind::Nvfp4,
        }
    }

    /// The recipe of an NVFP4 sink.
    pub const fn recipe(&self) -> Option<Nvfp4Recipe> {
        match self {
            Self::Nvfp4(sink) => Some(sink.recipe),
            Self::Bf16(_) | Self::Fp8(_) | Self::AwqFp8(_) => None,
        }
    }

    pub(crate) fn list(&self, list: &mut OperandList) {
        match self {
            Self::Bf16(sink) => list.output("out", sink.out.extent()),
            Self::Fp8(sink) => {
                list.input("act_scale", sink.act_scale.extent());
                list.output("out", sink.out.extent());
            }
            Self::AwqFp8(sink) => {
                list.input("inv_s", sink.inv_s.extent());
                list.input("act_scale", sink.act_scale.extent());
                list.output("out", sink.out.extent());
            }
            Self::Nvfp4(sink) => {
                if let Some(global_scale) = &sink.global_scale {
                    list.input("global_scale", global_scale.extent());
                }
                list.output("packed", sink.packed.extent());
                list.output("sf_swizzled", sink.sf_swizzled.extent());
            }
        }
    }
}

impl<'a, S: Space, O: Output<'a, bf16, S>> From<Bf16<O>> for Sink<'a, S> {
    fn from(sink: Bf16<O>) -> Self {
        Self::Bf16(Bf16 { out: sink.out.view() })
    }
}

impl<'a, S: Space, T: Input<'a, f32, S>, O: Output<'a, E4m3, S>> From<Fp8<T, O>> for Sink<'a, S> {
    fn from(sink: Fp8<T, O>) -> Self {
        Self::Fp8(Fp8 { act_scale: sink.act_scale.view(), out: sink.out.view() })
    }
}

impl<'a, S, V, T, O> From<AwqFp8<V, T, O>> for Sink<'a, S>
where
    S: Space,
    V: Input<'a, bf16, S>,
    T: Input<'a, f32, S>,
    O: Output<'a, E4m3, S>,
{
    fn from(sink: AwqFp8<V, T, O>) -> Self {
        Self::AwqFp8(AwqFp8 { inv_s: sink.inv_s.view(), act_scale: sink.act_scale.view(), out: sink.out.view() })
    }
}

impl<'a, S, P, Q, G> From<Nvfp4<P, Q, G>> for Sink<'a, S>
where
    S: Space,
    P: Output<'a, u8, S>,
    Q: Output<'a, u8, S>,
    G: OptionalInput<'a, f32, S>,
{
    fn from(sink: Nvfp4<P, Q, G>) -> Self {
        Self::Nvfp4(Nvfp4 {
            recipe: sink.recipe,
            global_scale: sink.global_scale.view(),
            packed: sink.packed.view(),
            sf_swizzled: sink.sf_swizzled.view(),
        })
    }
}
