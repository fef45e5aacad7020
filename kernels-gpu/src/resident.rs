//! Teams that stay: as many as a multiprocessor holds share one block, which keeps the modulation of all rows in shared memory as f32, and each
//! walks over rows on its own, two neighbouring lanes of the sum tree a thread as in `produce`.
//!
//! Against a grid in pairs of lanes what does not depend on the row is computed once: addresses, factors, the recipe's table. FlashRtSm110 at
//! D = 3072 takes 731 instructions a row and thread instead of 984, and 16384 rows 41.3 us instead of 44.2, TransformerEngine 43.5 instead of
//! 49.7. Few rows a team lose it again: all teams wait for the modulation first, and the last of them for each other.
use crate::contract::{abi::RowArguments, geometry, swizzle};
use crate::modulation::{Affine, Modulation};
use crate::produce::{share, statistics, store};
use crate::ptx;
use crate::sink::{Sink, Table};
use crate::team::Team;
use crate::view::{Aligned, Place, row_address};
use core::array::from_fn;
use cuda_std::shared::SharedArray;
use cuda_std::thread::{block_dim_x, sync_threads, thread_idx_x};

/// All rows of the launch, by teams that stay.
#[inline(always)]
pub fn resident<
    M: Modulation<Held = Affine>,
    S: Sink,
    const WARPS: u32,
    const LANES: usize,
    const CHUNKS: usize,
    const FULL: usize,
>(
    a: &RowArguments,
) {
    const { assert!(M::SHARED_BY_ROWS, "one modulation is kept for all rows") };
    let team = Team::<WARPS, LANES, true>::here(a);
    let mut row = team.first_row;
    ptx::start_after_previous_grid();
    let place = |i| team.place(i, FULL, a.dim);
    let load = |row: u32| -> [[u32; 4]; CHUNKS] {
        // A team past the last row reads that row again.
        let x = row_address(a.x, row.min(a.rows - 1), a.dim * 2);
        from_fn(|i| place(i).bf16(x))
    };
    let mut x = load(row);
    let modulation = M::begin(a);
    let kept = Kept::<LANES>::new(team.shared, 32 * WARPS * CHUNKS as u32);
    kept.fill::<M>(a, modulation);
    // SAFETY: the launch gives room for the modulation and a table before the exchange buffers.
    let team = unsafe { team.behind(kept.words()) };
    let table = Table { words: team.shared, thread: thread_idx_x(), threads: block_dim_x() };
    let sink = S::begin(a, table);
    // SAFETY: as above.
    let team = unsafe { team.behind(geometry::RESIDENT_TABLE_WORDS) };
    sync_threads();
    let sink = S::prepare(sink);
    while row < a.rows {
        let (d, rstd) = statistics(a, &x, team, place);
        let ready = share::<S, LANES, CHUNKS>(from_fn(|i| {
            let factors = S::load(a, place(i));
            (factors, S::round(M::apply(modulation, kept.read(place(i)), d[i].map(|d| d * rstd))))
        }));
        let next = row + team.stride;
        // The next row before this one is stored: d has become rounded words, half as many registers.
        x = load(next);
        store::<S, WARPS, LANES, _, CHUNKS>(a, team, row, sink, place, ready);
        row = next;
    }
    if S::PADS_ROWS {
        while row < a.rows.next_multiple_of(swizzle::TILE_ROWS) {
            S::pad_row(a, row, team.thread, team.threads());
            row += team.stride;
        }
    }
}

/// The modulation of all columns in shared memory, from its first word on: four planes for each lane of a thread, of one quarter each of what
/// [`Modulation::hold`] gives for a chunk, so that neighbouring threads read neighbouring 16 bytes.
#[derive(Clone, Copy)]
struct Kept<const LANES: usize> {
    words: SharedArray,
    /// Chunks, those past D too.
    chunks: u32,
}

impl<const LANES: usize> Kept<LANES> {
    /// Words of a quarter.
    const QUARTER: u32 = 4;

    #[inline(always)]
    const fn new(words: SharedArray, chunks: u32) -> Self {
        Self { words, chunks }
    }

    /// Words that it takes.
    #[inline(always)]
    const fn words(self) -> u32 {
        geometry::KEPT_WORDS * self.chunks
    }

    /// Word of quarter `part` of a chunk, of lane `lane` of a thread, `number` of that lane's in the team.
    #[inline(always)]
    const fn word(self, number: u32, lane: u32, part: u32) -> u32 {
        let plane = part * LANES as u32 + lane;
        (plane * (self.chunks / LANES as u32) + number) * Self::QUARTER
    }

    /// Fills it with all threads of the block; zeros where D has no chunk. The next barrier of the block makes it visible.
    #[inline(always)]
    fn fill<M: Modulation<Held = Affine>>(self, a: &RowArguments, constants: M::Constants) {
        let mut chunk = thread_idx_x();
        while chunk < self.chunks {
            let place = Aligned { thread: chunk, step: 0, exists: chunk < a.dim / 8 };
            let quarters = quarters(M::hold(constants, M::load(a, 0, place)));
            let mut part = 0;
            while part < 4 {
                let at = self.word(chunk / LANES as u32, chunk % LANES as u32, part);
                // SAFETY: below `words`; each word is written by the one thread that has its chunk, before the barrier that every read is behind.
                unsafe { self.words.write_4(at, quarters[part as usize]) };
                part += 1;
            }
            chunk += block_dim_x();
        }
    }

    /// That of the chunk at `place`.
    #[inline(always)]
    fn read(self, place: Aligned) -> Affine {
        let [thread, step] = place.chunk();
        let lanes = LANES as u32;
        let read = |part| {
            let at = thread / lanes * Self::QUARTER + self.word(step / lanes, step % lanes, part);
            // SAFETY: below `words`, since chunks of a thread are below `chunks`; written before a barrier.
            unsafe { self.words.read_4(at) }
        };
        whole([read(0), read(1), read(2), read(3)])
    }
}

#[inline(always)]
fn quarters([[a, b, c, d, e, f, g, h], [i, j, k, l, m, n, o, p]]: Affine) -> [[f32; 4]; 4] {
    [[a, b, c, d], [e, f, g, h], [i, j, k, l], [m, n, o, p]]
}

#[inline(always)]
fn whole([[a, b, c, d], [e, f, g, h], [i, j, k, l], [m, n, o, p]]: [[f32; 4]; 4]) -> Affine {
    [[a, b, c, d, e, f, g, h], [i, j, k, l, m, n, o, p]]
}
