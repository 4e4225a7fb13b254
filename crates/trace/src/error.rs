//! [`Error`] says why a reader refused a file: the file, the place in it, the text found, and the form expected. A parser that does not
//! know its position returns a `Fault`, which becomes an error with a `Place`.

use std::fmt;
use std::io;

/// Why a file could not be read, in one sentence: `app.csv:12: the time "-5" is negative; expected a time of zero or more`, or
/// `perf.data: at byte 4096: ...` for a format without lines.
#[derive(Debug)]
pub struct Error {
    /// Name of the file as given by the caller.
    pub file: String,
    /// Place in the file.
    pub place: Place,
    /// The kind of error.
    pub kind: TraceErrorKind,
}

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as a whole.
    Whole,
    /// A line, from 1.
    Line(u64),
    /// A position in bytes, from 0.
    Offset(u64),
}

/// The kinds of error.
#[derive(Debug)]
pub enum TraceErrorKind {
    /// The content does not follow the format.
    Malformed {
        /// The text found, as a clause.
        found: String,
        /// The form expected, as a phrase that names the remedy if there is one.
        expected: String,
    },
    /// The system could not read the file.
    Read(io::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        match self.place {
            Place::Whole => {}
            Place::Line(line) => write!(f, ":{line}")?,
            Place::Offset(offset) => write!(f, ": at byte {offset}")?,
        }
        match &self.kind {
            TraceErrorKind::Malformed { found, expected } => {
                write!(f, ": {found}; expected {expected}")
            }
            TraceErrorKind::Read(source) => write!(f, ": cannot be read: {source}"),
        }
    }
}

impl std::error::Error for Error {
    /// The cause of the system's error; that error itself is already part of the text.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            TraceErrorKind::Read(source) => source.source(),
            TraceErrorKind::Malformed { .. } => None,
        }
    }
}

impl Error {
    /// An error for a file that the system could not read.
    pub(crate) fn read(file: &str, source: io::Error) -> Self {
        Self {
            file: file.to_owned(),
            place: Place::Whole,
            kind: TraceErrorKind::Read(source),
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
        Error {
            file: file.to_owned(),
            place,
            kind: TraceErrorKind::Malformed {
                found: self.found,
                expected: self.expected,
            },
        }
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
