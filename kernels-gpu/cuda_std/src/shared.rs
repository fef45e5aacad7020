//! Shared memory.
//!
//! rustc has no statics in address space 3, so the buffer is declared by `global_asm!` and its address taken by `asm!`; read
//! through an extern static it would silently become a global access. Accesses are `asm!` too: a generic pointer costs
//! two instructions for its address and a slower path than `ld.shared`.
use core::arch::asm;

/// `f32` words of shared memory, 16-byte aligned.
#[derive(Clone, Copy)]
pub struct SharedArray(u32);

impl SharedArray {
    /// The buffer at byte `address` of the shared window.
    ///
    /// # Safety
    /// `address` is that of a declared buffer, 16-byte aligned.
    #[inline(always)]
    pub unsafe fn from_address(address: u32) -> Self {
        Self(address)
    }

    /// The buffer without its first `words` words; a multiple of 4 keeps the alignment.
    ///
    /// # Safety
    /// What is accessed through the result lies in the buffer.
    #[inline(always)]
    pub unsafe fn offset(self, words: u32) -> Self {
        Self(self.0 + words * 4)
    }

    /// Writes word `index`.
    ///
    /// # Safety
    /// The buffer has that word, and no other thread accesses it before the next barrier.
    #[inline(always)]
    pub unsafe fn write(self, index: u32, value: f32) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("st.shared.b32 [{p}], {v};", p = in(reg32) self.0 + index * 4, v = in(reg32) value, options(nostack))
        }
    }

    /// Writes words `index..index + 2`; `index` is even.
    ///
    /// # Safety
    /// As [`Self::write`], for both words.
    #[inline(always)]
    pub unsafe fn write_2(self, index: u32, [a, b]: [f32; 2]) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("st.shared.v2.b32 [{p}], {{{a},{b}}};", p = in(reg32) self.0 + index * 4, a = in(reg32) a, b = in(reg32) b, options(nostack))
        }
    }

    /// Writes words `index..index + 4`; `index` is a multiple of 4.
    ///
    /// # Safety
    /// As [`Self::write`], for all four words.
    #[inline(always)]
    pub unsafe fn write_4(self, index: u32, [a, b, c, d]: [f32; 4]) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("st.shared.v4.b32 [{p}], {{{a},{b},{c},{d}}};", p = in(reg32) self.0 + index * 4, a = in(reg32) a, b = in(reg32) b, c = in(reg32) c, d = in(reg32) d, options(nostack))
        }
    }

    /// Reads word `index`.
    ///
    /// # Safety
    /// The buffer has that word, and a barrier separates this read from its write.
    #[inline(always)]
    pub unsafe fn read(self, index: u32) -> f32 {
        let v: f32;
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.b32 {v}, [{p}];", p = in(reg32) self.0 + index * 4, v = out(reg32) v, options(nostack))
        };
        v
    }

    /// Reads words `index..index + 2`; `index` is even.
    ///
    /// # Safety
    /// As [`Self::read`], for both words.
    #[inline(always)]
    pub unsafe fn read_2(self, index: u32) -> [f32; 2] {
        let (a, b): (f32, f32);
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.v2.b32 {{{a},{b}}}, [{p}];", p = in(reg32) self.0 + index * 4, a = out(reg32) a, b = out(reg32) b, options(nostack))
        };
        [a, b]
    }

    /// Reads words `index..index + 4`; `index` is a multiple of 4.
    ///
    /// # Safety
    /// As [`Self::read`], for all four words.
    #[inline(always)]
    pub unsafe fn read_4(self, index: u32) -> [f32; 4] {
        let (a, b, c, d): (f32, f32, f32, f32);
        // SAFETY: the caller's promise.
        unsafe {
            asm!("ld.shared.v4.b32 {{{a},{b},{c},{d}}}, [{p}];", p = in(reg32) self.0 + index * 4, a = out(reg32) a, b = out(reg32) b, c = out(reg32) c, d = out(reg32) d, options(nostack))
        };
        [a, b, c, d]
    }
}

impl SharedArray {
    /// Starts copying `bytes` (at most 16) bytes from global address `global` to words `index..index + 4`, and zeros to the
    /// rest of them; [`commit`] and [`wait`] order it.
    ///
    /// # Safety
    /// The words exist, `index` is a multiple of 4, `global` is 16-byte aligned with `bytes` readable bytes, and nothing
    /// accesses the words before [`wait`] has waited for the copy.
    #[inline(always)]
    pub unsafe fn copy_async(self, index: u32, global: u64, bytes: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            asm!("cp.async.cg.shared.global [{p}], [{g}], 16, {n};", p = in(reg32) self.0 + index * 4, g = in(reg64) global, n = in(reg32) bytes, options(nostack))
        }
    }
}

/// Closes the group of this thread's asynchronous copies begun since the last call.
#[inline(always)]
pub fn commit() {
    // SAFETY: marks a group; accesses no memory.
    unsafe { asm!("cp.async.commit_group;", options(nostack)) }
}

/// Waits until at most `PENDING` of this thread's newest groups are unfinished.
#[inline(always)]
pub fn wait<const PENDING: u32>() {
    // SAFETY: orders earlier copies of this thread before later reads.
    unsafe { asm!("cp.async.wait_group {n};", n = const PENDING, options(nostack)) }
}

/// The dynamic shared memory of the block, whose size is a launch parameter, as a [`SharedArray`].
#[inline(always)]
pub fn dynamic_shared_memory() -> SharedArray {
    let address: u32;
    // SAFETY: takes the address of the buffer declared below; touches no memory.
    unsafe {
        asm!("mov.u32 {a}, dynamic_shared_words;", a = out(reg32) address, options(pure, nomem, nostack));
        SharedArray::from_address(address)
    }
}

core::arch::global_asm!(".extern .shared .align 16 .b32 dynamic_shared_words[];");
