//! FP8 e4m3 with a static scale, alone or after AWQ's per-column factor.
use super::{Sink, Table};
use crate::contract::abi::RowArguments;
use crate::formats::{e4m3x4, widen};
use crate::ptx::{bf16x2, load_32, reciprocal};
use crate::view::{Place, row_address};
use core::array::from_fn;

/// `e4m3(f32(v) · inv)` with `inv = 1 / max(act_scale, 1e-12)`.
pub struct Fp8Static;

/// `f32(v) · f32(inv_s[d])` before the sink.
pub struct Awq<S>(core::marker::PhantomData<S>);

impl Sink for Fp8Static {
    /// act_scale
    type Scalars = f32;
    /// inv
    type Constants = f32;
    type Rounded = [f32; 8];
    type Operands = ();
    type Entry = ();
    type Row = u64;

    #[inline(always)]
    fn begin(a: &RowArguments, _: Table) -> f32 {
        // SAFETY: the host checked that act_scale is an f32 in device memory.
        f32::from_bits(unsafe { load_32(a.sink_scale) })
    }

    #[inline(always)]
    fn prepare(act_scale: f32) -> f32 {
        reciprocal(act_scale.max(1e-12))
    }

    #[inline(always)]
    fn load<P: Place>(_: &RowArguments, _: P) {}

    #[inline(always)]
    fn round(v: [f32; 8]) -> [f32; 8] {
        v.map(rounded)
    }

    #[inline(always)]
    fn look_up(_: f32, _: [f32; 8]) {}

    #[inline(always)]
    fn row(a: &RowArguments, row: u32, _: u32) -> u64 {
        row_address(a.out, row, a.dim)
    }

    #[inline(always)]
    fn store<P: Place, const LANES: usize>(row: u64, inv: f32, _: [(); LANES], place: P, _: (), v: [[f32; 8]; LANES]) {
        place.store_bytes(row, v.map(|v| codes(v.map(|v| v * inv))));
    }
}

impl Sink for Awq<Fp8Static> {
    type Scalars = f32;
    type Constants = f32;
    type Rounded = [f32; 8];
    /// inv_s
    type Operands = [u32; 4];
    type Entry = ();
    type Row = u64;

    #[inline(always)]
    fn begin(a: &RowArguments, table: Table) -> f32 {
        Fp8Static::begin(a, table)
    }

    #[inline(always)]
    fn prepare(act_scale: f32) -> f32 {
        Fp8Static::prepare(act_scale)
    }

    #[inline(always)]
    fn load<P: Place>(a: &RowArguments, place: P) -> [u32; 4] {
        place.bf16(a.inv_s)
    }

    #[inline(always)]
    fn round(v: [f32; 8]) -> [f32; 8] {
        v.map(rounded)
    }

    #[inline(always)]
    fn look_up(_: f32, _: [f32; 8]) {}

    #[inline(always)]
    fn row(a: &RowArguments, row: u32, _: u32) -> u64 {
        row_address(a.out, row, a.dim)
    }

    #[inline(always)]
    fn store<P: Place, const LANES: usize>(
        row: u64,
        inv: f32,
        inv_s: [[u32; 4]; LANES],
        place: P,
        _: (),
        v: [[f32; 8]; LANES],
    ) {
        const { assert!(LANES == 1, "no entry with pairs of lanes has AWQ's factors") };
        let inv_s = widen(inv_s[0]);
        place.store_bytes(row, [codes(from_fn(|e| v[0][e] * inv_s[e] * inv))]);
    }
}

#[inline(always)]
fn codes(q: [f32; 8]) -> [u32; 2] {
    [e4m3x4(q[0], q[1], q[2], q[3]), e4m3x4(q[4], q[5], q[6], q[7])]
}

/// The nearest bf16, as f32: packed as the upper half of a word whose lower half is 0.
#[inline(always)]
fn rounded(v: f32) -> f32 {
    f32::from_bits(bf16x2(v, 0.0))
}
