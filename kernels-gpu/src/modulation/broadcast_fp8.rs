//! Broadcast fp8: scale and shift as e4m3 `[D]`, each with a device-resident f32 factor.
use super::{Affine, Modulation};
use crate::contract::abi::RowArguments;
use crate::formats::decode_four;
use crate::ptx::{fma, load_32};
use crate::view::Place;

/// `fma(shift, shift_deq, fma(scale, scale_deq, 1) · n)`.
pub struct BroadcastFp8;

impl Modulation for BroadcastFp8 {
    type Operands = [[u32; 2]; 2];
    /// `fma(scale, scale_deq, 1)` and the decoded shift.
    type Held = Affine;
    /// scale_deq, shift_deq.
    type Constants = [f32; 2];
    const SHARED_BY_ROWS: bool = true;

    #[inline(always)]
    fn begin(a: &RowArguments) -> [f32; 2] {
        // SAFETY: the host checked that both scalars are f32 in device memory.
        unsafe { [f32::from_bits(load_32(a.scale_deq)), f32::from_bits(load_32(a.shift_deq))] }
    }

    #[inline(always)]
    fn load<P: Place>(a: &RowArguments, _: u32, place: P) -> Self::Operands {
        [place.bytes(a.scale), place.bytes(a.shift)]
    }

    #[inline(always)]
    fn hold([scale_deq, _]: [f32; 2], [scale, shift]: Self::Operands) -> Affine {
        [decode_eight(scale).map(|s| fma(s, scale_deq, 1.0)), decode_eight(shift)]
    }

    #[inline(always)]
    fn apply([_, shift_deq]: [f32; 2], [factor, shift]: Affine, n: [f32; 8]) -> [f32; 8] {
        let mut v = n;
        let mut e = 0;
        while e < 8 {
            v[e] = fma(shift[e], shift_deq, factor[e] * n[e]);
            e += 1;
        }
        v
    }
}

#[inline(always)]
fn decode_eight(words: [u32; 2]) -> [f32; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (decode_four(words[0]), decode_four(words[1]));
    [a, b, c, d, e, f, g, h]
}
