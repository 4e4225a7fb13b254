//! Writes files of results atomically: at every moment the name has the whole old file, or no file if there was none, or the whole new one.
//! Only a pipe, a device, or a file in a directory that permits no new file is written in place. `check` tests a path in advance.

use std::ffi::OsString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::{Context, Result};
use isotherm_sys::files::followed_output;
use rustix::fs::OFlags;
use tempfile::NamedTempFile;

/// Mode of a new file before the process's umask.
const NEW_FILE_MODE: u32 = 0o666;

/// Writes a file: under a hidden name beside it that no other user can guess, flushed to the device, then
/// renamed. A link of the caller's or root's is followed, one of another user's is refused, and the new file gets the
/// permissions of an existing one. A path that is not a regular file, such as a pipe or `/dev/stdout`, is written
/// in place; so is a file whose directory does not permit new files.
///
/// # Errors
/// It cannot be written; an existing file is unchanged.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<()> {
    whole(path, content).with_context(|| format!("{}: cannot be written", path.display()))
}

/// Tests whether a file can be created there, and removes it again: called before a long computation
/// of the result.
///
/// # Errors
/// It cannot be created.
pub(crate) fn check(path: &Path) -> Result<()> {
    tried(path).with_context(|| format!("{}: cannot be written", path.display()))
}

fn whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let target = followed_output(path)?;
    let old = fs::metadata(path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return in_place(path, content);
    }
    match beside(&target, content, old.as_ref()) {
        Err(error) if old.is_some() && takes_no_new_file(&error) => in_place(&target, content),
        written => written,
    }
}

fn beside(target: &Path, content: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let mut file = hidden(target)?;
    if let Some(old) = old {
        file.as_file().set_permissions(old.permissions())?;
    }
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(target).map_err(|failed| failed.error)?;
    Ok(())
}

/// Writes to an existing file, and creates none: a file that is removed meanwhile is not created again.
fn in_place(path: &Path, content: &[u8]) -> io::Result<()> {
    OpenOptions::new()
        .write(true)
        .truncate(true)
        .custom_flags(OFlags::NOCTTY.bits() as i32)
        .open(path)?
        .write_all(content)
}

fn tried(path: &Path) -> io::Result<()> {
    let target = followed_output(path)?;
    let old = fs::metadata(path).ok();
    match old {
        Some(old) if old.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Some(old) if !old.is_file() => Ok(()),
        old => match hidden(&target) {
            Err(error) if old.is_some() && takes_no_new_file(&error) => {
                File::options().append(true).open(target).map(drop)
            }
            made => made.map(drop),
        },
    }
}

/// True for the errors of a directory in which a file may be written but none created or renamed,
/// such as a single file that is mounted into a container.
fn takes_no_new_file(error: &io::Error) -> bool {
    use ErrorKind::{PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(
        error.kind(),
        PermissionDenied | ReadOnlyFilesystem | ResourceBusy
    )
}

/// A new file beside another, under a hidden name; removed again unless it is renamed.
fn hidden(path: &Path) -> io::Result<NamedTempFile> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
    let mut begin = OsString::from(".");
    begin.push(name);
    begin.push(".");
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // `tempfile_in` would put the hidden name, which tells the user nothing, into its errors.
    let create = |hidden: &Path| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true).mode(NEW_FILE_MODE);
        options.open(hidden)
    };
    tempfile::Builder::new()
        .prefix(&begin)
        .suffix(".tmp")
        .make_in(directory, create)
        .map_err(|error| not_created(directory, &error))
}

/// The error of a directory in which a hidden file could not be created: of the same kind, with the directory.
fn not_created(directory: &Path, error: &io::Error) -> io::Error {
    let shown = directory.display();
    let is_missing = error.kind() == ErrorKind::NotFound && !directory.exists();
    let what = match is_missing {
        true => format!("there is no directory {shown}; make it first"),
        false => format!("no new file can be made in {shown}: {error}"),
    };
    io::Error::new(error.kind(), what)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::{check, write};

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
        let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions_and_its_link() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "a longer old content").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", &link).unwrap();
        write(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
        assert_eq!(names(directory.path()), ["file", "link"]);
    }

    #[test]
    fn what_cannot_be_written_is_known_before_and_leaves_what_was_there() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        check(&file).unwrap();
        assert!(names(directory.path()).is_empty());
        fs::write(&file, "old").unwrap();
        // A link to itself leads nowhere, and a file is no directory, for every user.
        symlink("loop", directory.path().join("loop")).unwrap();
        for lost in ["no/such/file", ".", "loop", "file/below"] {
            let lost = directory.path().join(lost);
            for outcome in [check(&lost), write(&lost, b"new")] {
                let said = format!("{:#}", outcome.unwrap_err());
                assert!(said.contains(": cannot be written: "), "{said}");
            }
        }
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(names(directory.path()), ["file", "loop"]);
    }

    #[test]
    fn a_missing_directory_is_named_and_the_hidden_file_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let missing = scratch.path().join("no");
        let lost = missing.join("file");
        for outcome in [check(&lost), write(&lost, b"new")] {
            let wanted = format!(
                "{}: cannot be written: there is no directory {}; make it first",
                lost.display(),
                missing.display()
            );
            assert_eq!(format!("{:#}", outcome.unwrap_err()), wanted);
        }
    }

    /// `/proc` takes no new file of any user, and its error is that of a missing directory.
    #[test]
    fn a_directory_that_takes_no_new_file_is_not_called_missing() {
        let said = format!("{:#}", check(Path::new("/proc/file")).unwrap_err());
        let wanted = "/proc/file: cannot be written: no new file can be made in /proc: No such file or directory (os error 2)";
        assert_eq!(said, wanted);
    }

    #[test]
    fn a_device_stays_a_device() {
        for device in ["/dev/null", "/dev/stderr"] {
            check(Path::new(device)).unwrap();
        }
        write(Path::new("/dev/null"), b"new").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
