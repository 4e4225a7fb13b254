//! Locks the directory of a profile ([`open_locked`]): a recording excludes every other writer; an addition of tables excludes recordings,
//! but not other additions.
//!
//! The lock is on the directory itself, so a profile has no file for it, and it stays with a directory that is renamed. The kernel releases
//! it when the process ends, however that ends. Where a file system has no locks, and between hosts that share one, it excludes no other
//! writer.

use std::io;
use std::path::Path;

use isotherm_sys::files::Directory;

/// Opens the directory and locks it by this function of [`Directory`]; `None` where another writer has the lock, or renamed or removed the
/// directory before it was locked.
///
/// # Errors
/// It is not a directory, or cannot be read.
pub(crate) fn open_locked(
    path: &Path,
    lock: impl FnOnce(&Directory) -> bool,
) -> io::Result<Option<Directory>> {
    let directory = Directory::open(path)?;
    let is_locked = lock(&directory) && directory.is_at(path);
    Ok(is_locked.then_some(directory))
}
