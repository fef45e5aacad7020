//! The GPU that the tests share, if there is one.
use adaptive_layernorm_producers::Producers;
use cust::context::{Context, CurrentContext};
use cust::device::Device;
use std::io::Write;
use std::ops::Deref;
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A context, and the kernels in it.
pub struct Gpu {
    context: Context,
    pub producers: Producers,
}

/// The GPU for one test, beside other tests or alone.
pub struct Session<Guard> {
    gpu: &'static Gpu,
    _guard: Guard,
}

/// Tests run side by side, but for those that measure memory or use all of it.
static OTHERS: RwLock<()> = RwLock::new(());

/// Prints past the test harness, which keeps a passing test's output to itself.
pub fn say(text: &str) {
    // Nothing to be done if stderr is closed.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The GPU, its context current on this thread; none, and a line that says so, on a machine without.
pub fn gpu() -> Option<Session<RwLockReadGuard<'static, ()>>> {
    let _guard = OTHERS.read().unwrap_or_else(PoisonError::into_inner);
    find().map(|gpu| Session { gpu, _guard })
}

/// The same, with no other test at work.
pub fn gpu_alone() -> Option<Session<RwLockWriteGuard<'static, ()>>> {
    let _guard = OTHERS.write().unwrap_or_else(PoisonError::into_inner);
    find().map(|gpu| Session { gpu, _guard })
}

impl<Guard> Deref for Session<Guard> {
    type Target = Gpu;

    fn deref(&self) -> &Gpu {
        self.gpu
    }
}

impl Gpu {
    /// Makes the context current on this thread.
    pub fn attach(&self) {
        CurrentContext::set_current(&self.context).unwrap();
    }
}

/// Whether compute-sanitizer watches (`ADALN_SANITIZER=1`), which makes a launch a hundred times slower.
pub fn sanitizer() -> bool {
    std::env::var_os("ADALN_SANITIZER").is_some_and(|value| value == "1")
}

/// How often to repeat what is random or the same each time: 1 in 50 under the sanitizer.
pub fn repeats(times: u64) -> u64 {
    if sanitizer() { times.div_ceil(50) } else { times }
}

/// Which of a list of cases to take: under the sanitizer every third.
pub fn some<T>(cases: impl IntoIterator<Item = T>) -> impl Iterator<Item = T> {
    cases.into_iter().step_by(if sanitizer() { 3 } else { 1 })
}

fn find() -> Option<&'static Gpu> {
    static GPU: OnceLock<Result<Gpu, String>> = OnceLock::new();
    match GPU.get_or_init(open) {
        Ok(gpu) => {
            gpu.attach();
            Some(gpu)
        }
        Err(why) => {
            let required = std::env::var_os("ADALN_REQUIRE_GPU").is_some_and(|value| value == "1");
            assert!(!required, "ADALN_REQUIRE_GPU=1, but there is no GPU: {why}");
            say(&format!("SKIPPED {}: no GPU ({why})", std::thread::current().name().unwrap_or("a test")));
            None
        }
    }
}

fn open() -> Result<Gpu, String> {
    let said = |what: &str, error: cust::error::CudaError| format!("{what}: {error:?}");
    cust::init(cust::CudaFlags::empty()).map_err(|error| said("cuInit", error))?;
    let device = Device::get_device(0).map_err(|error| said("cuDeviceGet", error))?;
    let context = Context::new(device).map_err(|error| said("cuDevicePrimaryCtxRetain", error))?;
    CurrentContext::set_current(&context).map_err(|error| said("cuCtxSetCurrent", error))?;
    // From here on there is a GPU: anything that fails is a failure.
    let producers = Producers::load(&device).unwrap();
    say(&format!("{}: {:?}", device.name().unwrap(), producers.image()));
    Ok(Gpu { context, producers })
}
