//! The profile that a new one replaces: put aside until the new one holds something.
//!
//! ```text
//! app.iso  --rename-->  .app.iso.before  --rename-->  .app.iso.gone  --> removed
//!    ^                        |            with the first epoch of the new one
//!    +------------------------+  where the new one holds nothing
//! ```
//!
//! Each arrow is one rename, so a kill leaves the former profile whole under one of the first two
//! names, or the new one with an epoch in `app.iso`. The next writer that replaces tidies up.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use isotherm_sys::files::{Directory, followed_output};

use crate::layout::{Table, is_temporary};
use crate::recognition::{is_empty, is_profile};

/// The names of a profile that is replaced.
#[derive(Debug)]
pub(crate) struct ProfileBackup {
    path: PathBuf,
    aside: PathBuf,
    gone: PathBuf,
}

impl ProfileBackup {
    /// For a profile at this path; `None` for a path without a name, as `/` is.
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
            path,
        })
    }

    /// Where it is put, if there is a profile now.
    pub(crate) fn found_aside(&self) -> Option<&Path> {
        // Isotherm never puts a link there.
        let is_directory = Directory::open(&self.aside).is_ok();
        (is_directory && is_profile(&self.aside)).then_some(&self.aside)
    }

    /// Restores a profile that a killed writer had put aside, and removes one that it was about to remove.
    /// Anything at the path that is not a profile stays there.
    ///
    /// # Errors
    /// It could not be put back.
    pub(crate) fn tidy(&self) -> io::Result<()> {
        self.remove_gone();
        let ours = match is_empty(&self.path) {
            Ok(is_empty) => is_empty || is_profile(&self.path),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        };
        match self.found_aside() {
            Some(_) if ours => self.put_back(),
            _ => Ok(()),
        }
    }

    /// Puts the profile aside, and makes an empty directory with its permissions in its place.
    ///
    /// # Errors
    /// It stays where it was.
    pub(crate) fn put_aside(&self) -> io::Result<()> {
        let permissions = fs::metadata(&self.path)?.permissions();
        fs::rename(&self.path, &self.aside).map_err(|error| self.in_the_way(&error))?;
        let made =
            fs::create_dir(&self.path).and_then(|()| fs::set_permissions(&self.path, permissions));
        if made.is_err() {
            // The error at hand is the one to tell.
            let _ = self.put_back();
        }
        made
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

/// Removes the tables in a directory, and empty directories that stand in the place of one, and takes what is
/// not ours to another, where no name is taken.
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
