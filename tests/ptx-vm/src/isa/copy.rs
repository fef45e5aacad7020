//! "Data Movement and Conversion Instructions: Asynchronous copy: cp.async, cp.async.commit_group, cp.async.wait_group,
//! cp.async.wait_all". Bulk copies, tensor copies and mbarriers are not defined.

use super::Decoded;
use super::mods::Mods;
use crate::error::ParseErrorKind;
use crate::lower::Operands;
use crate::program::{Access, AccessSpace, Op};
use crate::ty::Ty;

pub(super) fn decode(mut mods: Mods<'_>, operands: Operands<'_, '_>) -> Decoded {
    if !mods.take("async") {
        return Err(mods.unsupported());
    }
    if mods.take("commit_group") {
        return plain(Op::CopyCommit, &mods, &operands);
    }
    if mods.take("wait_all") {
        return plain(Op::CopyWaitAll, &mods, &operands);
    }
    if mods.take("wait_group") {
        mods.done()?;
        operands.expect(1)?;
        return Ok(Op::CopyWait { pending: operands.immediate(0)? });
    }
    copy(mods, operands)
}

fn plain(op: Op, mods: &Mods<'_>, operands: &Operands<'_, '_>) -> Decoded {
    mods.done()?;
    operands.expect(0)?;
    Ok(op)
}

/// `cp.async.ca|cg.shared{::cta}.global [to], [from], bytes{, source_bytes}`: what the source lacks is filled with zeros.
fn copy(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let first_level = mods.take("ca");
    let form =
        (first_level || mods.take("cg")) && (mods.take("shared") || mods.take("shared::cta")) && mods.take("global");
    for hint in ["L2::64B", "L2::128B", "L2::256B"] {
        mods.take(hint);
    }
    if !form {
        return Err(mods.unsupported());
    }
    mods.done()?;
    let size = operands.immediate(2)?;
    if size != 16 && !(first_level && matches!(size, 4 | 8)) {
        return Err(ParseErrorKind::Operand(format!("cp.async of {size} bytes")));
    }
    let partial = operands.count() > 3;
    operands.expect(3 + usize::from(partial))?;
    let source_bytes = if partial { operands.source(3, Ty::U(32))? } else { operands.constant(size) };
    let bytes = u8::try_from(size).unwrap_or(0);
    let to = Access { bytes, ..operands.address(0, AccessSpace::Shared)? };
    let from = Access { bytes, ..operands.address(1, AccessSpace::Global)? };
    Ok(Op::Copy { to, from, source_bytes })
}
