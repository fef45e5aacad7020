//! The kernels of one image, loaded into one context.
use crate::contract::geometry::SHAPES;
use crate::error::{Error, Result};
use crate::images::{self, Image, ImageKind};
use crate::launch::{ContextId, Kernel, LaunchKernelEx, PrimaryContext};
use crate::operator::{Operator, SinkKind};
use crate::recipe::Nvfp4Recipe;
use cust::CudaApiVersion;
use cust::context::CurrentContext;
use cust::device::{Device, DeviceAttribute};
use cust::module::Module;
use std::collections::HashMap;

/// Which entry: operator, recipe, shape class.
pub(crate) type Key = (Operator, Option<Nvfp4Recipe>, &'static str);

/// Every kernel of an image, found once.
#[derive(Debug)]
pub(crate) struct Kernels {
    entries: HashMap<Key, Kernel>,
    /// Where they came from.
    pub image: &'static Image,
    /// Where they were loaded.
    pub context: ContextId,
    /// Multiprocessors of the context's device.
    pub multiprocessors: u32,
    /// How to launch them so that grids of a stream overlap: images from sm_90 on, whose kernels wait for the grid ahead.
    pub overlap: Option<LaunchKernelEx>,
    /// Their code, which lives as long as they do.
    _module: Module,
    /// What the code lives in, unless the caller made a context of another kind. Last: a module goes before its context.
    _primary: Option<PrimaryContext>,
}

impl Kernels {
    /// Loads the best image for a device into the current context, which must be of that device.
    pub fn load(device: &Device) -> Result<Self> {
        let context = ContextId::current()?.ok_or(Error::NoContext)?;
        let current = CurrentContext::get_device().map_err(|error| Error::driver("cuCtxGetDevice", error))?;
        if current.as_raw() != device.as_raw() {
            return Err(Error::ContextOfOtherDevice { expected: device.as_raw(), got: current.as_raw() });
        }
        let major = attribute(device, DeviceAttribute::ComputeCapabilityMajor)?;
        let minor = attribute(device, DeviceAttribute::ComputeCapabilityMinor)?;
        let primary = PrimaryContext::share(device, context)?;
        let (image, module) = load_image((major, minor), driver_version()?)?;
        let multiprocessors = attribute(device, DeviceAttribute::MultiprocessorCount)?;
        let overlap = if image.capability() >= (9, 0) { LaunchKernelEx::find() } else { None };
        let entries = resolve(image, &module)?;
        Ok(Self { entries, image, context, multiprocessors, overlap, _module: module, _primary: primary })
    }

    /// The kernel of an entry.
    pub fn get(&self, key: Key) -> Result<Kernel> {
        let absent = || Error::NoEntry { operator: key.0, entry: entry_name(key), image: self.image.to_string() };
        self.entries.get(&key).copied().ok_or_else(absent)
    }
}

/// Waits for launches that still run the code: nothing says that unloading it does.
impl Drop for Kernels {
    fn drop(&mut self) {
        if ContextId::current() == Ok(Some(self.context)) {
            // An error here is that of an earlier launch, which its stream reports; there is nobody to tell it to in a drop.
            let _ = CurrentContext::synchronize();
        }
    }
}

/// The symbol of an entry: `{operator}[_{recipe}]__{shape}`.
fn entry_name((operator, recipe, shape): Key) -> String {
    match recipe {
        Some(recipe) => format!("{operator}_{}__{shape}", recipe.symbol()),
        None => format!("{operator}__{shape}"),
    }
}

/// Every entry that an operator may have; an image has those that make sense.
fn possible(operator: Operator) -> Vec<Key> {
    let shapes: Vec<&'static str> = match operator.sink() {
        SinkKind::SixBf16 => vec!["aligned", "any"],
        SinkKind::Bf16 | SinkKind::Fp8 | SinkKind::AwqFp8 | SinkKind::Nvfp4 => SHAPES.map(|shape| shape.name).to_vec(),
    };
    let recipes: Vec<Option<Nvfp4Recipe>> = match operator.sink() {
        SinkKind::Nvfp4 => Nvfp4Recipe::ALL.map(Some).to_vec(),
        SinkKind::SixBf16 | SinkKind::Bf16 | SinkKind::Fp8 | SinkKind::AwqFp8 => vec![None],
    };
    let entries = |recipe| shapes.iter().map(move |shape| (operator, recipe, *shape));
    recipes.into_iter().flat_map(entries).collect()
}

/// Finds every kernel of the catalogue that the image has.
fn resolve(image: &'static Image, module: &Module) -> Result<HashMap<Key, Kernel>> {
    let keys = Operator::ALL.into_iter().flat_map(possible);
    let named = keys.map(|key| (key, entry_name(key))).filter(|(_, name)| image.entry(name).is_some());
    let kernel = |(key, name): (Key, String)| {
        let kernel = Kernel::resolve(module, &name)?;
        if let Some(shape) = SHAPES.iter().find(|shape| shape.name == key.2) {
            kernel.allow_shared_bytes(shape.most_shared_bytes())?;
        }
        Ok((key, kernel))
    };
    named.map(kernel).collect()
}

/// The first image that should run and that the driver takes.
fn load_image(capability: (u32, u32), driver: (u32, u32)) -> Result<(&'static Image, Module)> {
    let best = images::select(capability, driver)?;
    let mut refused = None;
    for image in images::candidates(capability, driver) {
        let bytes = image.unpack()?;
        let loaded = match image.kind {
            ImageKind::Cubin => Module::from_cubin(bytes, &[]),
            ImageKind::Ptx => Module::from_ptx(String::from_utf8_lossy(&bytes), &[]),
        };
        match loaded {
            Ok(module) => return Ok((image, module)),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let error = refused.unwrap_or(cust::error::CudaError::InvalidImage);
    Err(Error::Load { image: best.to_string(), message: Error::driver("cuModuleLoad", error).to_string() })
}

fn attribute(device: &Device, attribute: DeviceAttribute) -> Result<u32> {
    let value = device.get_attribute(attribute).map_err(|error| Error::driver("cuDeviceGetAttribute", error))?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// The CUDA version of the driver.
fn driver_version() -> Result<(u32, u32)> {
    let version = CudaApiVersion::get().map_err(|error| Error::driver("cuDriverGetVersion", error))?;
    Ok((u32::try_from(version.major()).unwrap_or(0), u32::try_from(version.minor()).unwrap_or(0)))
}
