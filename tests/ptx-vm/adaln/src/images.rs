//! The PTX behind every shipped image: `host/images/{target}.ptx.zst`, embedded.

use std::io::Read;

use ptx_vm::ParseError;

/// A target and its PTX, compressed with zstd.
type Packed = (&'static str, &'static [u8]);

macro_rules! packed {
    ($($target:literal),*) => {
        [$(($target, include_bytes!(concat!("../../../../host/images/", $target, ".ptx.zst")))),*]
    };
}

const PACKED: [Packed; 7] = packed!["sm_80", "sm_87", "sm_89", "sm_90", "sm_100a", "sm_110a", "sm_120a"];

/// Every target of the project.
pub const TARGETS: [&str; PACKED.len()] = {
    let mut names = [""; PACKED.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PACKED[at].0;
        at += 1;
    }
    names
};

/// Why there are no kernels to run.
#[derive(Debug, thiserror::Error)]
pub enum PtxError {
    /// No image is for this target.
    #[error("no kernel image is for the target {got:?}, expected one of {}", TARGETS.join(", "))]
    UnknownTarget {
        /// The target asked for.
        got: String,
    },
    /// The image does not unpack.
    #[error("the PTX of {target} is damaged: {what}")]
    Damaged {
        /// The target.
        target: &'static str,
        /// What is wrong.
        what: String,
    },
    /// The machine does not understand the PTX.
    #[error("the virtual machine does not run this PTX: {0}")]
    Ptx(#[from] ParseError),
}

/// The PTX of a target.
///
/// # Errors
/// [`PtxError::UnknownTarget`], [`PtxError::Damaged`].
pub fn text(target: &str) -> Result<String, PtxError> {
    let unknown = || PtxError::UnknownTarget { got: target.to_owned() };
    let (target, packed) = PACKED.into_iter().find(|(name, _)| *name == target).ok_or_else(unknown)?;
    let damaged = |what: String| PtxError::Damaged { target, what };
    let mut decoder = ruzstd::decoding::StreamingDecoder::new(packed).map_err(|error| damaged(error.to_string()))?;
    let mut text = String::new();
    decoder.read_to_string(&mut text).map_err(|error| damaged(error.to_string()))?;
    Ok(text)
}

const ENTRY: &str = ".visible .entry ";

/// What stands before the first entry: version, target, declarations.
pub fn header(text: &str) -> &str {
    &text[..text.find(ENTRY).unwrap_or(text.len())]
}

/// The text of one entry and of the header, on the lines that they have in the whole; none if the entry is not there.
///
/// It parses in a millisecond, the whole in a third of a second.
pub fn entry_text(text: &str, name: &str) -> Option<String> {
    let header = header(text);
    let start = text.find(&format!("{ENTRY}{name}("))?;
    let behind = start + ENTRY.len();
    let end = text[behind..].find(ENTRY).map_or(text.len(), |next| behind + next);
    let lines = text[header.len()..start].matches('\n').count();
    Some([header, &"\n".repeat(lines), &text[start..end]].concat())
}
