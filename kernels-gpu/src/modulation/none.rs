//! No affine: `v = bf16(n)`.
use super::Modulation;
use crate::contract::abi::RowArguments;
use crate::view::Place;

/// Plain LayerNorm.
pub struct NoAffine;

impl Modulation for NoAffine {
    type Operands = ();
    type Held = ();
    type Constants = ();
    const SHARED_BY_ROWS: bool = true;

    #[inline(always)]
    fn begin(_: &RowArguments) {}

    #[inline(always)]
    fn load<P: Place>(_: &RowArguments, _: u32, _: P) {}

    #[inline(always)]
    fn hold(_: (), _: ()) {}

    #[inline(always)]
    fn apply(_: (), _: (), n: [f32; 8]) -> [f32; 8] {
        n
    }
}
