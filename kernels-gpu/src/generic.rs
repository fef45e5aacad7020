//! Any D and any alignment: three passes over the row, element by element, the same sum tree.
use crate::contract::abi::RowArguments;
use crate::contract::sum_tree::{CHUNK, chunks};
use crate::formats::widen;
use crate::modulation::Modulation;
use crate::ptx;
use crate::sink::Sink;
use crate::statistics::{chunk_squares, chunk_sum, mean, row_total, rstd};
use crate::team::Team;
use crate::view::{Place, Scalar, row_address};
use cuda_std::thread::sync_threads;

/// One row a team. Slow (2-byte accesses, the row read three times), and right.
#[inline(always)]
pub fn any<M: Modulation, S: Sink>(a: &RowArguments) {
    let team = Team::<0>::here(a);
    ptx::start_after_previous_grid();
    let row = team.first_row;
    let modulation = M::begin(a);
    let sink = S::begin(a, team.table());
    if S::TABLE && !team.spans_warps() {
        sync_threads();
    }
    if row < a.rows {
        let sink = S::prepare(sink);
        let (mean, rstd) = statistics(a, team, row);
        let mut first = team.thread & !31;
        while first < chunks(a.dim) {
            let place = scalar(a, first + (team.thread & 31));
            let n = widen(x(a, row, place)).map(|x| (x - mean) * rstd);
            let held = M::hold(modulation, M::load(a, row, place));
            let [rounded] = S::share::<1, 1>([S::round(M::apply(modulation, held, n))]);
            S::store(
                S::row(a, row, place.chunk),
                sink,
                [S::load(a, place)],
                place,
                S::look_up(sink, rounded),
                [rounded],
            );
            first += team.threads();
        }
        S::pad_columns(a, row, team.thread, team.threads());
    } else if S::PADS_ROWS && row < a.rows.next_multiple_of(128) {
        S::pad_row(a, row, team.thread, team.threads());
    }
}

/// Chunk `chunk` of a row, with the elements it has.
#[inline(always)]
fn scalar(a: &RowArguments, chunk: u32) -> Scalar {
    let past = if chunk < chunks(a.dim) { a.dim - chunk * CHUNK } else { 0 };
    Scalar { chunk, elements: past.min(CHUNK) }
}

#[inline(always)]
fn x(a: &RowArguments, row: u32, place: Scalar) -> [u32; 4] {
    place.bf16(row_address(a.x, row, a.dim * 2))
}

/// Mean and reciprocal standard deviation of the row.
#[inline(always)]
fn statistics(a: &RowArguments, team: Team<0>, row: u32) -> (f32, f32) {
    let mut sum = 0.0;
    let mut chunk = team.thread;
    while chunk < chunks(a.dim) {
        sum += chunk_sum(widen(x(a, row, scalar(a, chunk))));
        chunk += team.threads();
    }
    let mean = mean(row_total([sum], team, 0), a.dim as f32, a.inv_dim);
    let mut squares = [0.0; 2];
    chunk = team.thread;
    while chunk < chunks(a.dim) {
        let place = scalar(a, chunk);
        let mut d = widen(x(a, row, place)).map(|x| x - mean);
        let mut e = 0;
        while e < CHUNK {
            // An absent element deviates by nothing.
            d[e as usize] = if e < place.elements() { d[e as usize] } else { 0.0 };
            e += 1;
        }
        squares = chunk_squares(squares, d);
        chunk += team.threads();
    }
    (mean, rstd(row_total([squares[0] + squares[1]], team, 1), a.inv_dim, a.eps))
}
