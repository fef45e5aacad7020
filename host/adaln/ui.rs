//! What goes to the terminal: results to stdout; errors, notes and progress to stderr.
use crate::failure::{Failure, Outcome};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, ErrorKind, Write};

/// Bold red; `anstream` leaves it out where colour is not wanted (`NO_COLOR`, a pipe, a dumb terminal).
const RED: &str = "\x1b[1;31m";
const PLAIN: &str = "\x1b[0m";

/// Says why the program stops.
pub fn error(failure: &Failure) {
    anstream::eprintln!("{RED}error:{PLAIN} {failure}");
}

/// Writes a result. A reader that has read enough (`adaln info | head`) is no failure.
pub fn print(text: &str) -> Outcome {
    if cfg!(test) {
        print!("{text}"); // the test harness keeps this to itself
        return Ok(());
    }
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::input(format!("cannot write to standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// How much is said beside the results.
#[derive(Clone, Copy, Debug)]
pub struct Ui {
    /// Results and errors only.
    pub quiet: bool,
}

impl Ui {
    /// Something worth knowing that is not the result.
    pub fn note(self, text: &str) {
        if !self.quiet {
            anstream::eprintln!("{text}");
        }
    }

    /// A bar over `length` steps on stderr; nothing where stderr is not a terminal.
    pub fn progress(self, length: usize) -> ProgressBar {
        if self.quiet {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(length as u64);
        let style = ProgressStyle::with_template("{bar:30} {pos}/{len} {wide_msg}");
        bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
    }
}
