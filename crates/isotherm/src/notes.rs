//! What the tool itself says, on standard error, so that a program's own output stays its own.

use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::time::Duration;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use isotherm_report::words::printable;

/// The reader of standard output has closed it (`| head`). The command then ends by SIGPIPE and without a word, as any
/// other does, once it has put everything in order.
#[derive(Debug)]
pub(crate) struct ReaderGone;

impl fmt::Display for ReaderGone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the reader of standard output has closed it")
    }
}

impl std::error::Error for ReaderGone {}

/// Prints a result on standard output, without what would steer a terminal.
///
/// # Errors
/// [`ReaderGone`]; standard output cannot be written for another reason, a full disk say.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let written = output
        .write_all(printable(text).as_bytes())
        .and_then(|()| output.flush());
    written.map_err(output_failed)
}

/// Why standard output could not be written.
pub(crate) fn output_failed(error: io::Error) -> anyhow::Error {
    match error.kind() {
        ErrorKind::BrokenPipe => ReaderGone.into(),
        _ => anyhow::Error::new(error).context("standard output cannot be written"),
    }
}

/// Writes a line on standard error. A message that cannot be written is lost, and the command goes
/// on.
fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "isotherm: {}", printable(text));
}

/// How talkative to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Notes {
    quiet: bool,
}

impl Notes {
    /// Quiet notes say only warnings.
    pub(crate) const fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// Says something useful that may be left out.
    pub(crate) fn say(self, text: &str) {
        if !self.quiet {
            tell(text);
        }
    }

    /// Names the next useful command.
    pub(crate) fn next(self, command: &str) {
        self.say(&format!("next: {command}"));
    }

    /// Says something that must not be missed.
    pub(crate) fn warn(self, text: &str) {
        tell(&format!("warning: {text}"));
    }

    /// Says what this run fails of.
    pub(crate) fn fail(self, text: &str) {
        tell(text);
    }

    /// A spinner on a terminal, nothing in a pipe. It stays off while a program shares the
    /// terminal; callers use it only for work of our own.
    pub(crate) fn progress(self, text: &'static str) -> ProgressBar {
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

    /// A bar of so many steps on a terminal, nothing in a pipe.
    pub(crate) fn steps(self, total: usize) -> ProgressBar {
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
