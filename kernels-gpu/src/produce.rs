//! The one body: row -> statistics -> modulation -> bf16 -> sink. Twice: a row a team, and a team that walks.
//!
//! ```text
//! load the chunks of the row, and the modulation
//! mean <- sum tree                              one barrier when warps share a row
//! rstd <- squares of x - mean                   one barrier
//! each chunk: normalise, modulate, round to bf16
//! each chunk: convert, store
//! ```
//! [`produce`] gives a team one row: with one lane a thread for few rows, the shortest latency, with two for many, fewer instructions.
//! [`stream`] walks a team over rows, the modulation in registers and the rows to come on their way into shared memory: fewest
//! instructions where a modulation is held. The bytes are the same.
//!
//! A thread takes chunks `thread + i·team`, `i < CHUNKS`, of which the first `FULL` exist in every row of the shape class. With `LANES` = 2
//! it takes pairs of chunks, `2·(thread + j·team)` and the one after. They need D a multiple of 8 (of 16) and operands on the addresses
//! that the accesses divide; everything else runs in `generic`.
use crate::contract::{
    abi::RowArguments,
    geometry::{self, Kind},
};
use crate::formats::widen;
use crate::modulation::Modulation;
use crate::ptx;
use crate::sink::Sink;
use crate::statistics::{chunk_squares, chunk_sum, mean, row_total, rstd, two_row_totals};
use crate::team::Team;
use crate::view::{Aligned, Place, row_address};
use core::array::from_fn;
use cuda_std::shared::{commit, wait};
use cuda_std::thread::sync_threads;

/// One row a team. `EARLY` loads the operands of the modulation before the statistics: one round trip less, more registers. Those of
/// the sink (AWQ's factors) come chunk by chunk while the row is modulated, into registers that become free: early they would take 79
/// instead of 64, and a quarter of the warps.
#[inline(always)]
pub fn produce<
    M: Modulation,
    S: Sink,
    const WARPS: u32,
    const LANES: usize,
    const CHUNKS: usize,
    const FULL: usize,
    const EARLY: bool,
>(
    a: &RowArguments,
) {
    let team = Team::<WARPS, LANES>::here(a);
    let row = team.first_row;
    ptx::start_after_previous_grid();
    let shares_block = const { geometry::shares_block(32 * WARPS, kind(LANES, EARLY)) };
    // NVFP4's grid has a team for each row of the scale layout; those past the last only pad.
    if S::PADS_ROWS && !shares_block && row >= a.rows {
        return S::pad_row(a, row, team.thread, team.threads());
    }
    // Teams that share a block stay for its shuffles and barriers: one past the last row works on that row again and stores nothing.
    let x_row = if shares_block { row.min(a.rows - 1) } else { row };
    let place = |i| team.place(i, FULL, a.dim);
    let x_address = row_address(a.x, x_row, a.dim * 2);
    let x: [_; CHUNKS] = from_fn(|i| place(i).bf16(x_address));
    let early: Option<[_; CHUNKS]> = if EARLY { Some(from_fn(|i| M::load(a, x_row, place(i)))) } else { None };
    let modulation = M::begin(a);
    let sink = S::begin(a, team.table());
    if S::TABLE && !team.spans_warps() {
        sync_threads();
    }
    if !shares_block || team.first_row_together < a.rows {
        let (d, rstd) = statistics(a, &x, team, place);
        let sink = S::prepare(sink);
        let stores = !shares_block || row < a.rows;
        // Chunks of one lane share a block with those of a neighbour in the warp, which must go on with it.
        if stores || LANES == 1 {
            let ready = share::<S, LANES, CHUNKS>(from_fn(|i| {
                let operands = if let Some(early) = early { early[i] } else { M::load(a, x_row, place(i)) };
                let factors = S::load(a, place(i));
                (factors, S::round(M::apply(modulation, M::hold(modulation, operands), d[i].map(|d| d * rstd))))
            }));
            if stores {
                // `Team::own` says why. Without a modulation 2520 rows of 3072 took 8.07 us for FlashRtSm110 and 9.11 for FlashRtSm120, and 7.88
                // and 8.78 with this; the other NVFP4 operators gain nothing by it, TransformerEngine at 4096 rows loses 1%.
                let by_thread = const { S::PADS_ROWS && !S::TABLE && size_of::<M::Operands>() == 0 };
                let row = if by_thread { team.own(row) } else { row };
                store::<S, WARPS, LANES, _, CHUNKS>(a, team, row, sink, place, ready);
            }
        }
    }
    if S::PADS_ROWS && shares_block && row >= a.rows {
        S::pad_row(a, row, team.thread, team.threads());
    }
}

/// The kind of a `produce` entry's shape class.
const fn kind(lanes: usize, early: bool) -> Kind {
    match (lanes, early) {
        (1, true) => Kind::Early,
        (1, false) => Kind::Late,
        _ => Kind::Pairs,
    }
}

/// Rows ahead of the one at work: enough bytes in flight for the memory's latency at four or five blocks an SM.
const DEPTH: u32 = 3;

/// Rows one after another. Rows must share their modulation.
///
/// The sum of the next row and the squares of this one are reduced together: one barrier and one latency a row instead of
/// two. A thread stages the chunks that it reads, so the ring needs no barrier.
#[inline(always)]
pub fn stream<M: Modulation, S: Sink, const WARPS: u32, const CHUNKS: usize, const FULL: usize>(a: &RowArguments) {
    const { assert!(M::SHARED_BY_ROWS, "a stream holds one modulation for all its rows") };
    const { assert!(!S::TABLE && !S::PADS_ROWS, "a stream has room for its ring only, and no rows past the last") };
    let team = Team::<WARPS>::here(a);
    ptx::start_after_previous_grid();
    let mut row = team.first_row;
    let place = |i| team.place(i, FULL, a.dim);
    // The first row and the operands first: the rows after it would hold them up by the time that they take to arrive.
    stage_row::<WARPS, CHUNKS>(a, team, row, 0, place);
    let modulation = M::begin(a);
    let scalars = S::begin(a, team.table());
    let loaded: [_; CHUNKS] = from_fn(|i| M::load(a, 0, place(i)));
    // Three chunks leave registers for the sink's operands; two would lose a fifth of the warps to them, four would spill.
    let kept: Option<[_; CHUNKS]> = if CHUNKS == 3 { Some(from_fn(|i| S::load(a, place(i)))) } else { None };
    let mut stage = 1;
    while stage < DEPTH {
        stage_row::<WARPS, CHUNKS>(a, team, row + stage * team.stride, stage, place);
        stage += 1;
    }
    let dim = a.dim as f32;
    wait::<{ DEPTH - 1 }>();
    let [sum] = row_sum(&staged_row::<WARPS, CHUNKS>(team, 0));
    let mut row_mean = mean(row_total([sum], team, 1), dim, a.inv_dim);
    let sink = S::prepare(scalars);
    let held = loaded.map(|operands| M::hold(modulation, operands));
    stage = 0;
    let mut buffer = 0;
    while row < a.rows {
        let (d, [squares]) = deviations(&staged_row::<WARPS, CHUNKS>(team, stage), row_mean, place);
        let next_stage = if stage + 1 == DEPTH { 0 } else { stage + 1 };
        wait::<{ DEPTH - 2 }>();
        let [next_sum] = row_sum(&staged_row::<WARPS, CHUNKS>(team, next_stage));
        let [squares, sum] = two_row_totals([squares, next_sum], team, buffer);
        stage_row::<WARPS, CHUNKS>(a, team, row + DEPTH * team.stride, stage, place);
        row_mean = mean(sum, dim, a.inv_dim);
        let rstd = rstd(squares, a.inv_dim, a.eps);
        let ready = share::<S, 1, CHUNKS>(from_fn(|i| {
            let factors = if let Some(kept) = kept { kept[i] } else { S::load(a, place(i)) };
            (factors, S::round(M::apply(modulation, held[i], d[i].map(|d| d * rstd))))
        }));
        store::<S, WARPS, 1, _, CHUNKS>(a, team, row, sink, place, ready);
        row += team.stride;
        stage = next_stage;
        buffer ^= 1;
    }
}

/// Starts copying this thread's chunks of `row` into stage `stage` of the ring; zeros where the row or the chunk does not exist.
#[inline(always)]
fn stage_row<const WARPS: u32, const CHUNKS: usize>(
    a: &RowArguments,
    team: Team<WARPS>,
    row: u32,
    stage: u32,
    place: impl Fn(usize) -> Aligned,
) {
    let x_row = row_address(a.x, row, a.dim * 2);
    let mut i = 0;
    while i < CHUNKS {
        let place = place(i);
        let bytes = if row < a.rows && place.exists { 16 } else { 0 };
        let slot = team.ring(stage * CHUNKS as u32 + i as u32);
        // SAFETY: inside x where bytes are read, and a slot of this thread in the ring; read only after `wait`.
        unsafe { team.shared.copy_async(slot, place.address(x_row, 16), bytes) };
        i += 1;
    }
    commit();
}

/// This thread's chunks of stage `stage`, whose copies have arrived.
#[inline(always)]
fn staged_row<const WARPS: u32, const CHUNKS: usize>(team: Team<WARPS>, stage: u32) -> [[u32; 4]; CHUNKS] {
    from_fn(|i| {
        let slot = team.ring(stage * CHUNKS as u32 + i as u32);
        // SAFETY: a slot of this thread that a finished copy has filled.
        unsafe { team.shared.read_4(slot) }.map(f32::to_bits)
    })
}

/// Mean of the row, and the deviations of this thread's elements from it, and the reciprocal standard deviation.
#[inline(always)]
pub fn statistics<const WARPS: u32, const LANES: usize, const RESIDENT: bool, const CHUNKS: usize>(
    a: &RowArguments,
    x: &[[u32; 4]; CHUNKS],
    team: Team<WARPS, LANES, RESIDENT>,
    place: impl Fn(usize) -> Aligned,
) -> ([[f32; 8]; CHUNKS], f32) {
    let sum = row_total(row_sum(x), team, 0);
    let (d, squares) = deviations(x, mean(sum, a.dim as f32, a.inv_dim), place);
    let squares = row_total(squares, team, 1);
    (d, rstd(squares, a.inv_dim, a.eps))
}

/// The sums of this thread's virtual lanes.
#[inline(always)]
fn row_sum<const LANES: usize, const CHUNKS: usize>(x: &[[u32; 4]; CHUNKS]) -> [f32; LANES] {
    let mut sums = [0.0; LANES];
    let mut i = 0;
    while i < CHUNKS {
        sums[i % LANES] += chunk_sum(widen(x[i]));
        i += 1;
    }
    sums
}

/// `x - mean`, and the sums of the squares of this thread's virtual lanes.
#[inline(always)]
fn deviations<const LANES: usize, const CHUNKS: usize>(
    x: &[[u32; 4]; CHUNKS],
    mean: f32,
    place: impl Fn(usize) -> Aligned,
) -> ([[f32; 8]; CHUNKS], [f32; LANES]) {
    let d: [_; CHUNKS] = from_fn(|i| widen(x[i]).map(|x| x - mean));
    let mut squares = [[0.0; 2]; LANES];
    let mut i = 0;
    while i < CHUNKS {
        if place(i).exists {
            squares[i % LANES] = chunk_squares(squares[i % LANES], d[i]);
        }
        i += 1;
    }
    (d, squares.map(|[even, odd]| even + odd))
}

/// Lets the chunks of a block agree; apart from [`store`], which threads of the warp may skip.
#[inline(always)]
pub fn share<S: Sink, const LANES: usize, const CHUNKS: usize>(
    ready: [(S::Operands, S::Rounded); CHUNKS],
) -> [(S::Operands, S::Rounded); CHUNKS] {
    let rounded = S::share::<LANES, CHUNKS>(ready.map(|(_, rounded)| rounded));
    from_fn(|i| (ready[i].0, rounded[i]))
}

/// Converts and stores the chunks of a row.
#[inline(always)]
pub fn store<S: Sink, const WARPS: u32, const LANES: usize, const RESIDENT: bool, const CHUNKS: usize>(
    a: &RowArguments,
    team: Team<WARPS, LANES, RESIDENT>,
    row: u32,
    sink: S::Constants,
    place: impl Fn(usize) -> Aligned,
    ready: [(S::Operands, S::Rounded); CHUNKS],
) {
    let out = S::row(a, row, place(0).thread);
    // One look-up for the chunks of a thread that lie side by side.
    let mut entry = S::look_up(sink, ready[0].1);
    let entries: [_; CHUNKS] = from_fn(|i| {
        if i > 0 && i.is_multiple_of(LANES) {
            entry = S::look_up(sink, ready[i].1);
        }
        entry
    });
    let mut i = 0;
    while i < CHUNKS {
        if place(i).exists {
            let group: [_; LANES] = from_fn(|lane| i + lane);
            S::store(out, sink, group.map(|i| ready[i].0), place(i), entries[i], group.map(|i| ready[i].1));
        }
        i += LANES;
    }
    S::pad_columns(a, row, team.thread, team.threads());
}
