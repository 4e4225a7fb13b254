//! [`RunGroup`] is a control group for the processes of one run, from which the kernel reclaims the least recently used memory on request;
//! [`GroupMemory`] is the group's private memory, present and in swap. The kernel, which reads the accessed bits of all page tables, knows
//! the order of use page by page.
//!
//! The group has no limit: each reclaim is a request of this process, by `memory.reclaim` of version 2 (Linux 5.19). Version 1 has no such
//! file. There the limit is set to the bytes that the group is to have, for which the kernel reclaims within the write, and removed by the
//! next write (`Documentation/admin-guide/cgroup-v1/memory.rst`); if this process is killed between the two writes, the next run removes
//! it.
//!
//! ```text
//! version 1    GROUP of this process / isotherm-run-PID
//! version 2    the same where GROUP may have groups below it, else beside GROUP, if that has no limits of its own
//! ```

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use isotherm_model::outcome::{Fate, NO_SWAP_ROOM};
use isotherm_model::units::Bytes;
use isotherm_sys::control_group::{MemoryHierarchy, lines_of, memory_hierarchy, number};
use isotherm_sys::write_within::write_within;
use isotherm_topology::swap_room;
use isotherm_topology::sysfs::numbered;

/// The begin of the group's name, before the id of the process that made it.
const NAME: &str = "isotherm-run-";
/// Most bytes of one request: some ten milliseconds, at the speed of compressed memory.
const BATCH: Bytes = Bytes(4 << 20);
/// The longest time of a request, and the room that swap must have for it: far more than the kernel pages out in that time.
const LONGEST: Duration = Duration::from_millis(20);
const ROOM: Bytes = Bytes(64 << 20);
/// The file of version 2 with the controllers of the groups below.
const CONTROL: &str = "cgroup.subtree_control";
/// The files of version 2 whose limits a program would escape if it moved to a group beside its own.
const LIMITS: [&str; 9] = [
    "memory.high",
    "memory.max",
    "memory.swap.max",
    "memory.zswap.max",
    "cpu.max",
    "cpuset.cpus",
    "cpuset.mems",
    "io.max",
    "pids.max",
];
/// Attempts to move all processes back before the group is removed: a process may fork meanwhile.
const MOVES: usize = 3;

/// The private memory of a group.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupMemory {
    /// Bytes in memory.
    pub present: Bytes,
    /// Bytes in swap.
    pub out: Bytes,
}

/// A control group for the processes of one run, which is removed when this is dropped.
#[derive(Debug)]
pub struct RunGroup {
    root: PathBuf,
    directory: PathBuf,
    /// The group that the process came from.
    home: PathBuf,
    is_first: bool,
    /// True where the group above controls the memory of the groups below it only because of this one.
    is_control_new: bool,
}

impl RunGroup {
    /// Makes the group on the machine under `root` (`/`) and moves a process there, whose descendants will be in it, too. Groups of runs that
    /// were killed are removed.
    ///
    /// # Errors
    /// No hierarchy controls memory, or the kernel refuses: it takes root, or a group that was delegated to this user.
    pub fn make(root: &Path, process: u32) -> io::Result<Self> {
        let own = lines_of(root, std::process::id());
        let own = memory_hierarchy(root, &own);
        let own = own.ok_or_else(|| io::Error::other("no control group controls memory"))?;
        let group = match Self::below(root, &own.directory, &own) {
            Err(_) if !own.is_first && is_unlimited(&own) => {
                let above = own.directory.parent().unwrap_or(&own.mount);
                Self::below(root, above, &own)
            }
            made => made,
        }?;
        std::fs::write(group.directory.join("cgroup.procs"), process.to_string())?;
        Ok(group)
    }

    fn below(root: &Path, above: &Path, own: &MemoryHierarchy) -> io::Result<Self> {
        remove_ended(root, above);
        let is_first = own.is_first;
        let directory = above.join(format!("{NAME}{}", std::process::id()));
        let is_control_new = !is_first && !controls_memory(above);
        if is_control_new {
            std::fs::write(above.join(CONTROL), "+memory")?;
        }
        std::fs::create_dir(&directory)?;
        let group = Self {
            root: root.to_owned(),
            directory,
            home: own.directory.clone(),
            is_first,
            is_control_new,
        };
        let needs = [
            (group.file(), "Linux 5.19"),
            (group.swap_file(), "swapaccount=1"),
        ];
        let missing = needs
            .into_iter()
            .find(|(file, _)| !group.directory.join(file).exists());
        match missing {
            None => Ok(group),
            Some((file, remedy)) => Err(io::Error::other(format!(
                "{} does not exist ({remedy})",
                group.directory.join(file).display()
            ))),
        }
    }

    /// A file that exists where the kernel counts the swap of groups.
    const fn swap_file(&self) -> &'static str {
        match self.is_first {
            true => "memory.memsw.usage_in_bytes",
            false => "memory.swap.current",
        }
    }

    /// True while this process is in the group, or in a group below it.
    #[must_use]
    pub fn holds(&self, process: u32) -> bool {
        let lines = lines_of(&self.root, process);
        let own = memory_hierarchy(&self.root, &lines);
        own.is_some_and(|own| own.directory.starts_with(&self.directory))
    }

    const fn file(&self) -> &'static str {
        match self.is_first {
            true => "memory.limit_in_bytes",
            false => "memory.reclaim",
        }
    }

    /// The private memory of the group's processes. Zero where its files cannot be read.
    #[must_use]
    pub fn memory(&self) -> GroupMemory {
        let text = std::fs::read_to_string(self.directory.join("memory.stat")).unwrap_or_default();
        let of = |name: &str| {
            let mut lines = text.lines();
            let bytes = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            Bytes(bytes.and_then(|bytes| bytes.parse().ok()).unwrap_or(0))
        };
        match self.is_first {
            true => GroupMemory {
                present: of("total_rss"),
                out: of("total_swap"),
            },
            false => GroupMemory {
                present: of("anon"),
                out: Bytes(number(self.directory.join(self.swap_file())).unwrap_or(0)),
            },
        }
    }

    /// Has the kernel reclaim `bytes` of the group, at most `BATCH` at a time. [`Fate::Busy`] if it reclaimed less, or if swap has no
    /// room: the kernel does not know the limit of a zram device, and would count pages as out that stay in memory.
    pub fn reclaim(&self, bytes: Bytes) -> Fate {
        let bytes = bytes.min(BATCH);
        if swap_room(&self.root) < ROOM {
            return Fate::Busy(NO_SWAP_ROOM.into());
        }
        let asked = match self.is_first {
            true => self.lower(bytes),
            false => self.open().and_then(|file| ask(&file, bytes)),
        };
        match asked {
            Ok(()) => Fate::Requested,
            Err(error) if is_short(&error) => Fate::Busy("the kernel found less to reclaim".into()),
            Err(error) => Fate::Denied(format!("{}: {error}", self.directory.display()).into()),
        }
    }

    /// Lowers the limit to the memory of the group less these bytes, and removes the limit.
    fn lower(&self, bytes: Bytes) -> io::Result<()> {
        let usage = number(self.directory.join("memory.usage_in_bytes"));
        let usage = usage.ok_or_else(|| io::Error::other("its memory cannot be read"))?;
        let mut file = self.open()?;
        // A program that finds no room waits for the next write, where the kernel would end it.
        let killing = self.directory.join("memory.oom_control");
        let _ = std::fs::write(&killing, "1");
        let lowered = ask(&file, Bytes(usage.saturating_sub(bytes.0)));
        file.seek(SeekFrom::Start(0))?;
        let lifted = file.write_all(b"-1");
        let _ = std::fs::write(&killing, "0");
        lifted.and(lowered)
    }

    fn open(&self) -> io::Result<File> {
        OpenOptions::new()
            .write(true)
            .open(self.directory.join(self.file()))
    }
}

/// Writes the number of bytes to reclaim. The kernel must also reclaim what the program allocates meanwhile, so the time is limited.
fn ask(file: &File, bytes: Bytes) -> io::Result<()> {
    write_within(file, bytes.0.to_string().as_bytes(), LONGEST)
}

impl Drop for RunGroup {
    /// Moves descendants that still run back to their former group, and removes the group. Memory of other groups stays controlled.
    fn drop(&mut self) {
        let processes = self.directory.join("cgroup.procs");
        for _ in 0..MOVES {
            let left = std::fs::read_to_string(&processes).unwrap_or_default();
            for process in left.lines() {
                let _ = std::fs::write(self.home.join("cgroup.procs"), process);
            }
            if std::fs::remove_dir(&self.directory).is_ok() {
                break;
            }
        }
        if let Some(above) = self.directory.parent()
            && self.is_control_new
            && !has_groups(above)
        {
            let _ = std::fs::write(above.join(CONTROL), "-memory");
        }
    }
}

/// True for answers that may change in a later attempt.
fn is_short(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy | io::ErrorKind::Interrupted
    )
}

fn controls_memory(group: &Path) -> bool {
    let controlled = std::fs::read_to_string(group.join(CONTROL));
    let controlled = controlled.unwrap_or_default();
    controlled.split_whitespace().any(|name| name == "memory")
}

fn has_groups(above: &Path) -> bool {
    let entries = std::fs::read_dir(above).into_iter().flatten().flatten();
    let mut kinds = entries.map(|entry| entry.file_type());
    kinds.any(|kind| kind.is_ok_and(|kind| kind.is_dir()))
}

/// True for a group whose processes may be moved beside it without an escape from limits.
fn is_unlimited(own: &MemoryHierarchy) -> bool {
    let limit = |name: &&'static str| {
        let text = std::fs::read_to_string(own.directory.join(name)).unwrap_or_default();
        !text.trim().is_empty() && !text.starts_with("max")
    };
    own.directory != own.mount && !LIMITS.iter().any(limit)
}

/// Removes the groups of runs that were killed. If the program of a group still runs, the group stays, without a limit.
fn remove_ended(root: &Path, above: &Path) {
    let own = std::process::id();
    let lives = |maker: u32| maker != own && root.join(format!("proc/{maker}")).exists();
    let makers = numbered(above, NAME).into_iter();
    for maker in makers.filter(|maker| !lives(*maker)) {
        let group = above.join(format!("{NAME}{maker}"));
        for (file, word) in [("memory.limit_in_bytes", "-1"), ("memory.oom_control", "0")] {
            let file = group.join(file);
            if file.exists() {
                let _ = std::fs::write(file, word);
            }
        }
        let _ = std::fs::remove_dir(group);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use isotherm_model::outcome::Fate;
    use isotherm_model::units::Bytes;

    use super::{GroupMemory, RunGroup};

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    fn in_group(root: &Path, lines: &str) {
        write(root, &format!("proc/{}/cgroup", std::process::id()), lines);
    }

    #[test]
    fn without_a_hierarchy_or_the_right_there_is_no_group() {
        let root = tempfile::tempdir().expect("a directory");
        assert!(RunGroup::make(root.path(), 7).is_err(), "no lines");
        in_group(root.path(), "3:memory:/a\n");
        assert!(RunGroup::make(root.path(), 7).is_err(), "no directory");
    }

    #[test]
    fn a_group_of_version_2_with_limits_is_not_left() {
        let root = tempfile::tempdir().expect("a directory");
        let groups = root.path().join("sys/fs/cgroup");
        in_group(root.path(), "0::/a/b\n");
        write(&groups, "cgroup.controllers", "memory\n");
        write(&groups, "a/cgroup.subtree_control", "memory\n");
        write(&groups, "a/b/memory.max", "1000\n");
        let error = RunGroup::make(root.path(), 7).expect_err("no file memory.reclaim");
        assert!(!error.to_string().contains("/a/isotherm"), "{error}");
        write(&groups, "a/b/memory.max", "max\n");
        let error = RunGroup::make(root.path(), 7).expect_err("as before");
        assert!(error.to_string().contains("/a/isotherm"), "{error}");
    }

    const SWAP: &str = "Filename Type Size Used Priority\n/dev/sda2 partition 102400 0 -2\n";

    /// A group with files as the kernel makes them, on a machine with 100 MiB of swap.
    fn group(is_first: bool) -> (tempfile::TempDir, RunGroup) {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path().join("above/own");
        std::fs::create_dir_all(&directory).expect("made");
        write(root.path(), "proc/swaps", SWAP);
        let group = RunGroup {
            root: root.path().to_owned(),
            home: root.path().join("home"),
            directory,
            is_first,
            is_control_new: !is_first,
        };
        (root, group)
    }

    #[test]
    fn version_1_is_limited_for_the_time_of_a_request_only() {
        let (_root, group) = group(true);
        let memory = group.directory.clone();
        write(
            &memory,
            "memory.stat",
            "rss 5\nswap 3\ntotal_rss 700\ntotal_swap 90\n",
        );
        let all = GroupMemory {
            present: Bytes(700),
            out: Bytes(90),
        };
        assert_eq!(group.memory(), all);
        assert!(
            matches!(group.reclaim(Bytes(10)), Fate::Denied(_)),
            "no file"
        );
        write(&memory, "memory.limit_in_bytes", "");
        write(&memory, "memory.usage_in_bytes", "1000\n");
        assert_eq!(group.reclaim(Bytes(300)), Fate::Requested);
        let last = std::fs::read_to_string(memory.join("memory.limit_in_bytes"));
        assert_eq!(last.expect("read"), "-10", "700, and -1 over it");
        let killing = std::fs::read_to_string(memory.join("memory.oom_control"));
        assert_eq!(killing.expect("read"), "0", "as before");
    }

    #[test]
    fn version_2_is_asked_for_a_batch_at_most() {
        let (root, group) = group(false);
        write(&group.directory, "memory.reclaim", "");
        write(&group.directory, "memory.stat", "anon 300\nfile 7\n");
        write(&group.directory, "memory.swap.current", "50\n");
        let all = GroupMemory {
            present: Bytes(300),
            out: Bytes(50),
        };
        assert_eq!(group.memory(), all);
        assert_eq!(group.reclaim(Bytes(1 << 30)), Fate::Requested);
        let last = std::fs::read_to_string(group.directory.join("memory.reclaim"));
        assert_eq!(last.expect("read"), (4 << 20).to_string());
        write(root.path(), "proc/swaps", "");
        let full = group.reclaim(Bytes(1 << 30));
        assert!(full.lacks_room(), "{full:?}");
    }

    #[test]
    fn control_of_memory_ends_with_the_group_unless_another_has_it() {
        for has_other in [false, true] {
            let (_root, group) = group(false);
            let above = group.directory.parent().expect("a group").to_owned();
            write(&above, "cgroup.subtree_control", "+memory");
            if has_other {
                std::fs::create_dir(above.join("other")).expect("made");
            }
            drop(group);
            let control = std::fs::read_to_string(above.join("cgroup.subtree_control"));
            let wanted = if has_other { "+memory" } else { "-memory" };
            assert_eq!(control.expect("read"), wanted);
        }
    }

    #[test]
    fn a_group_of_a_run_that_was_killed_is_removed_and_a_living_ones_stays() {
        let root = tempfile::tempdir().expect("a directory");
        let above = root.path().join("above");
        write(root.path(), "proc/8/stat", "");
        for maker in [7, 8, std::process::id()] {
            std::fs::create_dir_all(above.join(format!("isotherm-run-{maker}"))).expect("made");
        }
        write(&above, "isotherm-run-9/memory.limit_in_bytes", "4096");
        super::remove_ended(root.path(), &above);
        let names = std::fs::read_dir(&above).expect("listed").flatten();
        let mut names: Vec<_> = names.map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        assert_eq!(names, ["isotherm-run-8", "isotherm-run-9"]);
        let limit = std::fs::read_to_string(above.join("isotherm-run-9/memory.limit_in_bytes"));
        assert_eq!(limit.expect("read"), "-1", "a program runs on in it");
    }

    #[test]
    fn a_group_holds_the_processes_in_it_and_below_it() {
        let (root, mut group) = group(true);
        group.directory = root.path().join("sys/fs/cgroup/memory/a/own");
        for (process, path) in [(7, "/a/own/b"), (8, "/a/owner"), (9, "/")] {
            write(
                root.path(),
                &format!("proc/{process}/cgroup"),
                &format!("3:memory:{path}\n"),
            );
        }
        assert_eq!(
            [7, 8, 9].map(|process| group.holds(process)),
            [true, false, false]
        );
    }
}
