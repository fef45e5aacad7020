//! Who touched a byte last, and whether the next access is ordered after that.
//!
//! Time is counted per thread: a thread's clock advances when it synchronises. A thread knows, for every other thread, up to
//! which clock it has synchronised with it (`seen`). An earlier access is ordered before the present one if it is the thread's
//! own or if its clock has been seen; two accesses that are not ordered, one of them a write, race. (Vector clocks as in
//! FastTrack; Flanagan and Freund, PLDI 2009.)

use crate::error::RaceKind;

/// An access: thread (plus one; 0: none), its clock, its instruction and whether it is strong (atomic).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Event {
    thread: u32,
    clock: u32,
    pub pc: u32,
    strong: bool,
}

impl Event {
    /// The thread, or `None` if there was no access.
    pub(crate) fn thread(&self) -> Option<u32> {
        self.thread.checked_sub(1)
    }
}

/// The thread that makes an access, and what it has seen of others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Actor<'a> {
    pub thread: u32,
    pub clock: u32,
    pub seen: &'a [u32],
    pub pc: u32,
}

impl Actor<'_> {
    fn event(&self, strong: bool) -> Event {
        Event { thread: self.thread + 1, clock: self.clock, pc: self.pc, strong }
    }

    /// Whether `event` is ordered before what this thread does now.
    fn follows(&self, event: &Event) -> bool {
        match event.thread() {
            None => true,
            Some(thread) if thread == self.thread => true,
            Some(thread) => self.seen.get(thread as usize).is_some_and(|seen| event.clock <= *seen),
        }
    }

    fn races(&self, event: &Event, strong: bool) -> bool {
        !(self.follows(event) || (strong && event.strong))
    }
}

/// Marks a cell whose readers are in a list: the thread number of its reader event.
const MANY: u32 = u32::MAX;

/// The history of one byte, as far as it matters.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cell {
    pub writer: Event,
    /// The last reader, or `MANY` with the list's number as clock.
    reader: Event,
    pub initialised: bool,
    /// The destination of a copy on its way, which `writer` issued.
    pub copying: bool,
    pub plain_write: bool,
    pub strong_write: bool,
    pub plain_read: bool,
    pub strong_read: bool,
}

/// Lists of readers that are not ordered among themselves, and the numbers of lists that are free again.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    lists: Vec<Vec<Event>>,
    free: Vec<u32>,
}

/// A list longer than this is cleaned before it grows further: more than the threads of any block.
const LONG: usize = 4096;

impl Readers {
    fn get(&self, number: u32) -> &[Event] {
        self.lists.get(number as usize).map_or(&[], Vec::as_slice)
    }

    fn start(&mut self, first: Event, second: Event) -> u32 {
        if let Some(number) = self.free.pop() {
            self.lists[number as usize].extend([first, second]);
            return number;
        }
        self.lists.push(vec![first, second]);
        u32::try_from(self.lists.len() - 1).unwrap_or(u32::MAX)
    }

    /// Adds a reader. Those that are ordered before it go when it can be seen cheaply that there are such.
    fn add(&mut self, number: u32, actor: Actor<'_>, event: Event) {
        let Some(list) = self.lists.get_mut(number as usize) else { return };
        if list.last().is_some_and(|last| actor.follows(last)) || list.len() >= LONG {
            list.retain(|earlier| !actor.follows(earlier));
        }
        if list.len() >= LONG {
            list.reverse();
            list.sort_by_key(|event| event.thread);
            list.dedup_by_key(|event| event.thread);
        }
        list.push(event);
    }

    fn release(&mut self, number: u32) {
        if let Some(list) = self.lists.get_mut(number as usize) {
            list.clear();
            self.free.push(number);
        }
    }
}

/// A race, seen from the later access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conflict {
    pub kind: RaceKind,
    pub other: Event,
}

impl Cell {
    /// Whether this block has written the byte.
    pub(crate) fn written(&self) -> bool {
        self.plain_write || self.strong_write
    }

    /// Records a read.
    pub(crate) fn read(&mut self, actor: Actor<'_>, strong: bool, readers: &mut Readers) -> Result<(), Conflict> {
        if actor.races(&self.writer, strong) {
            return Err(Conflict { kind: RaceKind::WriteRead, other: self.writer });
        }
        self.plain_read |= !strong;
        self.strong_read |= strong;
        let event = actor.event(strong);
        if self.reader.thread == MANY {
            readers.add(self.reader.clock, actor, event);
        } else if actor.follows(&self.reader) {
            self.reader = event;
        } else {
            let number = readers.start(self.reader, event);
            self.reader = Event { thread: MANY, clock: number, pc: 0, strong: false };
        }
        Ok(())
    }

    /// Records a write. `equal`: it leaves the value as it is and that is allowed to race with writes.
    pub(crate) fn write(
        &mut self,
        actor: Actor<'_>,
        strong: bool,
        equal: bool,
        readers: &mut Readers,
    ) -> Result<(), Conflict> {
        if actor.races(&self.writer, strong) && !equal {
            return Err(Conflict { kind: RaceKind::WriteWrite, other: self.writer });
        }
        if let Some(other) = self.racing_reader(actor, strong, readers) {
            return Err(Conflict { kind: RaceKind::ReadWrite, other });
        }
        self.plain_write |= !strong;
        self.strong_write |= strong;
        self.initialised = true;
        self.writer = actor.event(strong);
        if self.reader.thread == MANY {
            readers.release(self.reader.clock);
        }
        self.reader = Event::default();
        Ok(())
    }

    fn racing_reader(&self, actor: Actor<'_>, strong: bool, readers: &Readers) -> Option<Event> {
        if self.reader.thread != MANY {
            return actor.races(&self.reader, strong).then_some(self.reader);
        }
        readers.get(self.reader.clock).iter().find(|earlier| actor.races(earlier, strong)).copied()
    }

    /// A reader, for a report on two blocks.
    pub(crate) fn some_reader(&self, readers: &Readers) -> Event {
        if self.reader.thread == MANY {
            return readers.get(self.reader.clock).first().copied().unwrap_or_default();
        }
        if self.reader.thread == 0 { self.writer } else { self.reader }
    }
}
