//! What is measured.
use super::Args;
use crate::demo::calls;
use crate::inputs::Extents;
use crate::seed_shapes;
use adaptive_layernorm_producers::named::Call;
use adaptive_layernorm_producers::operator::{ModulationKind, SinkKind};
use adaptive_layernorm_producers::{Nvfp4Recipe, Operator};

/// The largest D of a sweep.
const WIDEST: usize = 16384;

/// Every call and shape, in the order of the table.
pub fn all(args: &Args) -> Vec<(Call, Extents)> {
    let operators = if args.operator.is_empty() { Operator::ALL.to_vec() } else { args.operator.clone() };
    let recipes = if args.recipe.is_empty() { Nvfp4Recipe::ALL.to_vec() } else { args.recipe.clone() };
    let calls = operators.into_iter().flat_map(|operator| calls(operator, &recipes));
    calls.flat_map(|call| shapes(args, call.operator).into_iter().map(move |extents| (call, extents))).collect()
}

fn shapes(args: &Args, operator: Operator) -> Vec<Extents> {
    if !args.shape.is_empty() {
        return args.shape.clone();
    }
    if !args.sweep {
        return seed_shapes::of(operator);
    }
    let step = (args.step as usize).next_multiple_of(operator.dim_divisor() as usize);
    let at = |dim: usize| {
        let row = bytes_a_row(operator, dim);
        Extents::new([(args.megabytes as usize * 1_000_000 / row).max(1)], dim)
    };
    // Every multiple of the step from 16 on.
    (16usize.next_multiple_of(step)..=WIDEST).step_by(step).map(at).collect()
}

/// Bytes read and written for a row, those that rows share aside.
fn bytes_a_row(operator: Operator, dim: usize) -> usize {
    let modulation = match operator.modulation() {
        ModulationKind::None | ModulationKind::Broadcast | ModulationKind::BroadcastFp8 => 2,
        ModulationKind::PerToken | ModulationKind::PerTokenTable => 6,
        ModulationKind::SixWay => 24,
    };
    let sixteenths = match operator.sink() {
        SinkKind::Bf16 => 32,
        SinkKind::Fp8 | SinkKind::AwqFp8 => 16,
        SinkKind::Nvfp4 => 9,
        SinkKind::SixBf16 => 192,
    };
    (dim * modulation + dim * sixteenths / 16).max(1)
}
