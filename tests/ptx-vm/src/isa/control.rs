//! Control Flow Instructions, "Parallel Synchronization Instructions: bar, barrier, membar, fence", griddepcontrol.

use super::Decoded;
use super::mods::Mods;
use super::warp::warp_barrier;
use crate::error::ParseErrorKind;
use crate::lower::Operands;
use crate::program::{Barrier, BarrierKind, Op, Reduction};
use crate::ty::Ty;

pub(super) fn decode(name: &str, mut mods: Mods<'_>, operands: Operands<'_, '_>) -> Decoded {
    match name {
        "bra" => {
            mods.take("uni");
            mods.done()?;
            operands.expect(1)?;
            Ok(Op::Jump { target: operands.label(0)? })
        }
        "brx" => indexed(mods, operands),
        "ret" | "exit" => {
            mods.take("uni");
            plain(Op::Exit, &mods, &operands)
        }
        "trap" => plain(Op::Trap, &mods, &operands),
        "membar" => {
            let _ = mods.take("cta") || mods.take("gl") || mods.take("sys");
            plain(Op::Nothing, &mods, &operands)
        }
        "fence" => {
            let _ = mods.take("sc") || mods.take("acq_rel") || mods.take("acquire") || mods.take("release");
            let _ = mods.take("cta") || mods.take("gpu") || mods.take("sys");
            plain(Op::Nothing, &mods, &operands)
        }
        // One grid runs at a time, so the grids it depends on have completed and nobody waits for it.
        "griddepcontrol" => {
            let _ = mods.take("wait") || mods.take("launch_dependents");
            plain(Op::Nothing, &mods, &operands)
        }
        "bar" | "barrier" => barrier(name == "bar", mods, operands),
        _ => Err(mods.unsupported()),
    }
}

fn plain(op: Op, mods: &Mods<'_>, operands: &Operands<'_, '_>) -> Decoded {
    mods.done()?;
    operands.expect(0)?;
    Ok(op)
}

/// `brx.idx{.uni} index, targets`
fn indexed(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    mods.take("uni");
    if !mods.take("idx") {
        return Err(mods.unsupported());
    }
    mods.done()?;
    operands.expect(2)?;
    let index = operands.source(0, Ty::U(32))?;
    Ok(Op::Table { index, targets: operands.targets(1)? })
}

/// `bar` is `barrier.aligned`; `bar.warp.sync` is a warp operation.
fn barrier(aligned: bool, mut mods: Mods<'_>, operands: Operands<'_, '_>) -> Decoded {
    if mods.take("warp") {
        let complete = mods.take("sync");
        mods.done()?;
        return if complete && aligned { warp_barrier(operands) } else { Err(mods.unsupported()) };
    }
    mods.take("cta");
    let aligned = mods.take("aligned") || aligned;
    if mods.take("sync") {
        mods.done()?;
        return simple(BarrierKind::Sync, aligned, operands);
    }
    if mods.take("arrive") {
        mods.done()?;
        operands.expect(2)?;
        return simple(BarrierKind::Arrive, aligned, operands);
    }
    if mods.take("red") { reducing(aligned, mods, operands) } else { Err(mods.unsupported()) }
}

fn simple(kind: BarrierKind, aligned: bool, mut operands: Operands<'_, '_>) -> Decoded {
    let id = operands.source(0, Ty::U(32))?;
    let count = if operands.count() > 1 { Some(operands.source(1, Ty::U(32))?) } else { None };
    operands.expect(1 + usize::from(count.is_some()))?;
    Ok(Op::Barrier(Barrier { id, count, aligned, kind }))
}

/// `barrier.red.popc.u32 d, a{, b}, {!}c`, `barrier.red.op.pred p, a{, b}, {!}c`
fn reducing(aligned: bool, mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let op = mods.require_from(&[("popc", Reduction::Count), ("and", Reduction::All), ("or", Reduction::Any)])?;
    let ty = mods.ty()?;
    mods.done()?;
    if ty != (if op == Reduction::Count { Ty::U(32) } else { Ty::Pred }) {
        return Err(mods.unsupported());
    }
    let last = operands.count().checked_sub(1).ok_or_else(|| ParseErrorKind::Operand("operands expected".into()))?;
    let d = operands.destination(0, ty)?;
    let id = operands.source(1, Ty::U(32))?;
    let count = if last == 3 { Some(operands.source(2, Ty::U(32))?) } else { None };
    operands.expect(3 + usize::from(count.is_some()))?;
    let (p, negated) = operands.predicate(last)?;
    Ok(Op::Barrier(Barrier { id, count, aligned, kind: BarrierKind::Reduce { op, d, p, negated } }))
}
