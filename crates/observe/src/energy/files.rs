//! Files of sysfs, as the sensors of energy have them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// What is in a directory, by name; nothing where it does not exist.
pub(super) fn entries(directory: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// A file's text without the space around it; `None` where it cannot be read or has none.
pub(super) fn line(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// A file's whole number.
///
/// # Errors
/// The file cannot be read, or is no such number ([`ErrorKind::InvalidData`]).
pub(super) fn number(path: &Path) -> Result<u64, ErrorKind> {
    let text = std::fs::read_to_string(path).map_err(|error| error.kind())?;
    text.trim().parse().map_err(|_| ErrorKind::InvalidData)
}
