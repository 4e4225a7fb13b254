//! [`is_profile`] tells whether a directory holds a profile, and [`is_empty`] whether it holds at most temporary files of a killed writer.
//! The writer takes no other directory: that has the files of another program, which are never overwritten.

use std::io;
use std::path::{Path, PathBuf};

use isotherm_sys::files::read_input;

use crate::column::File;
use crate::layout::{TABLE_BYTES, Table, is_temporary};

/// True where the directory holds at most the temporary files of a writer that was killed before its first table.
///
/// # Errors
/// It cannot be read.
pub(crate) fn is_empty(path: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(path)? {
        if !entry?.file_name().to_str().is_some_and(is_temporary) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True where the directory holds a file that a profile has and that says it is one. Only such a
/// directory is ever overwritten.
#[must_use]
pub fn is_profile(path: &Path) -> bool {
    recognised(path).is_ok_and(|is_profile| is_profile)
}

/// As [`is_profile`], but with an error where the answer cannot be found.
///
/// # Errors
/// The directory, or all of its files that might tell, could not be read, and which could not.
pub(crate) fn recognised(path: &Path) -> Result<bool, (PathBuf, io::Error)> {
    let failed = |cause| (path.to_owned(), cause);
    let mut unreadable = None;
    for entry in std::fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let Some((table, _)) = name.to_str().and_then(Table::of_file) else {
            continue;
        };
        match read_input(&entry.path(), TABLE_BYTES) {
            Ok(bytes) => {
                if File::open(bytes.into()).is_ok_and(|file| file.is(table)) {
                    return Ok(true);
                }
            }
            Err(cause) => unreadable = Some((entry.path(), cause)),
        }
    }
    unreadable.map_or(Ok(false), Err)
}
