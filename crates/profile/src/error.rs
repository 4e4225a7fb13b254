//! What can go wrong with a profile, each as a sentence: what, where, why, what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

use crate::layout::FORMAT_VERSION;

/// Why a profile could not be written or read.
#[derive(Debug)]
pub enum Error {
    /// There is nothing at the path.
    Missing(PathBuf),
    /// There is nothing at the path, and the profile that was there is put aside.
    PutAside {
        /// The path.
        path: PathBuf,
        /// Where the profile is.
        aside: PathBuf,
    },
    /// What is at the path is no profile.
    NotAProfile {
        /// The path.
        path: PathBuf,
        /// What was found instead.
        found: String,
    },
    /// The profile was written by a newer Isotherm.
    Newer {
        /// The file that says so.
        file: PathBuf,
        /// Its version.
        version: u64,
    },
    /// There is a profile at the path already, and it was not asked to overwrite it.
    Exists(PathBuf),
    /// There is something else at the path, which is never overwritten.
    Occupied(PathBuf),
    /// A file or directory could not be read.
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file or directory could not be written.
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// Epochs that were recorded before and stay readable.
        kept_epochs: usize,
    },
    /// A table could not be added to a profile, which stays as it was.
    Add {
        /// The file or directory that could not be written.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The end of a recording could not be written.
    Finish {
        /// Which file or directory could not be written.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// Epochs that were recorded and stay readable.
        kept_epochs: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(path) => write!(
                f,
                "there is no profile at {}: no such file or directory; record one with `isotherm record -o {} -- PROGRAM`",
                path.display(),
                path.display()
            ),
            Self::PutAside { path, aside } => write!(
                f,
                "there is no profile at {}: what was to replace it ended before it began; `mv {} {}` puts the former one back",
                path.display(),
                aside.display(),
                path.display()
            ),
            Self::NotAProfile { path, found } => write!(
                f,
                "{} is not a profile: {found}; a profile is the directory that `isotherm record` writes",
                path.display()
            ),
            Self::Newer { file, version } => write!(
                f,
                "{} has format version {version}, and this Isotherm reads versions up to {FORMAT_VERSION}; update Isotherm",
                file.display()
            ),
            Self::Exists(path) => write!(
                f,
                "there is a profile at {} already; choose another path, or ask to overwrite it",
                path.display()
            ),
            Self::Occupied(path) => write!(
                f,
                "{} exists and is not a profile, so it is left alone; choose another path",
                path.display()
            ),
            Self::Read { path, source } => {
                write!(f, "{} could not be read: {source}", path.display())
            }
            Self::Write {
                path,
                source,
                kept_epochs,
            } => {
                write!(f, "{} could not be written: {source}", path.display())?;
                match kept_epochs {
                    0 => write!(f, "; nothing was recorded yet"),
                    1 => write!(f, "; the epoch recorded before it stays readable"),
                    n => write!(f, "; the {n} epochs recorded before it stay readable"),
                }
            }
            Self::Add { path, source } => write!(
                f,
                "{} could not be written: {source}; the rest of the profile stays as it was",
                path.display()
            ),
            Self::Finish {
                path,
                source,
                kept_epochs,
            } => {
                write!(f, "{} could not be written: {source}", path.display())?;
                match kept_epochs {
                    0 => write!(f, "; nothing of the run is recorded"),
                    1 => write!(f, "; one epoch of the run is recorded and readable"),
                    n => write!(f, "; {n} epochs of the run are recorded and readable"),
                }
            }
        }
    }
}

// No `source`: the text names the cause already, and a printed chain would say it twice.
impl std::error::Error for Error {}

/// A part of a profile that could not be used, while the rest could.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Name of the file within the profile; empty where it concerns the whole.
    pub file: String,
    /// What is wrong and what was done about it.
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
