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
                let aligned = aligned && dim.is_multiple_of(8);
                all.push(Request { nvfp4, streams, rows, dim, aligned, pairs, multiprocessors });
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

/// Rows that the teams of a launch reach: one each, or `iterations` each in a stream.
fn reach(launch: &Launch, rows: u32) -> (u64, u64) {
    let teams = u64::from(launch.grid) * u64::from(launch.block / launch.team);
    let iterations = if launch.shape.kind == Kind::Stream { u64::from(rows).div_ceil(teams) } else { 1 };
    (teams, teams * iterations)
}

#[test]
fn every_launch_covers_its_rows_and_fits_the_gpu() {
    for operator in row_operators() {
        for request in requests(operator) {
            let launch = geometry::choose(&request);
            let padded = if request.nvfp4 { request.rows.next_multiple_of(128) } else { request.rows };
            let (teams, reached) = reach(&launch, request.rows);
            assert!(reached >= u64::from(padded), "{request:?} {launch:?}");
            assert!(launch.shape.kind == Kind::Stream || teams < u64::from(padded) + 64, "{request:?} {launch:?}");
            // A team past the last row of the scale layout would write behind it.
            assert!(!request.nvfp4 || teams == u64::from(padded), "{request:?} {launch:?}");
            // Teams that share a block would wait for each other at the barriers of a walk.
            let alone = launch.block == launch.team || launch.team <= 32;
            assert!(launch.shape.kind != Kind::Stream || alone, "{request:?} {launch:?}");
            assert!(
                launch.grid <= i32::MAX as u32 && launch.block <= 256 && launch.shared_bytes <= 64 << 10,
                "{launch:?}"
            );
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

/// Pairs for many rows of every D that has classes of them, and for few rows of none; single lanes where an operand forbids pairs.
#[test]
fn pairs_are_for_many_rows() {
    let operators: Vec<Operator> = row_operators().filter(|operator| operator.has_pairs()).collect();
    assert_eq!(operators.len(), 5, "{operators:?}");
    for (operator, dim) in
        operators.iter().flat_map(|operator| [784, 1536, 2048, 3072, 4096, 8192].map(|dim| (operator, dim)))
    {
        let nvfp4 = operator.sink() == SinkKind::Nvfp4;
        let request =
            |rows, pairs| Request { nvfp4, streams: false, rows, dim, aligned: true, pairs, multiprocessors: 132 };
        let kind = |rows, pairs| geometry::choose(&request(rows, pairs)).shape.kind;
        assert_eq!(kind(16_384, true), Kind::Pairs, "{operator} D={dim}");
        assert_ne!(kind(256, true), Kind::Pairs, "{operator} D={dim}");
        assert_ne!(kind(16_384, false), Kind::Pairs, "{operator} D={dim}");
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

/// Shared memory that is too small would be overrun: two exchange buffers for two quantities of the lanes of a team of several warps (any
/// number where it is not a constant), for NVFP4 a table of 128 entries of 8 bytes, and in a stream three rows of 16 bytes for each
/// chunk of a thread.
#[test]
fn every_launch_has_the_shared_memory_that_its_kernel_uses() {
    for request in row_operators().flat_map(requests) {
        let launch = geometry::choose(&request);
        let ring = if launch.shape.kind == Kind::Stream { 3 * 16 * launch.shape.chunks * launch.block } else { 0 };
        let table = if request.nvfp4 { 128 * 8 } else { 0 };
        let lanes = match launch.shape.warps {
            0 => 256,
            1 => 0,
            warps => 32 * warps * launch.shape.lanes * (launch.block / launch.team),
        };
        assert!(launch.shared_bytes >= 2 * 2 * 4 * lanes + table + ring, "{request:?} {launch:?}");
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
            let request =
                Request { nvfp4: false, streams: true, rows, dim, aligned: true, pairs: false, multiprocessors: 1 };
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
