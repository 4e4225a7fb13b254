//! [`Candidates`] finds in `/proc` the processes that the daemon watches, or that a live run scans for accessed bits: those that are
//! selected and, unless the [`Filter`] is off, are worth their cost by TMP's filter (section III: at least 5 % of a processor or 10 % of
//! memory, evaluated every second).
//!
//! TMP mentions a more restrictive mode "to keep overhead stable" without details. Ours prefers the
//! processes that pass both halves of the filter, and never takes more than a given number.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use isotherm_model::batch::Process;
use isotherm_model::units::Nanos;
use isotherm_sys::control_group::unified_group;
use isotherm_topology::sysfs::numbered;

use crate::process_usage::{ProcessStat, is_worth};

/// The processes selected by the settings. A process is selected by any of the lists; where all are
/// empty every process is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessSelection {
    /// Processes by number.
    pub pids: Vec<u32>,
    /// Processes of these users, by user number.
    pub users: Vec<u32>,
    /// Processes whose program matches one of these patterns: `*` for any text, `/` included. A pattern
    /// without a `/` is compared with the last part of the path and with the kernel's name of the process
    /// (`comm` of proc(5)): Debian's redis-server is a link to redis-check-rdb.
    pub programs: Vec<String>,
    /// Processes in these control groups or below them: `/system.slice/redis.service`.
    pub control_groups: Vec<String>,
    /// Also the child processes of the selected ones.
    pub children: bool,
}

impl ProcessSelection {
    /// True where only numbers of processes select.
    const fn is_by_number(&self) -> bool {
        let others =
            self.users.is_empty() && self.programs.is_empty() && self.control_groups.is_empty();
        !self.pids.is_empty() && others && !self.children
    }
}

/// The choice among the selected processes, by their cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// Processes with 5 % of a processor or 10 % of memory.
    #[default]
    Tmp,
    /// Processes with the most memory among them, at most this number, those that pass both halves
    /// first.
    Strict(usize),
    /// All selected processes.
    Off,
}

/// A process as `/proc` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number, and the number of programs that it ran before this one.
    pub process: Process,
    /// The name of its program.
    pub name: String,
    /// Its control group of version 2, empty where there is none.
    pub control_group: String,
    /// Bytes resident.
    pub resident: u64,
    /// Processor time used since the last scan, in millionths of one processor; 0 for a new
    /// process.
    pub busy_ppm: u64,
}

/// The data kept of a process between two scans.
#[derive(Clone, Debug)]
struct CandidateState {
    start: u64,
    program: PathBuf,
    image: u32,
    cpu_ns: u64,
}

/// The processes of the machine.
#[derive(Debug, Default)]
pub struct Candidates {
    proc_root: PathBuf,
    known: HashMap<u32, CandidateState>,
    looked: Option<Nanos>,
    /// Image numbers of pids that have ended, so that a process with a reused pid is not mistaken
    /// for the old one.
    images: HashMap<u32, u32>,
}

/// A process found by one scan.
struct Found {
    candidate: Candidate,
    parent: u32,
    user: u32,
    program: PathBuf,
    /// Processor time since the last scan; None for a new process.
    spent_ns: Option<u64>,
}

/// Most pids whose images are remembered: more than the default limit of processes.
const IMAGES_AT_MOST: usize = 1 << 16;

impl Candidates {
    /// Starts without any process; they are found under this directory (`/proc`).
    #[must_use]
    pub fn new(proc_root: &Path) -> Self {
        Self {
            proc_root: proc_root.to_owned(),
            ..Self::default()
        }
    }

    /// Scans all processes and returns those to watch, by number. `own` is never among them.
    pub fn look(
        &mut self,
        selection: &ProcessSelection,
        filter: Filter,
        now: Nanos,
        own: u32,
    ) -> Vec<Candidate> {
        let span = self
            .looked
            .replace(now)
            .map(|before| now.saturating_sub(before));
        let found = self.found(selection, own, span);
        let total =
            isotherm_topology::meminfo::total_bytes(&self.proc_root.join("meminfo")).unwrap_or(0);
        let selected = selected(&found, selection);
        let worth = |found: &Found| {
            let cpu = found.spent_ns.zip(span);
            is_worth(cpu, found.candidate.resident, total)
        };
        let chosen = found.values().filter(|found| {
            selected.contains(&found.candidate.process.pid) && found.candidate.resident > 0
        });
        let mut chosen: Vec<&Found> = match filter {
            Filter::Off => chosen.collect(),
            Filter::Tmp | Filter::Strict(_) => chosen.filter(|found| worth(found)).collect(),
        };
        if let Filter::Strict(most) = filter {
            let both = |found: &Found| {
                let cpu = found.spent_ns.zip(span);
                is_worth(cpu, 0, u64::MAX)
                    && is_worth(Some((0, Nanos(1))), found.candidate.resident, total)
            };
            chosen.sort_by_key(|found| {
                let candidate = &found.candidate;
                (
                    !both(found),
                    std::cmp::Reverse(candidate.resident),
                    candidate.process,
                )
            });
            chosen.truncate(most);
            chosen.sort_by_key(|found| found.candidate.process);
        }
        chosen
            .into_iter()
            .map(|found| found.candidate.clone())
            .collect()
    }

    /// The number of processes with kept data, and of remembered pids that have ended.
    #[cfg(test)]
    pub(super) fn kept(&self) -> [usize; 2] {
        [self.known.len(), self.images.len()]
    }

    /// The processes that have memory: all processes, or the selected ones where the settings select by number alone. A process
    /// that ends during the scan is left out.
    fn found(
        &mut self,
        selection: &ProcessSelection,
        own: u32,
        span: Option<Nanos>,
    ) -> BTreeMap<u32, Found> {
        let mut pids: BTreeSet<u32> = match selection.is_by_number() {
            true => selection.pids.iter().copied().collect(),
            false => numbered(&self.proc_root, "").into_iter().collect(),
        };
        pids.remove(&own);
        let gone: Vec<u32> = self
            .known
            .keys()
            .filter(|pid| !pids.contains(pid))
            .copied()
            .collect();
        if self.images.len() >= IMAGES_AT_MOST {
            self.images.clear();
        }
        for pid in gone {
            if let Some(known) = self.known.remove(&pid) {
                self.images.insert(pid, known.image + 1);
            }
        }
        pids.into_iter()
            .filter_map(|pid| Some((pid, self.read(pid, span)?)))
            .collect()
    }

    fn read(&mut self, pid: u32, span: Option<Nanos>) -> Option<Found> {
        let directory = self.proc_root.join(pid.to_string());
        let stat = ProcessStat::read(&self.proc_root, pid)?;
        if stat.resident == 0 {
            return None;
        }
        // A link to a path without access can still be read; no link at all means a kernel thread,
        // or a process that we may not read.
        let program = fs::read_link(directory.join("exe")).unwrap_or_default();
        let cpu_ns = stat.cpu_time.0;
        let before = self.known.get(&pid);
        let same_start = before.is_some_and(|known| known.start == stat.start);
        let same = before.filter(|known| same_start && known.program == program);
        let image = match (same, before) {
            (Some(known), _) => known.image,
            (None, Some(known)) => known.image + 1,
            (None, None) => self.images.remove(&pid).unwrap_or(0),
        };
        let spent_ns = before
            .filter(|_| same_start)
            .map(|known| cpu_ns.saturating_sub(known.cpu_ns));
        let known = CandidateState {
            start: stat.start,
            program: program.clone(),
            image,
            cpu_ns,
        };
        let busy = spent_ns.zip(span).map(|(spent, span)| {
            // A count of nanoseconds times a million fits 128 bits.
            u128::from(spent) * 1_000_000 / u128::from(span.0.max(1))
        });
        self.known.insert(pid, known);
        let groups = fs::read_to_string(directory.join("cgroup")).unwrap_or_default();
        Some(Found {
            candidate: Candidate {
                process: Process { pid, image },
                name: stat.name,
                control_group: unified_group(&groups).to_owned(),
                resident: stat.resident,
                busy_ppm: busy.map_or(0, |ppm| u64::try_from(ppm).unwrap_or(u64::MAX)),
            },
            parent: stat.parent,
            user: user(&fs::read_to_string(directory.join("status")).ok()?)?,
            program,
            spent_ns,
        })
    }
}

/// The numbers of the selected processes, children included if the selection asks for them.
fn selected(found: &BTreeMap<u32, Found>, selection: &ProcessSelection) -> BTreeSet<u32> {
    let everything = selection.pids.is_empty()
        && selection.users.is_empty()
        && selection.programs.is_empty()
        && selection.control_groups.is_empty();
    let itself = |found: &Found| {
        let (pid, group) = (found.candidate.process.pid, &found.candidate.control_group);
        everything
            || selection.pids.contains(&pid)
            || selection.users.contains(&found.user)
            || selection
                .programs
                .iter()
                .any(|pattern| fits_program(pattern, found))
            || selection
                .control_groups
                .iter()
                .any(|name| is_within(group, name))
    };
    let mut selected: BTreeSet<u32> = found
        .iter()
        .filter(|(_, found)| itself(found))
        .map(|(pid, _)| *pid)
        .collect();
    if !selection.children {
        return selected;
    }
    // Each round adds at least one process, so there are no more rounds than processes.
    loop {
        let children = found
            .iter()
            .filter(|(pid, found)| !selected.contains(pid) && selected.contains(&found.parent));
        let children: Vec<u32> = children.map(|(pid, _)| *pid).collect();
        if children.is_empty() {
            return selected;
        }
        selected.extend(children);
    }
}

/// Whether a control group is the named one or below it.
#[must_use]
pub fn is_within(group: &str, name: &str) -> bool {
    let name = name.trim_end_matches('/');
    group
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn fits_program(pattern: &str, found: &Found) -> bool {
    let fits = |text: &str| fits(pattern.as_bytes(), text.as_bytes());
    if pattern.contains('/') {
        return fits(&found.program.to_string_lossy());
    }
    let last = found.program.file_name();
    last.is_some_and(|last| fits(&last.to_string_lossy())) || fits(&found.candidate.name)
}

/// `*` matches any text. Backtracks to the last `*` only, so the time is at most the product of the
/// lengths.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p, t));
            p += 1;
        } else if pattern.get(p) == Some(&text[t]) {
            (p, t) = (p + 1, t + 1);
        } else if let Some((at, from)) = star {
            star = Some((at, from + 1));
            (p, t) = (at + 1, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// The effective user in the line `Uid:` of `/proc/PID/status`, its second number.
fn user(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests;
