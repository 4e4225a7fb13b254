//! Prints the output of the commands and the daemon: `print` writes results on standard output ([`ReaderGone`] is its error where `| head`
//! has closed it), and `Console` writes messages, warnings and progress on standard error, so that they do not mix with the results. No
//! function here panics.
#![forbid(unsafe_code)]

pub mod shell_quoting;

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use isotherm_report::words::printable;

/// The reader of standard output has closed it (`| head`). After cleanup the command ends by SIGPIPE without a message, as others do.
#[derive(Debug)]
pub struct ReaderGone;

impl fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reader of standard output has closed it")
    }
}

impl std::error::Error for ReaderGone {}

/// Prints a result on standard output, without terminal control characters.
///
/// # Errors
/// [`ReaderGone`]; or standard output cannot be written for another reason, such as a full disk.
pub fn print(text: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let written = output
        .write_all(printable(text).as_bytes())
        .and_then(|()| output.flush());
    written.map_err(output_failed)
}

/// Why standard output could not be written.
pub fn output_failed(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => ReaderGone.into(),
        _ => anyhow::Error::new(error).context("standard output cannot be written"),
    }
}

/// Writes a line on standard error. A message that cannot be written is lost, and the command
/// continues.
fn write_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "isotherm: {}", printable(text));
}

/// Messages on standard error.
#[derive(Clone, Copy, Debug)]
pub struct Console {
    quiet: bool,
}

impl Console {
    /// A quiet console prints warnings and errors only.
    pub const fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Prints a message, unless the console is quiet.
    pub fn info(self, text: &str) {
        if !self.quiet {
            write_line(text);
        }
    }

    /// Prints the next useful command, unless the console is quiet.
    pub fn next(self, command: &str) {
        self.info(&format!("next: {command}"));
    }

    /// Prints a warning.
    pub fn warn(self, text: &str) {
        write_line(&format!("warning: {text}"));
    }

    /// Prints the error with which a command fails.
    pub fn error(self, text: &str) {
        write_line(text);
    }

    /// A spinner on a terminal, nothing in a pipe. It is hidden while a program shares the terminal; callers use it for their own work
    /// only.
    pub fn progress(self, text: &'static str) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new_spinner().with_message(text);
        let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
        if let Ok(style) = style {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    /// A progress bar of this number of steps on a terminal, nothing in a pipe.
    pub fn steps(self, total: usize) -> ProgressBar {
        let bar = self.progress("");
        bar.set_length(total as u64);
        let style = ProgressStyle::with_template(
            "{spinner} {pos}/{len} [{bar:24}] {msg} {elapsed}, {eta} left",
        );
        if let Ok(style) = style {
            bar.set_style(style.progress_chars("=> "));
        }
        bar
    }
}

/// Columns of the terminal; 100 in a pipe.
#[must_use]
pub fn terminal_width() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stdout());
    size.ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .unwrap_or(100)
}
