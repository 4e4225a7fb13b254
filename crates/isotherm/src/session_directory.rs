//! `SessionDirectory` is the directory of a run's session files, with its configuration and the files of its emulated machine; it is
//! removed when the value is dropped, or by a guard process if the run is killed. A new one also removes the directories in `/dev/shm` that
//! killed runs of this user left, known by their free locks.
//!
//! Session files are stored in memory, so a directory that is never removed occupies memory for good. A run removes
//! its own at its end, and its guard ([`crate::session_guard`]) does so where the run is killed. Where both are
//! killed at once, the next run of the same user does: the owner of a directory holds a lock in it, which the
//! kernel releases at any end of the owner. Programs that run on have their files mapped and need no names.
//!
//! The programs follow the files in it, so it is closed to all other users, whatever the umask. Its name, which
//! all users can see, and that of the configuration file, which none can, are random and never used again:
//! a program that outlives its run finds no other run's files, and no other user can make that directory in advance.

use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isotherm_abi::machine;
use isotherm_model::shared_bandwidth::SharedBandwidth;
use isotherm_model::units::Bytes;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use tempfile::TempDir;

use crate::emulated_machine;
use crate::session_guard::{SessionGuard, is_ours, remove};

/// Memory-backed directory for session files; the temporary directory serves where it is missing.
const SHARED_MEMORY: &str = "/dev/shm";
/// The prefix of the directories' names.
const PREFIX: &str = "isotherm-";
/// The file that is locked as long as the owner lives.
const LOCK: &str = "owner";
/// Random letters in a name, each one of 62: more than 128 bits.
const RANDOM_LETTERS: usize = 22;

/// A directory of session files, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SessionDirectory {
    directory: TempDir,
    /// The locked file.
    _owner: File,
    /// The files of the emulated machine, locked against other limits.
    _machine: Vec<File>,
    /// The guard, which ends last. None where no process could be created for it.
    _guard: Option<SessionGuard>,
}

impl SessionDirectory {
    /// Creates one, and removes the directories of this user's killed runs.
    ///
    /// # Errors
    /// It can be created neither in shared memory nor in the temporary directory.
    pub(crate) fn new() -> Result<Self> {
        let shared = Path::new(SHARED_MEMORY);
        remove_abandoned(shared);
        let made = Self::make_in(shared)
            .or_else(|_| Self::make_in(&std::env::temp_dir()))
            .context("no directory for session files could be made in /dev/shm or $TMPDIR")?;
        Ok(Self {
            _guard: SessionGuard::start(made.path()).ok(),
            ..made
        })
    }

    fn make_in(parent: &Path) -> Result<Self> {
        let own = || Permissions::from_mode(0o700);
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(RANDOM_LETTERS)
            .permissions(own())
            .tempdir_in(parent)?;
        // A umask may have removed some of these rights.
        std::fs::set_permissions(directory.path(), own())?;
        // Locked before it gets the name that other runs search for.
        let unnamed = directory.path().join("owner.new");
        let owner = emulated_machine::make(&unnamed)?;
        flock(&owner, FlockOperation::LockExclusive)?;
        std::fs::rename(unnamed, directory.path().join(LOCK))?;
        Ok(Self {
            directory,
            _owner: owner,
            _machine: Vec::new(),
            _guard: None,
        })
    }

    /// Writes a file of this kind, which only this user can read and whose name no process can guess, and returns its path.
    ///
    /// # Errors
    /// There is no room.
    pub(crate) fn write_file(&self, kind: &str, bytes: &[u8]) -> Result<PathBuf> {
        let written = || -> std::io::Result<PathBuf> {
            let mut file = tempfile::Builder::new()
                .prefix(&format!("{kind}-"))
                .rand_bytes(RANDOM_LETTERS)
                .tempfile_in(self.path())?;
            let own = Permissions::from_mode(0o600);
            file.as_file().set_permissions(own)?;
            file.write_all(bytes)?;
            Ok(file.keep()?.1)
        };
        written().with_context(|| {
            let directory = self.path().display();
            format!("{directory}: the {kind} cannot be written")
        })
    }

    /// Adds the files of the emulated machine whose bandwidth the run shares, and, where it has a name, the capacity of the fast tier.
    ///
    /// # Errors
    /// As [`emulated_machine::join`].
    pub(crate) fn join_machine(
        &mut self,
        shared: &SharedBandwidth,
        fast: Option<Bytes>,
    ) -> Result<()> {
        self._machine = emulated_machine::join(self.path(), shared, fast)?;
        Ok(())
    }

    /// True if it has the file of an emulated machine.
    pub(crate) fn has_machine(&self) -> bool {
        self.path().join(machine::FILE_NAME).exists()
    }

    /// Its path.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the directories in `parent` that belong to this user and to no living run. One that cannot be read or removed stays, which harms
/// no run.
fn remove_abandoned(parent: &Path) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let path = entry.path();
        if named && is_ours(&path) && is_abandoned(&path) {
            remove(&path);
        }
    }
}

fn is_abandoned(directory: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Without a lock its owner is unknown; it may be under construction.
    let Ok(owner) = open(directory.join(LOCK), flags, Mode::empty()) else {
        return false;
    };
    flock(&owner, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn left_behind(parent: &Path, name: &str, files: &[String]) -> PathBuf {
        let directory = parent.join(name);
        std::fs::create_dir(&directory).unwrap();
        for file in files {
            std::fs::write(directory.join(file), "").unwrap();
        }
        directory
    }

    #[test]
    fn only_directories_of_runs_that_ended_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let lock = LOCK.to_owned();
        let file = format!("{}.0", std::process::id());
        let held = SessionDirectory::make_in(parent.path()).unwrap();
        let left = |name, files: &[String]| left_behind(parent.path(), name, files);
        let abandoned = left("isotherm-killed", &[lock.clone(), file]);
        let kept = [
            held.path().to_owned(),
            left("isotherm-in-the-making", &[]),
            left("another", &[lock]),
        ];
        remove_abandoned(parent.path());
        assert!(!abandoned.exists());
        for path in kept {
            assert!(path.exists(), "{} was removed", path.display());
        }
    }

    #[test]
    fn the_directory_and_what_is_in_it_are_closed_to_other_users_and_have_random_names() {
        let parent = tempfile::tempdir().unwrap();
        let made = [(); 2].map(|()| SessionDirectory::make_in(parent.path()).unwrap());
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o7777;
        let files = made.each_ref().map(|directory| {
            assert_eq!(mode(directory.path()), 0o700);
            assert_eq!(mode(&directory.path().join(LOCK)), 0o600);
            let file = directory.write_file("configuration", b"bytes").unwrap();
            assert_eq!(mode(&file), 0o600);
            assert_eq!(std::fs::read(&file).unwrap(), b"bytes");
            file.file_name().unwrap().to_owned()
        });
        assert_ne!(files[0], files[1]);
        assert_ne!(made[0].path(), made[1].path());
    }

    #[test]
    fn a_directory_goes_with_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        let held = SessionDirectory::make_in(parent.path()).unwrap();
        let path = held.path().to_owned();
        assert!(path.join(LOCK).exists());
        drop(held);
        assert!(!path.exists());
    }
}
