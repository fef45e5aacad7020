//! Where a thread reads and writes: one chunk of a row, aligned or element by element.
//!
//! [`Aligned`] moves a chunk with one wide access; it needs rows and operands on 16-byte addresses. [`Scalar`] needs only the
//! natural alignment of the element and copes with a tail chunk. The body is generic over the two.
use crate::contract::sum_tree::CHUNK;
use crate::ptx;

/// Address of row `row` of a matrix whose rows are `pitch` bytes.
#[inline(always)]
pub fn row_address(base: u64, row: u32, pitch: u32) -> u64 {
    crate::ptx::multiply_add(row, pitch, base)
}

/// The position of a chunk in a row. Absent chunks (past D) read as zero and are not written.
pub trait Place: Copy {
    /// Index of the chunk in its row, as a thread's own part and one that all threads share: a multiple of a warp, but for the second chunk
    /// of a pair, which is one more.
    fn chunk(self) -> [u32; 2];
    /// Whether the chunk exists.
    fn exists(self) -> bool;
    /// Elements of the chunk that exist: 8, fewer in a tail, 0 when absent.
    fn elements(self) -> u32;
    /// The chunk of a bf16 row at `row`.
    fn bf16(self, row: u64) -> [u32; 4];
    /// The chunk of an f32 row at `row`.
    fn f32(self, row: u64) -> [f32; 8];
    /// The chunk of a row of bytes at `row`.
    fn bytes(self, row: u64) -> [u32; 2];
    /// Writes the chunk of a bf16 row.
    fn store_bf16(self, row: u64, words: [u32; 4]);
    /// Writes the chunk of a row of bytes, and with `LANES` = 2 the one after it, in one access.
    fn store_bytes<const LANES: usize>(self, row: u64, words: [[u32; 2]; LANES]);
    /// Writes the chunk of a row of nibbles, likewise.
    fn store_nibbles<const LANES: usize>(self, row: u64, words: [u32; LANES]);
}

/// A whole chunk on a 16-byte boundary: number `thread + step` of its row.
///
/// The two are kept apart since `step` is a constant of the entry: added to an address in 64 bits it becomes the offset of the access,
/// where the sum in 32 bits would take three instructions for each chunk and operand.
#[derive(Clone, Copy)]
pub struct Aligned {
    /// Index of the thread in its team, times the lanes that a thread stands for.
    pub thread: u32,
    /// Lanes of the team, times how many chunks of this lane come before; one more for the second lane of a thread.
    pub step: u32,
    /// Whether the row has it.
    pub exists: bool,
}

impl Aligned {
    /// Address of the chunk in a row at `row` where a chunk takes `bytes` bytes.
    #[inline(always)]
    pub fn address(self, row: u64, bytes: u32) -> u64 {
        row + self.thread as u64 * bytes as u64 + self.step as u64 * bytes as u64
    }
}

// SAFETY (all blocks of this impl): the host checked that every operand covers `rows x dim` elements, lies on the address that its
// accesses divide, and that D is a multiple of 8, or of 16 for an entry of `LANES` = 2, before it chose the entry; `exists` holds only for
// chunks inside the row, and with it the odd chunk behind an even one does where D is a multiple of 16.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Place for Aligned {
    #[inline(always)]
    fn chunk(self) -> [u32; 2] {
        [self.thread, self.step]
    }

    #[inline(always)]
    fn exists(self) -> bool {
        self.exists
    }

    #[inline(always)]
    fn elements(self) -> u32 {
        if self.exists { CHUNK } else { 0 }
    }

    #[inline(always)]
    fn bf16(self, row: u64) -> [u32; 4] {
        if self.exists { unsafe { ptx::load_128(self.address(row, 16)) } } else { [0; 4] }
    }

    #[inline(always)]
    fn f32(self, row: u64) -> [f32; 8] {
        if !self.exists {
            return [0.0; 8];
        }
        let ([a, b, c, d], [e, f, g, h]) =
            unsafe { (ptx::load_128(self.address(row, 32)), ptx::load_128(self.address(row, 32) + 16)) };
        [a, b, c, d, e, f, g, h].map(f32::from_bits)
    }

    #[inline(always)]
    fn bytes(self, row: u64) -> [u32; 2] {
        if self.exists { unsafe { ptx::load_64(self.address(row, 8)) } } else { [0; 2] }
    }

    #[inline(always)]
    fn store_bf16(self, row: u64, words: [u32; 4]) {
        if self.exists {
            unsafe { ptx::store_128(self.address(row, 16), words) }
        }
    }

    #[inline(always)]
    fn store_bytes<const LANES: usize>(self, row: u64, words: [[u32; 2]; LANES]) {
        if !self.exists {
            return;
        }
        if LANES == 1 {
            unsafe { ptx::store_64(self.address(row, 8), words[0]) }
        } else {
            let ([a, b], [c, d]) = (words[0], words[1]);
            unsafe { ptx::store_128(self.address(row, 8), [a, b, c, d]) }
        }
    }

    #[inline(always)]
    fn store_nibbles<const LANES: usize>(self, row: u64, words: [u32; LANES]) {
        if !self.exists {
            return;
        }
        if LANES == 1 {
            unsafe { ptx::store_32(self.address(row, 4), words[0]) }
        } else {
            unsafe { ptx::store_64(self.address(row, 4), [words[0], words[1]]) }
        }
    }
}

/// A chunk of any alignment, possibly a tail.
#[derive(Clone, Copy)]
pub struct Scalar {
    /// Index of the chunk in its row.
    pub chunk: u32,
    /// Elements that exist.
    pub elements: u32,
}

// SAFETY (all blocks of this impl): the host checked that every operand covers `rows x dim` elements with the alignment of its
// element; only the first `elements` elements of the chunk, which lie inside the row, are touched.
#[allow(clippy::undocumented_unsafe_blocks)]
impl Place for Scalar {
    #[inline(always)]
    fn chunk(self) -> [u32; 2] {
        [self.chunk, 0]
    }

    #[inline(always)]
    fn exists(self) -> bool {
        self.elements > 0
    }

    #[inline(always)]
    fn elements(self) -> u32 {
        self.elements
    }

    #[inline(always)]
    fn bf16(self, row: u64) -> [u32; 4] {
        let at = row + self.chunk as u64 * 16;
        let mut words = [0; 4];
        let mut e = 0;
        while e < CHUNK {
            if e < self.elements {
                words[e as usize / 2] |= unsafe { ptx::load_16(at + e as u64 * 2) } << (e % 2 * 16);
            }
            e += 1;
        }
        words
    }

    #[inline(always)]
    fn f32(self, row: u64) -> [f32; 8] {
        let at = row + self.chunk as u64 * 32;
        let mut values = [0.0; 8];
        let mut e = 0;
        while e < CHUNK {
            if e < self.elements {
                values[e as usize] = f32::from_bits(unsafe { ptx::load_32(at + e as u64 * 4) });
            }
            e += 1;
        }
        values
    }

    #[inline(always)]
    fn bytes(self, row: u64) -> [u32; 2] {
        let at = row + self.chunk as u64 * 8;
        let mut words = [0; 2];
        let mut e = 0;
        while e < CHUNK {
            if e < self.elements {
                words[e as usize / 4] |= unsafe { ptx::load_8(at + e as u64) } << (e % 4 * 8);
            }
            e += 1;
        }
        words
    }

    #[inline(always)]
    fn store_bf16(self, row: u64, words: [u32; 4]) {
        let at = row + self.chunk as u64 * 16;
        let mut e = 0;
        while e < CHUNK {
            if e < self.elements {
                unsafe { ptx::store_16(at + e as u64 * 2, words[e as usize / 2] >> (e % 2 * 16)) };
            }
            e += 1;
        }
    }

    #[inline(always)]
    fn store_bytes<const LANES: usize>(self, row: u64, words: [[u32; 2]; LANES]) {
        const { assert!(LANES == 1, "a chunk of its own") };
        let words = words[0];
        let at = row + self.chunk as u64 * 8;
        let mut e = 0;
        while e < CHUNK {
            if e < self.elements {
                unsafe { ptx::store_8(at + e as u64, words[e as usize / 4] >> (e % 4 * 8)) };
            }
            e += 1;
        }
    }

    #[inline(always)]
    fn store_nibbles<const LANES: usize>(self, row: u64, words: [u32; LANES]) {
        const { assert!(LANES == 1, "a chunk of its own") };
        let word = words[0];
        let at = row + self.chunk as u64 * 4;
        let mut e = 0;
        while e < CHUNK {
            if e < self.elements {
                unsafe { ptx::store_8(at + e as u64 / 2, word >> (e * 4)) };
            }
            e += 2;
        }
    }
}
