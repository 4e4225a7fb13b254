//! Lines on standard output.

use std::fmt::Display;
use std::io::Write as _;

/// Writes a line. Where nobody reads them any more what is proved or measured goes on; the exit status tells.
pub(crate) fn say(line: impl Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
