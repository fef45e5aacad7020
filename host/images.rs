//! The kernel images: what is shipped, and which one a GPU gets.
//!
//! The images were built ahead of time (`cargo kernels`) and lie compressed in `host/images`; the build script verifies them and
//! embeds those a launch can need. Which one runs on a device is a pure function, [`select()`], of the device's compute capability
//! and the driver's CUDA version:
//!
//! 1. the cubin for exactly this compute capability,
//! 2. a cubin for the same major and a lower minor, where NVIDIA's binary compatibility holds,
//! 3. the PTX for the highest compute capability not above the device's, which the driver then translates.
//!
//! Two limits come from the driver. A cubin runs if the driver's CUDA major is at least that of the toolkit that made it (NVIDIA's
//! minor-version compatibility; CUDA 13 raised the ABI version of every cubin). PTX runs if the driver knows its ISA version. A driver
//! that is too old for the cubin therefore gets PTX, which was built for the oldest ISA that can say what it says.

mod select;

pub use select::{candidates, select};

use ruzstd::decoding::StreamingDecoder;
use sha2::{Digest, Sha256};
use std::fmt;
use std::io::Read;

// `pub static IMAGES: &[Image]`, written by build.rs from MANIFEST.toml.
mod table {
    #![allow(missing_docs, reason = "generated; the re-export below has the documentation")]
    use super::{Entry, Image, ImageKind};
    include!(concat!(env!("OUT_DIR"), "/images.rs"));
}

/// Every image shipped, in the order of the target list.
#[doc(inline)]
pub use table::IMAGES;

/// The kernels for one GPU architecture.
#[derive(Clone, Copy)]
pub struct Image {
    /// The architecture, for example `sm_90` or `sm_100a`.
    pub target: &'static str,
    /// Machine code, or text for the driver to translate.
    pub kind: ImageKind,
    /// The PTX ISA version it is, or was made from.
    pub ptx_version: (u32, u32),
    /// The CUDA release of the ptxas that made or checked it.
    pub toolkit: (u32, u32),
    /// Bytes once unpacked.
    pub bytes: usize,
    /// SHA-256 of the unpacked bytes, in lower-case hexadecimal.
    pub sha256: &'static str,
    /// The image, compressed with zstd.
    pub packed: &'static [u8],
    /// The kernels in it, sorted by name.
    pub entries: &'static [Entry],
}

/// What an image holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageKind {
    /// PTX, which the driver translates at load.
    Ptx,
    /// Machine code.
    Cubin,
}

/// One kernel of an image and what ptxas reported for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The name a launch asks for.
    pub name: &'static str,
    /// Registers of a thread.
    pub registers: u32,
    /// Static shared memory of a block, in bytes.
    pub shared: u32,
    /// Local memory of a thread, in bytes.
    pub local: u32,
    /// Spill stores and loads of a thread, in bytes.
    pub spills: u32,
}

/// Why there is no image to load.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImageError {
    /// No image is for this GPU or an older one.
    #[error("no kernel image runs on a GPU of compute capability {}.{}; shipped are {shipped}", .capability.0, .capability.1)]
    UnsupportedDevice {
        /// The device's compute capability.
        capability: (u32, u32),
        /// What is shipped.
        shipped: String,
    },
    /// The images for this GPU need a newer driver.
    #[error(
        "the driver's CUDA {}.{} is too old for the kernel images of a GPU of compute capability {}.{}; shipped are {shipped}",
        .driver.0, .driver.1, .capability.0, .capability.1
    )]
    DriverTooOld {
        /// The device's compute capability.
        capability: (u32, u32),
        /// The CUDA version of the driver.
        driver: (u32, u32),
        /// What is shipped.
        shipped: String,
    },
    /// The embedded bytes are not what was built.
    #[error("the kernel image for {target} is damaged: {what}")]
    Damaged {
        /// The image's architecture.
        target: &'static str,
        /// What is wrong.
        what: String,
    },
}

impl Image {
    /// Unpacks the image and verifies its digest: 100 ms for 5.4 MB on one busy CPU core, a fifth of it for the digest.
    ///
    /// The driver takes PTX as a C string: append a zero byte to [`ImageKind::Ptx`] before handing over a pointer.
    ///
    /// # Errors
    /// [`ImageError::Damaged`] if the bytes do not unpack to those that were built.
    pub fn unpack(&self) -> Result<Vec<u8>, ImageError> {
        let damaged = |what: String| ImageError::Damaged { target: self.target, what };
        let mut bytes = Vec::with_capacity(self.bytes);
        let mut decoder = StreamingDecoder::new(self.packed).map_err(|e| damaged(e.to_string()))?;
        decoder.read_to_end(&mut bytes).map_err(|e| damaged(e.to_string()))?;
        let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        if digest == self.sha256 { Ok(bytes) } else { Err(damaged("its SHA-256 is not the manifest's".to_owned())) }
    }

    /// The compute capability of its architecture.
    pub fn capability(&self) -> (u32, u32) {
        let digits = self.target.trim_start_matches("sm_").trim_end_matches('a');
        let number: u32 = digits.parse().unwrap_or(u32::MAX); // a name of another form suits no device
        (number / 10, number % 10)
    }

    /// Whether it uses instructions of exactly one architecture (`sm_100a`), which no other GPU has.
    pub fn is_architecture_specific(&self) -> bool {
        self.target.ends_with('a')
    }

    /// The kernel of a name.
    pub fn entry(&self, name: &str) -> Option<&'static Entry> {
        self.entries.binary_search_by(|entry| entry.name.cmp(name)).ok().map(|at| &self.entries[at])
    }
}

impl fmt::Debug for Image {
    /// Everything but the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, kind, ptx_version, toolkit, bytes, sha256, packed, entries } = self;
        let mut out = f.debug_struct("Image");
        out.field("target", target).field("kind", kind).field("ptx_version", ptx_version).field("toolkit", toolkit);
        out.field("bytes", bytes).field("sha256", sha256).field("packed_bytes", &packed.len());
        out.field("entries", &entries.len()).finish()
    }
}

/// Such as `PTX 7.0 for sm_80` or `a cubin for sm_90`.
impl fmt::Display for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ImageKind::Ptx => write!(f, "PTX {}.{} for {}", self.ptx_version.0, self.ptx_version.1, self.target),
            ImageKind::Cubin => write!(f, "a cubin for {}", self.target),
        }
    }
}
