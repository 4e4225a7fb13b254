//! [`OpenFiles`] opens the session file of a process (from one `exec` to the next) at its first use ([`OpenFiles::of`]), and keeps it open
//! for the following ones: for the files in the directory of one run, or for the files that running processes have mapped.

use std::collections::BTreeMap;
use std::path::PathBuf;

use isotherm_model::batch::Process;

use crate::error::SessionError;
use crate::file::SessionFile;
use crate::name::file_name;
use crate::session_of::session_of;

/// The place of a process's session file.
#[derive(Debug)]
enum Place {
    /// In the directory of one run, named by its image.
    Directory(PathBuf),
    /// The file that the process has mapped, as this directory `proc` shows. Images are not distinguished by the files' numbers, but by
    /// the caller.
    Mapped(PathBuf),
}

/// The session files that were used so far. They are closed when this value is dropped, or by [`OpenFiles::retain`].
#[derive(Debug)]
pub struct OpenFiles {
    place: Place,
    open: BTreeMap<Process, SessionFile>,
}

impl OpenFiles {
    /// For the session files in `directory`; opens none yet.
    #[must_use]
    pub const fn new(directory: PathBuf) -> Self {
        Self {
            place: Place::Directory(directory),
            open: BTreeMap::new(),
        }
    }

    /// For the session files that running processes of this user have mapped; opens none yet.
    #[must_use]
    pub const fn of_running(proc_root: PathBuf) -> Self {
        Self {
            place: Place::Mapped(proc_root),
            open: BTreeMap::new(),
        }
    }

    /// Closes the files of the other processes: a descriptor for each that ever ran would be too many.
    pub fn retain(&mut self, is_used: impl Fn(&Process) -> bool) {
        self.open.retain(|process, _| is_used(process));
    }

    /// The session file of a process image, opened if it is not open yet.
    ///
    /// # Errors
    /// As [`SessionFile::open`]; [`SessionError::NotYet`] where a running process has none.
    pub fn of(&mut self, process: Process) -> Result<&mut SessionFile, SessionError> {
        use std::collections::btree_map::Entry;
        match self.open.entry(process) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let path = match &self.place {
                    Place::Directory(directory) => directory.join(file_name(process)),
                    Place::Mapped(proc_root) => {
                        session_of(proc_root, process.pid).ok_or(SessionError::NotYet)?
                    }
                };
                Ok(entry.insert(SessionFile::open(&path)?))
            }
        }
    }
}
