//! What a kernel is passed: addresses of the operands an operator has, 0 for those it has not.
use crate::check::{RowParts, Sizes};
use crate::contract::abi::{Modulation6Arguments, RowArguments};
use crate::contract::swizzle;
use crate::convert::{to_f32, to_usize};
use crate::operand::{Broadcast, Device, Modulation, NoAffine, PerToken, Sink, SixWay, View};

/// Arguments of a row operator; `team` is the launch's.
pub(crate) fn rows(sizes: Sizes, parts: &RowParts<'_, '_, '_, Device>, eps: f32, team: u32) -> RowArguments {
    let mut a = RowArguments {
        x: address(&parts.x.data),
        scale: 0,
        shift: 0,
        table: 0,
        scale_deq: 0,
        shift_deq: 0,
        inv_s: 0,
        sink_scale: 0,
        out: 0,
        block_scales: 0,
        rows: sizes.rows,
        dim: sizes.dim,
        table_chunks: sizes.chunks,
        shift_idx: 0,
        scale_idx: 0,
        eps,
        inv_dim: 1.0 / to_f32(to_usize(sizes.dim)),
        column_groups: swizzle::column_groups(sizes.dim),
        team,
    };
    modulation(&parts.modulation, &mut a);
    sink(&parts.sink, &mut a);
    a
}

/// Arguments of modulation6.
pub(crate) fn six_way(sizes: Sizes, parts: &SixWay<'_, Device>) -> Modulation6Arguments {
    Modulation6Arguments {
        params: address(&parts.adaln_params),
        modulation: address(&parts.layer_modulation),
        out: parts.out.each_ref().map(address),
        rows: sizes.rows,
        dim: sizes.dim,
    }
}

fn modulation(modulation: &Modulation<'_, Device>, a: &mut RowArguments) {
    match modulation {
        Modulation::NoAffine(NoAffine) => {}
        Modulation::Broadcast(Broadcast { scale, shift }) | Modulation::PerToken(PerToken { scale, shift }) => {
            (a.scale, a.shift) = (address(scale), address(shift));
        }
        Modulation::PerTokenTable(m) => {
            (a.scale, a.table) = (address(&m.temb), address(&m.table));
            (a.shift_idx, a.scale_idx) = (m.shift_idx, m.scale_idx);
        }
        Modulation::BroadcastFp8(m) => {
            (a.scale, a.shift) = (address(&m.scale), address(&m.shift));
            (a.scale_deq, a.shift_deq) = (address(&m.scale_deq), address(&m.shift_deq));
        }
    }
}

fn sink(sink: &Sink<'_, Device>, a: &mut RowArguments) {
    match sink {
        Sink::Bf16(sink) => a.out = address(&sink.out),
        Sink::Fp8(sink) => (a.sink_scale, a.out) = (address(&sink.act_scale), address(&sink.out)),
        Sink::AwqFp8(sink) => {
            (a.inv_s, a.sink_scale, a.out) = (address(&sink.inv_s), address(&sink.act_scale), address(&sink.out));
        }
        Sink::Nvfp4(sink) => {
            a.sink_scale = sink.global_scale.as_ref().map_or(0, address);
            (a.out, a.block_scales) = (address(&sink.packed), address(&sink.sf_swizzled));
        }
    }
}

fn address(view: &impl View) -> u64 {
    view.extent().address
}
