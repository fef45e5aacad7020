//! Every way to launch an operator on a shape: the choice of the library, and what else must give the same bytes.

use std::fmt;

use adaptive_layernorm_producers::DType;
use adaptive_layernorm_producers::contract::geometry::{self, Kind, Launch, Request, SHAPES, Shape};
use adaptive_layernorm_producers::contract::sum_tree;
use adaptive_layernorm_producers::named::Call;
use adaptive_layernorm_producers::operator::{Axis, OperandSpec, SinkKind};

/// How operands lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// On the address that the vectorised entries ask for, and on no better one.
    Vector,
    /// On the address that those with pairs of lanes ask for, and on no better one.
    Pairs,
    /// On their element, and on no better one; block scales on four bytes, which every entry asks for.
    Element,
}

impl Alignment {
    /// All.
    pub const ALL: [Self; 3] = [Self::Vector, Self::Pairs, Self::Element];

    /// Bytes, for an operand (host/check/alignment.rs says the same to the launch).
    pub fn of(self, call: &Call, spec: &OperandSpec) -> usize {
        let elements = match (self, call.operator.sink()) {
            (_, SinkKind::SixBf16) => 4,
            (Self::Pairs, _) => 16,
            (Self::Vector | Self::Element, _) => 8,
        };
        let element = match spec.dtype {
            DType::U8 | DType::E4m3 => 1,
            DType::Bf16 => 2,
            DType::F32 => 4,
        };
        match (self, spec.shape) {
            (_, [Axis::ScaleLayout]) => 4,
            (Self::Element, _) | (_, [Axis::Scalar]) => element,
            (Self::Vector | Self::Pairs, [.., Axis::HalfDim]) => elements / 2,
            (Self::Vector | Self::Pairs, _) => (elements * element).min(16),
        }
    }
}

/// An entry and its geometry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its symbol.
    pub name: String,
    /// Blocks.
    pub grid: u32,
    /// Threads a block.
    pub block: u32,
    /// Dynamic shared memory a block, in bytes.
    pub shared_bytes: u32,
    /// Threads that share a row.
    pub team: u32,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <<<{}, {}, {}>>> team {}", self.name, self.grid, self.block, self.shared_bytes, self.team)
    }
}

/// Multiprocessors of the GPU for which launches are chosen: an H200's. They shape the grid, never a byte.
const MULTIPROCESSORS: u32 = 132;

/// `{operator}[_{recipe}]`, the part of an entry's name before its shape class.
pub fn stem(call: &Call) -> String {
    match call.recipe {
        Some(recipe) => format!("{}_{}", call.operator, recipe.symbol()),
        None => call.operator.to_string(),
    }
}

/// What the library launches.
pub fn chosen(call: &Call, rows: u32, dim: u32, alignment: Alignment) -> Entry {
    if call.operator.sink() == SinkKind::SixBf16 {
        return six_way(rows, dim, alignment);
    }
    entry(call, geometry::choose(&request(call, rows, dim, alignment)))
}

/// All launches that must give the same bytes, what the library launches first. With [`Alignment::Pairs`] only those with pairs of lanes,
/// if there are any, since the others do not differ by it.
pub fn launches(call: &Call, rows: u32, dim: u32, alignment: Alignment) -> Vec<Entry> {
    let row_operator = call.operator.sink() != SinkKind::SixBf16;
    if alignment == Alignment::Pairs {
        let paired = |kind| geometry::paired(&request(call, rows, dim, alignment), kind).filter(|_| row_operator);
        let all = [Kind::Pairs, Kind::Resident].into_iter().filter_map(paired);
        return all.map(|launch| entry(call, few_that_stay(launch))).collect();
    }
    let mut all = vec![chosen(call, rows, dim, alignment)];
    if alignment == Alignment::Vector && row_operator {
        let chosen = geometry::choose(&request(call, rows, dim, alignment));
        let others = wider_team(rows, call, chosen).into_iter().chain(walking(rows, dim, call, chosen));
        all.extend(others.map(|launch| entry(call, launch)));
    }
    all
}

fn request(call: &Call, rows: u32, dim: u32, alignment: Alignment) -> Request {
    Request {
        nvfp4: call.operator.sink() == SinkKind::Nvfp4,
        streams: call.operator.has_streams(),
        rows,
        dim,
        aligned: alignment != Alignment::Element && dim.is_multiple_of(8),
        pairs: alignment == Alignment::Pairs && call.operator.has_pairs() && dim.is_multiple_of(16),
        residents: call.operator.has_residents(),
        multiprocessors: MULTIPROCESSORS,
    }
}

fn entry(call: &Call, launch: Launch) -> Entry {
    let Launch { shape, grid, block, shared_bytes, team } = launch;
    Entry { name: format!("{}__{}", stem(call), shape.name), grid, block, shared_bytes, team }
}

fn six_way(rows: u32, dim: u32, alignment: Alignment) -> Entry {
    let aligned = alignment == Alignment::Vector && dim.is_multiple_of(4);
    let name = format!("adaln_modulation6_bf16__{}", if aligned { "aligned" } else { "any" });
    let (grid, block) = (geometry::modulation6_grid(rows), geometry::MODULATION6_BLOCK);
    Entry { name, grid, block, shared_bytes: 0, team: 0 }
}

/// Teams of lanes of a warp may be larger than the row needs.
fn wider_team(rows: u32, call: &Call, chosen: Launch) -> Option<Launch> {
    if chosen.team > 16 {
        return None;
    }
    let team = 2 * chosen.team;
    let rows = if call.operator.sink() == SinkKind::Nvfp4 { rows.next_multiple_of(128) } else { rows };
    Some(Launch { team, grid: rows.div_ceil(chosen.block / team), ..chosen })
}

/// Of teams that stay two in each of two blocks, so that they walk.
fn few_that_stay(launch: Launch) -> Launch {
    if launch.shape.kind != Kind::Resident {
        return launch;
    }
    let block = 2 * launch.team;
    Launch { grid: 2, block, shared_bytes: launch.shape.shared_bytes(block, true), ..launch }
}

/// The stream of the same class, so few teams that they walk.
fn walking(rows: u32, dim: u32, call: &Call, chosen: Launch) -> Option<Launch> {
    if !call.operator.has_streams() {
        return None;
    }
    let warps = sum_tree::warps(dim);
    let same = |shape: &&'static Shape| {
        shape.kind == Kind::Stream && (shape.warps, shape.chunks) == (warps, chosen.shape.chunks)
    };
    let shape = SHAPES.iter().find(same)?;
    let teams = rows.div_ceil(5);
    // Teams of several warps that walk have their block to themselves.
    let block = if chosen.team == 32 { chosen.block } else { chosen.team };
    let shared_bytes = shape.shared_bytes(block, false);
    Some(Launch { shape, grid: teams.div_ceil(block / chosen.team), block, shared_bytes, ..chosen })
}
