//! [`open_input`] and [`read_input`] open and read a file that another user may have prepared: a regular file up to a limit of bytes, while
//! pipes, sockets and devices are refused without a wait. [`followed_output`] finds the file that an output replaces, and refuses a link as
//! the last component that belongs to a user other than the caller and root; an open [`Directory`] can be locked and flushed.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// Links that the kernel follows in one path (`MAXSYMLINKS`).
const LINKS_AT_MOST: usize = 40;

/// Opens a regular file of at most `limit` bytes for reading. The type is checked before, because opening a
/// device may act on it, and again on the descriptor, because the file may have been exchanged in between.
///
/// # Errors
/// It cannot be opened, is larger, or is not a regular file; the error states its type and a remedy.
pub fn open_input(path: &Path, limit: u64) -> io::Result<File> {
    check_regular(&fs::metadata(path)?)?;
    let file = OpenOptions::new()
        .read(true)
        // A FIFO without a writer would hold the open itself.
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)?;
    let metadata = file.metadata()?;
    check_regular(&metadata)?;
    match metadata.len() > limit {
        true => Err(too_large(limit)),
        false => Ok(file),
    }
}

/// Reads a regular file of at most `limit` bytes.
///
/// # Errors
/// As [`open_input`]; it is larger.
pub fn read_input(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte beyond the limit: a file that grows during the read is refused too.
    open_input(path, limit)?
        .take(limit.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(too_large(limit));
    }
    Ok(bytes)
}

/// Reads a regular text file of at most `limit` bytes.
///
/// # Errors
/// As [`read_input`]; [`ErrorKind::InvalidData`] where it is not UTF-8.
pub fn read_input_text(path: &Path, limit: u64) -> io::Result<String> {
    String::from_utf8(read_input(path, limit)?)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

fn too_large(limit: u64) -> io::Error {
    let what = format!("it is larger than {limit} bytes, the most that is read here");
    io::Error::new(ErrorKind::FileTooLarge, what)
}

fn check_regular(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    let what = match kind {
        _ if kind.is_file() => return Ok(()),
        _ if kind.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        _ if kind.is_fifo() => "a pipe (FIFO)",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    };
    let text = format!("it is {what}, not a regular file; copy its content into a file first");
    Err(io::Error::new(ErrorKind::InvalidInput, text))
}

/// The target of a path, so that an output replaces the file and not the link to it; the path itself where it
/// does not exist. A link as the last component must belong to the caller or to root: a link that another user
/// planted would choose which of the caller's files is overwritten.
///
/// # Errors
/// A link belongs to another user, or the path cannot be read.
pub fn followed_output(path: &Path) -> io::Result<PathBuf> {
    // Without a closing slash, because a link before it would be followed without a check.
    let path: PathBuf = path.components().collect();
    let mut link = path.clone();
    for _ in 0..LINKS_AT_MOST {
        match fs::symlink_metadata(&link) {
            Ok(metadata) if metadata.is_symlink() => check_owner(&metadata)?,
            _ => break,
        }
        // An absolute target replaces the whole path.
        link = link
            .parent()
            .unwrap_or(Path::new(""))
            .join(fs::read_link(&link)?);
    }
    match fs::canonicalize(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(path),
        followed => followed,
    }
}

fn check_owner(link: &Metadata) -> io::Result<()> {
    let owner = link.uid();
    if owner == 0 || owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let text = format!(
        "it is a link that belongs to another user (uid {owner}) and is not followed; name the file that it \
         leads to, or another path"
    );
    Err(io::Error::new(ErrorKind::PermissionDenied, text))
}

/// An open directory. Its entries are reached through the descriptor: another user who replaces the name of the
/// directory by a link cannot redirect a later write.
#[derive(Debug)]
pub struct Directory(File);

impl Directory {
    /// Opens the directory with this name; a link is not followed.
    ///
    /// # Errors
    /// It is not a directory, or cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(path)?;
        Ok(Self(opened))
    }

    /// A path to the directory that is valid as long as this value lives, even if its name changes.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }

    /// Locks it (`flock`) against every other lock, without waiting; false where another open directory has one. The lock lasts as long
    /// as this value, ends with the process however that ends, and stays with a directory that is renamed. True where the file system
    /// has no locks: none is held then.
    #[must_use]
    pub fn lock(&self) -> bool {
        self.locked(FlockOperation::NonBlockingLockExclusive)
    }

    /// As [`Self::lock`], but other shared locks are allowed.
    #[must_use]
    pub fn lock_shared(&self) -> bool {
        self.locked(FlockOperation::NonBlockingLockShared)
    }

    fn locked(&self, operation: FlockOperation) -> bool {
        flock(&self.0, operation) != Err(Errno::WOULDBLOCK)
    }

    /// True where the path leads to this directory, and not to another that took its name since.
    #[must_use]
    pub fn is_at(&self, path: &Path) -> bool {
        let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
        let own = self.0.metadata().map(identity).ok();
        own.is_some() && fs::metadata(path).map(identity).ok() == own
    }

    /// Flushes the names of its entries to the device.
    ///
    /// # Errors
    /// The kernel refused.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sync_all()
    }
}

impl Drop for Directory {
    /// Unlocks it: a child process has a copy of the descriptor from its fork to its exec, and would keep the lock for so long.
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::path::Path;

    use super::{Directory, followed_output, open_input, read_input};

    #[test]
    fn only_regular_files_are_read_and_nothing_else_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, socket) = (folder.path().join("pipe"), folder.path().join("socket"));
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        let _listening = UnixListener::bind(&socket).unwrap();
        let refused = [
            (pipe.as_path(), "a pipe (FIFO)"),
            (socket.as_path(), "a socket"),
            (Path::new("/dev/zero"), "a device"),
        ];
        for (path, what) in refused {
            let error = open_input(path, u64::MAX).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("copy"), "{error}");
        }
        let error = open_input(folder.path(), u64::MAX).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
    }

    #[test]
    fn a_file_is_read_up_to_its_limit_and_refused_beyond_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read_input(&file, 5).unwrap(), b"12345");
        let error = read_input(&file, 4).unwrap_err().to_string();
        assert!(error.contains("larger than 4 bytes"), "{error}");
    }

    #[test]
    fn own_links_are_followed_as_outputs_and_no_link_is_as_an_open_directory() {
        let folder = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(folder.path()).unwrap();
        let (file, link) = (root.join("file"), root.join("link"));
        fs::write(&file, "").unwrap();
        symlink("file", &link).unwrap();
        assert_eq!(followed_output(&link).unwrap(), file);
        assert_eq!(
            followed_output(&root.join("new")).unwrap(),
            root.join("new")
        );
        symlink("loop", root.join("loop")).unwrap();
        assert!(followed_output(&root.join("loop")).is_err());
        fs::create_dir(root.join("directory")).unwrap();
        symlink("directory", root.join("other")).unwrap();
        assert!(Directory::open(&root.join("directory")).is_ok());
        assert!(Directory::open(&root.join("other")).is_err());
    }

    #[test]
    fn an_open_directory_stays_the_same_when_its_name_becomes_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (name, moved) = (folder.path().join("name"), folder.path().join("moved"));
        let other = folder.path().join("other");
        fs::create_dir(&name).unwrap();
        fs::create_dir(&other).unwrap();
        let directory = Directory::open(&name).unwrap();
        fs::rename(&name, &moved).unwrap();
        symlink("other", &name).unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        assert!(moved.join("file").exists() && !other.join("file").exists());
        assert!(directory.is_at(&moved) && !directory.is_at(&name));
        fs::remove_dir_all(&moved).unwrap();
        assert!(!directory.is_at(&moved));
    }

    #[test]
    fn a_locked_directory_cannot_be_locked_again_and_shared_locks_exclude_only_others() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Directory::open(folder.path()).unwrap();
        let first = open();
        assert!(first.lock());
        assert!(!open().lock() && !open().lock_shared());
        // As a child process has before its exec.
        let _copy = first.0.try_clone().unwrap();
        drop(first);
        let shared = open();
        assert!(shared.lock_shared());
        assert!(open().lock_shared() && !open().lock());
    }
}
