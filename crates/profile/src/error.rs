//! [`Error`] says why a profile cannot be written or read: a sentence that states what failed, where, why, and in many cases the remedy.
//! [`Warning`] names what is damaged or missing in a profile that could be read nevertheless.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::layout::FORMAT_VERSION;

/// Why a profile could not be written or read.
// No source: the text names the cause already, and a printed chain would say it twice.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is nothing at the path.
    #[error(
        "there is no profile at {path}: no such file or directory; record one with `isotherm record -o {path} -- PROGRAM`",
        path = .0.display()
    )]
    Missing(PathBuf),
    /// There is nothing at the path, and the profile that was there is put aside.
    #[error(
        "there is no profile at {path}: what was to replace it ended before it began; `mv {aside} {path}` puts the former one back"
    )]
    PutAside {
        /// The path.
        path: PathBuf,
        /// Where the profile is.
        aside: PathBuf,
    },
    /// The file or directory at the path is no profile.
    #[error(
        "{path} is not a profile: {found}; a profile is the directory that `isotherm record` writes"
    )]
    NotAProfile {
        /// The path.
        path: PathBuf,
        /// What was found instead.
        found: String,
    },
    /// The profile was written by a newer Isotherm.
    #[error(
        "{file} has format version {version}, and this Isotherm reads versions up to {latest}; update Isotherm",
        latest = FORMAT_VERSION
    )]
    Newer {
        /// The file that says so.
        file: PathBuf,
        /// Its version.
        version: u64,
    },
    /// There is a profile at the path already, and it was not asked to overwrite it.
    #[error("there is a profile at {0} already; choose another path, or ask to overwrite it")]
    Exists(PathBuf),
    /// Another command writes the profile at the path.
    #[error(
        "{0} is being recorded by another command, so it is left alone; choose another path (one for each process of a parallel program), \
         or wait until that command has ended"
    )]
    BeingRecorded(PathBuf),
    /// The directory of a recording was taken away while it was written.
    #[error(
        "{0} was removed, renamed or replaced while it was recorded: what was recorded is no longer there; record again, to a path that no \
         other program changes"
    )]
    Removed(PathBuf),
    /// There is something else at the path, which is never overwritten.
    #[error("{0} exists and is not a profile, so it is left alone; choose another path")]
    Occupied(PathBuf),
    /// A file or directory could not be read.
    #[error("{path} could not be read: {cause}")]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// A file or directory could not be written.
    #[error(
        "{path} could not be written: {cause}; {kept}",
        kept = readable(
            *.kept_epochs,
            "nothing was recorded yet",
            "the epoch recorded before it stays readable",
            "the # epochs recorded before it stay readable",
        )
    )]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
        /// Epochs that were recorded before and stay readable.
        kept_epochs: usize,
    },
    /// A table could not be added to a profile, which stays as it was.
    #[error("{path} could not be written: {cause}; the rest of the profile stays as it was")]
    Add {
        /// The file or directory that could not be written.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
    },
    /// The end of a recording could not be written.
    #[error(
        "{path} could not be written: {cause}; {kept}",
        kept = readable(
            *.kept_epochs,
            "nothing of the run is recorded",
            "one epoch of the run is recorded and readable",
            "# epochs of the run are recorded and readable",
        )
    )]
    Finish {
        /// The file or directory that could not be written.
        path: PathBuf,
        /// The error of the operating system.
        cause: io::Error,
        /// Epochs that were recorded and stay readable.
        kept_epochs: usize,
    },
}

/// The end of a sentence about the epochs that stay readable: where there are none, one and several.
fn readable(epochs: usize, none: &str, one: &str, several: &str) -> String {
    match epochs {
        0 => none.to_owned(),
        1 => one.to_owned(),
        epochs => several.replace('#', &epochs.to_string()),
    }
}

/// A part of a profile that could not be used, while the rest could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Name of the file within the profile; empty where it concerns the whole.
    pub file: String,
    /// The damage, and how the reader dealt with it.
    pub what: String,
}

impl Warning {
    pub(crate) fn new(file: &str, what: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.file.is_empty() {
            f.write_str(&self.what)
        } else {
            write!(f, "{}: {}", self.file, self.what)
        }
    }
}
