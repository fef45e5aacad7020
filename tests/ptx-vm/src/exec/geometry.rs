//! Extents of grids and blocks, and the numbering of threads.

use crate::program::Special;

/// An extent in x, y and z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3(pub [u32; 3]);

impl From<u32> for Dim3 {
    fn from(x: u32) -> Self {
        Self([x, 1, 1])
    }
}

impl From<(u32, u32)> for Dim3 {
    fn from((x, y): (u32, u32)) -> Self {
        Self([x, y, 1])
    }
}

impl From<(u32, u32, u32)> for Dim3 {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self([x, y, z])
    }
}

impl Dim3 {
    /// Number of elements.
    pub(crate) fn volume(self) -> u64 {
        self.0.iter().fold(1, |volume: u64, n| volume.saturating_mul(u64::from(*n)))
    }

    /// Coordinates of the element with this linear index, x fastest.
    pub(crate) fn coordinates(self, index: u32) -> [u32; 3] {
        let [x, y, _] = self.0.map(|n| n.max(1));
        [index % x, index / x % y, index / x / y]
    }
}

/// Where a block stands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub block: [u32; 3],
    pub grid_extent: Dim3,
    pub block_extent: Dim3,
    pub dynamic_shared: u32,
}

impl Place {
    pub(crate) fn threads(&self) -> usize {
        usize::try_from(self.block_extent.volume()).unwrap_or(0)
    }

    /// `%tid` of a linear thread index.
    pub(crate) fn thread(&self, index: u32) -> [u32; 3] {
        self.block_extent.coordinates(index)
    }

    /// The value of a special register (PTX ISA, "Special Registers").
    pub(crate) fn special(&self, special: Special, thread: u32) -> u32 {
        let lane = thread % 32;
        let axis = |values: [u32; 3], axis: u8| values[usize::from(axis.min(2))];
        match special {
            Special::Tid(i) => axis(self.thread(thread), i),
            Special::Ntid(i) => axis(self.block_extent.0, i),
            Special::Ctaid(i) => axis(self.block, i),
            Special::Nctaid(i) => axis(self.grid_extent.0, i),
            Special::Lane => lane,
            Special::Warp => thread / 32,
            Special::Warps => u32::try_from(self.threads().div_ceil(32)).unwrap_or(0),
            Special::MaskEq => 1 << lane,
            Special::MaskLt => (1 << lane) - 1,
            Special::MaskLe => u32::MAX >> (31 - lane),
            Special::MaskGt => !(u32::MAX >> (31 - lane)),
            Special::MaskGe => !((1 << lane) - 1),
            Special::DynamicShared => self.dynamic_shared,
        }
    }
}
