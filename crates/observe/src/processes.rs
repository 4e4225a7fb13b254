//! [`Processes`] is the process tree of a live run, from perf records or, where those are missing, from `/proc`: the parent, name, execs
//! and end of each process, and so whose memory it has a copy of at a time: its parent's, until it runs another program. [`threads`] and
//! [`has_memory`] look at one process in `/proc`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use isotherm_topology::sysfs::{entries, numbered, text};

use crate::process_usage::ProcessStat;

/// Most processes remembered; a fork storm beyond that forgets those that ended.
const REMEMBERED_AT_MOST: usize = 1 << 16;

/// Longest chain of forks followed.
const GENERATIONS_AT_MOST: usize = 64;

/// The state of one process.
#[derive(Clone, Debug, Default)]
struct ProcessState {
    /// The kernel's name of it.
    name: String,
    parent: Option<u32>,
    /// Times of its execs, in nanoseconds; ascending.
    execs: Vec<u64>,
    ended: bool,
}

/// The processes of a run.
#[derive(Debug)]
pub struct Processes {
    proc_root: PathBuf,
    root: u32,
    known: HashMap<u32, ProcessState>,
}

impl Processes {
    /// Only the first process, before its exec, is known. Others are looked up under this directory
    /// (`/proc`).
    #[must_use]
    pub fn new(root: u32, proc_root: &Path) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            root,
            known: HashMap::from([(root, ProcessState::default())]),
        }
    }

    /// Records a fork.
    pub fn fork(&mut self, parent: u32, child: u32) {
        if self.known.len() >= REMEMBERED_AT_MOST {
            self.known.retain(|_, known| !known.ended);
        }
        // An earlier child with the same pid has ended: the kernel reused its number.
        let fresh = ProcessState {
            parent: Some(parent),
            ..ProcessState::default()
        };
        self.known.insert(child, fresh);
    }

    /// Records an exec.
    pub fn exec(&mut self, pid: u32, time_ns: u64) {
        self.known.entry(pid).or_default().execs.push(time_ns);
    }

    /// Records the kernel's name of a process.
    pub fn rename(&mut self, pid: u32, name: String) {
        self.known.entry(pid).or_default().name = name;
    }

    /// The kernel's name of a process, where an exec was recorded.
    #[must_use]
    pub fn name(&self, pid: u32) -> &str {
        self.known.get(&pid).map_or("", |known| &known.name)
    }

    /// Records the end of a process.
    pub fn exit(&mut self, pid: u32) {
        if let Some(known) = self.known.get_mut(&pid) {
            known.ended = true;
        }
    }

    /// The processes not known to have ended.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        self.known
            .iter()
            .filter(|(_, known)| !known.ended)
            .map(|(pid, _)| *pid)
    }

    /// When a process last ran another program before this time. The first exec of the first
    /// process, which begins the run, counts too.
    #[must_use]
    pub fn last_exec(&self, pid: u32, time_ns: u64) -> Option<u64> {
        let execs = &self.known.get(&pid)?.execs;
        execs.iter().rev().find(|exec| **exec <= time_ns).copied()
    }

    /// The parent whose memory a process still has at this time: None after an exec, and for the
    /// first process.
    #[must_use]
    pub fn parent_of_memory(&self, pid: u32, time_ns: u64) -> Option<u32> {
        if pid == self.root || self.last_exec(pid, time_ns).is_some() {
            return None;
        }
        match self.known.get(&pid) {
            Some(known) => known.parent,
            None => parent_in_proc(&self.proc_root, pid)
                .filter(|parent| same_program(&self.proc_root, pid, *parent)),
        }
    }

    /// The process itself and the processes whose memory it has a copy of, youngest first.
    pub fn lineage(&self, pid: u32, time_ns: u64) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(pid), move |pid| self.parent_of_memory(*pid, time_ns))
            .take(GENERATIONS_AT_MOST)
    }

    /// Adds the descendants of the first process from `/proc`. For runs without perf records; a
    /// process that starts and ends between two calls is missed.
    pub fn look_up(&mut self) {
        let mut parents: Vec<u32> = self.pids().collect();
        while let Some(parent) = parents.pop() {
            for child in children(&self.proc_root, parent) {
                if !self.known.contains_key(&child) {
                    self.fork(parent, child);
                    if !same_program(&self.proc_root, child, parent) {
                        self.exec(child, 0);
                    }
                    parents.push(child);
                }
            }
        }
        let proc_root = &self.proc_root;
        for (pid, known) in &mut self.known {
            known.ended = known.ended || !has_memory(proc_root, *pid);
        }
    }
}

/// The threads of a process that have not ended; none of a process that has.
#[must_use]
pub fn threads(proc_root: &Path, pid: u32) -> Vec<u32> {
    let tasks = proc_root.join(pid.to_string()).join("task");
    let mut threads = numbered(&tasks, "");
    threads.retain(|thread| !is_zombie(&tasks.join(thread.to_string())));
    threads
}

/// Whether a thread has ended and is only there for its parent, as the first one of a process can be while others run.
fn is_zombie(task: &Path) -> bool {
    let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
    // The name before it may hold parentheses.
    let state = stat.rsplit_once(") ").map(|(_, fields)| fields);
    state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

/// Children of all threads of a process (`CONFIG_PROC_CHILDREN`); empty where the kernel has no
/// such file.
fn children(proc_root: &Path, pid: u32) -> Vec<u32> {
    let tasks = entries(&proc_root.join(pid.to_string()).join("task"));
    let of_task = |task: &PathBuf| {
        let listed = text(&task.join("children")).unwrap_or_default();
        let listed = listed.split_ascii_whitespace();
        listed
            .filter_map(|pid| pid.parse().ok())
            .collect::<Vec<u32>>()
    };
    tasks.iter().flat_map(of_task).collect()
}

fn parent_in_proc(proc_root: &Path, pid: u32) -> Option<u32> {
    let parent = ProcessStat::read(proc_root, pid)?.parent;
    (parent != 0).then_some(parent)
}

fn same_program(proc_root: &Path, one: u32, other: u32) -> bool {
    let program = |pid: u32| std::fs::read_link(proc_root.join(pid.to_string()).join("exe")).ok();
    program(one).is_some_and(|path| program(other) == Some(path))
}

/// True while a process has memory: it exists and is not a zombie.
#[must_use]
pub fn has_memory(proc_root: &Path, pid: u32) -> bool {
    let path = proc_root.join(pid.to_string()).join("statm");
    std::fs::read_to_string(path).is_ok_and(|text| !text.starts_with("0 "))
}

#[cfg(test)]
mod tests {
    use super::{Processes, has_memory, threads};
    use std::path::Path;

    #[test]
    fn a_child_has_its_parents_memory_until_it_runs_another_program() {
        let mut processes = Processes::new(1, Path::new("/nonexistent"));
        processes.exec(1, 10);
        processes.fork(1, 2);
        processes.fork(2, 3);
        processes.exec(3, 50);
        let lineage = |pid, time| processes.lineage(pid, time).collect::<Vec<_>>();
        assert_eq!(lineage(3, 40), [3, 2, 1]);
        assert_eq!(lineage(3, 60), [3]);
        assert_eq!(lineage(2, 60), [2, 1]);
    }

    #[test]
    fn a_pid_that_is_used_again_starts_afresh() {
        let mut processes = Processes::new(1, Path::new("/nonexistent"));
        processes.fork(1, 2);
        processes.exec(2, 20);
        processes.exit(2);
        processes.fork(1, 2);
        assert_eq!(processes.last_exec(2, 99), None);
        assert_eq!(processes.pids().count(), 2);
    }

    #[test]
    fn a_ring_of_parents_ends() {
        let mut processes = Processes::new(1, Path::new("/nonexistent"));
        processes.fork(2, 3);
        processes.fork(3, 2);
        assert!(processes.lineage(2, 0).count() <= super::GENERATIONS_AT_MOST);
    }

    #[test]
    fn threads_are_those_that_run() {
        let root = tempfile::tempdir().expect("a directory");
        for (thread, stat) in [(7, "7 (a) b) Z 1"), (8, "8 (Z ) S 1"), (9, "9 (c) R 1")] {
            let task = root.path().join(format!("7/task/{thread}"));
            std::fs::create_dir_all(&task).expect("makes");
            std::fs::write(task.join("stat"), stat).expect("writes");
        }
        let mut found = threads(root.path(), 7);
        found.sort_unstable();
        assert_eq!(found, [8, 9]);
        assert!(threads(root.path(), 8).is_empty());
    }

    #[test]
    fn this_process_has_memory_and_an_unknown_one_has_not() {
        assert!(has_memory(Path::new("/proc"), std::process::id()));
        assert!(!has_memory(Path::new("/proc"), u32::MAX));
    }
}
