//! Finds the control groups of a process, of version 1 and 2, with their directories for any controller, and reads the limits and the use
//! of memory from their files. Page-out, the detection of tiers and the daemon's choice of processes use it.
//!
//! ```text
//! /proc/7/cgroup                 4:memory:/a/b   (version 1)         0::/a/b   (version 2)
//! limits, from the group up      memory.limit_in_bytes               memory.high, memory.max
//! use                            memory.usage_in_bytes               memory.current
//! cached files                   memory.stat: total_inactive_file,   memory.stat: inactive_file,
//!                                             total_active_file                   active_file
//! ```
//!
//! Kernel documents: `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/memory.rst` of the kernel.

use std::path::{Path, PathBuf};

/// Where version 2 is mounted; a controller of version 1 has a directory of its name in the first one.
const MOUNTS: [&str; 2] = ["sys/fs/cgroup", "sys/fs/cgroup/unified"];

/// The files of a version in a group's directory.
struct Files {
    limits: &'static [&'static str],
    usage: &'static str,
    files: [&'static str; 2],
}

const FIRST: Files = Files {
    limits: &["memory.limit_in_bytes"],
    usage: "memory.usage_in_bytes",
    files: ["total_inactive_file", "total_active_file"],
};
const SECOND: Files = Files {
    limits: &["memory.high", "memory.max"],
    usage: "memory.current",
    files: ["inactive_file", "active_file"],
};

/// Version 1 writes the largest number, rounded down to a page of any size, for "no limit"; version 2 writes `max`.
pub const UNLIMITED: u64 = i64::MAX as u64 - (1 << 20);

/// A control group with a limit on the memory of all its processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryGroup {
    /// Its path in the hierarchy: `/system.slice/app.service`.
    pub name: String,
    /// The directory of its files.
    pub directory: PathBuf,
    /// The least of its limits, in bytes.
    pub limit: u64,
    /// The memory that it has, in bytes.
    pub usage: u64,
    files: [&'static str; 2],
}

impl MemoryGroup {
    /// `None` without a limit.
    fn read(group: GroupDirectory) -> Option<Self> {
        let files = if group.is_first { FIRST } else { SECOND };
        let in_file = |name: &str| number(group.path.join(name));
        let limits = files.limits.iter();
        let limit = limits.filter_map(|name| in_file(name)).min()?;
        let usage = in_file(files.usage)?;
        (limit < UNLIMITED).then_some(Self {
            name: group.name,
            directory: group.path,
            limit,
            usage,
            files: files.files,
        })
    }

    /// Bytes of cached files, which the kernel can drop without swap.
    #[must_use]
    pub fn cached_files(&self) -> u64 {
        let text = std::fs::read_to_string(self.directory.join("memory.stat")).unwrap_or_default();
        let bytes = text.lines().filter_map(|line| {
            let (name, bytes) = line.split_once(' ')?;
            self.files
                .contains(&name)
                .then(|| bytes.trim().parse().ok())?
        });
        bytes.fold(0, u64::saturating_add)
    }
}

/// The lines of `/proc/PID/cgroup` of a process of the machine under `root` (`/`); empty where it has ended.
#[must_use]
pub fn lines_of(root: &Path, process: u32) -> String {
    let file = root.join(format!("proc/{process}/cgroup"));
    std::fs::read_to_string(file).unwrap_or_default()
}

/// The group of version 2 of a process with these lines, as `/system.slice/app.service`; empty where there is none.
#[must_use]
pub fn unified_group(lines: &str) -> &str {
    let group = lines.lines().find_map(|line| line.strip_prefix("0::"));
    group.unwrap_or_default()
}

/// The directory of a process's group in the hierarchy that has the memory controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryHierarchy {
    /// The directory of the group.
    pub directory: PathBuf,
    /// Its mount.
    pub mount: PathBuf,
    /// True of version 1.
    pub is_first: bool,
}

/// The group by whose files the memory of a process with these lines is controlled; `None` where no hierarchy is mounted that does so.
#[must_use]
pub fn memory_hierarchy(root: &Path, lines: &str) -> Option<MemoryHierarchy> {
    let mut second = None;
    for (controllers, group) in memberships(lines) {
        if group.split('/').any(|name| name == "..") {
            return None;
        }
        let at = |mount: &str, is_first| MemoryHierarchy {
            directory: root.join(mount).join(group),
            mount: root.join(mount),
            is_first,
        };
        if controllers.split(',').any(|name| name == "memory") {
            return Some(at("sys/fs/cgroup/memory", true));
        }
        if controllers.is_empty() {
            let mut mounts = MOUNTS.iter().map(|mount| at(mount, false));
            second = mounts.find(|found| {
                let controllers = found.mount.join("cgroup.controllers");
                let controllers = std::fs::read_to_string(controllers).unwrap_or_default();
                controllers.split_whitespace().any(|name| name == "memory")
            });
        }
    }
    second
}

/// The directory of a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDirectory {
    /// Its path.
    pub path: PathBuf,
    /// The path of the group in the hierarchy: `/system.slice/app.service`.
    pub name: String,
    /// True of version 1.
    pub is_first: bool,
}

/// The directories in which a controller may have files for processes with these lines: the directories of their group and of each group
/// above it, from the group up. A machine may have one controller in version 1 and another in version 2. In a container the group's path
/// may be the machine's, and only the mount itself is visible.
pub fn directories(
    root: &Path,
    lines: &str,
    controller: &str,
) -> impl Iterator<Item = GroupDirectory> {
    memberships(lines).flat_map(move |(controllers, group)| {
        let is_first = controllers.split(',').any(|name| name == controller);
        let mounts = match controllers {
            _ if is_first => vec![root.join(MOUNTS[0]).join(controller)],
            "" => MOUNTS.map(|mount| root.join(mount)).to_vec(),
            _ => Vec::new(),
        };
        mounts.into_iter().flat_map(move |mount| {
            let groups = Path::new(group).ancestors();
            groups.map(move |group| GroupDirectory {
                path: mount.join(group),
                name: format!("/{}", group.display()),
                is_first,
            })
        })
    })
}

/// The groups with a limit that hold processes with these lines, from the group up.
#[must_use]
pub fn limited(root: &Path, lines: &str) -> Vec<MemoryGroup> {
    let groups = directories(root, lines, "memory");
    groups.filter_map(MemoryGroup::read).collect()
}

/// The controllers and the group of each line (`4:cpu,memory:/a`), without the slash at the beginning; none of a line in another form.
fn memberships(lines: &str) -> impl Iterator<Item = (&str, &str)> {
    lines.lines().filter_map(|line| {
        let (controllers, group) = line.split_once(':')?.1.split_once(':')?;
        Some((controllers, group.trim_start_matches('/')))
    })
}

/// The number in a file; `None` for `max`.
#[must_use]
pub fn number(path: PathBuf) -> Option<u64> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{limited, lines_of, memory_hierarchy};

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    /// Name, limit, use and cached files of each group.
    fn found(root: &Path, process: u32) -> Vec<(String, u64, u64, u64)> {
        let groups = limited(root, &lines_of(root, process)).into_iter();
        groups
            .map(|group| {
                (
                    group.name.clone(),
                    group.limit,
                    group.usage,
                    group.cached_files(),
                )
            })
            .collect()
    }

    #[test]
    fn groups_with_a_limit_are_found_in_either_version_and_others_are_not() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        assert_eq!(found(root, 7), []);
        write(
            root,
            "proc/7/cgroup",
            "4:cpu,memory:/a/b\n3:cpuset:/x\n0::/\n",
        );
        write(root, "proc/8/cgroup", "0::/c/d\n");
        for (group, limit) in [("a/b", "9223372036854771712\n"), ("a", "1000\n")] {
            let group = format!("sys/fs/cgroup/memory/{group}");
            write(root, &format!("{group}/memory.limit_in_bytes"), limit);
            write(root, &format!("{group}/memory.usage_in_bytes"), "900\n");
            let stat =
                "inactive_file 5\ntotal_rss 300\ntotal_inactive_file 70\ntotal_active_file 7\n";
            write(root, &format!("{group}/memory.stat"), stat);
        }
        for (group, high, max) in [("c", "max", "max"), ("c/d", "700", "800")] {
            let group = format!("sys/fs/cgroup/unified/{group}");
            write(root, &format!("{group}/memory.high"), high);
            write(root, &format!("{group}/memory.max"), max);
            write(root, &format!("{group}/memory.current"), "720\n");
            write(
                root,
                &format!("{group}/memory.stat"),
                "anon 300\ninactive_file 20\nactive_file 9\n",
            );
        }
        assert_eq!(found(root, 7), [("/a".to_owned(), 1000, 900, 77)]);
        assert_eq!(found(root, 8), [("/c/d".to_owned(), 700, 720, 29)]);
    }

    #[test]
    fn the_hierarchy_with_the_memory_controller_is_found() {
        let root = tempfile::tempdir().expect("a directory");
        let root = root.path();
        let first = memory_hierarchy(root, "4:cpu,memory:/a\n0::/b\n").expect("version 1");
        let memory = root.join("sys/fs/cgroup/memory");
        assert_eq!(
            (first.directory, first.mount, first.is_first),
            (memory.join("a"), memory, true)
        );
        assert_eq!(
            memory_hierarchy(root, "0::/b\n"),
            None,
            "without its controller"
        );
        write(
            root,
            "sys/fs/cgroup/cgroup.controllers",
            "cpu memory pids\n",
        );
        let second = memory_hierarchy(root, "0::/b\n").expect("version 2");
        assert_eq!(second.directory, root.join("sys/fs/cgroup/b"));
        assert!(!second.is_first);
        assert_eq!(
            memory_hierarchy(root, "0::/../b\n"),
            None,
            "of another namespace"
        );
    }
}
