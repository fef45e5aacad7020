//! One row from x to its sink, and the rows in parallel.
use super::dispatch::{self, Job};
use super::modulation::RowModulation;
use super::statistics::{Lanes, statistics};
use super::{fp8, nvfp4};
use crate::contract::swizzle::{BLOCK, TILE_BYTES, column_groups, offset};
use crate::convert::{to_index, to_u32, to_usize};
use crate::formats::E4m3;
use crate::operand::{AwqFp8, Bf16, Fp8, Modulation, Nvfp4};
use half::bf16;
use rayon::prelude::*;

/// Rows of the scale layout that share their bytes.
const TILE_ROWS: usize = 128;

/// What rows are made from.
pub(super) struct Source<'x, 'm> {
    pub x: &'x [bf16],
    pub dim: usize,
    pub modulation: Modulation<'m>,
    pub eps: f32,
}

/// Where one row goes.
pub(super) enum RowSink<'a> {
    Bf16(&'a mut [bf16]),
    Fp8 { inv: f32, out: &'a mut [E4m3] },
    AwqFp8 { inv_s: &'a [bf16], inv: f32, out: &'a mut [E4m3] },
    Nvfp4 { recipe: nvfp4::Recipe, packed: &'a mut [u8], scales: &'a mut [u8] },
}

/// Buffers for one row, reused for the next.
pub(super) struct Scratch {
    /// The modulated row, rounded to bf16.
    v: Vec<f32>,
    lanes: Lanes,
    blocks: nvfp4::Blocks,
}

impl Scratch {
    /// For rows of `dim` elements; `blocks` if they are quantised by block.
    pub fn new(dim: usize, blocks: bool) -> Self {
        Self { v: vec![0.0; dim], lanes: Lanes::new(dim), blocks: nvfp4::Blocks::new(if blocks { dim } else { 0 }) }
    }
}

/// One row's work.
pub(super) struct Row<'a> {
    x: &'a [bf16],
    modulation: RowModulation<'a>,
    eps: f32,
    sink: RowSink<'a>,
    scratch: &'a mut Scratch,
}

impl Job for Row<'_> {
    #[inline(always)]
    fn run(self) {
        let Scratch { v, lanes, blocks } = self.scratch;
        let statistics = statistics(self.x, self.eps, lanes);
        self.modulation.apply(self.x, statistics, v);
        match self.sink {
            RowSink::Bf16(out) => {
                for (out, v) in out.iter_mut().zip(v) {
                    // v is rounded: its lower half is 0, or it is NaN.
                    *out = bf16::from_bits((v.to_bits() >> 16) as u16);
                }
            }
            RowSink::Fp8 { inv, out } => fp8::static_scale(v, inv, out),
            RowSink::AwqFp8 { inv_s, inv, out } => {
                fp8::column_factors(v, inv_s);
                fp8::static_scale(v, inv, out);
            }
            RowSink::Nvfp4 { recipe, packed, scales } => nvfp4::row(recipe, v, blocks, packed, scales),
        }
    }
}

impl Source<'_, '_> {
    pub fn row<'a>(&'a self, r: usize, sink: RowSink<'a>, scratch: &'a mut Scratch) -> Row<'a> {
        let x = &self.x[r * self.dim..][..self.dim];
        Row { x, modulation: RowModulation::of(&self.modulation, r, self.dim), eps: self.eps, sink, scratch }
    }

    /// Runs every row of an output with `dim` elements a row.
    fn each_row<'a, T: Send>(&'a self, out: &'a mut [T], sink: impl Fn(&'a mut [T]) -> RowSink<'a> + Sync) {
        out.par_chunks_exact_mut(self.dim).enumerate().for_each_init(
            || Scratch::new(self.dim, false),
            |scratch, (r, out)| dispatch::run(self.row(r, sink(out), scratch)),
        );
    }
}

pub(super) fn bf16(source: &Source<'_, '_>, sink: Bf16<&mut [bf16]>) {
    source.each_row(sink.out, RowSink::Bf16);
}

pub(super) fn fp8(source: &Source<'_, '_>, sink: Fp8<&[f32], &mut [E4m3]>) {
    let inv = fp8::inverse(sink.act_scale[0]);
    source.each_row(sink.out, |out| RowSink::Fp8 { inv, out });
}

pub(super) fn awq_fp8(source: &Source<'_, '_>, sink: AwqFp8<&[bf16], &[f32], &mut [E4m3]>) {
    let inv = fp8::inverse(sink.act_scale[0]);
    source.each_row(sink.out, |out| RowSink::AwqFp8 { inv_s: sink.inv_s, inv, out });
}

/// Tiles of 128 rows in parallel, since their scales share bytes ranges; the rows of a tile in parallel into a row-major matrix of
/// scales, which is then put into the layout.
pub(super) fn nvfp4(source: &Source<'_, '_>, sink: Nvfp4<&mut [u8], &mut [u8], Option<&[f32]>>) {
    let recipe = nvfp4::Recipe::new(sink.recipe, sink.global_scale.map(|scale| scale[0]));
    let dim = source.dim;
    let columns = dim / to_usize(BLOCK);
    let groups = column_groups(to_u32(dim));
    let tiles = sink.packed.par_chunks_mut(TILE_ROWS * dim / 2);
    let layout = sink.sf_swizzled.par_chunks_exact_mut(to_usize(groups) * to_index(TILE_BYTES));
    tiles.zip(layout).enumerate().for_each(|(tile, (packed, layout))| {
        let mut scales = vec![0; packed.len() / (dim / 2) * columns];
        let rows = packed.par_chunks_exact_mut(dim / 2).zip(scales.par_chunks_exact_mut(columns)).enumerate();
        rows.for_each_init(
            || Scratch::new(dim, true),
            |scratch, (r, (packed, scales))| {
                let sink = RowSink::Nvfp4 { recipe, packed, scales };
                dispatch::run(source.row(tile * TILE_ROWS + r, sink, scratch));
            },
        );
        layout.fill(0);
        for (r, row) in scales.chunks_exact(columns).enumerate() {
            for (c, scale) in row.iter().enumerate() {
                layout[to_index(offset(to_u32(r), to_u32(c), groups))] = *scale;
            }
        }
    });
}
