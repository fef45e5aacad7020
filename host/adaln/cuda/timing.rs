//! What a launch takes: inside a graph of many, the median of many replays.
//!
//! A launch on its own is bound by the processor that makes it; in a graph it is what a captured model pays. "Cold" rotates over
//! copies of the operands that together exceed the cache, so that every launch reads from memory.
use super::graph::{Graph, Work, copy};
use super::resident::GRAIN;
use super::{Gpu, called};
use crate::failure::Outcome;
use cust::event::{Event, EventFlags};
use cust::memory::DeviceBuffer;
use cust::stream::Stream;
use std::time::Duration;

/// Replays of which the median is taken.
pub const REPLAYS: usize = 20;
/// Launches of a graph.
pub const LAUNCHES: usize = 32;
/// Most bytes of all copies of the operands.
const MOST_BYTES: usize = 16 << 30;

/// How many copies of operands it takes to exceed the cache three times; small ones fewer, so many that no replay repeats a copy.
pub fn cold_copies(gpu: &Gpu, bytes: usize) -> usize {
    let enough = (3 * gpu.about().l2_bytes as usize).div_ceil(bytes.max(1)) + 1;
    enough.min(LAUNCHES * REPLAYS).min((MOST_BYTES / bytes.max(1)).max(1))
}

/// The median time of a piece of work; the first `copies` pieces are taken in turn.
pub fn median<W: Work>(gpu: &Gpu, work: &W, copies: usize) -> Outcome<Duration> {
    let stream = gpu.stream();
    let pieces = |graph: usize| (graph * LAUNCHES..(graph + 1) * LAUNCHES).map(move |piece| piece % copies);
    let graphs = (0..copies.div_ceil(LAUNCHES))
        .map(|graph| Graph::capture(stream, work, pieces(graph)))
        .collect::<Outcome<Vec<_>>>()?;
    for graph in graphs.iter().cycle().take(graphs.len().max(3)) {
        graph.replay()?;
    }
    let event = || called("making an event", Event::new(EventFlags::DEFAULT));
    let (begin, end) = (event()?, event()?);
    let mut times = Vec::new();
    for graph in graphs.iter().cycle().take(REPLAYS.max(graphs.len())) {
        called("recording an event", begin.record(stream))?;
        graph.replay()?;
        called("recording an event", end.record(stream))?;
        called("waiting for the GPU", end.synchronize())?;
        times.push(called("reading a time", end.elapsed_time_f32(&begin))?);
    }
    times.sort_unstable_by(f32::total_cmp);
    let milliseconds = f64::from(times[times.len() / 2]) / LAUNCHES as f64;
    Ok(Duration::from_secs_f64(milliseconds / 1e3))
}

/// The driver's copy of as many bytes as a call reads and writes: half of them read, half written.
pub struct Copies {
    memory: DeviceBuffer<u8>,
    /// Bytes of one copy's source, and of its target.
    half: usize,
    /// Where the first aligned address is.
    skipped: usize,
    copies: usize,
}

impl Copies {
    /// Memory for `copies` copies that move `bytes`.
    pub fn new(bytes: u64, copies: usize) -> Outcome<Self> {
        let half = usize::try_from(bytes / 2).unwrap_or(usize::MAX).next_multiple_of(GRAIN);
        let memory = called("allocating device memory", DeviceBuffer::zeroed(2 * half * copies + GRAIN))?;
        let address = memory.as_device_ptr().as_raw();
        // Less than GRAIN.
        let skipped = (address.next_multiple_of(GRAIN as u64) - address) as usize;
        Ok(Self { memory, half, skipped, copies })
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.copies
    }
}

impl Work for Copies {
    fn enqueue(&self, stream: &Stream, index: usize) -> Outcome {
        let begin = self.skipped + 2 * self.half * index;
        let from = self.memory.index(begin..begin + self.half);
        let to = self.memory.index(begin + self.half..begin + 2 * self.half);
        copy(to, from, stream)
    }
}
