//! Reads directories and small files of sysfs and procfs.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The paths in a directory, by name; none where it cannot be read.
#[must_use]
pub fn entries(directory: &Path) -> Vec<PathBuf> {
    let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = found.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The numbers `n` of the entries `{prefix}n` of a directory, in order.
#[must_use]
pub fn numbered(directory: &Path, prefix: &str) -> Vec<u32> {
    let found = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let number = |name: OsString| name.to_str()?.strip_prefix(prefix)?.parse().ok();
    // `node01` and `node1` have the same number.
    let numbers: BTreeSet<u32> = found
        .filter_map(|entry| number(entry.file_name()))
        .collect();
    numbers.into_iter().collect()
}

/// A file's text without the space around it; `None` where it cannot be read or has none.
#[must_use]
pub fn text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// A file's whole number; `None` where it cannot be read or is no such number.
#[must_use]
pub fn number(path: &Path) -> Option<u64> {
    text(path)?.parse().ok()
}

/// The chosen word of a file, which is in brackets, as in `lzo [lz4] zstd`; `None` where it cannot be read or has none.
#[must_use]
pub fn chosen(path: &Path) -> Option<String> {
    let words = text(path)?;
    let inside = |word: &str| Some(word.strip_prefix('[')?.strip_suffix(']')?.to_owned());
    words.split_ascii_whitespace().find_map(inside)
}
