//! A [`Source`] observes accesses of programs: one trait for all sources of the daemon, and for those that scan in a recorded run; samples
//! of such a run are apart ([`program_samples`]). [`AccessList`] collects the accesses of an epoch.
//!
//! ```text
//! registry          every source: one line each
//! instrumented      counts of programs that isotherm-cc --profile compiled
//! trapped_pages     accesses that the emulated pair traps
//! mapping_bits      accessed bits by clear_refs and smaps (whole mappings)
//! damon             accessed bits by DAMON (regions)
//! page_idle         accessed bits by the bitmap of idle pages; frames finds their numbers
//! hint_faults       touches of pages that the kernel's balancing unmapped
//! program_samples   samples of one program and its child processes, with their times
//! process_samples   samples of watched processes; sample_cost measures the cost of one
//! waits             what a program waited for at a sample that does not show it
//! perf_ring         rings -> records -> perf events; pmu, sampled_event: the events to open; spe decodes a buffer
//! throttle          TMP's rule: a method rests while the counter that it depends on is low
//! cost_budget       a source that costs more than its part of the budget is slowed
//! ```
//!
//! A new source is a file with an implementation of [`Source`] and a line in [`registry`].

pub mod cost_budget;
pub mod damon;
pub(crate) mod frames;
pub mod hint_faults;
mod instrumented;
pub mod mapping_bits;
pub(crate) mod own_samples;
pub mod page_idle;
pub mod perf_ring;
pub mod pmu;
pub(crate) mod waits;
pub mod process_samples;
pub mod program_samples;
pub mod registry;
pub mod sample_cost;
pub mod sampled_event;
pub mod spe;
pub mod throttle;
mod trapped_pages;

use std::collections::BTreeMap;
use std::path::Path;

use isotherm_model::batch::{ObservedAccess, Process, SourceReport};
use isotherm_model::movement::AddressRange;
use isotherm_model::port::Clock;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Nanos;

use crate::sessions::Sessions;
use crate::watch::memory::ProcessMemory;

/// A source of accesses.
pub trait Source {
    /// Its report so far.
    fn report(&self) -> SourceReport;

    /// Adds the accesses since the last call. A source that costs more than its budget may do nothing.
    fn scan(&mut self, scan: &mut ScanContext<'_>, accesses: &mut AccessList);

    /// Starts work that takes longer than the end of an epoch may wait. Call it in the middle of an epoch.
    fn prepare(&mut self) {}

    /// Changes its budget, in millionths of one processor's time. A source that only reads what the program wrote has
    /// none.
    fn set_budget(&mut self, _budget_ppm: u64) {}

    /// Watches these processes, the largest first, where it watches single processes.
    fn watch(&mut self, _by_size: &[Process]) {}

    /// True where it reads a ring that overflows unless it is scanned several times an epoch.
    fn overflows(&self) -> bool {
        false
    }

    /// Advice for a user where the source delivers nothing; empty where the reason is unknown.
    fn advice(&self) -> &'static str {
        ""
    }

    /// Number of processes of which it keeps data.
    #[cfg(test)]
    fn kept(&self) -> usize {
        0
    }

    /// True where no coarser source of the same method is needed for this process.
    fn covers(&self, _process: &Process) -> bool {
        false
    }
}

/// The input of one scan.
pub struct ScanContext<'a> {
    /// Time, and the cost of the scan.
    pub clock: &'a dyn Clock,
    /// The directory `proc`.
    pub proc_root: &'a Path,
    /// Bytes of a page.
    pub page: u64,
    /// Time since the last scan.
    pub span: Nanos,
    /// Processor time that the processes used since the last scan, where the daemon measured it.
    pub busy: Nanos,
    /// The processes to scan.
    pub processes: &'a [Process],
    /// Their resident memory, where the daemon read it.
    pub resident: &'a BTreeMap<Process, ProcessMemory>,
    /// Their session files, where the programs run under the runtime.
    pub sessions: Option<&'a mut Sessions>,
}

/// Most accesses kept in one epoch; more are counted as lost. 80 bytes each. Tests fill the list.
const ACCESSES_AT_MOST: usize = if cfg!(test) { 1 << 16 } else { 4 << 20 };

/// The accesses of an epoch, up to a limit.
#[derive(Clone, Debug, Default)]
pub struct AccessList(Vec<ObservedAccess>);

impl AccessList {
    /// Adds an access; false where there is no room.
    #[must_use]
    pub fn push(&mut self, access: ObservedAccess) -> bool {
        let has_room = self.0.len() < ACCESSES_AT_MOST;
        if has_room {
            self.0.push(access);
        }
        has_room
    }

    /// Adds an access, which stands for a number of samples in the report of its source. Every sample is counted here
    /// once: as usable, or as lost for lack of room.
    pub fn add(&mut self, report: &mut SourceReport, samples: u64, access: ObservedAccess) {
        let sum = match self.push(access) {
            true => &mut report.usable,
            false => &mut report.lost,
        };
        *sum = sum.saturating_add(samples);
    }

    /// Adds the hits that the accessed bits of a range's pages show, if there are any; they are lost where there is no room.
    pub(crate) fn add_hits(
        &mut self,
        report: &mut SourceReport,
        (process, range): (Process, AddressRange),
        (source, hits): (SourceKind, u64),
    ) {
        let access = ObservedAccess {
            bytes: range.bytes,
            ..ObservedAccess::at((process, range.start), source, (hits, source.unit(false)))
        };
        report.lost += u64::from(hits > 0 && !self.push(access));
    }

    /// The accesses so far, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut ObservedAccess> {
        self.0.iter_mut()
    }

    /// The accesses so far.
    #[must_use]
    pub fn as_slice(&self) -> &[ObservedAccess] {
        &self.0
    }

    /// Removes and returns all accesses.
    #[must_use]
    pub fn take(&mut self) -> Vec<ObservedAccess> {
        std::mem::take(&mut self.0)
    }

    /// Keeps only the accesses for which `keep` is true.
    pub fn retain(&mut self, keep: impl FnMut(&ObservedAccess) -> bool) {
        self.0.retain(keep);
    }
}

/// The fault of a source that took no sample although the programs used more than `enough` processor time; `None` where there is
/// none.
#[must_use]
pub fn silence(report: &SourceReport, used: Nanos, enough: Nanos) -> Option<String> {
    (report.taken == 0 && used > enough)
        .then(|| format!("it delivered nothing in {used} of the programs' processor time"))
}

/// The accesses of one scan of a second by this source, with pages of 4 KiB, for tests.
#[cfg(test)]
pub(crate) fn scan_of(
    source: &mut dyn Source,
    (clock, proc_root): (&dyn Clock, &Path),
    processes: &[Process],
    resident: &BTreeMap<Process, ProcessMemory>,
) -> Vec<ObservedAccess> {
    let mut scan = ScanContext {
        clock,
        proc_root,
        page: 4096,
        span: Nanos(1_000_000_000),
        busy: Nanos::ZERO,
        processes,
        resident,
        sessions: None,
    };
    let mut accesses = AccessList::default();
    source.scan(&mut scan, &mut accesses);
    accesses.take()
}
