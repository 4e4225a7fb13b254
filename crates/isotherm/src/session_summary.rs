//! `SessionSummary` sums up a run at the program's end, from the session files that the runtime has left (counters, reasons why the runtime
//! was off) and from `/proc` (processes that still run). `recorded_sites` reads the sites of all processes.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use isotherm_abi::session::{COUNTERS, OffReason, SessionCounter, SessionState};
use isotherm_model::batch::Process;
use isotherm_model::site::{Site, SiteId};
use isotherm_model::tier::Tiers;
use isotherm_model::units::Nanos;
use isotherm_model::words::counted;
use isotherm_session::{Progress, SessionFile, TextArea, parse_name};
use rustix::process::getuid;

use crate::running_process::Stat;
use crate::session_directory::SessionDirectory;

/// The processes of a run, by the last state of their session files.
#[derive(Debug, Default)]
pub(crate) struct SessionSummary {
    /// Process images that had the runtime.
    pub images: usize,
    /// Child processes that run on unobserved.
    pub running: BTreeSet<u32>,
    /// The reason why the runtime turned itself off, by pid.
    pub off: BTreeMap<u32, &'static str>,
    /// Process images in which it was off.
    off_images: usize,
    /// By [`SessionCounter`], summed over all processes.
    counters: [u64; COUNTERS],
}

/// The counters that a summary shows, with their names in it.
const SHOWN: [(SessionCounter, &str); 16] = [
    (SessionCounter::Allocations, "allocations"),
    (SessionCounter::ContextMisses, "context_misses"),
    (SessionCounter::ContextMismatches, "context_mismatches"),
    (SessionCounter::SlowAccesses, "slow_accesses"),
    (SessionCounter::HotSlowAccesses, "hot_slow_accesses"),
    (SessionCounter::DelayNanos, "delay_ns"),
    (SessionCounter::FirstTouches, "first_touches"),
    (SessionCounter::Spilled, "spilled_first_touches"),
    (SessionCounter::FastBytes, "fast_bytes"),
    (SessionCounter::SlowBytes, "slow_bytes"),
    (SessionCounter::PagesPromoted, "pages_promoted"),
    (SessionCounter::PagesDemoted, "pages_demoted"),
    (SessionCounter::Unslowed, "unslowed_pages"),
    (SessionCounter::StagedBytes, "staged_copy_bytes"),
    (SessionCounter::FastTrafficBytes, "fast_traffic_bytes"),
    (SessionCounter::SlowTrafficBytes, "slow_traffic_bytes"),
];

impl SessionSummary {
    /// Reads every session file.
    pub(crate) fn read(session: &SessionDirectory) -> Self {
        let mut seen = Self::default();
        for_each(session, |process, _, progress| {
            seen.add(process.pid, progress);
        });
        seen.running = running(session.path());
        seen
    }

    /// True if the runtime worked in any process: only then was data placed or tiers emulated.
    pub(crate) const fn worked(&self) -> bool {
        self.off_images < self.images
    }

    /// The mode and the time of a run, as a message that is true if the runtime was off; `kind` is
    /// the intended mode.
    pub(crate) fn took(&self, kind: &str, took: Nanos, tiers: &Tiers) -> String {
        if !self.worked() {
            return format!("the program ran without Isotherm and took {took}: nothing was placed");
        }
        let emulated = match tiers.emulates() {
            true => " (emulated tiers)",
            false => "",
        };
        let off = match self.off_images {
            0 => String::new(),
            off => format!(
                ", with Isotherm off in {off} of {}",
                counted(self.images, "process image")
            ),
        };
        format!("{kind} run took {took}{emulated}{off}")
    }

    fn add(&mut self, pid: u32, progress: &Progress) {
        self.images += 1;
        if progress.state == SessionState::Off as u32 {
            self.off.insert(pid, reason(progress.off_reason));
            self.off_images += 1;
        }
        for (sum, value) in self.counters.iter_mut().zip(progress.counters) {
            *sum = sum.saturating_add(value);
        }
    }

    /// A counter, summed over all processes.
    pub(crate) const fn counter(&self, counter: SessionCounter) -> u64 {
        self.counters[counter as usize]
    }

    /// The counters as JSON, with the number of sites that the processes recorded.
    pub(crate) fn to_json(&self, sites: usize) -> serde_json::Value {
        let counters: serde_json::Map<String, serde_json::Value> = SHOWN
            .iter()
            .map(|(counter, name)| ((*name).to_owned(), self.counters[*counter as usize].into()))
            .collect();
        serde_json::json!({
            "images": self.images,
            "still_running": self.running.len(),
            "runtime_off": self.off.iter().map(|(pid, why)| format!("process {pid}: {why}"))
                .collect::<Vec<_>>(),
            "sites": sites,
            "counters": counters,
        })
    }
}

/// Every site that the runtime recorded in any process. A large program has megabytes of them.
pub(crate) fn recorded_sites(session: &SessionDirectory) -> BTreeMap<SiteId, Site> {
    let mut sites = BTreeMap::new();
    for_each(session, |_, file, progress| {
        let (mut modules, mut text) = (Vec::new(), TextArea::default());
        let _ = file.read_modules(progress, &mut modules);
        let _ = file.read_text_area(progress, &mut text);
        let _ = file.read_sites(0, progress, |_, row| {
            sites.entry(row.id).or_insert_with(|| Site {
                frames: row.frames_in(&modules, &text).into(),
                ..Site::new(row.id, row.kind)
            });
        });
    });
    sites
}

/// Passes each session file to `take`. One that cannot be read is left out: its process was killed before it had written
/// its header.
fn for_each(session: &SessionDirectory, mut take: impl FnMut(Process, &SessionFile, &Progress)) {
    let entries = std::fs::read_dir(session.path()).into_iter().flatten();
    for entry in entries.flatten() {
        if let Some(process) = parse_name(&entry.file_name().to_string_lossy())
            && let Ok(file) = SessionFile::open(&entry.path())
            && let Ok(progress) = file.progress()
        {
            take(process, &file, &progress);
        }
    }
}

/// The processes of this user that have a file of this directory mapped, or that began their program in this session and
/// have not mapped one yet. A forked child has its parent's until it has one of its own, so the names of the files do not tell.
///
/// Only processes that started after this one are scanned: the mappings of all processes of a desktop take some 20 ms
/// to read. `/proc/self` is this process in every pid namespace.
fn running(directory: &Path) -> BTreeSet<u32> {
    let user = getuid().as_raw();
    let started = |directory: &Path| Stat::read(directory)?.started;
    let since = started(Path::new("/proc/self")).unwrap_or_default();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut undecided: Vec<u32> = processes
        .filter(|entry| entry.metadata().is_ok_and(|data| data.uid() == user))
        .filter(|entry| started(&entry.path()).is_some_and(|start| start >= since))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    let mut found = BTreeSet::new();
    for look in 0..LOOKS {
        if look > 0 && !undecided.is_empty() {
            std::thread::sleep(BETWEEN_LOOKS);
        }
        undecided.retain(|pid| match is_of_session(*pid, directory) {
            Some(is_ours) => {
                found.extend(is_ours.then_some(*pid));
                false
            }
            None => true,
        });
    }
    found
}

/// Looks at a process that has no environment, and the time between two: an exec takes less than a millisecond of processor time.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Whether a process runs in the session of a directory. `None` while it has no environment: in the middle of an exec its memory
/// is new, and its files in `/proc` are empty.
fn is_of_session(pid: u32, directory: &Path) -> Option<bool> {
    let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let directory = directory.as_os_str().as_bytes();
    let names = |text: &[u8]| text.windows(directory.len()).any(|part| part == directory);
    let environment = read("environ");
    if names(&environment) || names(&read("maps")) {
        return Some(true);
    }
    (!environment.is_empty()).then_some(false)
}

/// The reason as text, with the remedy.
fn reason(number: u32) -> &'static str {
    let reasons = [
        (
            OffReason::NoAddressSpace,
            "no address space for the pool; raise `ulimit -v`",
        ),
        (
            OffReason::BadConfig,
            "the configuration file could not be used",
        ),
        (
            OffReason::NoSession,
            "no session file; the disk is full or `ulimit -f` is too low",
        ),
        (
            OffReason::NoUserfaultfd,
            "userfaultfd may not serve the kernel's accesses; run as root, set \
             vm.unprivileged_userfaultfd=1, or give access to /dev/userfaultfd",
        ),
        (
            OffReason::NoUffdMove,
            "the kernel lacks UFFDIO_MOVE; Linux 6.8 has it",
        ),
        (
            OffReason::NoThread,
            "the service thread could not be started",
        ),
        (
            OffReason::NoTimer,
            "the kernel refuses a thread a timer of its own; set kernel.perf_event_paranoid to 2 or less, or use \
             --tiers emulated:tmp",
        ),
        (
            OffReason::NoPlacement,
            "the kernel refused the tier's nodes; see `isotherm tiers`",
        ),
        (
            OffReason::Foreign,
            "its configuration belongs to another user, or others may write it; a program is watched \
             only as long as it acts for the user who started it",
        ),
    ];
    let known = reasons.iter().find(|(reason, _)| *reason as u32 == number);
    known.map_or("for a reason this version does not know", |(_, words)| {
        words
    })
}

#[cfg(test)]
mod tests {
    use super::{SessionSummary, reason, running};
    use isotherm_abi::env;
    use isotherm_abi::session::OffReason;
    use isotherm_model::emulation::Emulation;
    use isotherm_model::tier::Tiers;
    use isotherm_model::units::{Bytes, Nanos};

    #[test]
    fn a_process_of_the_session_runs_before_it_has_mapped_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let start = |session| {
            let mut command = std::process::Command::new("sleep");
            command.arg("1000").env(env::SESSION, session).spawn()
        };
        let mut own = start(directory.path()).unwrap();
        let mut other = start(std::path::Path::new("/elsewhere")).unwrap();
        let found = running(directory.path());
        for child in [&mut own, &mut other] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert_eq!(found.into_iter().collect::<Vec<_>>(), [own.id()]);
    }

    #[test]
    fn a_run_in_which_isotherm_was_off_claims_neither_tiers_nor_guidance() {
        let tiers = Tiers::emulated(Bytes(1), Bytes(1), Emulation::TMP);
        let said = |images, off_images| {
            let summary = SessionSummary {
                images,
                off_images,
                ..SessionSummary::default()
            };
            summary.took("guided", Nanos(145_000_000), &tiers)
        };
        assert_eq!(said(1, 0), "guided run took 145.0 ms (emulated tiers)");
        for nothing in [said(1, 1), said(0, 0)] {
            assert_eq!(
                nothing,
                "the program ran without Isotherm and took 145.0 ms: nothing was placed"
            );
        }
        assert_eq!(
            said(3, 1),
            "guided run took 145.0 ms (emulated tiers), with Isotherm off in 1 of 3 process images"
        );
    }

    #[test]
    fn every_reason_for_being_off_names_a_remedy_or_a_cause() {
        for number in 1..=OffReason::Foreign as u32 {
            assert!(!reason(number).contains("does not know"), "reason {number}");
        }
        assert!(reason(999).contains("does not know"));
    }
}
