//! The project's kernels in the virtual machine.
//!
//! [`images`] has the PTX of every target, [`launches`] the ways to launch an operator, [`call`] the launch itself; [`Machine`] puts them
//! together for the program `adaln-vm`, which is `host/adaln` with one backend more.
#![forbid(unsafe_code)]

pub mod call;
pub mod images;
pub mod launches;

use adaptive_layernorm_producers::named::{Call, Tensors};
use adaptive_layernorm_producers::{Error, Result};
use call::VmCall;
use images::PtxError;
use launches::Alignment;
use ptx_vm::{Module, Schedule};

/// The kernels of one target, ready to run.
#[derive(Debug)]
pub struct Machine {
    text: String,
    /// Without entries: they are parsed when they run.
    header: Module,
}

impl Machine {
    /// Unpacks the PTX behind a target's shipped image.
    ///
    /// # Errors
    /// [`PtxError`]: no such target, or an image that is not PTX.
    pub fn open(target: &str) -> std::result::Result<Self, PtxError> {
        Self::new(images::text(target)?)
    }

    /// The same for any PTX with such entries.
    ///
    /// # Errors
    /// [`PtxError::Ptx`].
    pub fn new(text: String) -> std::result::Result<Self, PtxError> {
        let header = Module::parse(images::header(&text))?;
        Ok(Self { text, header })
    }

    /// What the PTX is for, such as `sm_90`.
    pub fn target(&self) -> &str {
        self.header.target()
    }

    /// The version of its ISA, such as `8.0`.
    pub fn version(&self) -> &str {
        self.header.version()
    }

    /// Runs a call as the library launches it on operands as a CUDA allocation aligns them.
    ///
    /// # Errors
    /// As [`Call::sizes`]; [`Error::Backend`] with what the machine found wrong.
    pub fn run_into(&self, call: &Call, inputs: &Tensors, outputs: &mut Tensors) -> Result<()> {
        let sizes = call.sizes(inputs)?;
        if sizes.rows == 0 {
            return Ok(());
        }
        let (alignment, schedule) = (Alignment::Vector, Schedule::default());
        let entry = launches::chosen(call, sizes.rows, sizes.dim, alignment);
        let report = |message: String| Error::Backend {
            operator: call.operator,
            message: format!("PTX of {}, entry {}: {message}", self.target(), entry.name),
        };
        let text = images::entry_text(&self.text, &entry.name).ok_or_else(|| report("it is not there".to_owned()))?;
        let module = Module::parse(&text).map_err(|error| report(error.to_string()))?;
        let launch = VmCall { call: *call, inputs, like: outputs, alignment, schedule };
        *outputs = call::run(&module, &entry, &launch).map_err(|error| match error {
            Error::Backend { message, .. } => report(message),
            other => other,
        })?;
        Ok(())
    }
}
