//! Warp operations: "shfl.sync", "vote.sync", "match.sync", "redux.sync", "elect.sync", "bar.warp.sync".
//!
//! A warp operation happens when every lane of its member mask has come to it. The machine collects the lanes; the functions
//! here compute the results from the lanes' operands. Forms without `.sync` are refused: who takes part is not defined.

use super::Decoded;
use super::integer::{Int, S32, U32};
use super::mods::Mods;
use crate::lower::Operands;
use crate::program::{F2, Op, Slot};
use crate::ty::Ty;

/// A warp operation: its kind, its member mask, up to three sources and two destinations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WarpOp {
    pub kind: WarpKind,
    pub mask: Slot,
    pub sources: [Slot; 3],
    pub destinations: [Slot; 2],
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum WarpKind {
    /// Sources: value, lane or distance, clamp and segment mask. Destinations: value, in-range predicate.
    Shuffle(Shuffle),
    /// Source: predicate. Destination: predicate or mask.
    Vote { vote: Vote, negated: bool },
    /// Source: value. Destinations: mask, predicate.
    Match { all: bool },
    /// Source: value. Destination: the reduction.
    Reduce(F2),
    /// Destinations: leader lane, predicate.
    Elect,
    /// Orders memory between the lanes.
    Sync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Butterfly,
    Index,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Vote {
    All,
    Any,
    Uniform,
    Ballot,
}

/// Why a warp operation has no result: the lane read is not in the member mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutsideMask {
    pub lane: u32,
    pub source: u32,
}

/// What each lane brings: its sources, in the order of the kind.
pub(crate) type Lanes = [[u64; 3]; 32];

impl WarpKind {
    /// The two results of every lane of `mask`.
    pub(crate) fn run(&self, mask: u32, lanes: &Lanes) -> Result<[[u64; 2]; 32], OutsideMask> {
        let members = || (0..32u32).filter(move |lane| mask >> lane & 1 == 1);
        let value = |lane: u32| lanes[lane as usize][0];
        let mut results = [[0; 2]; 32];
        for lane in members() {
            results[lane as usize] = match self {
                Self::Shuffle(mode) => shuffle(*mode, lane, mask, lanes)?,
                Self::Vote { vote, negated } => {
                    let ballot = members().filter(|l| (value(*l) != 0) != *negated).fold(0, |b, l| b | 1 << l);
                    [vote.result(ballot, mask), 0]
                }
                Self::Match { all } => {
                    let same = members().filter(|l| value(*l) == value(lane)).fold(0u32, |b, l| b | 1 << l);
                    let agree = same == mask;
                    [u64::from(if *all && !agree { 0 } else { same }), u64::from(agree)]
                }
                Self::Reduce(f) => [members().map(value).reduce(f).unwrap_or(0), 0],
                Self::Elect => [u64::from(mask.trailing_zeros()), u64::from(lane == mask.trailing_zeros())],
                Self::Sync => [0, 0],
            };
        }
        Ok(results)
    }
}

/// "Data Movement and Conversion Instructions: shfl.sync": value and in-range predicate of one lane.
fn shuffle(mode: Shuffle, lane: u32, mask: u32, lanes: &Lanes) -> Result<[u64; 2], OutsideMask> {
    let [own, b, c] = lanes[lane as usize];
    let low5 = |x: u64| (x & 31) as u32;
    let (distance, clamp, segment) = (low5(b), low5(c), low5(c >> 8));
    let first = lane & segment;
    let last = first | (clamp & !segment);
    let (source, in_range) = match mode {
        Shuffle::Up => (lane.wrapping_sub(distance), lane.cast_signed() - distance.cast_signed() >= last.cast_signed()),
        Shuffle::Down => (lane + distance, lane + distance <= last),
        Shuffle::Butterfly => (lane ^ distance, lane ^ distance <= last),
        Shuffle::Index => {
            let source = first | (distance & !segment);
            (source, source <= last)
        }
    };
    if !in_range {
        return Ok([own, 0]);
    }
    if mask >> (source & 31) & 1 == 0 {
        return Err(OutsideMask { lane, source });
    }
    Ok([lanes[(source & 31) as usize][0], 1])
}

impl Vote {
    fn result(self, ballot: u32, mask: u32) -> u64 {
        u64::from(match self {
            Self::All => u32::from(ballot == mask),
            Self::Any => u32::from(ballot != 0),
            Self::Uniform => u32::from(ballot == mask || ballot == 0),
            Self::Ballot => ballot,
        })
    }
}

pub(super) fn decode(name: &str, mut mods: Mods<'_>, operands: Operands<'_, '_>) -> Decoded {
    if !mods.take("sync") {
        return Err(mods.unsupported());
    }
    match name {
        "shfl" => shfl(mods, operands),
        "vote" => vote(mods, operands),
        "match" => matching(mods, operands),
        "redux" => redux(mods, operands),
        _ => elect(&mods, operands),
    }
}

/// `shfl.sync.mode.b32 d[|p], a, b, c, membermask`
fn shfl(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let word = Ty::B(32);
    let mode = mods.require_from(&[
        ("up", Shuffle::Up),
        ("down", Shuffle::Down),
        ("bfly", Shuffle::Butterfly),
        ("idx", Shuffle::Index),
    ])?;
    if mods.ty()? != word {
        return Err(mods.unsupported());
    }
    mods.done()?;
    operands.expect(5)?;
    let destinations = operands.destination_pair(0, word, Ty::Pred)?;
    let sources = [operands.source(1, word)?, operands.source(2, word)?, operands.source(3, word)?];
    let mask = operands.source(4, word)?;
    Ok(Op::Warp(WarpOp { kind: WarpKind::Shuffle(mode), mask, sources, destinations }))
}

/// `vote.sync.mode.pred d, {!}a, membermask`, `vote.sync.ballot.b32 d, {!}a, membermask`
fn vote(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let ty = mods.ty()?;
    let vote =
        mods.require_from(&[("all", Vote::All), ("any", Vote::Any), ("uni", Vote::Uniform), ("ballot", Vote::Ballot)])?;
    mods.done()?;
    operands.expect(3)?;
    if ty != (if vote == Vote::Ballot { Ty::B(32) } else { Ty::Pred }) {
        return Err(mods.unsupported());
    }
    let destination = operands.destination(0, ty)?;
    let (source, negated) = operands.predicate(1)?;
    one_source(WarpKind::Vote { vote, negated }, source, [destination, operands.sink()], 2, operands)
}

/// `match.any.sync.type d, a, membermask`, `match.all.sync.type d[|p], a, membermask`
fn matching(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let ty = mods.ty()?;
    let all = mods.require_from(&[("all", true), ("any", false)])?;
    mods.done()?;
    operands.expect(3)?;
    if !matches!(ty, Ty::B(32 | 64)) {
        return Err(mods.unsupported());
    }
    let destinations = operands.destination_pair(0, Ty::B(32), Ty::Pred)?;
    let source = operands.source(1, ty)?;
    one_source(WarpKind::Match { all }, source, destinations, 2, operands)
}

/// `redux.sync.op.type d, a, membermask`
fn redux(mut mods: Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    let ty = mods.ty()?;
    let op = mods.require_from(&[("add", 0), ("min", 1), ("max", 2), ("and", 3), ("or", 4), ("xor", 5)])?;
    mods.done()?;
    operands.expect(3)?;
    let f: F2 = match (op, ty) {
        (0, Ty::U(32) | Ty::S(32)) => |a, b| U32::wrap(U32::value(a) + U32::value(b)),
        (1, Ty::U(32)) => u64::min,
        (2, Ty::U(32)) => u64::max,
        (1, Ty::S(32)) => |a, b| if S32::value(a) < S32::value(b) { a } else { b },
        (2, Ty::S(32)) => |a, b| if S32::value(a) > S32::value(b) { a } else { b },
        (3, Ty::B(32)) => |a, b| a & b,
        (4, Ty::B(32)) => |a, b| a | b,
        (5, Ty::B(32)) => |a, b| a ^ b,
        _ => return Err(mods.unsupported()),
    };
    let destination = operands.destination(0, ty)?;
    let source = operands.source(1, ty)?;
    one_source(WarpKind::Reduce(f), source, [destination, operands.sink()], 2, operands)
}

/// `elect.sync d|p, membermask`; the lowest lane leads (the ISA asks for the same leader every time).
fn elect(mods: &Mods<'_>, mut operands: Operands<'_, '_>) -> Decoded {
    mods.done()?;
    operands.expect(2)?;
    let destinations = operands.destination_pair(0, Ty::B(32), Ty::Pred)?;
    let nothing = operands.constant(0);
    one_source(WarpKind::Elect, nothing, destinations, 1, operands)
}

/// `bar.warp.sync membermask`
pub(super) fn warp_barrier(mut operands: Operands<'_, '_>) -> Decoded {
    operands.expect(1)?;
    let nothing = operands.constant(0);
    let sink = operands.sink();
    one_source(WarpKind::Sync, nothing, [sink, sink], 0, operands)
}

fn one_source(
    kind: WarpKind,
    source: Slot,
    destinations: [Slot; 2],
    mask: usize,
    mut operands: Operands<'_, '_>,
) -> Decoded {
    let nothing = operands.constant(0);
    let mask = operands.source(mask, Ty::B(32))?;
    Ok(Op::Warp(WarpOp { kind, mask, sources: [source, nothing, nothing], destinations }))
}
