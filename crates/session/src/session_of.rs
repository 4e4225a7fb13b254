//! [`session_of`] finds the session file of a running process of the same user: the process has the file mapped.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use isotherm_sys::memory_map::mapped_ranges;
use rustix::process::geteuid;

use crate::name::parse_name;

/// The session file of a process of the same user; None where it has none, or where the directory of its run was removed.
/// A forked child has its parent's file mapped too, so the name must be the process's own. The file is checked when it is
/// opened.
#[must_use]
pub fn session_of(proc_root: &Path, pid: u32) -> Option<PathBuf> {
    let process = proc_root.join(pid.to_string());
    let owner = fs::metadata(&process).ok()?.uid();
    (owner == geteuid().as_raw()).then_some(())?;
    let maps = fs::read_to_string(process.join("maps")).ok()?;
    mapped_session(&maps, pid)
}

/// The last shared file in the text of `maps` that has the name of a session file of this process.
fn mapped_session(maps: &str, pid: u32) -> Option<PathBuf> {
    let shared = mapped_ranges(maps.as_bytes()).filter(|it| it.is_shared && it.is_writable);
    let paths = shared.filter_map(|mapping| {
        let path = Path::new(OsStr::from_bytes(mapping.name));
        let process = parse_name(path.file_name()?.to_str()?)?;
        (process.pid == pid).then(|| path.to_owned())
    });
    paths.last()
}

#[cfg(test)]
mod tests {
    use super::{mapped_session, session_of};
    use std::path::Path;

    #[test]
    fn a_process_has_its_own_file_and_not_that_of_its_parent() {
        let maps = "\
7f00-7f10 rw-p 00000000 00:00 0 [heap]
7f10-7f20 r--s 00000000 00:1a 77 /dev/shm/isotherm-a/7.0
7f20-7f30 rw-s 00000000 00:1a 77 /dev/shm/isotherm-a/6.3
7f30-7f40 rw-s 00000000 00:1a 78 /dev/shm/isotherm-a/7.2
7f40-7f50 rw-s 00000000 00:1a 79 /dev/shm/isotherm-a/8.0 (deleted)
7f50-7f60 rw-s 00000000 00:1a 80 /memfd:x (deleted)
nonsense";
        let of = |pid| mapped_session(maps, pid);
        assert_eq!(of(7).as_deref(), Some(Path::new("/dev/shm/isotherm-a/7.2")));
        assert_eq!(of(6).as_deref(), Some(Path::new("/dev/shm/isotherm-a/6.3")));
        assert_eq!(of(8), None, "the run is over");
        assert_eq!(of(9), None);
    }

    #[test]
    fn a_process_without_the_runtime_has_none() {
        assert_eq!(session_of(Path::new("/proc"), std::process::id()), None);
        assert_eq!(session_of(Path::new("/proc"), u32::MAX), None);
    }
}
