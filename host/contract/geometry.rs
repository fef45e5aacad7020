//! Which compiled entry runs a shape, and with what grid.
//!
//! A pure function of operator kind, D, R and the GPU's size. It decides speed only: the order of summation is a function of D
//! ([`sum_tree`]), so row bytes are the same in every geometry, and a test launches several on the same rows.
use super::{abi, sum_tree, swizzle};

/// How an entry walks its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One row a team, the modulation loaded before the statistics: few rows, or operands that differ by row.
    Early,
    /// One row a team, the modulation loaded late: rows too long to hold both.
    Late,
    /// One row a team of half as many threads, each with two neighbouring lanes of the sum tree, whose chunks lie side by side; the
    /// modulation loaded late. What a thread does once a row counts half, a block of NVFP4 belongs to one thread: many rows.
    Pairs,
    /// A team walks over rows that share their modulation, held in registers.
    Stream,
    /// As many teams as a multiprocessor holds share a block, in pairs of lanes, and walk over rows that share their modulation, kept in shared
    /// memory: very many rows.
    Resident,
    /// Any D and alignment: three passes over the row, element by element.
    Any,
}

/// A shape class: one entry of each operator that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Suffix of the entry's symbol, after `__`.
    pub name: &'static str,
    /// How it walks its rows.
    pub kind: Kind,
    /// Warps of a team if they are a constant of the entry; 0 if a launch parameter.
    pub warps: u32,
    /// Virtual lanes of the sum tree that a thread stands for: neighbours, so that its chunks lie side by side.
    pub lanes: u32,
    /// Chunks a thread holds; 0: any number.
    pub chunks: u32,
}

impl Shape {
    /// The most dynamic shared memory of a block of this class, in bytes, where it may pass what the driver gives without asking (48 KB): that of
    /// the longest rings, whose teams have a block each, and of blocks that stay.
    pub const fn most_shared_bytes(&self) -> u32 {
        match self.kind {
            Kind::Resident => self.shared_bytes(self.resident_block(), true),
            _ => self.shared_bytes(32 * self.warps, false),
        }
    }

    /// Threads of a block of teams that stay.
    const fn resident_block(&self) -> u32 {
        32 * (resident_warps(self.chunks) / self.warps * self.warps)
    }

    /// Dynamic shared memory of a block of `block` threads, in bytes; `nvfp4` as in [`Request`].
    pub const fn shared_bytes(&self, block: u32, nvfp4: bool) -> u32 {
        let more = match self.kind {
            Kind::Stream => RING_WORDS * self.chunks * block,
            Kind::Resident => KEPT_WORDS * self.chunks * 32 * self.warps + RESIDENT_TABLE_WORDS,
            _ if nvfp4 => TABLE_WORDS,
            _ => 0,
        };
        let teams = match self.kind {
            Kind::Resident => block / (32 * self.warps),
            _ if self.warps == 2 && shares_block(64, self.kind) => block / 64,
            _ => 1,
        };
        4 * (2 * teams * exchange_words(self.warps) + more)
    }
}

/// Whether teams of `threads` threads share a block: those that are part of a warp or a warp, and pairs of warps where all go one way. A
/// walk may end sooner for one team, which the other would wait for at a barrier, and `any` comes to its barriers only for rows that exist.
pub const fn shares_block(threads: u32, kind: Kind) -> bool {
    threads < 64 || threads == 64 && matches!(kind, Kind::Early | Kind::Pairs)
}

/// Words of one of the two buffers in which `warps` warps of a team (0: any number) exchange two quantities of one virtual lane a thread, or
/// one quantity of two.
pub const fn exchange_words(warps: u32) -> u32 {
    match warps {
        0 => 2 * 32 * sum_tree::MAX_WARPS,
        1 => 0,
        _ => 2 * 32 * warps,
    }
}

const fn shape(name: &'static str, kind: Kind, warps: u32, chunks: u32) -> Shape {
    Shape { name, kind, warps, lanes: 1, chunks }
}

const fn pairs(name: &'static str, warps: u32, chunks: u32) -> Shape {
    Shape { name, kind: Kind::Pairs, warps, lanes: 2, chunks }
}

const fn resident(name: &'static str, warps: u32, chunks: u32) -> Shape {
    Shape { name, kind: Kind::Resident, warps, lanes: 2, chunks }
}

/// Every shape class; kernels-gpu/src/entries.rs has the same rows. Streams exist for FP8 after a modulation that rows share: 16384 rows of
/// 3072 take 38.8 us in a stream and 39.4 in pairs; with the modulation in fp8 39.1 and 38.3, which only GPUs with a conversion from e4m3 do
/// in pairs. NVFP4 has pairs, and blocks that stay where there is a modulation to keep: FlashRtSm110 44.2 us in pairs and 41.3 in blocks that
/// stay, FlashRtSm120 48.0 and 44.0, TransformerEngine 49.7 and 43.5.
pub static SHAPES: [Shape; 37] = [
    shape("v1", Kind::Early, 0, 1),
    shape("w1v2", Kind::Early, 1, 2),
    shape("w1v3", Kind::Early, 1, 3),
    shape("w2v2", Kind::Early, 2, 2),
    shape("w2v3", Kind::Early, 2, 3),
    shape("w4v2", Kind::Early, 4, 2),
    shape("w4v3", Kind::Early, 4, 3),
    shape("w8v2", Kind::Early, 8, 2),
    shape("w8v3", Kind::Early, 8, 3),
    shape("w8v4", Kind::Late, 8, 4),
    shape("w8v5", Kind::Late, 8, 5),
    shape("w8v6", Kind::Late, 8, 6),
    shape("w8v8", Kind::Late, 8, 8),
    pairs("w1v4p", 1, 4),
    pairs("w1v6p", 1, 6),
    pairs("w2v4p", 2, 4),
    pairs("w2v6p", 2, 6),
    pairs("w4v4p", 4, 4),
    pairs("w4v6p", 4, 6),
    pairs("w4v8p", 4, 8),
    resident("w1v4r", 1, 4),
    resident("w1v6r", 1, 6),
    resident("w2v4r", 2, 4),
    resident("w2v6r", 2, 6),
    resident("w4v4r", 4, 4),
    resident("w4v6r", 4, 6),
    resident("w4v8r", 4, 8),
    shape("any", Kind::Any, 0, 0),
    shape("w1v2s", Kind::Stream, 1, 2),
    shape("w1v3s", Kind::Stream, 1, 3),
    shape("w2v2s", Kind::Stream, 2, 2),
    shape("w2v3s", Kind::Stream, 2, 3),
    shape("w4v2s", Kind::Stream, 4, 2),
    shape("w4v3s", Kind::Stream, 4, 3),
    shape("w8v2s", Kind::Stream, 8, 2),
    shape("w8v3s", Kind::Stream, 8, 3),
    shape("w8v4s", Kind::Stream, 8, 4),
];

/// What decides the geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The sink is NVFP4, whose scale layout has rows up to a multiple of 128.
    pub nvfp4: bool,
    /// The operator has streams.
    pub streams: bool,
    /// R, at least 1.
    pub rows: u32,
    /// D, at least 1.
    pub dim: u32,
    /// D is a multiple of 8 and every operand lies on the address that accesses to 8 elements, of at most 16 bytes, ask for.
    pub aligned: bool,
    /// The operator has pairs and the image is to use them, and the same holds for 16 elements.
    pub pairs: bool,
    /// The operator has blocks that stay: in pairs, where those may be.
    pub residents: bool,
    /// Multiprocessors of the GPU.
    pub multiprocessors: u32,
}

/// A launch: entry, grid and what goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Entry.
    pub shape: &'static Shape,
    /// Blocks.
    pub grid: u32,
    /// Threads a block.
    pub block: u32,
    /// Dynamic shared memory a block, in bytes.
    pub shared_bytes: u32,
    /// [`abi::RowArguments::team`].
    pub team: u32,
}

/// Words of an NVFP4 sink's table: 128 entries of two. Of its recipes TransformerEngine alone uses it.
pub const TABLE_WORDS: u32 = 2 * 128;
/// Words of the table of blocks that stay: 128 entries of at most four.
pub const RESIDENT_TABLE_WORDS: u32 = 4 * 128;
/// Words of the modulation that blocks that stay keep for a chunk.
pub const KEPT_WORDS: u32 = 16;
/// Rows ahead in a stream, and words of a chunk.
const RING_WORDS: u32 = 3 * 4;
/// Threads of a block that small teams share. An H200 starts a block on a multiprocessor every 160 ns at best, so a row of
/// 1152 alone in its block would take half as long again as its bytes.
const SMALL_BLOCK: u32 = 128;
/// Rows a team must get before walking beats a grid of all rows. On an H200 at D = 3072 4096 rows, 7.8 a team, take 11.7 us in a grid and
/// 12.3 as a stream, 16384 rows 40.6 and 38.8; where a team is one warp the two are even at 12 to 16.
const fn stream_rows(warps: u32) -> u32 {
    if warps == 1 { 14 } else { 8 }
}

/// Warps of a stream that a multiprocessor holds: 80 registers a thread with two chunks, 128 with more, which
/// kernels-gpu/targets.toml makes sure of.
const fn stream_warps(chunks: u32) -> u32 {
    if chunks <= 2 { 24 } else { 16 }
}

/// Rows a team of single lanes must get before pairs beat it. On an H200, microseconds with single lanes and in pairs:
///
/// | rows x D | rows a team | FlashRtSm110 | TransformerEngine | FP8, modulation in fp8 |
/// |---|---:|---|---|---|
/// | 2048 x 1536 | 1.9 | 5.8, 5.7 | 5.7, 6.5 | 4.6, 5.7 |
/// | 4096 x 1152 | 3.9 | 8.3, 7.2 | 8.6, 8.4 | 6.2, 6.5 |
/// | 28086 x 1536 | 27 | 42.4, 35.6 | 47.0, 40.4 | 34.0, 33.0 |
/// | 4096 x 3072 | 7.8 | 13.4, 14.4 | 15.9, 15.7 | 11.4, 12.6 |
/// | 6144 x 3072 | 12 | 18.8, 19.2 | 22.5, 21.3 | 16.9, 16.9 |
/// | 1024 x 5120 | 3.9 | 8.3, 7.9 | 10.1, 9.0 | 7.1, 7.3 |
const fn pair_rows(warps: u32) -> u32 {
    match warps {
        2 => 4,
        4 => 12,
        _ => 3,
    }
}

/// Rows a team of single lanes must get before teams that stay are chosen. On an H200, microseconds with pairs (in brackets with single lanes)
/// and with teams that stay:
///
/// | rows x D | rows a team | FlashRtSm110 | FlashRtSm120 | TransformerEngine |
/// |---|---:|---|---|---|
/// | 8192 x 1152 | 7.8 | 12.1 (13.5), 13.0 | 13.0 (15.0), 14.1 | 13.8 (15.1), 13.5 |
/// | 8192 x 1536 | 7.8 | 13.2 (14.4), 14.9 | 14.0 (15.7), 15.7 | 14.7 (15.7), 15.1 |
/// | 16384 x 1152 | 16 | 21.3, 20.6 | 23.1, 22.5 | 24.3, 21.9 |
/// | 16384 x 1536 | 16 | 22.8, 23.4 | 24.4, 24.7 | 25.3, 23.6 |
/// | 4096 x 2048 | 5.2 | 10.2, 12.2 | 10.9, 12.6 | 11.6, 11.9 |
/// | 6144 x 3072 | 12 | 19.0, 19.3 | 20.5, 20.2 | 22.7, 20.3 |
/// | 8192 x 3072 | 16 | 24.2, 24.1 | 26.3, 25.5 | 26.9, 25.2 |
/// | 4096 x 4096 | 10 | 17.2, 19.2 | 18.8, 19.2 | 19.4, 19.2 |
/// | 8192 x 4096 | 21 | 31.4, 32.1 | 34.2, 32.5 | 35.4, 32.5 |
/// | 4096 x 5120 | 16 | 22.4, 23.5 | 24.7, 24.6 | 25.1, 24.1 |
/// | 8192 x 5120 | 31 | 41.4, 40.8 | 45.7, 42.7 | 45.9, 41.6 |
const fn resident_rows(warps: u32) -> u32 {
    match warps {
        2 => 7,
        4 => 12,
        _ => 16,
    }
}

/// Warps of a block that stays, whose threads take 72, 96 and 128 registers, which kernels-gpu/targets.toml makes sure of. Barriers of
/// teams allow 15 teams.
const fn resident_warps(chunks: u32) -> u32 {
    match chunks {
        4 => 28,
        6 => 20,
        _ => 16,
    }
}

/// The launch for a request.
pub fn choose(request: &Request) -> Launch {
    let warps = sum_tree::warps(request.dim);
    let many = |rows| request.rows / rows >= capacity(request);
    let kinds = [(Kind::Resident, resident_rows(warps)), (Kind::Pairs, pair_rows(warps))];
    if let Some(launch) = kinds.into_iter().filter(|(_, rows)| many(*rows)).find_map(|(kind, _)| paired(request, kind))
    {
        return launch;
    }
    let chunks = chunks_a_lane(request.dim);
    let stream = request.streams && many(stream_rows(warps));
    let fits = |s: &&'static Shape| match s.kind {
        Kind::Any => true,
        Kind::Pairs | Kind::Resident => false,
        Kind::Stream if !stream => false,
        _ => request.aligned && s.chunks >= chunks && (s.warps == warps || s.chunks == 1),
    };
    // The tightest class that fits, a stream before the others.
    let rank = |s: &&'static Shape| (s.kind == Kind::Any, s.chunks, s.kind != Kind::Stream);
    let shape = SHAPES.iter().filter(fits).min_by_key(rank).unwrap_or(&ANY);
    grid(request, shape)
}

/// The launch of a kind whose threads take pairs of lanes, if there is one for the operator, its operands and D, for any number of rows.
pub fn paired(request: &Request, kind: Kind) -> Option<Launch> {
    let (warps, chunks) = (sum_tree::warps(request.dim), chunks_a_lane(request.dim));
    let has = match kind {
        // For smaller teams the package has no room: 24 entries for 6 to 14% from 4 to 7 rows a team at D up to 1536.
        Kind::Pairs => !request.residents || warps == sum_tree::MAX_WARPS,
        Kind::Resident => request.residents,
        _ => false,
    };
    let fits = |s: &&'static Shape| s.kind == kind && s.warps * s.lanes == warps && s.chunks >= s.lanes * chunks;
    let shape = SHAPES.iter().filter(fits).min_by_key(|s| s.chunks);
    shape.filter(|_| has && request.pairs).map(|shape| grid(request, shape))
}

/// Chunks of the virtual lane that has most.
const fn chunks_a_lane(dim: u32) -> u32 {
    sum_tree::chunks(dim).div_ceil(sum_tree::lanes(dim))
}

/// Teams with a thread for each lane that the GPU holds at a time.
fn capacity(request: &Request) -> u32 {
    (stream_warps(chunks_a_lane(request.dim)) * request.multiprocessors / sum_tree::warps(request.dim)).max(1)
}

/// The class that fits every request.
static ANY: Shape = shape("any", Kind::Any, 0, 0);

/// Grid of an entry: a team for each row, or as many as stay resident where it walks.
fn grid(request: &Request, shape: &'static Shape) -> Launch {
    let (chunks, threads) = (sum_tree::chunks(request.dim), sum_tree::lanes(request.dim) / shape.lanes);
    // Rows shorter than a warp share it; a block pair of NVFP4 needs two lanes.
    let small = shape.kind == Kind::Early && chunks <= 16;
    let team = if small { chunks.next_power_of_two().max(2) } else { threads };
    let block = match shape.kind {
        Kind::Resident => shape.resident_block(),
        kind if shares_block(team, kind) => SMALL_BLOCK,
        _ => team,
    };
    let teams_per_block = block / team;
    let rows = if request.nvfp4 { request.rows.next_multiple_of(swizzle::TILE_ROWS) } else { request.rows };
    let teams = match shape.kind {
        Kind::Stream => request.rows.div_ceil(request.rows.div_ceil(capacity(request))),
        Kind::Resident => rows.min(teams_per_block * request.multiprocessors),
        _ => rows,
    };
    let shared_bytes = shape.shared_bytes(block, request.nvfp4);
    Launch { shape, grid: teams.div_ceil(teams_per_block), block, shared_bytes, team }
}

/// Largest supported R: grids of six blocks a row, and of rows up to a multiple of 128, stay below 2^31 blocks.
pub const MAX_ROWS: u32 = 1 << 28;

/// Threads of a block of modulation6.
pub const MODULATION6_BLOCK: u32 = 128;

/// Blocks of modulation6: one for each row and part.
pub const fn modulation6_grid(rows: u32) -> u32 {
    rows * abi::PARTS
}
