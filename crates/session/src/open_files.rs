//! Opens the session file of a process image at its first use, and keeps it open for the following ones.
//!
//! [`OpenFiles`] is created with the directory of the files; [`OpenFiles::of`] takes a [`Process`] and returns its
//! [`SessionFile`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use isotherm_model::batch::Process;

use crate::error::SessionError;
use crate::file::SessionFile;
use crate::name::file_name;

/// The session files of a directory that were used so far. They are closed when this value is dropped.
#[derive(Debug)]
pub struct OpenFiles {
    directory: PathBuf,
    open: BTreeMap<Process, SessionFile>,
}

impl OpenFiles {
    /// For the session files in `directory`; opens none yet.
    #[must_use]
    pub const fn new(directory: PathBuf) -> Self {
        Self {
            directory,
            open: BTreeMap::new(),
        }
    }

    /// The session file of a process image, opened if it is not open yet.
    ///
    /// # Errors
    /// As [`SessionFile::open`].
    pub fn of(&mut self, process: Process) -> Result<&mut SessionFile, SessionError> {
        use std::collections::btree_map::Entry;
        match self.open.entry(process) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let path = self.directory.join(file_name(process));
                Ok(entry.insert(SessionFile::open(&path)?))
            }
        }
    }
}
