//! bf16 rounding with one NaN.
//!
//! Every NaN a bf16 output holds is `0x7FFF`, whatever NaN went in: that is what the GPU's conversion stores, and a payload
//! would depend on the order of additions.

/// The only NaN that is ever stored.
pub const NAN: half::bf16 = half::bf16::from_bits(0x7fff);

/// Rounds to the nearest bf16, ties to even; beyond the largest to infinity, NaN to [`NAN`].
pub const fn round(value: f32) -> half::bf16 {
    if value.is_nan() {
        return NAN;
    }
    let bits = value.to_bits();
    // Half of the discarded part's range, less one unless the kept part is odd; the carry may reach infinity, as it should.
    half::bf16::from_bits(((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16)
}
