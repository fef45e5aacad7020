//! Where tests run.
use candle_core::Device;

/// The CPU, and candle's devices of a GPU.
pub fn devices() -> Vec<Device> {
    #[cfg(feature = "cuda")]
    let gpus = gpus();
    #[cfg(not(feature = "cuda"))]
    let gpus = [];
    [Device::Cpu].into_iter().chain(gpus).collect()
}

/// The first GPU twice: on the calling thread's default stream, which is what candle takes, and on a stream of its own. None, and a line
/// that says so, on a machine without.
#[cfg(feature = "cuda")]
pub fn gpus() -> Vec<Device> {
    match Device::new_cuda(0) {
        Ok(device) => vec![device, Device::new_cuda_with_stream(0).unwrap()],
        Err(why) => {
            let why = why.to_string();
            let why = why.lines().next().unwrap_or_default();
            let required = std::env::var_os("ADALN_REQUIRE_GPU").is_some_and(|value| value == "1");
            assert!(!required, "ADALN_REQUIRE_GPU=1, but there is no GPU: {why}");
            let test = std::thread::current();
            // Past the test harness, which keeps a passing test's output to itself. Nothing to be done if stderr is closed.
            let _ = std::io::Write::write_fmt(
                &mut std::io::stderr(),
                format_args!("SKIPPED {} on a GPU: there is none ({why})\n", test.name().unwrap_or("a test")),
            );
            vec![]
        }
    }
}
