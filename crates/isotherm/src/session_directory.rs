//! The directory of a run's session files, and what runs that were killed left of theirs.
//!
//! Session files lie in memory, so a directory that nobody removes keeps memory from everybody. Its
//! owner holds a lock in it, which the kernel releases however the owner ends; the next run
//! removes the directories whose lock is free and whose programs have ended.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};
use isotherm_observe::session::parse_name;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::process::{Pid, getuid, test_kill_process};
use tempfile::TempDir;

/// Memory-backed directory for session files; the temporary directory serves where it is missing.
const SHARED_MEMORY: &str = "/dev/shm";
/// What the directories' names begin with.
const PREFIX: &str = "isotherm-";
/// The file that is locked as long as the owner lives.
const LOCK: &str = "owner";

/// A directory of session files, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SessionDirectory {
    directory: TempDir,
    /// Locked.
    _owner: File,
}

impl SessionDirectory {
    /// Makes one, and removes what killed runs of this user left.
    ///
    /// # Errors
    /// It can be made neither in shared memory nor in the temporary directory.
    pub(crate) fn new() -> Result<Self> {
        let shared = Path::new(SHARED_MEMORY);
        remove_abandoned(shared);
        Self::make_in(shared)
            .or_else(|_| Self::make_in(&std::env::temp_dir()))
            .context("no directory for session files could be made in /dev/shm or $TMPDIR")
    }

    fn make_in(parent: &Path) -> Result<Self> {
        let directory = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        // Locked before it has the name by which others look for it.
        let unnamed = directory.path().join("owner.new");
        let owner = File::create_new(&unnamed)?;
        flock(&owner, FlockOperation::LockExclusive)?;
        std::fs::rename(unnamed, directory.path().join(LOCK))?;
        Ok(Self {
            directory,
            _owner: owner,
        })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Removes the directories in `parent` that belong to this user and to nobody who lives. What
/// cannot be read or removed stays: it harms no run.
fn remove_abandoned(parent: &Path) {
    let entries = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let named = entry.file_name().to_string_lossy().starts_with(PREFIX);
        let path = entry.path();
        if named && is_ours(&path) && is_abandoned(&path) {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
}

/// Whether it is a directory of this user, and no link to one.
fn is_ours(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|data| data.is_dir() && data.uid() == getuid().as_raw())
}

fn is_abandoned(directory: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // Without a lock it is not known whose it is; it may be in the making.
    let Ok(owner) = open(directory.join(LOCK), flags, Mode::empty()) else {
        return false;
    };
    flock(&owner, FlockOperation::NonBlockingLockExclusive).is_ok() && !has_programs(directory)
}

/// Whether a program that was watched still runs: it goes on when its watcher is killed.
fn has_programs(directory: &Path) -> bool {
    let files = std::fs::read_dir(directory).into_iter().flatten().flatten();
    files
        .filter_map(|file| parse_name(&file.file_name().to_string_lossy()))
        .filter_map(|(pid, _)| Pid::from_raw(i32::try_from(pid).ok()?))
        .any(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
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
        // A number that no process has: above the kernel's largest.
        let dead = format!("{}.0", 1 << 30);
        let alive = format!("{}.0", std::process::id());
        let held = SessionDirectory::make_in(parent.path()).unwrap();
        let left = |name, files: &[String]| left_behind(parent.path(), name, files);
        let abandoned = left("isotherm-killed", &[lock.clone(), dead]);
        let kept = [
            held.path().to_owned(),
            left("isotherm-program-runs", &[lock.clone(), alive]),
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
    fn a_directory_goes_with_its_owner() {
        let parent = tempfile::tempdir().unwrap();
        let held = SessionDirectory::make_in(parent.path()).unwrap();
        let path = held.path().to_owned();
        assert!(path.join(LOCK).exists());
        drop(held);
        assert!(!path.exists());
    }
}
