//! `join` gives a run the files by which processes share the limits of an emulated machine: the bandwidths and, where the machine has a
//! name, the capacity of the fast tier. They are new, or those of the other runs on the machine of that name. `join_other` shares the
//! bandwidths of another session. `make_capacity` makes the file of the capacities of memory nodes in one run.
//!
//! A machine without a name belongs to one run: the file of the bandwidths is in its session directory, and the capacity counts for each
//! process. The files of machines with names are in a directory of this user, beside the session directories, and a session directory has
//! another name (hard link) of each. Each run on a machine holds a shared lock on each file; a run that gets an exclusive one is the only
//! run, and sets the limits. Programs that outlive their run follow the new limits, and keep what they have of the capacity. Files without
//! users stay: they are 34 pages of memory. A run whose fast tier has no limit (all data fast) has no part in the capacity.
//!
//! Another user can make that directory first. It is not used then, and the error says so.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use isotherm_abi::{capacity, machine};
use isotherm_model::shared_bandwidth::{BytesPerSecond, MachineName, SharedBandwidth};
use isotherm_model::units::Bytes;
use isotherm_sys::private;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::getuid;

use crate::session_guard::is_ours;

/// Gives a session directory the files of its machine, whose fast tier has this capacity, or none if it has no limit. Returns the files of
/// a machine with a name, which must stay open as long as the run.
///
/// # Errors
/// There is no room, the directory of the machines is another user's, or other runs use the machine with other limits.
pub(crate) fn join(
    session: &Path,
    shared: &SharedBandwidth,
    fast: Option<Bytes>,
) -> Result<Vec<File>> {
    let path = session.join(machine::FILE_NAME);
    let Some(name) = shared.machine() else {
        let made = make(&path).and_then(|file| write(&file, shared));
        made.with_context(|| format!("{}: cannot be written", path.display()))?;
        return Ok(Vec::new());
    };
    let machines = directory(session.parent().unwrap_or(Path::new("/")))?;
    let named = machines.join(format!("{name}.machine"));
    let mut files = vec![joined(&named, &path, |file| share(file, name, shared))?];
    if let Some(fast) = fast {
        let named = machines.join(format!("{name}.capacity"));
        let path = session.join(capacity::FILE_NAME);
        let file = joined(&named, &path, |file| share_capacity(file, name, fast))?;
        files.push(file);
    }
    Ok(files)
}

/// Makes the file in which the processes of a run count what they have of each tier, in its full size.
///
/// # Errors
/// There is no room.
pub(crate) fn make_capacity(session: &Path) -> Result<()> {
    let path = session.join(capacity::FILE_NAME);
    let write = |file: File| write_whole(&file, &capacity::first_bytes(), capacity::FILE_BYTES);
    let made = make(&path).and_then(write);
    made.with_context(|| format!("{}: cannot be written", path.display()))
}

/// Opens or makes a file of a machine, shares it, and gives it another name in the session directory.
fn joined(named: &Path, path: &Path, share: impl FnOnce(&File) -> Result<()>) -> Result<File> {
    let file = open(named).with_context(|| format!("{}: cannot be used", named.display()))?;
    share(&file)?;
    link(named, path)?;
    Ok(file)
}

fn link(file: &Path, path: &Path) -> Result<()> {
    std::fs::hard_link(file, path)
        .with_context(|| format!("{}: cannot be linked to {}", path.display(), file.display()))
}

/// Gives a session directory the file of another one's machine, so that both share its limit.
///
/// # Errors
/// There is no such file, or the two are on different file systems.
pub(crate) fn join_other(session: &Path, other: &Path) -> Result<()> {
    let [path, theirs] = [session, other].map(|directory| directory.join(machine::FILE_NAME));
    link(&theirs, &path)
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

/// Makes a file that only this user can read and write.
///
/// # Errors
/// There is one already, or no room for it.
pub(crate) fn make(path: &Path) -> std::io::Result<File> {
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

/// Writes all of a file of this size that begins with these bytes: a store into a mapping without room would kill the program.
fn write_whole(file: &File, first: &[u8], bytes: usize) -> std::io::Result<()> {
    let mut content = vec![0; bytes];
    content[..first.len()].copy_from_slice(first);
    file.write_all_at(&content, 0)?;
    file.set_len(bytes as u64)
}

fn write(file: &File, shared: &SharedBandwidth) -> std::io::Result<()> {
    let limits = [shared.fast(), shared.slow()];
    let limits = limits.map(|limit| limit.map_or(0, BytesPerSecond::get));
    write_whole(file, &machine::first_bytes(limits), machine::FILE_BYTES)
}

/// Locks the file for a run, writes it where no other run has it locked, and reads its first bytes.
fn first_bytes<const BYTES: usize>(
    file: &File,
    name: MachineName,
    write: impl FnOnce() -> std::io::Result<()>,
) -> Result<[u8; BYTES]> {
    let problem = |what: &str| format!("the file of machine {name} cannot be {what}");
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => write().with_context(|| problem("written"))?,
        Err(Errno::WOULDBLOCK) => {}
        Err(error) => return Err(error).with_context(|| problem("locked")),
    }
    // The kernel releases the exclusive lock before it gives a shared one: another may set the limits in between.
    flock(file, FlockOperation::LockShared).with_context(|| problem("locked"))?;
    let mut first = [0; BYTES];
    file.read_exact_at(&mut first, 0)
        .with_context(|| problem("read"))?;
    Ok(first)
}

fn share(file: &File, name: MachineName, shared: &SharedBandwidth) -> Result<()> {
    let first = first_bytes(file, name, || write(file, shared))?;
    match limits_in(&first, name) {
        Some(found) if (found.fast(), found.slow()) == (shared.fast(), shared.slow()) => Ok(()),
        Some(found) => bail!(
            "the machine {name} has {found} in a run that has not ended, not {shared}; give the same limits, or another name"
        ),
        None => bail!(other_version(name)),
    }
}

fn share_capacity(file: &File, name: MachineName, fast: Bytes) -> Result<()> {
    let first = first_bytes(file, name, || write_capacity(file, fast))?;
    match capacity::fast_limit_in(&first).map(Bytes) {
        Some(found) if found == fast => Ok(()),
        Some(found) => bail!(
            "the machine {name} has {found} of fast memory in a run that has not ended, not {fast}; give the same --fast, or another name"
        ),
        None => bail!(other_version(name)),
    }
}

fn other_version(name: MachineName) -> String {
    format!(
        "the machine {name} is used by another version of Isotherm; give another name, or wait until that run ends"
    )
}

/// Sets the limit. All of the file is written, because a store into a mapping without room would kill the program; where it is of this
/// version, programs that outlived their run keep their shares.
fn write_capacity(file: &File, fast: Bytes) -> std::io::Result<()> {
    let bytes = capacity::first_bytes();
    let mut first = [0; capacity::FIRST_BYTES];
    let is_whole = file.metadata()?.len() == capacity::FILE_BYTES as u64;
    if !is_whole || file.read_exact_at(&mut first, 0).is_err() || !first.starts_with(&bytes) {
        write_whole(file, &bytes, capacity::FILE_BYTES)?;
    }
    let at = capacity::FAST_LIMIT_OFFSET as u64;
    file.write_all_at(&fast.0.to_ne_bytes(), at)
}

/// The limits of a machine's file; `None` where it is of another version.
fn limits_in(first: &[u8; machine::FIRST_BYTES], name: MachineName) -> Option<SharedBandwidth> {
    let [fast, slow] = machine::limits_in(first)?.map(BytesPerSecond::new);
    SharedBandwidth::new(fast, slow, Some(name))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::{FileExt, MetadataExt};
    use std::path::{Path, PathBuf};

    use isotherm_abi::{capacity, machine};
    use isotherm_model::shared_bandwidth::{BytesPerSecond, SharedBandwidth};
    use isotherm_model::units::Bytes;

    /// Limits of fast and of slow memory in GiB/s, 0 for no limit.
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
        inode_of(session, machine::FILE_NAME, machine::FILE_BYTES)
    }

    fn inode_of(session: &Path, name: &str, bytes: usize) -> u64 {
        let file = session.join(name).metadata().unwrap();
        assert_eq!(file.mode() & 0o7777, 0o600);
        assert_eq!(file.size(), bytes as u64);
        file.ino()
    }

    fn join(session: &Path, shared: &SharedBandwidth) -> Result<Vec<File>, String> {
        join_with(session, shared, None)
    }

    fn join_with(
        session: &Path,
        shared: &SharedBandwidth,
        fast: Option<u64>,
    ) -> Result<Vec<File>, String> {
        let joined = super::join(session, shared, fast.map(Bytes));
        joined.map_err(|error| format!("{error:#}"))
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
    fn runs_on_a_machine_share_its_fast_tier_and_its_programs_keep_what_they_have() {
        let parent = tempfile::tempdir().unwrap();
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|name| session(parent.path(), name));
        let lab = shared(5, Some("lab"));
        let inode = |session| inode_of(session, capacity::FILE_NAME, capacity::FILE_BYTES);
        let first = join_with(&a, &lab, Some(4 << 20)).unwrap();
        assert_eq!(first.len(), 2);
        let refused = join_with(&b, &lab, Some(8 << 20)).unwrap_err();
        assert!(
            refused.contains("has 4 MiB of fast memory in a run that has not ended, not 8 MiB"),
            "{refused}"
        );
        join_with(&c, &lab, Some(4 << 20)).unwrap();
        assert_eq!(inode(&a), inode(&c));
        // A program that outlives its run, and a run with another limit.
        let file = File::options()
            .write(true)
            .open(a.join(capacity::FILE_NAME));
        let file = file.unwrap();
        file.write_all_at(&[7; 8], capacity::SLOTS_OFFSET as u64)
            .unwrap();
        drop(first);
        join_with(&d, &lab, Some(8 << 20)).unwrap();
        let content = std::fs::read(a.join(capacity::FILE_NAME)).unwrap();
        assert_eq!(content[capacity::SLOTS_OFFSET..][..8], [7; 8]);
        let first = content.first_chunk().unwrap();
        assert_eq!(capacity::fast_limit_in(first), Some(8 << 20));
    }

    #[test]
    fn a_fast_tier_without_a_limit_and_a_machine_without_a_name_share_no_capacity() {
        let parent = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|name| session(parent.path(), name));
        join_with(&a, &shared(5, Some("lab")), None).unwrap();
        join_with(&b, &shared(5, None), Some(4 << 20)).unwrap();
        for session in [a, b] {
            assert!(!session.join(capacity::FILE_NAME).exists());
        }
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
