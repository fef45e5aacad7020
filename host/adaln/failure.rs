//! Why the program stops, and the exit code that says so.
use adaptive_layernorm_producers::Error;
use std::fmt;
use std::path::Path;
use std::process::ExitCode;

/// The result of a command and of what it calls.
pub type Outcome<T = ()> = Result<T, Failure>;

/// The end of a command that did not succeed; its text is one sentence.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Outputs are not what they should be, or a kernel did what it should not.
    #[error("{0}")]
    Check(String),
    /// The command line, an input, or the machine does not allow what was asked for.
    #[error("{0}")]
    Input(String),
}

impl Failure {
    /// A failure that the user can mend.
    pub fn input(sentence: impl Into<String>) -> Self {
        Self::Input(sentence.into())
    }

    /// A failure of the operating system on a file.
    pub fn file(path: &Path, what: &str, error: impl fmt::Display) -> Self {
        Self::Input(format!("{}: cannot {what}: {error}", path.display()))
    }

    /// 1 for a failed check, 2 for the rest.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Self::Check(_) => ExitCode::from(1),
            Self::Input(_) => ExitCode::from(2),
        }
    }
}

/// The library's sentence, with what to do about it where that is known.
impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        if matches!(error, Error::Backend { .. }) {
            return Self::Check(error.to_string());
        }
        Self::Input(match remedy(&error) {
            Some(remedy) => format!("{error}; {remedy}"),
            None => error.to_string(),
        })
    }
}

/// What a user of the command line can do about a refused call.
fn remedy(error: &Error) -> Option<String> {
    Some(match error {
        Error::Missing { operand, .. } => {
            format!("add a tensor {operand} to the file or name another with --bind {operand}=TENSOR")
        }
        Error::DType { operand, expected, .. } => {
            format!("convert the tensor to {expected} or name another with --bind {operand}=TENSOR")
        }
        Error::Shape { operand, .. } => format!("reshape the tensor or name another with --bind {operand}=TENSOR"),
        Error::ChunkIndex { operand, .. } => format!("choose another with --{}", operand.replace('_', "-")),
        Error::DimOdd { .. } => "pad the rows by one column".to_owned(),
        Error::DimNotMultiple { .. } => "pad the rows, or take an operator with another sink".to_owned(),
        Error::RecipeMissing { .. } => "add --recipe".to_owned(),
        Error::RecipeWithoutSink { .. } => "leave out --recipe".to_owned(),
        Error::GlobalScale { expected, .. } => format!("choose --recipe {expected} or do not bind global_scale"),
        _ => return None,
    })
}
