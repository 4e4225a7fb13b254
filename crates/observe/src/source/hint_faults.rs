//! [`HintFaults`], a source of the daemon, samples NUMA hint faults by perf: touches of pages that the kernel unmapped to observe them.
//!
//! With `kernel.numa_balancing` on, the kernel makes the pages of a process inaccessible, part by part, and the next touch of
//! each is a page fault that it serves at once. perf's page-fault event sees it with its address, so unmodified
//! programs are observed on machines without a PMU. In mode 2 the kernel unmaps pages of slow nodes only: a hot page
//! on a fast node has no fault, which the rank of units takes into account ([`SourceKind::sees_slow_only`]).
//!
//! ```text
//! the kernel unmaps    |x x x x|       |x x x x|        the touched pages of a round: a fault each
//! faults                 ^ ^             ^ ^ ^
//! first touches                  ^                      of a page that was not resident: left out
//! ```
//!
//! A fault of a page that was resident before is a hint fault, or a write to a page that a fork shares: a touch in any
//! case. Measured in a virtual machine (Linux 6.12): as many events as `numa_hint_faults` in `/proc/vmstat`.
//!
//! Kernel documents: `admin-guide/sysctl/kernel.rst` (`numa_balancing`), `perf_event_open(2)`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use isotherm_model::batch::{ObservedAccess, Process, SourceReport};
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Nanos;
use isotherm_sys::perf::{PerfEventAttributes, Sampler};

use super::cost_budget::CostBudget;
use super::perf_ring::{EventKind, PerfEvent, PerfSource};
use super::sampled_event::Addressing;
use super::{AccessList, ScanContext, Source};
use crate::watch::memory::ProcessMemory;

/// The switch of the kernel's balancing, below the root.
pub(crate) const BALANCING: &str = "proc/sys/kernel/numa_balancing";

/// What makes the kernel produce hint faults.
pub(crate) const REMEDY: &str =
    "`moves.mover = \"kernel\"` of the daemon, or as root: sysctl kernel.numa_balancing=2";

/// Bytes of a ring: 21,000 faults a processor between two readings.
const RING_BYTES: usize = 1 << 20;

/// Most distinct pages of an epoch; further faults are dropped.
const PAGES_AT_MOST: usize = 1 << 20;

/// The cost of a fault and of its record to a program.
const COST: &str = "1.7 us for a page-table zap and a minor fault of 4 KiB (2-core EPYC virtual machine, Linux 6.18), which the \
                    kernel's balancing costs with or without this source; the record of a fault: not measured";

/// The source of hint faults.
#[derive(Debug)]
pub struct HintFaults {
    perf: PerfSource,
    cpus: Vec<u32>,
    interval: CostBudget,
}

impl HintFaults {
    /// Observes the faults of all processes on the machine below this root, for this many millionths of one processor's time.
    ///
    /// # Errors
    /// A message with the remedy: the kernel has no balancing, it is off, or the event may not be opened.
    pub fn open(root: &Path, budget_ppm: u64) -> Result<Self, String> {
        balancing_mode(root)?;
        let mut source = Self {
            perf: PerfSource::new(SourceKind::HintFaults.word(), Addressing::Given, COST),
            cpus: isotherm_topology::cpu_list::online_cpus(root),
            interval: CostBudget::new(budget_ppm),
        };
        source.attach();
        match source.perf.is_attached() {
            true => Ok(source),
            false => Err(source.perf.report.warning),
        }
    }

    /// Opens the event: one in [`CostBudget::get`] faults.
    fn attach(&mut self) {
        let event = PerfEventAttributes::page_faults(u64::from(self.interval.get()));
        let ring = (self.cpus.as_slice(), RING_BYTES);
        self.perf.attach(&event, None, Sampler::EVERY_PROCESS, ring);
        self.perf.switch(true);
    }

    /// Opens the event with another period; its report goes on.
    fn open_again(&mut self) {
        let report = std::mem::take(&mut self.perf.report);
        self.perf = PerfSource::new(SourceKind::HintFaults.word(), Addressing::Given, COST);
        self.perf.report = report;
        self.attach();
    }

    /// Counts the faults since the last call, by process and page.
    fn drain(&mut self, scan: &ScanContext<'_>) -> BTreeMap<(Process, u64), u64> {
        let by_pid: HashMap<u32, Process> =
            scan.processes.iter().map(|one| (one.pid, *one)).collect();
        let (mut pages, page) = (BTreeMap::new(), scan.page.max(1));
        let mut take = |perf: &mut PerfSource, event: PerfEvent| {
            let EventKind::Sample(_, sample) = event.kind else {
                return;
            };
            let Some(process) = by_pid.get(&sample.pid) else {
                return;
            };
            if !is_touch(scan.resident.get(process), sample.address) {
                return;
            }
            let key = (*process, sample.address / page * page);
            if pages.len() < PAGES_AT_MOST || pages.contains_key(&key) {
                *pages.entry(key).or_default() += 1;
            } else {
                perf.report.lost += 1;
            }
        };
        self.perf
            .drain(0, &|pid| by_pid.contains_key(&pid), &mut take);
        pages
    }
}

/// True where a fault at this address is a touch of a page that was there before.
fn is_touch(resident: Option<&ProcessMemory>, address: u64) -> bool {
    resident.is_some_and(|memory| memory.has(address))
}

/// The mode of the kernel's balancing, which is not 0.
///
/// # Errors
/// Why there is none, with the remedy.
pub(crate) fn balancing_mode(root: &Path) -> Result<u32, String> {
    let text = std::fs::read_to_string(root.join(BALANCING)).map_err(|error| {
        format!("/{BALANCING}: {error}; hint faults need a kernel with CONFIG_NUMA_BALANCING")
    })?;
    match text.trim().parse() {
        Ok(0) => Err(format!(
            "/{BALANCING} is 0, so the kernel unmaps no pages; {REMEDY}"
        )),
        Ok(mode) => Ok(mode),
        Err(_) => Err(format!("/{BALANCING} is \"{}\", no number", text.trim())),
    }
}

impl Source for HintFaults {
    fn report(&self) -> SourceReport {
        self.perf.report.clone()
    }

    fn set_budget(&mut self, budget_ppm: u64) {
        self.interval.set(budget_ppm);
    }

    fn overflows(&self) -> bool {
        true
    }

    fn covers(&self, _process: &Process) -> bool {
        true
    }

    fn advice(&self) -> &'static str {
        REMEDY
    }

    fn scan(&mut self, scan: &mut ScanContext<'_>, accesses: &mut AccessList) {
        let begin = scan.clock.busy();
        let (pages, source) = (self.drain(scan), SourceKind::HintFaults);
        for ((process, address), faults) in pages {
            // One fault in each interval was recorded; it counts for all of them.
            let touches = faults.saturating_mul(u64::from(self.interval.get()));
            let access =
                ObservedAccess::at((process, address), source, (touches, source.unit(false)));
            accesses.add(&mut self.perf.report, faults, access);
        }
        self.perf.report.cost += scan.clock.busy().saturating_sub(begin);
        let span = Nanos(scan.span.0.max(1));
        if self.interval.learn(self.perf.report.cost, span) {
            self.open_again();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{HintFaults, balancing_mode, is_touch};
    use crate::clock::MachineClock;
    use crate::source::{Source, scan_of};
    use crate::watch::memory::ProcessMemory;
    use isotherm_model::batch::Process;
    use isotherm_model::port::Clock;
    use std::collections::BTreeMap;
    use std::path::Path;

    fn machine(mode: Option<&str>) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        let directory = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&directory).expect("made");
        if let Some(mode) = mode {
            std::fs::write(directory.join("numa_balancing"), mode).expect("written");
        }
        let cpus = root.path().join("sys/devices/system/cpu");
        std::fs::create_dir_all(&cpus).expect("made");
        let online = std::fs::read_to_string("/sys/devices/system/cpu/online");
        std::fs::write(cpus.join("online"), online.unwrap_or("0\n".into())).expect("written");
        root
    }

    #[test]
    fn balancing_that_is_off_or_absent_is_refused_with_the_remedy() {
        let refused = |mode| balancing_mode(machine(mode).path()).expect_err("refused");
        assert!(refused(None).contains("CONFIG_NUMA_BALANCING"));
        assert!(refused(Some("0\n")).contains("numa_balancing=2"));
        assert!(refused(Some("many\n")).contains("\"many\""));
        for mode in 1..=3_u32 {
            let root = machine(Some(&format!("{mode}\n")));
            assert_eq!(balancing_mode(root.path()), Ok(mode));
        }
    }

    #[test]
    fn a_first_touch_is_no_touch_of_a_resident_page() {
        let memory = ProcessMemory::of_spans(&[0x2000..0x5000, 0x20_3000..0x20_4000], 2 << 20);
        for (address, wanted) in [
            (0x1fff, false),
            (0x2000, true),
            (0x4fff, true),
            (0x5000, false),
            (0x20_3abc, true),
            (0x40_0000, false),
        ] {
            assert_eq!(is_touch(Some(&memory), address), wanted, "{address:#x}");
        }
        assert!(!is_touch(None, 0x2000), "its memory was not read yet");
    }

    /// On one node no hint faults exist, but any fault of a page that is counted as resident takes the same path: here first touches.
    #[test]
    fn faults_of_a_watched_process_are_touches_with_their_pages() {
        const PAGES: usize = 64;
        const HUGE: usize = 2 << 20;
        let root = machine(Some("2\n"));
        let mut source = match HintFaults::open(root.path(), 1_000_000) {
            Ok(source) => source,
            Err(error) => return isotherm_skip::skip!("samples of page faults: {error}"),
        };
        // So large that no allocator has it resident from before, and a page of each huge page.
        let mut memory = vec![0_u8; PAGES * HUGE];
        let start = memory.as_ptr() as u64;
        for byte in memory.iter_mut().step_by(HUGE) {
            *byte = 1;
        }
        std::hint::black_box(&memory);
        let own = Process {
            pid: std::process::id(),
            ..Process::default()
        };
        let range = start..start + memory.len() as u64;
        let resident = ProcessMemory::of_spans(std::slice::from_ref(&range), 2 << 20);
        let resident = BTreeMap::from([(own, resident)]);
        let scan = (&MachineClock as &dyn Clock, Path::new("/proc"));
        let seen = scan_of(&mut source, scan, &[own], &resident);
        assert!(seen.len() >= PAGES / 2, "{} pages", seen.len());
        for access in &seen {
            assert!(range.contains(&access.address) || access.address / 4096 == start / 4096);
        }
        let report = source.report();
        assert!(report.usable >= seen.len() as u64 && report.taken >= report.usable);
        assert!(scan_of(&mut source, scan, &[], &resident).is_empty());
    }
}
