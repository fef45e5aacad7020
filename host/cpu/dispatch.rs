//! Compiles a job once per instruction set and runs the best one that this machine has.
//!
//! The only `unsafe` of the CPU backend. Jobs are `#[inline(always)]` down to their loops, so that these are compiled with the
//! features of the function they land in. Every level gives the same bits: a fused multiply-add is one rounding in hardware and
//! without (slowly), and nothing else depends on the level.

/// Something to run with whatever vector instructions there are.
pub(super) trait Job {
    /// Does it; must be `#[inline(always)]`.
    fn run(self);
}

/// A set of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// AVX-512 F, BW and VL, with AVX2 and FMA.
    Avx512,
    /// AVX2 and FMA.
    Avx2,
    /// What the compiler may use anyway.
    Baseline,
}

/// Runs a job on the best level.
pub(super) fn run(job: impl Job) {
    let levels = [Level::Avx512, Level::Avx2];
    levels.into_iter().find(|level| level.is_available()).unwrap_or(Level::Baseline).run(job);
}

#[cfg(target_arch = "x86_64")]
impl Level {
    /// Whether this machine has the instructions. Asks the processor once, later calls read a flag.
    pub fn is_available(self) -> bool {
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        let bytes = is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vl");
        match self {
            Self::Avx512 => avx2 && bytes && is_x86_feature_detected!("avx512f"),
            Self::Avx2 => avx2,
            Self::Baseline => true,
        }
    }

    /// Runs a job on this level, or on the baseline where it is not available.
    #[expect(unsafe_code, reason = "calls functions that need CPU features")]
    pub fn run(self, job: impl Job) {
        match self {
            // SAFETY: the machine has every feature that the function is compiled for; the guard asks.
            Self::Avx512 if self.is_available() => unsafe { with_avx512(job) },
            // SAFETY: as above.
            Self::Avx2 if self.is_available() => unsafe { with_avx2(job) },
            Self::Avx512 | Self::Avx2 | Self::Baseline => job.run(),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
impl Level {
    /// Whether this machine has the instructions.
    pub fn is_available(self) -> bool {
        self == Self::Baseline
    }

    /// Runs a job on the baseline.
    pub fn run(self, job: impl Job) {
        job.run();
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx2,fma")]
fn with_avx512(job: impl Job) {
    job.run();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn with_avx2(job: impl Job) {
    job.run();
}
