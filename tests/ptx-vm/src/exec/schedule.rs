//! Who runs next. A correct kernel gives the same bytes under every schedule.

/// The order in which the threads of a block take turns. Threads are independent of each other until they meet at a barrier or
/// a warp operation; a turn ends there, or when its instructions are used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Schedule {
    /// First come first served, at the start the lowest thread, each until it waits.
    #[default]
    InOrder,
    /// Last come first served, at the start the highest thread, each until it waits.
    Reversed,
    /// One instruction of every thread in turn.
    RoundRobin,
    /// Turns of 1 to 64 instructions, the thread drawn at random from this seed.
    Random(u64),
}

/// A schedule at work.
#[derive(Clone, Debug)]
pub(crate) struct Turns {
    schedule: Schedule,
    state: u64,
    next: usize,
}

impl Turns {
    /// `block` makes the draws of each block its own.
    pub(crate) fn new(schedule: Schedule, block: u32) -> Self {
        let seed = if let Schedule::Random(seed) = schedule { seed } else { 0 };
        Self { schedule, state: seed ^ (u64::from(block) << 32), next: 0 }
    }

    /// A position in the list of `ready` threads and the instructions of the turn.
    pub(crate) fn draw(&mut self, ready: usize) -> (usize, u32) {
        match self.schedule {
            Schedule::InOrder => (0, u32::MAX),
            Schedule::Reversed => (ready - 1, u32::MAX),
            Schedule::RoundRobin => {
                let position = if self.next < ready { self.next } else { 0 };
                self.next = position + 1;
                (position, 1)
            }
            Schedule::Random(_) => {
                let draw = self.random();
                let position = usize::try_from(draw >> 16).unwrap_or(0) % ready;
                (position, 1 + u32::try_from(draw & 63).unwrap_or(0))
            }
        }
    }

    /// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
