//! [`Finding`] is what a rule reports: one violation at one place.

use std::fmt;

/// One violation: its place and its remedy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// Path from the repository's root.
    pub(crate) path: String,
    /// Line in that file, from 1; 1 for the file as a whole.
    pub(crate) line: usize,
    /// The violation and its remedy.
    pub(crate) message: String,
}

impl Finding {
    pub(crate) fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

/// `crates/x/src/lib.rs:12: the violation; the remedy`
impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.path, self.line, self.message)
    }
}
