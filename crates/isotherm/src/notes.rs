//! What the tool itself says, on standard error, so that a program's own output stays its own.

use std::io::{ErrorKind, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result};
use indicatif::{ProgressBar, ProgressStyle};
use isotherm_report::words::printable;
use signal_hook::consts::SIGPIPE;

use crate::launch::end_as;

/// Prints a result on standard output, without what would steer a terminal. Whoever reads it may stop reading (`| head`): then
/// the command ends by SIGPIPE and without a word, as any other does.
///
/// # Errors
/// Standard output cannot be written for another reason, a full disk say.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    let written = output
        .write_all(printable(text).as_bytes())
        .and_then(|()| output.flush());
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            end_as(ExitStatus::from_raw(SIGPIPE))
        }
        written => written.context("standard output cannot be written"),
    }
}

/// How a command ends whose help or version could not be printed.
pub(crate) fn output_failed(error: &std::io::Error) -> ExitCode {
    if error.kind() == ErrorKind::BrokenPipe {
        end_as(ExitStatus::from_raw(SIGPIPE));
    }
    Notes::new(false).fail(&format!("standard output cannot be written: {error}"));
    ExitCode::FAILURE
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
            eprintln!("isotherm: {}", printable(text));
        }
    }

    /// Names the next useful command.
    pub(crate) fn next(self, command: &str) {
        self.say(&format!("next: {command}"));
    }

    /// Says something that must not be missed.
    pub(crate) fn warn(self, text: &str) {
        eprintln!("isotherm: warning: {}", printable(text));
    }

    /// Says what this run fails of.
    pub(crate) fn fail(self, text: &str) {
        eprintln!("isotherm: {}", printable(text));
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
