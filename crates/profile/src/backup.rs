//! [`ProfileBackup`] puts aside the profile that a new one replaces. The writer has it removed once the new one is worth keeping, or put
//! back. What a killed writer left aside is not read: readers say where it is, and the next writer tidies up.
//!
//! ```text
//! app.iso  --rename-->  .app.iso.before  --rename-->  .app.iso.gone  --> removed
//!    ^                        |            with the first epoch of the new one
//!    +------------------------+  where the new one holds nothing
//! ```
//!
//! Each arrow is one rename, so a kill leaves the former profile whole under one of the first two
//! names, or the new one with an epoch in `app.iso`. The next writer that replaces tidies up.
//!
//! The former profile stays locked until it is back or removed, and the directory of the new one (`.app.iso.new`) is locked before it gets
//! the name of the profile: at every moment, one of the two locks shows other writers that the path is in use.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::io;
use std::path::{Path, PathBuf};

use isotherm_sys::files::{Directory, followed_output};

use crate::layout::{Table, is_temporary};
use crate::lock::open_locked;
use crate::recognition::{is_empty, is_profile};

/// The names of a profile that is replaced.
#[derive(Debug)]
pub(crate) struct ProfileBackup {
    path: PathBuf,
    aside: PathBuf,
    gone: PathBuf,
    /// The directory of the new profile until it has the name.
    new: PathBuf,
    /// The lock of the profile while it is put aside.
    lock: Option<Directory>,
}

impl ProfileBackup {
    /// The backup of a profile at this path; `None` for a path without a name, as `/` is.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        // A closing slash is left out.
        let path: PathBuf = path.components().collect();
        // A link is followed. One that is refused stays what it is, and the writer says so.
        let path = followed_output(&path).unwrap_or(path);
        let name = path.file_name()?;
        let beside = |ending: &str| {
            let mut hidden = OsString::from(".");
            hidden.push(name);
            hidden.push(ending);
            path.with_file_name(hidden)
        };
        Some(Self {
            aside: beside(".before"),
            gone: beside(".gone"),
            new: beside(".new"),
            path,
            lock: None,
        })
    }

    /// Path of the former profile, if one is put aside now.
    pub(crate) fn found_aside(&self) -> Option<&Path> {
        // Isotherm never puts a link there.
        let is_directory = Directory::open(&self.aside).is_ok();
        (is_directory && is_profile(&self.aside)).then_some(&self.aside)
    }

    /// True where another writer put the profile aside and goes on.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(open_locked(&self.aside, Directory::lock_shared), Ok(None))
    }

    /// Restores a profile that a killed writer had put aside, and removes one that it was about to remove.
    /// Anything at the path that is not a profile stays there, and all of it where another writer goes on.
    ///
    /// # Errors
    /// It could not be put back.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        let lock = |path| open_locked(path, Directory::lock);
        let is_missing = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        // Both stay locked to the end.
        let (path, aside) = (lock(&self.path), lock(&self.aside));
        let is_free = matches!(&path, Ok(Some(_))) || path.as_ref().is_err_and(is_missing);
        if !is_free || matches!(&aside, Ok(None)) {
            return Ok(());
        }
        let _ = fs::remove_dir(&self.new);
        self.remove_gone();
        let ours = match is_empty(&self.path) {
            Ok(is_empty) => is_empty || is_profile(&self.path),
            Err(error) => is_missing(&error),
        };
        match self.found_aside() {
            Some(_) if ours => self.put_back(),
            _ => Ok(()),
        }
    }

    /// Puts the profile, which the caller has locked, aside, and an empty directory with its permissions in its place, locked as well.
    ///
    /// # Errors
    /// It stays where it was.
    pub(crate) fn put_aside(&mut self, profile: Directory) -> io::Result<Directory> {
        let permissions = fs::metadata(&self.path)?.permissions();
        let new = self
            .made(permissions)
            .and_then(|new| self.exchange().map(|()| new));
        if new.is_ok() {
            self.lock = Some(profile);
        } else {
            // The error at hand is the one to tell.
            let _ = fs::remove_dir(&self.new);
        }
        new
    }

    /// The directory of the new profile, locked.
    fn made(&self, permissions: Permissions) -> io::Result<Directory> {
        fs::create_dir(&self.new)?;
        fs::set_permissions(&self.new, permissions)?;
        let new = open_locked(&self.new, Directory::lock)?;
        new.ok_or_else(|| io::ErrorKind::WouldBlock.into())
    }

    fn exchange(&self) -> io::Result<()> {
        fs::rename(&self.path, &self.aside).map_err(|error| self.in_the_way(&error))?;
        let named = fs::rename(&self.new, &self.path);
        if named.is_err() {
            let _ = fs::rename(&self.aside, &self.path);
        }
        named
    }

    fn in_the_way(&self, error: &io::Error) -> io::Error {
        let aside = self.aside.display();
        let text = format!("the profile that is there cannot be put aside as {aside}: {error}");
        io::Error::new(error.kind(), text)
    }

    /// Puts the profile back in the place of the new one, whose tables are removed.
    ///
    /// # Errors
    /// It stays where it was put.
    pub(crate) fn put_back(&self) -> io::Result<()> {
        if let Ok(directory) = Directory::open(&self.path) {
            empty(&directory, &Directory::open(&self.aside)?)?;
        }
        // An empty directory is replaced by a rename.
        fs::rename(&self.aside, &self.path)
    }

    /// Removes the profile, now that the new one holds something. What cannot be removed the next
    /// writer tries again.
    pub(crate) fn remove(&self) {
        if fs::rename(&self.aside, &self.gone).is_ok() {
            self.remove_gone();
        }
    }

    fn remove_gone(&self) {
        let [gone, path] = [&self.gone, &self.path].map(|path| Directory::open(path));
        if let (Ok(gone), Ok(path)) = (gone, path) {
            let _ = empty(&gone, &path).and_then(|()| fs::remove_dir(&self.gone));
        }
    }
}

/// Removes the tables in a directory, and empty directories in the place of a table. Moves other files to `other`, unless a file there has
/// their name.
fn empty(directory: &Directory, other: &Directory) -> io::Result<()> {
    let other = other.path();
    for entry in fs::read_dir(directory.path())? {
        let entry = entry?;
        let name = entry.file_name();
        let ours = |name: &str| is_temporary(name) || Table::of_file(name).is_some();
        let is_directory = entry.file_type()?.is_dir();
        let removed = name.to_str().is_some_and(ours)
            && match is_directory {
                true => fs::remove_dir(entry.path()).is_ok(),
                false => fs::remove_file(entry.path()).map(|()| true)?,
            };
        if !removed && !other.join(&name).exists() {
            fs::rename(entry.path(), other.join(&name))?;
        }
    }
    Ok(())
}
