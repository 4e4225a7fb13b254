//! The memory that a process's control groups have left: a page that another process brings back is charged to them, and where one has
//! reached its limit the kernel ends a program of it.
//!
//! ```text
//! /proc/7/cgroup                 4:memory:/a/b   (version 1)         0::/a/b   (version 2)
//! limits, from the group up      memory.limit_in_bytes               memory.high, memory.max
//! use                            memory.usage_in_bytes               memory.current
//! ```

use std::path::{Path, PathBuf};

use isotherm_model::units::Bytes;

/// The files of a version in a group's directory.
struct Files {
    mounts: &'static [&'static str],
    limits: &'static [&'static str],
    usage: &'static str,
}

const FIRST: Files = Files {
    mounts: &["sys/fs/cgroup/memory"],
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
};
const SECOND: Files = Files {
    mounts: &["sys/fs/cgroup", "sys/fs/cgroup/unified"],
    limits: &["memory.high", "memory.max"],
    usage: "memory.current",
};

/// Bytes that may be added to the memory of a process of the machine under `root` (`/`) before one of its groups reaches a limit.
pub(super) fn group_room(root: &Path, process: u32) -> Bytes {
    let groups = root.join(format!("proc/{process}/cgroup"));
    let groups = std::fs::read_to_string(groups).unwrap_or_default();
    let room = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let files = match controllers {
            "" => SECOND,
            named if named.split(',').any(|name| name == "memory") => FIRST,
            _ => return None,
        };
        files.room(root, Path::new(path.trim_start_matches('/')))
    });
    Bytes(room.min().unwrap_or(u64::MAX))
}

impl Files {
    /// The least room of the group and those above it; `None` without a limit.
    fn room(&self, root: &Path, group: &Path) -> Option<u64> {
        let in_groups = |mount: &&str| {
            let mount = root.join(mount);
            group.ancestors().map(move |group| mount.join(group))
        };
        let directories = self.mounts.iter().flat_map(in_groups);
        directories.filter_map(|group| self.room_in(&group)).min()
    }

    fn room_in(&self, group: &Path) -> Option<u64> {
        let limits = self.limits.iter();
        let limit = limits.filter_map(|name| number(group.join(name))).min()?;
        let usage = number(group.join(self.usage))?;
        Some(limit.saturating_sub(usage))
    }
}

/// The number in a file; `None` for `max`.
fn number(path: PathBuf) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use isotherm_model::units::Bytes;

    use super::group_room;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    #[test]
    fn the_group_or_one_above_it_limits_in_either_version() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        assert_eq!(group_room(root, 7), Bytes(u64::MAX));
        write(
            root,
            "proc/7/cgroup",
            "4:cpu,memory:/a/b\n3:cpuset:/x\n0::/\n",
        );
        write(root, "proc/8/cgroup", "0::/c\n");
        for (group, limit) in [("a/b", "9223372036854771712\n"), ("a", "1000\n")] {
            let group = format!("sys/fs/cgroup/memory/{group}");
            write(root, &format!("{group}/memory.limit_in_bytes"), limit);
            write(root, &format!("{group}/memory.usage_in_bytes"), "900\n");
        }
        write(root, "sys/fs/cgroup/c/memory.max", "max\n");
        write(root, "sys/fs/cgroup/c/memory.high", "700\n");
        write(root, "sys/fs/cgroup/c/memory.current", "720\n");
        assert_eq!(group_room(root, 7), Bytes(100));
        assert_eq!(group_room(root, 8), Bytes(0), "beyond its limit");
        write(root, "sys/fs/cgroup/c/memory.high", "max\n");
        assert_eq!(group_room(root, 8), Bytes(u64::MAX));
    }
}
