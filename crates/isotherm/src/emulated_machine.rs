//! The file by which programs share the bandwidths of an emulated machine.
//!
//! A machine without a name is that of one run: the file is in its session directory. The files of machines with names are in a
//! directory of this user, beside the session directories, and a session directory has another name (hard link) of
//! the file. Each run on a machine holds a shared lock on its file; a run that gets an exclusive one is the only run, and sets the
//! limits. Programs that outlive their run follow the new limits. A file without users stays: it is one page of memory.
//!
//! Another user can make that directory first. It is not used then, and the error says so.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use isotherm_abi::machine;
use isotherm_model::shared_bandwidth::{BytesPerSecond, MachineName, SharedBandwidth};
use isotherm_sys::private;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::getuid;

use crate::session_guard::is_ours;

/// Gives a session directory the file of its machine. Returns that of a machine with a name, which must stay open as long
/// as the run.
///
/// # Errors
/// There is no room, the directory of the machines is another user's, or other runs use the machine with other limits.
pub(crate) fn join(session: &Path, shared: &SharedBandwidth) -> Result<Option<File>> {
    let path = session.join(machine::FILE_NAME);
    let Some(name) = shared.machine() else {
        let made = make(&path).and_then(|file| write(&file, shared));
        made.with_context(|| format!("{}: cannot be written", path.display()))?;
        return Ok(None);
    };
    let parent = session.parent().unwrap_or(Path::new("/"));
    let named = directory(parent)?.join(format!("{name}.machine"));
    let file = open(&named).with_context(|| format!("{}: cannot be used", named.display()))?;
    share(&file, name, shared)?;
    std::fs::hard_link(&named, &path).with_context(|| {
        format!(
            "{}: cannot be linked to {}",
            path.display(),
            named.display()
        )
    })?;
    Ok(Some(file))
}

/// Gives a session directory the file of another one's machine, so that both share its limit.
///
/// # Errors
/// There is no such file, or the two are on different file systems.
pub(crate) fn join_other(session: &Path, other: &Path) -> Result<()> {
    let [path, theirs] = [session, other].map(|directory| directory.join(machine::FILE_NAME));
    std::fs::hard_link(&theirs, &path).with_context(|| {
        format!(
            "{}: cannot be linked to {}",
            path.display(),
            theirs.display()
        )
    })
}

/// This user's directory of machines in `parent`.
fn directory(parent: &Path) -> Result<PathBuf> {
    let path = parent.join(format!("isotherm-machines-{}", getuid().as_raw()));
    match DirBuilder::new().mode(0o700).create(&path) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => {
            return Err(error).with_context(|| format!("{}: cannot be made", path.display()));
        }
        _ => {}
    }
    if !is_ours(&path) {
        bail!(
            "{}: is no directory of yours, so machines with names cannot be shared; leave out the machine's name, or have \
             that file removed by its owner or root",
            path.display()
        );
    }
    // A umask may have removed some of these rights, or an earlier owner of the name added others.
    std::fs::set_permissions(&path, Permissions::from_mode(0o700))
        .with_context(|| format!("{}: its mode cannot be set", path.display()))?;
    Ok(path)
}

fn open(path: &Path) -> std::io::Result<File> {
    match make(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32)
                .open(path)?;
            private::check_file(&file)?;
            Ok(file)
        }
        made => made,
    }
}

fn make(path: &Path) -> std::io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    // A umask may have removed some of these rights.
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

/// Writes all of the file: a store into a mapping without room would kill the program.
fn write(file: &File, shared: &SharedBandwidth) -> std::io::Result<()> {
    let limits = [shared.fast(), shared.slow()];
    let limits = limits.map(|limit| limit.map_or(0, BytesPerSecond::get));
    let mut content = vec![0; machine::FILE_BYTES];
    content[..machine::FIRST_BYTES].copy_from_slice(&machine::first_bytes(limits));
    file.write_all_at(&content, 0)?;
    file.set_len(machine::FILE_BYTES as u64)
}

/// Locks the file for a user with these limits, and writes it where there is no other user.
fn share(file: &File, name: MachineName, shared: &SharedBandwidth) -> Result<()> {
    let problem = |what: &str| format!("the file of machine {name} cannot be {what}");
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => write(file, shared).with_context(|| problem("written"))?,
        Err(Errno::WOULDBLOCK) => {}
        Err(error) => return Err(error).with_context(|| problem("locked")),
    }
    // The kernel releases the exclusive lock before it gives a shared one: another may set the limits in between.
    flock(file, FlockOperation::LockShared).with_context(|| problem("locked"))?;
    let mut first = [0; machine::FIRST_BYTES];
    file.read_exact_at(&mut first, 0)
        .with_context(|| problem("read"))?;
    match limits_in(&first, name) {
        Some(found) if found == *shared => Ok(()),
        Some(found) => bail!(
            "the machine {name} has {found} in a run that has not ended, not {shared}; give the same limits, or another name"
        ),
        None => bail!(
            "the machine {name} is used by another version of Isotherm; give another name, or wait until that run ends"
        ),
    }
}

/// The limits of a machine's file; `None` where it is of another version.
fn limits_in(first: &[u8; machine::FIRST_BYTES], name: MachineName) -> Option<SharedBandwidth> {
    let [fast, slow] = machine::limits_in(first)?.map(BytesPerSecond::new);
    SharedBandwidth::new(fast, slow, Some(name))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;
    use std::path::{Path, PathBuf};

    use isotherm_abi::machine;
    use isotherm_model::shared_bandwidth::{BytesPerSecond, SharedBandwidth};

    /// So many GiB/s of fast and of slow memory, 0 for no limit.
    fn limits(fast: u64, slow: u64, name: Option<&str>) -> SharedBandwidth {
        let name = name.map(|name| name.parse().unwrap());
        let limit = |gib| BytesPerSecond::new(gib << 30);
        SharedBandwidth::new(limit(fast), limit(slow), name).unwrap()
    }

    fn shared(gib: u64, name: Option<&str>) -> SharedBandwidth {
        limits(0, gib, name)
    }

    fn session(parent: &Path, name: &str) -> PathBuf {
        let path = parent.join(name);
        std::fs::create_dir(&path).unwrap();
        path
    }

    fn inode(session: &Path) -> u64 {
        let file = session.join(machine::FILE_NAME).metadata().unwrap();
        assert_eq!(file.mode() & 0o7777, 0o600);
        assert_eq!(file.size(), machine::FILE_BYTES as u64);
        file.ino()
    }

    fn join(session: &Path, shared: &SharedBandwidth) -> Result<Option<File>, String> {
        super::join(session, shared).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn runs_share_a_machine_by_its_name_only() {
        let parent = tempfile::tempdir().unwrap();
        let sessions = ["a", "b", "c", "d"].map(|name| session(parent.path(), name));
        let names = [Some("lab"), Some("lab"), Some("other"), None];
        let _held: Vec<_> = std::iter::zip(&sessions, names)
            .map(|(session, name)| join(session, &shared(5, name)).unwrap())
            .collect();
        let [a, b, c, d] = sessions.each_ref().map(|session| inode(session));
        assert_eq!(a, b);
        assert!(a != c && a != d && c != d);
    }

    #[test]
    fn a_run_joins_the_machine_of_another_that_has_no_name() {
        let parent = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| session(parent.path(), name));
        join(&a, &shared(5, None)).unwrap();
        super::join_other(&b, &a).unwrap();
        assert_eq!(inode(&a), inode(&b));
        let refused = super::join_other(&a, &c).unwrap_err().to_string();
        assert!(refused.contains("cannot be linked to"), "{refused}");
    }

    #[test]
    fn the_limit_is_that_of_the_first_user_until_the_last_one_ends() {
        let parent = tempfile::tempdir().unwrap();
        let [a, b, c] = ["a", "b", "c"].map(|name| session(parent.path(), name));
        let first = join(&a, &shared(5, Some("lab"))).unwrap();
        let refused = join(&b, &shared(6, Some("lab"))).unwrap_err();
        assert!(
            refused
                .contains("has 5 GiB/s of slow memory in a run that has not ended, not 6 GiB/s of"),
            "{refused}"
        );
        let refused = join(&b, &limits(9, 5, Some("lab"))).unwrap_err();
        assert!(
            refused.contains("not 9 GiB/s of fast memory and 5 GiB/s"),
            "{refused}"
        );
        drop(first);
        join(&c, &shared(6, Some("lab"))).unwrap();
        assert_eq!(inode(&a), inode(&c));
    }

    #[test]
    fn a_link_in_the_place_of_the_directory_is_refused() {
        let (parent, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name = format!("isotherm-machines-{}", rustix::process::getuid().as_raw());
        std::os::unix::fs::symlink(elsewhere.path(), parent.path().join(name)).unwrap();
        let session = session(parent.path(), "a");
        let refused = join(&session, &shared(5, Some("lab"))).unwrap_err();
        assert!(refused.contains("is no directory of yours"), "{refused}");
        assert_eq!(elsewhere.path().read_dir().unwrap().count(), 0);
    }
}
