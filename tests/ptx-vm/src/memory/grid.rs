//! Where blocks meet: their pages are merged one block after another, and two blocks that touch a byte race.

use std::collections::BTreeMap;

use super::cell::{Cell, Event};
use super::overlay::{Overlay, PAGE};
use super::{Memory, layout};
use crate::error::RaceKind;

/// The accesses of earlier blocks to one byte. Two distinct readers suffice: a third block that writes differs from one.
#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    /// Block (plus one) and event of a plain and of a strong write.
    plain_writer: Party,
    strong_writer: Party,
    plain_readers: [Party; 2],
    strong_readers: [Party; 2],
}

/// A block (plus one; 0: none) and its access.
#[derive(Clone, Copy, Debug, Default)]
struct Party {
    block: u32,
    event: Event,
}

/// Two blocks that touch a byte without order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GridRace {
    pub address: u64,
    pub kind: RaceKind,
    pub earlier: (u32, Event),
    pub later: Event,
}

/// The history of the grid, page by page.
#[derive(Debug, Default)]
pub(crate) struct Grid {
    pages: BTreeMap<u64, Vec<Shared>>,
}

impl Grid {
    /// Checks a finished block against the earlier ones and applies its writes.
    pub(crate) fn merge(
        &mut self,
        block: u32,
        overlay: &Overlay,
        memory: &mut Memory,
        equal_writes: bool,
    ) -> Result<(), GridRace> {
        for (number, page) in &overlay.pages {
            let shared = self.pages.entry(*number).or_insert_with(|| vec![Shared::default(); PAGE]);
            let Some(stored) = layout::buffer_index(number * PAGE as u64).and_then(|i| memory.buffers.get_mut(i))
            else {
                continue;
            };
            for (place, cell) in page.cells.iter().enumerate() {
                let address = number * PAGE as u64 + place as u64;
                let offset = address.checked_sub(stored.address).and_then(|offset| usize::try_from(offset).ok());
                let Some(offset) = offset.filter(|offset| *offset < stored.bytes.len()) else { continue };
                let equal = equal_writes && stored.bytes[offset] == page.bytes[place];
                let me = (block + 1, cell.writer, cell.some_reader(&overlay.readers));
                shared[place].meet(me, cell, equal).map_err(|(kind, earlier)| GridRace {
                    address,
                    kind,
                    earlier: (earlier.block - 1, earlier.event),
                    later: if kind == RaceKind::WriteRead { me.2 } else { me.1 },
                })?;
                if cell.written() {
                    stored.bytes[offset] = page.bytes[place];
                    for flags in [&mut stored.initialised, &mut stored.written].into_iter().flatten() {
                        flags[offset] = true;
                    }
                }
            }
        }
        Ok(())
    }
}

impl Shared {
    /// Compares a block's accesses with those of earlier blocks, then records them.
    fn meet(&mut self, me: (u32, Event, Event), cell: &Cell, equal: bool) -> Result<(), (RaceKind, Party)> {
        let (block, writer, reader) = me;
        let other = |party: &Party| party.block != 0 && party.block != block;
        let writes = [(cell.plain_write, true), (cell.strong_write, false)];
        for (_, plain) in writes.into_iter().filter(|(done, _)| *done) {
            let writers = [Some(self.plain_writer), plain.then_some(self.strong_writer)];
            if let Some(party) = writers.into_iter().flatten().find(other).filter(|_| !equal) {
                return Err((RaceKind::WriteWrite, party));
            }
            let strong_readers = self.strong_readers.into_iter().filter(|_| plain);
            if let Some(party) = self.plain_readers.into_iter().chain(strong_readers).find(other) {
                return Err((RaceKind::ReadWrite, party));
            }
        }
        let reads_plainly = cell.plain_read;
        let writers = [(cell.plain_read || cell.strong_read, self.plain_writer), (reads_plainly, self.strong_writer)];
        if let Some((_, party)) = writers.into_iter().find(|(done, party)| *done && other(party)) {
            return Err((RaceKind::WriteRead, party));
        }
        self.record(block, writer, reader, cell);
        Ok(())
    }

    fn record(&mut self, block: u32, writer: Event, reader: Event, cell: &Cell) {
        let writer = Party { block, event: writer };
        let reader = Party { block, event: reader };
        if cell.plain_write {
            self.plain_writer = writer;
        }
        if cell.strong_write {
            self.strong_writer = writer;
        }
        for (done, readers) in
            [(cell.plain_read, &mut self.plain_readers), (cell.strong_read, &mut self.strong_readers)]
        {
            if done {
                let place = usize::from(readers[0].block != 0 && readers[0].block != block);
                readers[place] = reader;
            }
        }
    }
}
