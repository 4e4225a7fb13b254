//! A [`FileRoot`] turns a path in another process's `/proc/PID/maps` into one that this process can open. It holds the root directory of a
//! process in another mount namespace, such as a container's, open, so that the files are found also after that process has ended; where
//! the namespace is the same, or the root may not be read, paths stay as they are.

use std::borrow::Cow;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags, open};

/// The root of the paths that `/proc/PID/maps` has. It is held, so that its files can be read after the process has ended.
#[derive(Clone, Debug, Default)]
pub struct FileRoot(Option<Arc<HeldRoot>>);

/// The root of another mount namespace.
#[derive(Debug)]
struct HeldRoot {
    directory: OwnedFd,
    /// Without it the file systems that are mounted below the root would leave with the last process.
    _namespace: File,
}

impl FileRoot {
    /// The root of a process, by its number below this directory (`/proc`); this process's own root where both are in one mount namespace,
    /// and where the other root may not be read.
    #[must_use]
    pub fn of_process(proc_root: &Path, pid: u32) -> Self {
        let namespace = |process: &str| {
            let file = fs::metadata(proc_root.join(process).join("ns/mnt")).ok()?;
            Some((file.dev(), file.ino()))
        };
        let process = pid.to_string();
        match (namespace("self"), namespace(&process)) {
            (Some(own), Some(other)) if own != other => {
                Self(HeldRoot::open(&proc_root.join(process)).map(Arc::new))
            }
            _ => Self(None),
        }
    }

    /// The path by which this process finds the file that has an absolute path below this root. Symbolic links in it lead to this
    /// process's files; the kernel's paths of mappings have none.
    #[must_use]
    pub fn path<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        match (&self.0, path.strip_prefix("/")) {
            (Some(root), Ok(below)) => {
                let root = format!("/proc/self/fd/{}", root.directory.as_raw_fd());
                Path::new(&root).join(below).into()
            }
            _ => path.into(),
        }
    }
}

impl HeldRoot {
    /// The root of the process with this directory in `/proc`.
    fn open(process: &Path) -> Option<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Some(Self {
            directory: open(process.join("root"), flags, Mode::empty()).ok()?,
            _namespace: File::open(process.join("ns/mnt")).ok()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::FileRoot;

    #[test]
    fn a_process_of_the_same_namespace_has_the_same_paths() {
        let root = FileRoot::of_process(Path::new("/proc"), std::process::id());
        let path = Path::new("/usr/lib/libc.so.6");
        assert_eq!(root.path(path), path);
        assert_eq!(FileRoot::default().path(path), path);
        let gone = FileRoot::of_process(Path::new("/proc"), u32::MAX);
        assert_eq!(gone.path(path), path);
    }

    #[test]
    fn a_file_of_another_namespace_is_read_after_its_process_has_ended() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().display();
        let script =
            format!("mount -t tmpfs none {place} && echo inside > {place}/file && exec sleep 60");
        let mut command = Command::new("unshare");
        let child = command.args(["--mount", "sh", "-c", &script]).spawn();
        let mut child = child.expect("util-linux");
        let command = format!("/proc/{}/comm", child.id());
        let is_ready = || std::fs::read_to_string(&command).is_ok_and(|name| name == "sleep\n");
        while !is_ready() {
            if child.try_wait().expect("a child").is_some() {
                return isotherm_skip::skip!("a mount namespace needs root");
            }
            std::thread::yield_now();
        }
        let root = FileRoot::of_process(Path::new("/proc"), child.id());
        child.kill().expect("runs");
        child.wait().expect("a child");
        let file = directory.path().join("file");
        assert!(!file.exists(), "it is in the other namespace alone");
        let text = std::fs::read_to_string(root.path(&file));
        assert_eq!(text.ok().as_deref(), Some("inside\n"));
    }
}
