//! The checks on device views, whose memory nothing here touches; tests/api.rs has those that host slices can show.
use super::{MAX_ROWS, row_operator, six_way};
use crate::error::Error;
use crate::operand::{
    Broadcast, Device, DeviceView, DeviceViewMut, Fp8, Matrix, Modulation, Nvfp4, PerTokenTable, Sink, SixWay,
};
use crate::operator::Operator;
use crate::recipe::Nvfp4Recipe;
use crate::{E4m3, Element};
use half::bf16;

const FP8: Operator = Operator::AdaLayerNormQuantFp8Bf16;
const TABLE: Operator = Operator::AdaLayerNormQuantFp8PtokTableBf16;
const NVFP4: Operator = Operator::AdaLayerNormQuantNvfp4SwizzledBf16;
const SIX: Operator = Operator::AdalnModulation6Bf16;

#[expect(unsafe_code, reason = "makes views of no memory")]
fn input<'a, T: Element>(address: u64, len: usize) -> DeviceView<'a, T> {
    // SAFETY: nothing reads it, there is no launch in these tests.
    unsafe { DeviceView::from_raw_parts(address, len) }
}

#[expect(unsafe_code, reason = "makes views of no memory")]
fn output<'a, T: Element>(address: u64, len: usize) -> DeviceViewMut<'a, T> {
    // SAFETY: nothing writes it, there is no launch in these tests.
    unsafe { DeviceViewMut::from_raw_parts(address, len) }
}

/// Address and length of each operand of AdaLN to FP8; by default of 4 x 64, far apart.
#[derive(Clone, Copy)]
struct Call {
    rows: usize,
    dim: usize,
    x: (u64, usize),
    scale: (u64, usize),
    shift: (u64, usize),
    act_scale: (u64, usize),
    out: (u64, usize),
}

const GOOD: Call = Call {
    rows: 4,
    dim: 64,
    x: (0x1000, 256),
    scale: (0x2000, 64),
    shift: (0x3000, 64),
    act_scale: (0x4000, 1),
    out: (0x5000, 256),
};

impl Call {
    fn check(self) -> Result<(), Error> {
        let x = Matrix::new(input(self.x.0, self.x.1), self.rows, self.dim);
        let modulation: Broadcast<DeviceView<'_, bf16>> =
            Broadcast { scale: input(self.scale.0, self.scale.1), shift: input(self.shift.0, self.shift.1) };
        let act_scale: DeviceView<'_, f32> = input(self.act_scale.0, self.act_scale.1);
        let out: DeviceViewMut<'_, E4m3> = output(self.out.0, self.out.1);
        row_operator::<Device>(x, modulation.into(), Fp8 { act_scale, out }.into()).map(drop)
    }
}

#[test]
fn good_operands_pass() {
    assert_eq!(GOOD.check(), Ok(()));
}

#[test]
fn null_pointers_need_length_0() {
    let null = Call { scale: (0, 64), ..GOOD };
    assert_eq!(null.check(), Err(Error::Null { operator: FP8, operand: "scale", got: 64 }));
    let no_rows = Call { rows: 0, x: (0, 0), out: (0, 0), ..GOOD };
    assert_eq!(no_rows.check(), Ok(()));
}

#[test]
fn addresses_are_multiples_of_the_element() {
    let misaligned = |operand, expected, got| Err(Error::Misaligned { operator: FP8, operand, expected, got });
    assert_eq!(Call { x: (0x1001, 256), ..GOOD }.check(), misaligned("x", 2, 0x1001));
    assert_eq!(Call { act_scale: (0x4002, 1), ..GOOD }.check(), misaligned("act_scale", 4, 0x4002));
    assert_eq!(Call { x: (0x1002, 256), out: (0x5001, 256), ..GOOD }.check(), Ok(()));
}

#[test]
fn outputs_overlap_nothing() {
    let overlap = |other| Err(Error::Overlap { operator: FP8, operand: "out", other });
    // x is 512 bytes, act_scale 4, scale and shift 128, out 256.
    assert_eq!(Call { out: (0x1000, 256), ..GOOD }.check(), overlap("x"));
    assert_eq!(Call { out: (0x11ff, 256), ..GOOD }.check(), overlap("x"));
    assert_eq!(Call { out: (0x1200, 256), ..GOOD }.check(), Ok(()));
    assert_eq!(Call { out: (0x2000 - 255, 256), ..GOOD }.check(), overlap("scale"));
    assert_eq!(Call { out: (0x2000 - 256, 256), ..GOOD }.check(), Ok(()));
    assert_eq!(Call { out: (0x4003, 256), ..GOOD }.check(), overlap("act_scale"));
    // Inputs may share memory.
    assert_eq!(Call { shift: GOOD.scale, ..GOOD }.check(), Ok(()));
}

#[test]
fn outputs_do_not_overlap_each_other() {
    let six = |second: u64| {
        let out = [0x10_000, second, 0x30_000, 0x40_000, 0x50_000, 0x60_000].map(|address| output(address, 64));
        six_way::<Device>(SixWay { adaln_params: input(0x1000, 384), layer_modulation: input(0x2000, 96), out })
            .map(|call| (call.sizes().rows, call.sizes().dim))
    };
    assert_eq!(six(0x20_000), Ok((4, 16)));
    assert_eq!(six(0x10_000 + 126), Err(Error::Overlap { operator: SIX, operand: "out1", other: "out0" }));
    assert_eq!(six(0x10_000 + 128), Ok((4, 16)));
}

fn nvfp4(packed: (u64, usize), sf: (u64, usize)) -> Result<(), Error> {
    let x = Matrix::new(input(0x1000, 256), 4, 64);
    let modulation: Broadcast<DeviceView<'_, bf16>> = Broadcast { scale: input(0x2000, 64), shift: input(0x3000, 64) };
    let packed: DeviceViewMut<'_, u8> = output(packed.0, packed.1);
    let sf: DeviceViewMut<'_, u8> = output(sf.0, sf.1);
    row_operator::<Device>(x, modulation.into(), Nvfp4::new(Nvfp4Recipe::FlashRtSm110, packed, sf).into()).map(drop)
}

#[test]
fn of_a_larger_scale_buffer_only_the_needed_part_counts() {
    assert_eq!(nvfp4((0x5000, 128), (0x6000, 512)), Ok(()));
    let short = Error::TooShort { operator: NVFP4, operand: "sf_swizzled", expected: 512, got: 511 };
    assert_eq!(nvfp4((0x5000, 128), (0x6000, 511)), Err(short));
    // 512 bytes are needed: what lies behind them may belong to packed.
    assert_eq!(nvfp4((0x6200, 128), (0x6000, 100_000)), Ok(()));
    let overlap = Error::Overlap { operator: NVFP4, operand: "sf_swizzled", other: "packed" };
    assert_eq!(nvfp4((0x61ff, 128), (0x6000, 100_000)), Err(overlap));
}

#[test]
fn the_end_of_the_address_space_is_not_passed() {
    let top = Call { out: (u64::MAX - 254, 256), ..GOOD };
    assert!(matches!(top.check(), Err(Error::Overflow { operator: FP8, operand: "out", .. })));
    assert_eq!(Call { out: (u64::MAX - 256, 256), ..GOOD }.check(), Ok(()));
    let spare = nvfp4((0x5000, 128), (u64::MAX - 1024, usize::MAX));
    assert!(matches!(spare, Err(Error::Overflow { operator: NVFP4, operand: "sf_swizzled", .. })));
}

#[test]
fn sizes_that_no_memory_has_are_refused() {
    // The most rows of the longest rows: 2^52 elements are a length like any other.
    let huge =
        Call { rows: MAX_ROWS as usize, dim: 1 << 24, scale: (0x2000, 1 << 24), shift: (0x3000, 1 << 24), ..GOOD };
    let expected = u64::from(MAX_ROWS) << 24;
    assert_eq!(huge.check(), Err(Error::Length { operator: FP8, operand: "x", expected, got: 256 }));
    let more = Call { rows: MAX_ROWS as usize + 1, ..GOOD };
    let error = Error::TooManyRows { operator: FP8, operand: "x", expected: MAX_ROWS, got: MAX_ROWS as usize + 1 };
    assert_eq!(more.check(), Err(error));
    let six = six_way::<Device>(SixWay {
        adaln_params: input(0x1000, 6 * (MAX_ROWS as usize + 1)),
        layer_modulation: input(0x2000, 6),
        out: [0; 6].map(|_| output(0, 0)),
    });
    let got = MAX_ROWS as usize + 1;
    let error = Error::TooManyRows { operator: SIX, operand: "adaln_params", expected: MAX_ROWS, got };
    assert_eq!(six.err(), Some(error));
}

#[test]
fn a_row_of_temb_fits_32_bits() {
    let table = |chunks: usize| {
        let dim = 1 << 20;
        let x = Matrix::new(input(0, 0), 0, dim);
        let modulation = PerTokenTable::<DeviceView<'_, bf16>, DeviceView<'_, f32>> {
            temb: input(0, 0),
            table: input(0x10_0000, chunks * dim),
            shift_idx: 0,
            scale_idx: 0,
        };
        let sink: Sink<'_, Device> = Fp8 { act_scale: input(0x4000, 1), out: output::<E4m3>(0, 0) }.into();
        let modulation: Modulation<'_, Device> = modulation.into();
        row_operator::<Device>(x, modulation, sink).map(|call| call.sizes().chunks)
    };
    // 2047 chunks of 2^20 bf16 are just below 2^32 bytes.
    assert_eq!(table(2047), Ok(2047));
    assert!(matches!(table(2048), Err(Error::Overflow { operator: TABLE, operand: "temb", .. })));
}

#[cfg(feature = "cuda")]
mod alignment {
    use super::*;

    /// For accesses to 8 elements, and to 16.
    fn is_aligned(x: u64, scale: u64, out: u64, dim: usize) -> [bool; 2] {
        let x = Matrix::new(input(x, 4 * dim), 4, dim);
        let modulation: Broadcast<DeviceView<'_, bf16>> =
            Broadcast { scale: input(scale, dim), shift: input(0x3000, dim) };
        let act_scale: DeviceView<'_, f32> = input(0x4004, 1);
        let out: DeviceViewMut<'_, E4m3> = output(out, 4 * dim);
        let call = row_operator::<Device>(x, modulation.into(), Fp8 { act_scale, out }.into()).unwrap();
        [call.is_aligned(), call.is_aligned_in_pairs()]
    }

    #[test]
    fn wide_accesses_need_16_bytes_of_bf16_and_8_or_16_of_e4m3() {
        assert_eq!(is_aligned(0x1000, 0x2000, 0x5000, 64), [true, true]);
        assert_eq!(is_aligned(0x1010, 0x2010, 0x5010, 64), [true, true]);
        assert_eq!(is_aligned(0x1010, 0x2010, 0x5008, 64), [true, false]);
        assert_eq!(is_aligned(0x1000, 0x2000, 0x5000, 72), [true, false]);
        assert_eq!(is_aligned(0x1008, 0x2000, 0x5000, 64), [false, false]);
        assert_eq!(is_aligned(0x1000, 0x2002, 0x5000, 64), [false, false]);
        assert_eq!(is_aligned(0x1000, 0x2000, 0x5004, 64), [false, false]);
        assert_eq!(is_aligned(0x1000, 0x2000, 0x5000, 60), [false, false]);
    }

    #[test]
    fn block_scales_need_4_bytes() {
        let check = |sf: u64| {
            let x = Matrix::new(input(0x1000, 256), 4, 64);
            let modulation: Broadcast<DeviceView<'_, bf16>> =
                Broadcast { scale: input(0x2000, 64), shift: input(0x3000, 64) };
            let (packed, sf): (DeviceViewMut<'_, u8>, DeviceViewMut<'_, u8>) = (output(0x5000, 128), output(sf, 512));
            let sink = Nvfp4::new(Nvfp4Recipe::FlashRtSm110, packed, sf);
            row_operator::<Device>(x, modulation.into(), sink.into()).unwrap().scale_bytes_alignment()
        };
        assert_eq!(check(0x6004), Ok(()));
        let error = Error::Misaligned { operator: NVFP4, operand: "sf_swizzled", expected: 4, got: 0x6002 };
        assert_eq!(check(0x6002), Err(error));
    }

    /// e2m1 codes of a chunk are 4 bytes, those of a pair 8; block scales need 4 whatever the rest.
    #[test]
    fn wide_accesses_of_nvfp4_need_4_or_8_bytes() {
        let check = |packed: u64, sf: u64| {
            let x = Matrix::new(input(0x1000, 256), 4, 64);
            let modulation: Broadcast<DeviceView<'_, bf16>> =
                Broadcast { scale: input(0x2000, 64), shift: input(0x3000, 64) };
            let (packed, sf): (DeviceViewMut<'_, u8>, DeviceViewMut<'_, u8>) = (output(packed, 128), output(sf, 512));
            let sink = Nvfp4::new(Nvfp4Recipe::FlashRtSm110, packed, sf);
            let call = row_operator::<Device>(x, modulation.into(), sink.into()).unwrap();
            [call.is_aligned(), call.is_aligned_in_pairs()]
        };
        assert_eq!([check(0x5000, 0x6000), check(0x5008, 0x6004)], [[true, true]; 2]);
        assert_eq!(check(0x5004, 0x6004), [true, false]);
        assert_eq!([check(0x5002, 0x6000), check(0x5001, 0x6000)], [[false, false]; 2]);
    }

    /// Four f32 are 16 bytes, four bf16 are 8.
    #[test]
    fn modulation6_moves_four_elements() {
        let check = |params: u64, out: u64, dim: usize| {
            let outs = [0, 1, 2, 3, 4, 5].map(|k| output(out + 0x1000 * k, dim));
            let parts =
                SixWay { adaln_params: input(params, 6 * dim), layer_modulation: input(0x8000, 6 * dim), out: outs };
            six_way::<Device>(parts).unwrap().is_aligned()
        };
        assert!(check(0x1000, 0x10_000, 16) && check(0x1010, 0x10_008, 20));
        assert!(!check(0x1008, 0x10_000, 16) && !check(0x1000, 0x10_004, 16));
        assert!(!check(0x1000, 0x10_000, 18));
    }
}
