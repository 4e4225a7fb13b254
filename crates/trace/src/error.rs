//! [`Error`] says why a reader refused a file: the file, the place in it, the text found, and the form expected. A parser that does not
//! know its position returns a `Fault`, which becomes an error with a `Place`.

use std::fmt;
use std::io;

/// Why a file could not be read, in one sentence: `app.csv:12: the time "-5" is negative; expected a time of zero or more`, or
/// `perf.data: at byte 4096: ...` for a format without lines.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

impl Error {
    /// An error for a file that the system could not read.
    pub(crate) fn read(file: &str, source: io::Error) -> Self {
        Self(format!("{file}: cannot be read: {source}"))
    }
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The file as a whole.
    Whole,
    /// A line, from 1.
    Line(u64),
    /// A position in bytes, from 0.
    Offset(u64),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole => Ok(()),
            Self::Line(line) => write!(f, ":{line}"),
            Self::Offset(offset) => write!(f, ": at byte {offset}"),
        }
    }
}

/// An error in a piece of text or bytes, from a parser that does not know its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) found: String,
    pub(crate) expected: String,
}

impl Fault {
    pub(crate) fn new(found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self {
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// The error with its place.
    pub(crate) fn at(self, file: &str, place: Place) -> Error {
        let Self { found, expected } = self;
        Error(format!("{file}{place}: {found}; expected {expected}"))
    }
}

/// Most characters of a file's content in a message.
const SHOWN: usize = 40;

/// A piece of a file for a message: quoted, cut, and without terminal control sequences.
pub(crate) fn shown(text: &str) -> String {
    let clean = |c: char| if c.is_control() { '?' } else { c };
    let mut characters = text.chars();
    let mut cut: String = characters.by_ref().take(SHOWN).map(clean).collect();
    if characters.next().is_some() {
        cut.push('…');
    }
    format!("\"{cut}\"")
}

#[cfg(test)]
mod tests {
    use super::{Fault, Place, shown};

    #[test]
    fn an_error_names_file_place_finding_and_expectation() {
        let fault = || Fault::new("the time is negative", "a time of zero or more");
        let text = |place| fault().at("a.csv", place).to_string();
        assert_eq!(
            text(Place::Line(3)),
            "a.csv:3: the time is negative; expected a time of zero or more"
        );
        assert!(text(Place::Offset(104)).starts_with("a.csv: at byte 104: the time"));
        assert!(text(Place::Whole).starts_with("a.csv: the time"));
    }

    #[test]
    fn content_is_cut_and_cannot_steer_a_terminal() {
        assert_eq!(shown("\x1b[2J"), "\"?[2J\"");
        assert_eq!(shown(&"x".repeat(50)).chars().count(), 40 + 3);
    }
}
