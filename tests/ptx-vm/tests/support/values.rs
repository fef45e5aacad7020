//! Values worth trying: the special ones, the ones beside them, and random patterns of all magnitudes.

use super::exact::Form;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

/// Special patterns of a format, with both signs: zero, the subnormals' ends, one, the largest, infinity, NaNs, and neighbours.
pub fn special(form: Form) -> Vec<u64> {
    let hidden = 1u64 << form.mantissa;
    let one = u64::try_from(form.bias).unwrap() << form.mantissa;
    let mut magnitudes =
        vec![0, 1, 2, 3, hidden - 1, hidden, hidden + 1, one - 1, one, one + 1, one + hidden / 2, one + hidden];
    magnitudes.extend([form.max - 1, form.max]);
    if let Some(infinity) = form.infinity {
        magnitudes.extend([infinity, infinity + 1, infinity + hidden / 2, infinity + hidden - 1]);
    }
    magnitudes.iter().flat_map(|m| [*m, m | form.sign_bit()]).collect()
}

/// Special values and `count` random patterns.
pub fn patterns(form: Form, count: usize, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let mut values = special(form);
    values.extend((0..count).map(|_| random.next() >> (64 - form.bits)));
    values
}

/// Pairs: all of the special values with each other, and random pairs, half of them with close exponents.
pub fn pairs(form: Form, count: usize, seed: u64) -> Vec<Vec<u64>> {
    let special = special(form);
    let mut pairs: Vec<Vec<u64>> = special.iter().flat_map(|a| special.iter().map(|b| vec![*a, *b])).collect();
    let mut random = Random(seed);
    for index in 0..count {
        let a = random.next() >> (64 - form.bits);
        let mut b = random.next() >> (64 - form.bits);
        if index % 2 == 0 {
            let exponent = !((1u64 << form.mantissa) - 1) & !form.sign_bit();
            b = (b & !exponent) | (a & exponent);
        }
        pairs.push(vec![a, b]);
    }
    pairs
}

/// Triples of random values, a third of them with `c` close to `-a*b`.
pub fn triples(form: Form, count: usize, seed: u64, product: impl Fn(u64, u64) -> u64) -> Vec<Vec<u64>> {
    let mut triples: Vec<Vec<u64>> = Vec::new();
    let special = special(form);
    let mut random = Random(seed);
    let pick = |random: &mut Random| special[usize::try_from(random.next() % special.len() as u64).unwrap()];
    for index in 0..count {
        let (a, b) = (random.next() >> (64 - form.bits), random.next() >> (64 - form.bits));
        let c = match index % 3 {
            0 => random.next() >> (64 - form.bits),
            1 => (product(a, b) ^ form.sign_bit()) ^ (random.next() & 3),
            _ => pick(&mut random),
        };
        triples.push(vec![a, b, c]);
        triples.push(vec![pick(&mut random), pick(&mut random), pick(&mut random)]);
    }
    triples
}

/// Integers at the ends of their ranges and random ones, of `bits` bits.
pub fn integers(bits: u32, count: usize, seed: u64) -> Vec<u64> {
    let mask = u64::MAX >> (64 - bits);
    let top = 1u64 << (bits - 1);
    let mut values = vec![0, 1, 2, 3, 7, 8, 0x55, 0xAA, top - 1, top, top + 1, mask - 1, mask];
    let mut random = Random(seed);
    values.extend((0..count).map(|_| {
        let shift = random.next() % u64::from(bits);
        (random.next() & mask) >> shift
    }));
    values
}

/// Every pair of these integers.
pub fn integer_pairs(bits: u32, count: usize, seed: u64) -> Vec<Vec<u64>> {
    let values = integers(bits, count, seed);
    values.iter().flat_map(|a| values.iter().map(|b| vec![*a, *b])).collect()
}
