//! The GPU as a backend of the program.
//!
//! Reading order: here (finding it), `resident` (operands in device memory), `graph` (captured launches; the program's only
//! `unsafe`), `timing` (what a launch takes).
mod graph;
mod resident;
pub mod timing;

pub use resident::Resident;

use crate::backend::{Engine, Measured, Which};
use crate::demo;
use crate::failure::{Failure, Outcome};
use crate::info;
use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::{Nvfp4Recipe, Producers, Result, Staged};
use cust::CudaApiVersion;
use cust::context::Context;
use cust::device::{Device, DeviceAttribute};
use cust::error::{CudaError, CudaResult};
use cust::stream::{Stream, StreamFlags};
use std::fmt::Write;
use std::time::Duration;

/// A sentence for what the driver refused.
pub fn called<T>(what: &str, result: CudaResult<T>) -> Outcome<T> {
    result.map_err(|error| Failure::input(format!("the GPU cannot be used: {what}: {}", text(error))))
}

/// The driver's text, or the number's name where the driver has none: cust asks it then and gives up.
fn text(error: CudaError) -> String {
    let mut text = String::new();
    match write!(text, "{error}") {
        Ok(()) => text.trim_matches('"').to_owned(),
        Err(_) => format!("{error:?}"),
    }
}

/// What the driver says of device 0.
pub fn probe() -> Outcome<info::Gpu> {
    about(device()?)
}

fn device() -> Outcome<Device> {
    called("starting the CUDA driver", cust::init(cust::CudaFlags::empty()))?;
    called("looking for device 0", Device::get_device(0))
}

fn about(device: Device) -> Outcome<info::Gpu> {
    let attribute = |attribute| -> Outcome<u32> {
        let value = called("asking for an attribute of the device", device.get_attribute(attribute))?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    let driver = called("asking for the driver's version", CudaApiVersion::get())?;
    Ok(info::Gpu {
        name: called("asking for the device's name", device.name())?,
        capability: (
            attribute(DeviceAttribute::ComputeCapabilityMajor)?,
            attribute(DeviceAttribute::ComputeCapabilityMinor)?,
        ),
        multiprocessors: attribute(DeviceAttribute::MultiprocessorCount)?,
        l2_bytes: attribute(DeviceAttribute::L2CacheSize)?,
        driver: (u32::try_from(driver.major()).unwrap_or(0), u32::try_from(driver.minor()).unwrap_or(0)),
    })
}

/// The first GPU, its kernels loaded.
pub struct Gpu {
    // In this order they are dropped: kernels and stream before the context they live in.
    producers: Producers,
    stream: Stream,
    about: info::Gpu,
    _context: Context,
}

impl Gpu {
    /// Makes the GPU ready.
    pub fn open() -> Outcome<Self> {
        let device = device()?;
        let context = called("making a context", Context::new(device))?;
        let stream = called("making a stream", Stream::new(StreamFlags::DEFAULT, None))?;
        Ok(Self { producers: Producers::load(&device)?, stream, about: about(device)?, _context: context })
    }

    /// The kernels.
    pub const fn producers(&self) -> &Producers {
        &self.producers
    }

    /// The stream that everything is enqueued on.
    pub const fn stream(&self) -> &Stream {
        &self.stream
    }

    /// The device.
    pub const fn about(&self) -> &info::Gpu {
        &self.about
    }
}

impl Engine for Gpu {
    fn name(&self) -> &'static str {
        "cuda"
    }

    fn description(&self) -> String {
        format!("cuda, {} with {}", self.about.name, self.producers.image())
    }

    fn native_recipe(&self) -> Nvfp4Recipe {
        Nvfp4Recipe::native_to(self.about.capability)
    }

    fn run_into(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors) -> Result<()> {
        call.run_into(&Staged::new(&self.producers)?, inputs, outputs)
    }

    /// Cold: over copies of the operands that together exceed the cache.
    fn time(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors) -> Outcome<Duration> {
        let copies = timing::cold_copies(self, Resident::bytes_a_copy(call, inputs, outputs));
        let resident = Resident::new(self, call, inputs, outputs, copies)?;
        let time = timing::median(self, &resident, copies)?;
        resident.download(0, outputs)?;
        Ok(time)
    }

    fn measure(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors, which: Which) -> Outcome<Vec<Measured>> {
        let bytes = demo::bytes(inputs) + demo::bytes(outputs);
        let copies = timing::cold_copies(self, Resident::bytes_a_copy(call, inputs, outputs));
        let resident = Resident::new(self, call, inputs, outputs, copies)?;
        let plain =
            timing::Copies::new(bytes, timing::cold_copies(self, usize::try_from(bytes).unwrap_or(usize::MAX)))?;
        let measured = |condition, copies: usize, plain_copies: usize| -> Outcome<Measured> {
            let time = timing::median(self, &resident, copies)?;
            Ok(Measured { condition, time, copy: timing::median(self, &plain, plain_copies)? })
        };
        let mut all = vec![measured("cold", copies, plain.len())?];
        if which == Which::All {
            all.push(measured("hot", 1, 1)?);
        }
        resident.download(0, outputs)?;
        Ok(all)
    }
}
