//! Writes lines to standard output.

use std::fmt::Display;
use std::io::Write as _;

/// Writes a line. After the reader has closed the output the proof continues; the exit status reports the
/// result.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
