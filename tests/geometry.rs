//! The launch geometry: every choice is an entry that every image has, and covers the rows exactly once.
use adaptive_layernorm_producers::contract::geometry::{self, Kind, Launch, Request, SHAPES};
use adaptive_layernorm_producers::contract::sum_tree;
use adaptive_layernorm_producers::images::IMAGES;
use adaptive_layernorm_producers::{Nvfp4Recipe, Operator, SinkKind};

/// D around every edge of the shape classes, and some that no class divides.
fn dims() -> Vec<u32> {
    let edges = [128, 256, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 10240, 12288, 16384, 32768];
    let around = |edge: u32| [edge - 16, edge - 8, edge - 2, edge, edge + 2, edge + 8, edge + 16];
    [1, 2, 6, 8, 14, 16, 24, 30, 32, 48, 64, 80].into_iter().chain(edges.into_iter().flat_map(around)).collect()
}

fn requests(operator: Operator) -> Vec<Request> {
    let nvfp4 = operator.sink() == SinkKind::Nvfp4;
    let mut all = Vec::new();
    for dim in dims().into_iter().filter(|dim| dim.is_multiple_of(operator.dim_divisor())) {
        for rows in [1, 2, 127, 128, 129, 792, 2520, 4096, 65_536, geometry::MAX_ROWS] {
            for (aligned, multiprocessors) in [(true, 132), (false, 132), (true, 16), (true, 1)] {
                let streams = operator.has_streams();
                let pairs = operator.has_pairs() && aligned && dim.is_multiple_of(16);
                let residents = operator.has_residents();
                let aligned = aligned && dim.is_multiple_of(8);
                all.push(Request { nvfp4, streams, rows, dim, aligned, pairs, residents, multiprocessors });
            }
        }
    }
    all
}

fn row_operators() -> impl Iterator<Item = Operator> {
    Operator::ALL.into_iter().filter(|operator| operator.sink() != SinkKind::SixBf16)
}

#[test]
fn every_choice_is_an_entry_of_every_image() {
    for operator in row_operators() {
        let recipes: Vec<String> = match operator.sink() {
            SinkKind::Nvfp4 => Nvfp4Recipe::ALL.iter().map(|recipe| format!("_{}", recipe.symbol())).collect(),
            _ => vec![String::new()],
        };
        for request in requests(operator) {
            let shape = geometry::choose(&request).shape.name;
            for recipe in &recipes {
                let entry = format!("{operator}{recipe}__{shape}");
                for image in IMAGES {
                    assert!(image.entry(&entry).is_some(), "{image}: no {entry} for {request:?}");
                }
            }
        }
    }
}

/// Whether the teams of a launch walk over rows.
fn walks(launch: &Launch) -> bool {
    matches!(launch.shape.kind, Kind::Stream | Kind::Resident)
}

/// Rows that the teams of a launch reach: one each, or `iterations` each where they walk.
fn reach(launch: &Launch, rows: u32) -> (u64, u64) {
    let teams = u64::from(launch.grid) * u64::from(launch.block / launch.team);
    let iterations = if walks(launch) { u64::from(rows).div_ceil(teams) } else { 1 };
    (teams, teams * iterations)
}

#[test]
fn every_launch_covers_its_rows_and_fits_the_gpu() {
    for operator in row_operators() {
        for request in requests(operator) {
            let launch = geometry::choose(&request);
            let padded = if request.nvfp4 { request.rows.next_multiple_of(128) } else { request.rows };
            let (teams, reached) = reach(&launch, padded);
            assert!(reached >= u64::from(padded), "{request:?} {launch:?}");
            assert!(walks(&launch) || teams < u64::from(padded) + 64, "{request:?} {launch:?}");
            // A team past the last row of the scale layout would write behind it; those that stay look.
            let resident = launch.shape.kind == Kind::Resident;
            assert!(!request.nvfp4 || resident || teams == u64::from(padded), "{request:?} {launch:?}");
            // Teams that share a block would wait for each other at the barriers of a walk, but for those with barriers of their own, of which
            // a block has 15.
            let alone = launch.block == launch.team || launch.team <= 32;
            let apart = resident && launch.block / launch.team <= 15;
            assert!(!walks(&launch) || alone || apart, "{request:?} {launch:?}");
            // What every GPU from 8.0 on gives a block.
            assert!(
                launch.grid <= i32::MAX as u32 && launch.block <= 1024 && launch.shared_bytes <= 99 << 10,
                "{launch:?}"
            );
            assert!(resident || launch.block <= 256 && launch.shared_bytes <= 64 << 10, "{launch:?}");
            assert!(launch.shared_bytes <= (48 << 10).max(launch.shape.most_shared_bytes()), "{launch:?}");
            assert!(launch.block.is_multiple_of(launch.team) && launch.block.is_multiple_of(32), "{launch:?}");
        }
    }
}

#[test]
fn a_class_holds_the_row_and_its_team_has_the_lanes_of_the_sum_tree() {
    for request in row_operators().flat_map(requests) {
        let launch = geometry::choose(&request);
        let (chunks, lanes) = (sum_tree::chunks(request.dim), sum_tree::lanes(request.dim));
        if launch.shape.kind == Kind::Any {
            assert_eq!(launch.team, lanes);
            continue;
        }
        assert!(request.aligned && launch.shape.chunks * launch.team >= chunks, "{request:?} {launch:?}");
        assert!(launch.shape.lanes == 1 || request.pairs, "{request:?} {launch:?}");
        // An entry that was compiled for so many warps must get them.
        assert!(launch.shape.warps == 0 || launch.team == 32 * launch.shape.warps, "{request:?} {launch:?}");
        // Fewer threads than lanes only where the lanes left out hold no chunk.
        let all = launch.shape.lanes * launch.team == lanes;
        assert!(all || (launch.team < 32 && chunks <= launch.team), "{request:?} {launch:?}");
        // What `FULL` of the entry says: all chunks but the last (but two, in the widest class and in pairs) exist in every row.
        let last = if launch.shape.chunks == 8 || launch.shape.lanes == 2 { 2 } else { 1 };
        let full = launch.shape.chunks - last;
        assert!(chunks > full * launch.team || launch.shape.chunks == 1, "{request:?} {launch:?}");
    }
}

/// Pairs of lanes for many rows of every D that has classes of them, and for few rows of none; single lanes where an operand forbids pairs.
/// Blocks that stay for very many rows where there is a modulation to keep.
#[test]
fn pairs_are_for_many_rows() {
    let operators: Vec<Operator> = row_operators().filter(|operator| operator.has_pairs()).collect();
    assert_eq!(operators.len(), 5, "{operators:?}");
    assert_eq!(operators.iter().filter(|operator| operator.has_residents()).count(), 2);
    for (operator, dim) in
        operators.iter().flat_map(|operator| [784, 1536, 2048, 3072, 4096, 8192].map(|dim| (operator, dim)))
    {
        let (nvfp4, residents) = (operator.sink() == SinkKind::Nvfp4, operator.has_residents());
        let kind = |rows, pairs| {
            let (streams, aligned, multiprocessors) = (false, true, 132);
            let request = Request { nvfp4, streams, rows, dim, aligned, pairs, residents, multiprocessors };
            let shape = geometry::choose(&request).shape;
            assert_eq!(shape.lanes == 2, matches!(shape.kind, Kind::Pairs | Kind::Resident));
            shape.kind
        };
        let many = if residents { Kind::Resident } else { Kind::Pairs };
        assert_eq!(kind(16_384, true), many, "{operator} D={dim}");
        assert!(!matches!(kind(256, true), Kind::Pairs | Kind::Resident), "{operator} D={dim}");
        assert!(!matches!(kind(16_384, false), Kind::Pairs | Kind::Resident), "{operator} D={dim}");
        // Between them pairs, where a team of single lanes has eight warps.
        assert_eq!(kind(2048, true) == Kind::Pairs, dim >= 4096 || kind(2048, true) == many && !residents);
    }
}

/// A modulation in fp8 is held where decoding it is dear: before 8.9. NVFP4 has no streams to hold it in.
#[test]
fn pairs_are_for_gpus_that_decode_in_one_instruction() {
    let fp8 = Operator::AdaLayerNormQuantFp8Modfp8Bf16;
    assert_eq!(
        [(8, 0), (8, 7), (8, 9), (9, 0), (12, 0)].map(|of| fp8.uses_pairs(of)),
        [false, false, true, true, true]
    );
    assert!(Operator::LayerNormNoAffineQuantFp8StaticBf16.uses_pairs((8, 7)));
    assert!(Operator::AdaLayerNormQuantNvfp4SwizzledModfp8Bf16.uses_pairs((8, 7)));
    assert!(!Operator::AdaLayerNormQuantFp8Bf16.uses_pairs((9, 0)));
}

#[test]
fn shapes_have_names_of_their_own() {
    let mut names: Vec<_> = SHAPES.iter().map(|shape| shape.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), SHAPES.len());
}

/// Shared memory that is too small would be overrun: two exchange buffers for two quantities of the threads of a team of several warps (any
/// number where it is not a constant), for NVFP4 a table of 128 entries of 8 bytes, 16 where blocks stay, which keep 64 bytes of modulation a
/// chunk, and in a stream three rows of 16 bytes for each chunk of a thread.
#[test]
fn every_launch_has_the_shared_memory_that_its_kernel_uses() {
    for request in row_operators().flat_map(requests) {
        let launch = geometry::choose(&request);
        let ring = if launch.shape.kind == Kind::Stream { 3 * 16 * launch.shape.chunks * launch.block } else { 0 };
        let resident = launch.shape.kind == Kind::Resident;
        let table = if request.nvfp4 { 128 * if resident { 16 } else { 8 } } else { 0 };
        let kept = if resident { 64 * launch.shape.chunks * launch.team } else { 0 };
        let threads = match launch.shape.warps {
            0 => 256,
            1 => 0,
            warps => 32 * warps * (launch.block / launch.team),
        };
        assert!(launch.shared_bytes >= 2 * 2 * 4 * threads + table + kept + ring, "{request:?} {launch:?}");
    }
}

#[test]
fn modulation6_has_a_block_for_each_row_and_part() {
    assert_eq!(
        (geometry::modulation6_grid(0), geometry::modulation6_grid(1), geometry::modulation6_grid(5070)),
        (0, 6, 30_420)
    );
    assert_eq!(geometry::modulation6_grid(geometry::MAX_ROWS), 6 << 28);
    // CUDA's limit of a grid's first dimension is 2^31 - 1.
    assert!(geometry::modulation6_grid(geometry::MAX_ROWS) < 1 << 31);
}

/// A stream's grid is as large as what stays resident: with more registers a thread, a part of the rows would wait for a second round.
#[test]
fn every_block_of_a_stream_is_resident() {
    const REGISTERS: u32 = 65_536;
    for operator in row_operators().filter(|operator| operator.has_streams()) {
        for dim in [256, 512, 768, 1024, 1536, 2048, 3072, 4096, 5120, 6144, 8192] {
            let rows = geometry::MAX_ROWS;
            let (nvfp4, streams, aligned, pairs, residents) = (false, true, true, false, false);
            let request = Request { nvfp4, streams, rows, dim, aligned, pairs, residents, multiprocessors: 1 };
            let launch = geometry::choose(&request);
            if launch.shape.kind != Kind::Stream {
                continue; // rows of one chunk a lane have none
            }
            let entry = format!("{operator}__{}", launch.shape.name);
            for image in IMAGES {
                let registers = image.entry(&entry).expect("an entry").registers.next_multiple_of(8);
                let resident = registers * launch.block * launch.grid;
                assert!(resident <= REGISTERS, "{image}: {entry} takes {registers} registers, {launch:?}");
            }
        }
    }
}

/// A block of teams that stay is as large as a multiprocessor's registers: with more a thread, it could not be launched. Registers are given by
/// quarters of a multiprocessor, each with a quarter of the warps.
#[test]
fn every_block_that_stays_has_its_registers() {
    const REGISTERS_OF_A_QUARTER: u32 = 16_384;
    let mut seen = 0;
    for image in IMAGES {
        for shape in SHAPES.iter().filter(|shape| shape.kind == Kind::Resident) {
            let dim = 8 * 32 * shape.warps * shape.chunks;
            let (nvfp4, streams, aligned, pairs, residents) = (true, false, true, true, true);
            let (rows, multiprocessors) = (geometry::MAX_ROWS, 132);
            let request = Request { nvfp4, streams, rows, dim, aligned, pairs, residents, multiprocessors };
            let launch = geometry::choose(&request);
            assert_eq!(launch.shape, shape);
            for entry in image.entries.iter().filter(|entry| entry.name.ends_with(&format!("__{}", shape.name))) {
                let registers = entry.registers.next_multiple_of(8) * 32 * (launch.block / 32).div_ceil(4);
                assert!(registers <= REGISTERS_OF_A_QUARTER, "{image}: {} {launch:?}", entry.name);
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 7 * 6 * IMAGES.len());
}
