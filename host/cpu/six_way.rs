//! modulation6: six sums a position, rows in parallel.
use super::dispatch::{self, Job};
use crate::formats::bf16::round;
use crate::operand::SixWay;
use half::bf16;
use rayon::prelude::*;

/// One of the six outputs of one row.
struct Part<'a> {
    params: &'a [f32],
    modulation: &'a [f32],
    out: &'a mut [bf16],
}

impl Job for Part<'_> {
    #[inline(always)]
    fn run(self) {
        for (out, (param, modulation)) in self.out.iter_mut().zip(self.params.iter().zip(self.modulation)) {
            *out = round(param + modulation);
        }
    }
}

pub(super) fn run(parts: SixWay<'_>, dim: usize) {
    let SixWay { adaln_params, layer_modulation, out } = parts;
    out.into_par_iter().enumerate().for_each(|(k, out)| {
        let modulation = &layer_modulation[k * dim..][..dim];
        let rows = out.par_chunks_exact_mut(dim).zip(adaln_params.par_chunks_exact(6 * dim));
        rows.for_each(|(out, params)| dispatch::run(Part { params: &params[k * dim..][..dim], modulation, out }));
    });
}
