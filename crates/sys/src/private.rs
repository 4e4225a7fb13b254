//! Opens and checks files and directories that no other user can have made or can change, and makes such files, for the runtime and the
//! tools.
//!
//! Our processes exchange data in files, and a name does not prove who wrote a file: once a directory in
//! `/dev/shm` was removed, any user may make it again. So no content is trusted before its owner and mode were
//! checked, through the descriptor and not through the name.
//!
//! Nothing here follows a link, waits for a pipe, or allocates: the runtime opens its configuration in the
//! middle of the program's first allocation.

use std::ffi::CStr;
use std::os::fd::AsFd;

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::geteuid;

use crate::descriptor::Descriptor;

/// The reason why a file or directory is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrivateError {
    /// It cannot be opened.
    Unopened(Errno),
    /// It belongs to another user than the effective user of this process.
    OtherUser,
    /// Its mode lets the group or others write it.
    Writable,
    /// It is a link, a pipe, a device or the like.
    OtherKind,
}

impl std::fmt::Display for PrivateError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unopened(error) => error.fmt(f),
            Self::OtherUser => f.write_str("it belongs to another user"),
            Self::Writable => f.write_str("other users may write it"),
            Self::OtherKind => f.write_str("it is not a plain file"),
        }
    }
}

impl std::error::Error for PrivateError {}

impl From<PrivateError> for std::io::Error {
    fn from(error: PrivateError) -> Self {
        match error {
            PrivateError::Unopened(error) => error.into(),
            _ => Self::new(std::io::ErrorKind::PermissionDenied, error),
        }
    }
}

/// Mode bits that let the group or others write.
const WRITABLE: Mode = Mode::WGRP.union(Mode::WOTH);

/// Opens a directory, as the base for its entries.
///
/// # Errors
/// [`PrivateError`].
pub fn open_directory(path: &CStr) -> Result<Descriptor, PrivateError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = Descriptor::from(fs::open(path, flags, Mode::empty()).map_err(unopened)?);
    check(&directory, FileType::Directory)?;
    Ok(directory)
}

/// Opens a plain file by its name in an opened directory, with the given access.
///
/// # Errors
/// [`PrivateError`].
pub fn open_file(
    directory: impl AsFd,
    name: &CStr,
    access: OFlags,
) -> Result<Descriptor, PrivateError> {
    let file = fs::openat(directory, name, access | ALWAYS, Mode::empty()).map_err(unopened)?;
    let file = Descriptor::from(file);
    check(&file, FileType::RegularFile)?;
    Ok(file)
}

/// Makes a plain file that only this user may read and write, whatever the umask.
///
/// # Errors
/// The kernel's error number; `EEXIST` where the name is taken.
pub fn create_file(directory: impl AsFd, name: &CStr) -> Result<Descriptor, Errno> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | ALWAYS;
    let mode = Mode::RUSR | Mode::WUSR;
    let file = Descriptor::from(fs::openat(directory, name, flags, mode)?);
    // A umask may remove bits. A sandbox that refuses the call leaves a file that is no more open.
    let _ = fs::fchmod(&file, mode);
    Ok(file)
}

/// Whether only this user can write a plain file that is open already.
///
/// # Errors
/// [`PrivateError`].
pub fn check_file(file: impl AsFd) -> Result<(), PrivateError> {
    check(file, FileType::RegularFile)
}

/// Refuse a link, do not wait for the other end of a pipe, do not make a terminal the controlling one.
const ALWAYS: OFlags = OFlags::NOFOLLOW
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

fn unopened(error: Errno) -> PrivateError {
    match error {
        Errno::LOOP => PrivateError::OtherKind,
        error => PrivateError::Unopened(error),
    }
}

fn check(file: impl AsFd, wanted: FileType) -> Result<(), PrivateError> {
    let status = fs::fstat(file).map_err(PrivateError::Unopened)?;
    if FileType::from_raw_mode(status.st_mode) != wanted {
        return Err(PrivateError::OtherKind);
    }
    if status.st_uid != geteuid().as_raw() {
        return Err(PrivateError::OtherUser);
    }
    if Mode::from_raw_mode(status.st_mode).intersects(WRITABLE) {
        return Err(PrivateError::Writable);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{PrivateError, create_file, open_directory, open_file};
    use rustix::fs::{Mode, OFlags, chmod, fstat, mkdir, symlink};
    use rustix::io::Errno;
    use std::ffi::{CStr, CString};
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    fn name(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    /// An empty directory of this test's, of mode 0700.
    fn directory(test: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("isotherm-{test}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        mkdir(&path, Mode::RWXU).unwrap();
        path
    }

    fn opened(path: &Path, name: &CStr) -> Result<(), PrivateError> {
        let directory = open_directory(&super::tests::name(path))?;
        open_file(directory, name, OFlags::RDONLY).map(drop)
    }

    #[test]
    fn what_others_may_write_and_what_is_no_plain_file_is_refused() {
        let path = directory("private");
        let mode = |mode| Mode::from_raw_mode(mode);
        assert_eq!(
            opened(&path, c"absent"),
            Err(PrivateError::Unopened(Errno::NOENT))
        );
        std::fs::write(path.join("file"), "text").unwrap();
        chmod(path.join("file"), mode(0o644)).unwrap();
        assert_eq!(opened(&path, c"file"), Ok(()));
        for open in [0o666, 0o660, 0o602] {
            chmod(path.join("file"), mode(open)).unwrap();
            assert_eq!(opened(&path, c"file"), Err(PrivateError::Writable));
        }
        chmod(path.join("file"), mode(0o600)).unwrap();
        symlink("file", path.join("link")).unwrap();
        assert_eq!(opened(&path, c"link"), Err(PrivateError::OtherKind));
        mkdir(path.join("folder"), Mode::RWXU).unwrap();
        assert_eq!(opened(&path, c"folder"), Err(PrivateError::OtherKind));
        for open in [0o1777, 0o770] {
            chmod(&path, mode(open)).unwrap();
            assert_eq!(opened(&path, c"file"), Err(PrivateError::Writable));
        }
        std::fs::remove_dir_all(&path).unwrap();
    }

    #[test]
    fn a_new_file_is_nobody_elses_and_takes_no_name_that_is_there() {
        let path = directory("created");
        let directory = open_directory(&name(&path)).unwrap();
        let file = create_file(&directory, c"new").unwrap();
        assert_eq!(fstat(&file).unwrap().st_mode & 0o7777, 0o600);
        symlink("elsewhere", path.join("planted")).unwrap();
        for taken in [c"new", c"planted"] {
            assert_eq!(create_file(&directory, taken).unwrap_err(), Errno::EXIST);
        }
        assert!(!path.join("elsewhere").exists());
        std::fs::remove_dir_all(&path).unwrap();
    }
}
