//! [`limited_groups`] finds the control groups with a memory limit to which watched processes belong, for page-out before the limit is
//! reached.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use isotherm_model::batch::Process;
use isotherm_model::paged::LimitedGroup;
use isotherm_model::units::Bytes;
use isotherm_sys::control_group;

/// The groups with a limit that these processes of the machine under `root` (`/`) are in, each once, by the directory of its files.
#[must_use]
pub fn limited_groups(root: &Path, processes: impl Iterator<Item = Process>) -> Vec<LimitedGroup> {
    // Of a hundred processes most are in few groups, whose files are read once.
    let mut by_lines: BTreeMap<String, BTreeSet<Process>> = BTreeMap::new();
    for process in processes {
        let lines = control_group::lines_of(root, process.pid);
        by_lines.entry(lines).or_default().insert(process);
    }
    let mut found = BTreeMap::new();
    for (lines, processes) in by_lines {
        for group in control_group::limited(root, &lines) {
            let new = || LimitedGroup {
                limit: Bytes(group.limit),
                without_files: Bytes(group.usage.saturating_sub(group.cached_files())),
                name: group.name.clone(),
                directory: group.directory.clone(),
                processes: BTreeSet::new(),
            };
            let known = found.entry(group.directory.clone()).or_insert_with(new);
            known.processes.extend(&processes);
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use isotherm_model::batch::Process;
    use isotherm_model::units::Bytes;

    use super::limited_groups;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    #[test]
    fn groups_of_one_name_in_both_hierarchies_have_their_own_directories() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| write(root.path(), path, text);
        write("proc/7/cgroup", "4:memory:/a\n0::/a\n");
        write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000");
        write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "450");
        write("sys/fs/cgroup/unified/a/memory.high", "900");
        write("sys/fs/cgroup/unified/a/memory.current", "440");
        let process = Process { pid: 7, image: 0 };
        let groups = limited_groups(root.path(), [process].into_iter());
        assert!(groups.iter().all(|group| group.name == "/a"));
        let found = groups.into_iter();
        let found: Vec<_> = found.map(|group| (group.limit, group.directory)).collect();
        let below = |mount: &str| root.path().join("sys/fs/cgroup").join(mount).join("a");
        let own = [
            (Bytes(1000), below("memory")),
            (Bytes(900), below("unified")),
        ];
        assert_eq!(found, own);
    }

    #[test]
    fn processes_of_a_group_and_of_groups_below_it_share_it() {
        let root = tempfile::tempdir().expect("a directory");
        let write = |path: &str, text: &str| write(root.path(), path, text);
        for (pid, group) in [(7, "/a"), (8, "/a/b"), (9, "/c")] {
            write(&format!("proc/{pid}/cgroup"), &format!("0::{group}\n"));
        }
        for (group, high) in [("a", "1000"), ("a/b", "500"), ("c", "max")] {
            let file = |name: &str| format!("sys/fs/cgroup/{group}/memory.{name}");
            write(&file("high"), high);
            write(&file("max"), "max");
            write(&file("current"), "450");
            write(
                &file("stat"),
                "anon 300\ninactive_file 30\nactive_file 20\n",
            );
        }
        let process = |pid| Process { pid, image: 0 };
        let groups = limited_groups(root.path(), [7, 8, 9].map(process).into_iter());
        let found: Vec<_> = groups
            .iter()
            .map(|group| (group.name.as_str(), group.limit, group.processes.len()))
            .collect();
        assert_eq!(found, [("/a", Bytes(1000), 2), ("/a/b", Bytes(500), 1)]);
        assert!(groups.iter().all(|group| group.without_files == Bytes(400)));
    }
}
