//! Files that are written at once: at every moment the name holds the whole old file or the whole
//! new one, and where nothing was there, nothing or the whole new one.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Writes a file: under a hidden name beside it, flushed to the device, then renamed. A link is
/// followed, and a file that is there gives the new one its permissions. What is no regular file, a
/// pipe or `/dev/stdout`, is written to as it is; so is a file whose directory takes no new one.
///
/// # Errors
/// It cannot be written; what was there is left as it was.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<()> {
    whole(path, content).with_context(|| format!("{}: cannot be written", path.display()))
}

/// Tries whether a file can be made there, and leaves nothing behind: for results that take long,
/// before they are made.
///
/// # Errors
/// It cannot.
pub(crate) fn check(path: &Path) -> Result<()> {
    tried(path).with_context(|| format!("{}: cannot be written", path.display()))
}

fn whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let old = fs::metadata(path).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return in_place(path, content);
    }
    let target = followed(path)?;
    let hidden = hidden(&target)?;
    let written = beside(&hidden, content, old.as_ref());
    let written = written.and_then(|()| fs::rename(&hidden, &target));
    let Err(error) = written else { return Ok(()) };
    // Where it could not even be made there is nothing to remove.
    let _ = fs::remove_file(&hidden);
    match old.is_some() && takes_no_new_file(&error) {
        true => in_place(&target, content),
        false => Err(error),
    }
}

fn beside(hidden: &Path, content: &[u8], old: Option<&Metadata>) -> io::Result<()> {
    let mut file = File::create(hidden)?;
    if let Some(old) = old {
        file.set_permissions(old.permissions())?;
    }
    file.write_all(content)?;
    file.sync_all()
}

fn in_place(path: &Path, content: &[u8]) -> io::Result<()> {
    File::create(path)?.write_all(content)
}

fn tried(path: &Path) -> io::Result<()> {
    let old = fs::metadata(path).ok();
    match old {
        Some(old) if old.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Some(old) if !old.is_file() => Ok(()),
        old => {
            let hidden = hidden(&followed(path)?)?;
            let made = File::create(&hidden);
            let _ = fs::remove_file(&hidden);
            match made {
                Err(error) if old.is_some() && takes_no_new_file(&error) => {
                    File::options().append(true).open(path).map(drop)
                }
                made => made.map(drop),
            }
        }
    }
}

/// True for the errors of a directory in which a file may be written but none be made or exchanged,
/// a single file that is mounted into a container for one.
fn takes_no_new_file(error: &io::Error) -> bool {
    use ErrorKind::{PermissionDenied, ReadOnlyFilesystem, ResourceBusy};
    matches!(
        error.kind(),
        PermissionDenied | ReadOnlyFilesystem | ResourceBusy
    )
}

/// What a link leads to, so that the file is replaced and not the link.
fn followed(path: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(path.to_owned()),
        followed => followed,
    }
}

/// The hidden name beside a file; with the process id, for two that write the same one.
fn hidden(path: &Path) -> io::Result<PathBuf> {
    let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.tmp", std::process::id()));
    Ok(path.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use super::{check, hidden, write};

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
        // A directory in the place of the hidden file is in the way of every user.
        fs::create_dir(hidden(&file).unwrap()).unwrap();
        for outcome in [check(&file), write(&file, b"new")] {
            let said = format!("{:#}", outcome.unwrap_err());
            assert!(said.contains("file: cannot be written: "), "{said}");
        }
        assert_eq!(fs::read(&file).unwrap(), b"old");
        for lost in ["no/such/file", "."] {
            let lost = directory.path().join(lost);
            assert!(check(&lost).is_err() && write(&lost, b"new").is_err());
        }
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
