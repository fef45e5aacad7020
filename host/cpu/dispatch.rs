//! Compiles a job once per instruction set and runs the best one that this machine has.
//!
//! The only `unsafe` of the CPU backend. Jobs are `#[inline(always)]` down to their loops, so that these are compiled with the
//! features of the function they land in. Fused multiply-add gives the same bits in hardware and without (slowly).

/// Something to run with whatever vector instructions there are.
pub(super) trait Job {
    /// Does it; must be `#[inline(always)]`.
    fn run(self);
}

/// Runs a job.
#[cfg(target_arch = "x86_64")]
pub(super) fn run(job: impl Job) {
    if is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
    {
        // SAFETY: the machine has every feature that the function is compiled for, the line above just asked.
        #[expect(unsafe_code, reason = "calls a function that needs CPU features")]
        unsafe {
            with_avx512(job);
        }
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the machine has every feature that the function is compiled for, the line above just asked.
        #[expect(unsafe_code, reason = "calls a function that needs CPU features")]
        unsafe {
            with_avx2(job);
        }
    } else {
        job.run();
    }
}

/// Runs a job.
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn run(job: impl Job) {
    job.run();
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
