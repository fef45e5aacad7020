//! Everything that can go wrong, each with its own variant.
//!
//! The text is one sentence that names operator and operand, what was expected and what was found.
use crate::element::DType;
use crate::operator::{ModulationKind, Operator, SinkKind};
use crate::recipe::Nvfp4Recipe;

/// The result of this library's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A call that was refused before anything was written, or that the CUDA driver refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An operand of another element type (for tensors whose dtype is known at run time only).
    #[error("{operator}: operand {operand} is {got}, expected {expected}")]
    DType {
        /// The operator.
        operator: Operator,
        /// The operand.
        operand: &'static str,
        /// What it must be.
        expected: DType,
        /// What it is.
        got: String,
    },
    /// A shape that does not fit the operand's axes or the other operands (for tensors whose shape is known at run time only).
    #[error("{operator}: operand {operand} has shape {got:?}, expected {expected}")]
    Shape {
        /// The operator.
        operator: Operator,
        /// The operand.
        operand: &'static str,
        /// What it must be.
        expected: String,
        /// What it is.
        got: Vec<usize>,
    },
    /// A required operand that is not there (for operands given by name).
    #[error("{operator}: operand {operand} ({expected}) is missing")]
    Missing {
        /// The operator.
        operator: Operator,
        /// The operand.
        operand: &'static str,
        /// Its dtype.
        expected: DType,
    },
    /// A number of elements that does not follow from the shape of the other operands.
    #[error("{operator}: operand {operand} has {got} elements, expected {expected}")]
    Length {
        /// The operator.
        operator: Operator,
        /// The operand.
        operand: &'static str,
        /// Elements it must have.
        expected: u64,
        /// Elements it has.
        got: usize,
    },
    /// A buffer that may be larger than needed, but is smaller.
    #[error("{operator}: operand {operand} has {got} bytes, expected at least {expected}")]
    TooShort {
        /// The operator.
        operator: Operator,
        /// The operand.
        operand: &'static str,
        /// Bytes it must have at least.
        expected: u64,
        /// Bytes it has.
        got: usize,
    },
    /// An operand from whose length a dimension follows, with a length that leaves a remainder or gives 0.
    #[error("{operator}: operand {operand} has {got} elements, expected a positive multiple of {expected}")]
    NotWhole {
        /// The operator.
        operator: Operator,
        /// The operand.
        operand: &'static str,
        /// What the length must be a multiple of.
        expected: u64,
        /// Elements it has.
        got: usize,
    },
    /// A scalar operand that has not exactly one element.
    #[error("{operator}: operand {operand} is a scalar, expected 1 element, got {got}")]
    Scalar {
        /// The operator.
        operator: Operator,
        /// The operand.
        operand: &'static str,
        /// Elements it has.
        got: usize,
    },
    /// D is 0.
    #[error("{operator}: D, the last dimension of {operand}, is 0, expected at least {expected}")]
    DimZero {
        /// The operator.
        operator: Operator,
        /// The operand that says what D is.
        operand: &'static str,
        /// The smallest D.
        expected: u32,
    },
    /// D is odd where two elements go together.
    #[error("{operator}: D, the last dimension of {operand}, is {got}, expected an even number")]
    DimOdd {
        /// The operator.
        operator: Operator,
        /// The operand that says what D is.
        operand: &'static str,
        /// D.
        got: usize,
    },
    /// D is not a multiple of NVFP4's block.
    #[error("{operator}: D, the last dimension of {operand}, is {got}, expected a multiple of {expected}")]
    DimNotMultiple {
        /// The operator.
        operator: Operator,
        /// The operand that says what D is.
        operand: &'static str,
        /// What D must be a multiple of.
        expected: u32,
        /// D.
        got: usize,
    },
    /// D above [`MAX_DIM`](crate::contract::sum_tree::MAX_DIM).
    #[error("{operator}: D, the last dimension of {operand}, is {got}, expected at most {expected}")]
    DimTooLarge {
        /// The operator.
        operator: Operator,
        /// The operand that says what D is.
        operand: &'static str,
        /// The largest D.
        expected: u32,
        /// D.
        got: usize,
    },
    /// R above [`MAX_ROWS`](crate::MAX_ROWS).
    #[error("{operator}: R, the rows of {operand}, is {got}, expected at most {expected}")]
    TooManyRows {
        /// The operator.
        operator: Operator,
        /// The operand that says what R is.
        operand: &'static str,
        /// The largest R.
        expected: u32,
        /// R.
        got: usize,
    },
    /// A size in elements or bytes that no address can reach.
    #[error("{operator}: operand {operand} would need {got}, expected at most {expected} bytes")]
    Overflow {
        /// The operator.
        operator: Operator,
        /// The operand.
        operand: &'static str,
        /// The limit in bytes.
        expected: u64,
        /// The product or sum that is larger.
        got: String,
    },
    /// An address that is no multiple of the element's size; of 4 for block scales in device memory.
    #[error(
        "{operator}: operand {operand} is at address {got:#x}, expected a multiple of {expected} (its element type's alignment)"
    )]
    Misaligned {
        /// The operator.
        operator: Operator,
        /// The operand.
        operand: &'static str,
        /// The alignment in bytes.
        expected: u64,
        /// The address.
        got: u64,
    },
    /// A null pointer that should hold elements.
    #[error("{operator}: operand {operand} is a null pointer with {got} elements, expected memory or 0 elements")]
    Null {
        /// The operator.
        operator: Operator,
        /// The operand.
        operand: &'static str,
        /// Elements it claims.
        got: usize,
    },
    /// An output that shares memory with an input or another output.
    #[error("{operator}: output {operand} shares memory with {other}, expected separate buffers")]
    Overlap {
        /// The operator.
        operator: Operator,
        /// The output.
        operand: &'static str,
        /// What it overlaps.
        other: &'static str,
    },
    /// A chunk index at or past the number of chunks.
    #[error("{operator}: {operand} is {got}, expected less than {expected}, the chunks of table")]
    ChunkIndex {
        /// The operator.
        operator: Operator,
        /// `shift_idx` or `scale_idx`.
        operand: &'static str,
        /// C.
        expected: u32,
        /// The index.
        got: u32,
    },
    /// A global scale for a recipe that has none.
    #[error("{operator}: operand global_scale was given with recipe {got}, expected it with {expected} only")]
    GlobalScale {
        /// The operator.
        operator: Operator,
        /// The recipe that reads one.
        expected: Nvfp4Recipe,
        /// The recipe asked for.
        got: Nvfp4Recipe,
    },
    /// A recipe for an operator that does not write NVFP4.
    #[error("{operator}: recipe {got} was given, expected none: the operator's sink is {sink:?}, not Nvfp4")]
    RecipeWithoutSink {
        /// The operator.
        operator: Operator,
        /// Its sink.
        sink: SinkKind,
        /// The recipe asked for.
        got: Nvfp4Recipe,
    },
    /// No recipe for an operator that writes NVFP4.
    #[error("{operator}: no recipe was given, expected one of flashrt-sm110, flashrt-sm120, transformer-engine")]
    RecipeMissing {
        /// The operator.
        operator: Operator,
    },
    /// A modulation and a sink that the catalogue does not combine.
    #[error(
        "no operator has modulation {modulation:?} with sink {sink:?}; expected a pair of the catalogue (Operator::ALL)"
    )]
    NoSuchOperator {
        /// The modulation.
        modulation: ModulationKind,
        /// The sink.
        sink: SinkKind,
    },
    /// NVFP4 data with a D that has no blocks.
    #[error("NVFP4 data has D = {got}, expected a positive multiple of 16")]
    LayoutDim {
        /// D.
        got: u32,
    },
    /// NVFP4 data of another length than rows and D say.
    #[error("NVFP4 data: {operand} has {got} bytes, expected {expected}")]
    LayoutLength {
        /// `packed` or `sf_swizzled`.
        operand: &'static str,
        /// Bytes it must have.
        expected: usize,
        /// Bytes it has.
        got: usize,
    },
    /// NVFP4 data that no buffer can hold.
    #[error("NVFP4 data of {rows} rows and D = {dim} is larger than memory can be")]
    LayoutTooLarge {
        /// R.
        rows: u32,
        /// D.
        dim: u32,
    },
    /// What the device or simulator under a backend reported.
    #[error("{operator}: {message}")]
    Backend {
        /// The operator.
        operator: Operator,
        /// The report.
        message: String,
    },
    /// No context is current on the calling thread.
    #[cfg(feature = "cuda")]
    #[error("no CUDA context is current on this thread, expected one (cust::quick_init or Context::new makes one)")]
    NoContext,
    /// The current context is of another device than the kernels are asked for.
    #[cfg(feature = "cuda")]
    #[error("the current context is of device {got}, expected device {expected}")]
    ContextOfOtherDevice {
        /// The device asked for.
        expected: i32,
        /// The device of the current context.
        got: i32,
    },
    /// A launch in another context than that which the kernels were loaded into.
    #[cfg(feature = "cuda")]
    #[error("{operator}: {what} is {got}, expected {expected}, which the kernels were loaded into")]
    WrongContext {
        /// The operator.
        operator: Operator,
        /// Which of the two contexts that must agree.
        what: &'static str,
        /// The kernels' context.
        expected: String,
        /// The context found.
        got: String,
    },
    /// No image to load.
    #[cfg(feature = "cuda")]
    #[error(transparent)]
    Image(#[from] crate::images::ImageError),
    /// The driver took none of the images that should run.
    #[cfg(feature = "cuda")]
    #[error("the driver refused {image} and all others that should run on this GPU: {message}")]
    Load {
        /// The image that was tried first.
        image: String,
        /// What the driver said to it.
        message: String,
    },
    /// An image without an entry that a launch needs.
    #[cfg(feature = "cuda")]
    #[error("{operator}: {image} has no entry {entry}")]
    NoEntry {
        /// The operator.
        operator: Operator,
        /// The entry.
        entry: String,
        /// The image.
        image: String,
    },
    /// A call that the driver refused; after an illegal address or a similar fault every later call on the context fails too.
    #[cfg(feature = "cuda")]
    #[error("{call}: {message} (CUDA error {code})")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// The driver's number for it.
        code: u32,
        /// The driver's text.
        message: String,
    },
    /// Two outputs to compare that are not of the same length.
    #[error("compared outputs have {expected} and {got} elements, expected the same number")]
    CompareLength {
        /// Elements of the first.
        expected: usize,
        /// Elements of the second.
        got: usize,
    },
}

#[cfg(feature = "cuda")]
impl Error {
    pub(crate) fn driver(call: &'static str, error: cust::error::CudaError) -> Self {
        use std::fmt::Write;
        let mut message = String::new();
        // The text comes from the driver, which may not know it.
        if write!(message, "{error}").is_err() {
            message = format!("{error:?}");
        }
        Self::Driver { call, code: error as u32, message }
    }

    #[cfg(feature = "cudarc")]
    pub(crate) fn cudarc(call: &'static str, error: cudarc::driver::DriverError) -> Self {
        let text = error.error_string().map(|text| text.to_string_lossy().into_owned());
        Self::Driver { call, code: error.0 as u32, message: text.unwrap_or_else(|_| "unknown error".to_owned()) }
    }
}

/// A name that is not one of those known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {got:?}, expected one of {expected}")]
pub struct ParseError {
    what: &'static str,
    got: String,
    expected: String,
}

impl ParseError {
    pub(crate) fn new(what: &'static str, got: &str, expected: String) -> Self {
        Self { what, got: got.to_owned(), expected }
    }
}
