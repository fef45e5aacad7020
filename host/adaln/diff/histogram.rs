//! How far apart differing codes are, counted in powers of two.
use crate::difference::Kind;
use adaptive_layernorm_producers::named::Tensor;
use std::fmt;

/// The bins: their label and largest distance.
const BINS: [(&str, u32); 7] = [
    ("0 (sign of zero)", 0),
    ("1 (adjacent)", 1),
    ("2", 2),
    ("3 to 4", 4),
    ("5 to 8", 8),
    ("more", u32::MAX - 1),
    ("NaN against a number", u32::MAX),
];

/// Differing elements by the distance of their codes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Histogram([u64; BINS.len()]);

impl Histogram {
    /// Counts the elements that differ.
    pub fn of(kind: Kind, a: &Tensor, b: &Tensor) -> Self {
        let mut counts = [0; BINS.len()];
        for at in 0..kind.elements(a) {
            let (a, b) = (kind.element(a, at), kind.element(b, at));
            let distance = match (a.ordinal, b.ordinal) {
                _ if a.bits == b.bits => continue,
                (Some(a), Some(b)) => a.abs_diff(b).min(u32::MAX - 1),
                // Two NaN are the same.
                (None, None) => continue,
                (Some(_), None) | (None, Some(_)) => u32::MAX,
            };
            let bin = BINS.iter().position(|(_, most)| distance <= *most).unwrap_or(BINS.len() - 1);
            counts[bin] += 1;
        }
        Self(counts)
    }
}

/// A line for each bin that is not empty.
impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDTH: u64 = 40;
        let most = self.0.iter().copied().max().unwrap_or(0).max(1);
        for ((label, _), count) in BINS.iter().zip(self.0).filter(|(_, count)| *count > 0) {
            let bar = "█".repeat((count * WIDTH).div_ceil(most) as usize);
            writeln!(f, "    {label:<21} {count:>10} {bar}")?;
        }
        Ok(())
    }
}
