//! The comparison functions, on differences made by hand.
use adaptive_layernorm_producers::E4m3;
use adaptive_layernorm_producers::compare::{self, Nvfp4Output};
use adaptive_layernorm_producers::formats::scale_layout::offset;
use half::bf16;

fn codes(bits: &[u8]) -> Vec<E4m3> {
    bits.iter().map(|bits| E4m3::from_bits(*bits)).collect()
}

#[test]
fn equal_outputs() {
    let report = compare::fp8(&codes(&[0x38, 0x7f, 0x80]), &codes(&[0x38, 0xff, 0x80])).unwrap();
    assert!(report.is_equal() && report.agrees_with_original());
    assert_eq!((report.values, report.largest_distance, report.p99, report.max_abs), (3, 0, 0.0, 0.0));
    let empty = compare::fp8(&[], &[]).unwrap();
    assert_eq!((empty.values, empty.p99, empty.cosine), (0, 0.0, 1.0));
}

#[test]
fn adjacent_codes() {
    // 1 and 1.125, among 999 equal values.
    let mut a = vec![0x38; 1000];
    let b = codes(&a);
    a[7] = 0x39;
    let report = compare::fp8(&codes(&a), &b).unwrap();
    assert_eq!((report.differing, report.largest_distance, report.p99, report.max_abs), (1, 1, 0.0, 0.125));
    assert!(report.agrees_with_original() && !report.is_equal());
    assert!(report.cosine < 1.0 && report.cosine > 0.9999);
}

#[test]
fn what_does_not_agree() {
    let base = vec![0x38; 1000];
    let changed = |count: usize, code: u8| {
        let mut bits = base.clone();
        bits[..count].fill(code);
        compare::fp8(&codes(&base), &codes(&bits)).unwrap()
    };
    assert!(changed(8, 0x39).agrees_with_original());
    assert!(!changed(9, 0x39).agrees_with_original(), "nine of a thousand are too many");
    assert!(!changed(1, 0x3a).agrees_with_original(), "not adjacent");
    let nan = changed(1, 0x7f);
    assert_eq!(nan.largest_distance, u32::MAX);
    assert!(nan.max_abs.is_nan() && !nan.agrees_with_original());
    // 0 and −0 differ as codes, at distance 0; −0 and the smallest negative are adjacent.
    let zeros = compare::fp8(&codes(&[0x00, 0x80]), &codes(&[0x80, 0x81])).unwrap();
    assert_eq!((zeros.differing, zeros.largest_distance), (2, 1));
}

#[test]
fn percentile_99() {
    // One in a hundred is the last that may differ.
    let a = codes(&[0x38; 100]);
    let with = |count: usize| {
        let mut b = a.clone();
        b[..count].fill(E4m3::from_f32(2.0));
        compare::fp8(&a, &b).unwrap().p99
    };
    assert_eq!((with(1), with(2)), (0.0, 1.0));
}

#[test]
fn bf16_distances_count_representable_values() {
    let values = |values: &[f32]| values.iter().map(|v| bf16::from_f32(*v)).collect::<Vec<_>>();
    let report = compare::bf16(&values(&[1.0, -0.0, 2.0]), &values(&[1.015625, 0.0, 2.0])).unwrap();
    assert_eq!((report.differing, report.largest_distance, report.max_abs), (2, 2, 0.015625));
    let opposite = compare::bf16(&values(&[1.0, 2.0]), &values(&[-1.0, -2.0])).unwrap();
    assert!((opposite.cosine + 1.0).abs() < 1e-12);
}

#[test]
fn nvfp4_blocks_of_scale_0_are_set_aside() {
    let (rows, dim) = (2, 32);
    let mut packed = vec![0x21; 32];
    let mut sf = vec![0; 512];
    for (row, column) in [(0, 0), (0, 1), (1, 0)] {
        sf[offset(row, column, dim) as usize] = 0x38;
    }
    let original = (packed.clone(), sf.clone());
    let compare = |packed: &[u8], sf: &[u8]| {
        let expected = Nvfp4Output { packed: &original.0, sf_swizzled: &original.1 };
        compare::nvfp4(expected, Nvfp4Output { packed, sf_swizzled: sf }, rows, dim).unwrap()
    };
    // The last block has scale 0: its codes mean nothing.
    packed[24..].fill(0x77);
    let report = compare(&packed, &sf);
    assert!(report.agrees_with_original() && report.differing_packed == 0 && report.codes.differing > 0);
    // A code of a block that counts, in the high nibble: 1 becomes 1.5.
    packed[3] = 0x31;
    let report = compare(&packed, &sf);
    assert_eq!((report.differing_packed, report.codes.max_abs), (1, 0.5));
    assert!(!report.agrees_with_original());
    // A pad byte, and a scale.
    sf[offset(5, 0, dim) as usize] = 1;
    assert_eq!(compare(&original.0, &sf).dirty_padding, 1);
    sf[offset(1, 0, dim) as usize] = 0x39;
    assert_eq!(compare(&original.0, &sf).scales.differing, 1);
}
