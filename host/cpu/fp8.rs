//! The FP8 sinks of a row.
use super::statistics::widen;
use crate::formats::E4m3;
use half::bf16;

/// `1 / max(act_scale, 1e-12)`; NaN counts as 1e-12.
pub(super) fn inverse(act_scale: f32) -> f32 {
    1.0 / act_scale.max(1e-12)
}

/// `e4m3(v · inv)`.
#[inline(always)]
pub(super) fn static_scale(v: &[f32], inv: f32, out: &mut [E4m3]) {
    for (out, v) in out.iter_mut().zip(v) {
        *out = E4m3::from_f32(v * inv);
    }
}

/// `v · inv_s`, in place.
#[inline(always)]
pub(super) fn column_factors(v: &mut [f32], inv_s: &[bf16]) {
    for (v, inv_s) in v.iter_mut().zip(inv_s) {
        *v *= widen(*inv_s);
    }
}
