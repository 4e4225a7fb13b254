//! Accessed bits of watched processes by mapping: the watcher's source for processes that no finer
//! source covers.
//!
//! `clear_refs` and `smaps` work on every kernel, but report kilobytes of a whole mapping: hot and
//! cold data in one mapping cannot be separated. DAMON finds regions inside mappings and adapts
//! them to the access pattern; it needs the right to write its sysfs files.

use isotherm_model::batch::{Process, SourceReport};
use isotherm_model::movement::AddressRange;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{AccessReport, SourceKind};

use super::scan_context::ScanContext;
use super::scan_interval::ScanInterval;
use crate::accessed::{AccessedBits, Vma};

/// The cost to the program of each page whose bit is cleared: its next access walks the page table and
/// sets the bit again. Measured with pages of 4 KiB in a virtual machine, where it is most expensive; a
/// huge page is counted as the small ones in it.
const PROGRAM_PAYS: Nanos = Nanos(1_000);

/// Accessed bits by mapping. Their cost to the program counts towards the budget.
#[derive(Debug)]
pub struct MappingBits {
    bits: AccessedBits,
    interval: ScanInterval,
}

impl MappingBits {
    /// A source that may use this many millionths of one processor's time.
    #[must_use]
    pub fn new(budget_ppm: u64) -> Self {
        let mut bits = AccessedBits::new();
        "mapping-bits".clone_into(&mut bits.report.name);
        Self {
            bits,
            interval: ScanInterval::new(budget_ppm),
        }
    }

    /// The report of this source so far.
    #[must_use]
    pub const fn report(&self) -> &SourceReport {
        &self.bits.report
    }

    /// Changes its budget.
    pub const fn set_budget(&mut self, budget_ppm: u64) {
        self.interval.set_budget(budget_ppm);
    }

    /// Opens a window on these processes and adds the accesses in it. Where the source costs more
    /// than its budget, most calls do nothing.
    pub fn look(
        &mut self,
        look: &ScanContext<'_>,
        processes: &[Process],
        sightings: &mut Vec<AccessReport>,
    ) {
        let Some(strides) = self.interval.due() else {
            return;
        };
        let begin = look.clock.busy();
        let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
        let mut taken = 0;
        self.bits
            .look_at(look.clock, look.proc_root, &pids, |pid, vma| {
                let process = processes.iter().find(|process| process.pid == pid);
                if let Some(sighting) =
                    process.and_then(|process| sighting(*process, vma, look.page))
                {
                    taken += sighting.hits;
                    sightings.push(sighting);
                }
            });
        let report = &mut self.bits.report;
        report.taken += taken;
        report.usable += taken;
        report.cost += look.clock.busy().saturating_sub(begin);
        report.cost += Nanos(taken.saturating_mul(PROGRAM_PAYS.0));
        // The window stands for all epochs since the last one.
        let span = Nanos(look.span.0.saturating_mul(u64::from(strides)));
        self.interval.learn(report.cost, span);
    }
}

fn sighting(process: Process, vma: Vma, page: u64) -> Option<AccessReport> {
    let hits = vma.referenced_bytes / page.max(1);
    (hits > 0).then_some(AccessReport {
        process,
        range: AddressRange {
            start: vma.start,
            bytes: Bytes(vma.end - vma.start),
        },
        hits,
        kind: SourceKind::AccessedBits,
        physical: None,
    })
}

#[cfg(test)]
mod tests {
    use super::{MappingBits, PROGRAM_PAYS, ScanContext};
    use crate::clock::MachineClock;
    use isotherm_model::batch::Process;
    use isotherm_model::units::Nanos;
    use isotherm_model::watch::AccessReport;
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    const PROCESS: u32 = 3;

    fn look(bits: &mut MappingBits) -> Vec<AccessReport> {
        let process = Process {
            pid: std::process::id(),
            image: PROCESS,
        };
        let look = ScanContext {
            clock: &MachineClock,
            proc_root: Path::new("/proc"),
            resident: &BTreeMap::new(),
            page: 4096,
            span: Nanos(1_000_000_000),
        };
        let mut seen = Vec::new();
        bits.look(&look, &[process], &mut seen);
        seen
    }

    #[test]
    fn what_this_process_touches_in_a_window_is_seen() {
        let data = vec![1_u8; 8 << 20];
        let at = data.as_ptr() as u64;
        let stop = AtomicBool::new(false);
        let mut bits = MappingBits::new(1_000_000_000);
        let hit = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let sum: u64 = data.iter().step_by(4096).map(|b| u64::from(*b)).sum();
                    std::hint::black_box(sum);
                }
            });
            // On a busy machine the other thread may not run in a window.
            let looks = (0..100).flat_map(|_| look(&mut bits));
            let hit = looks.into_iter().find(|hit| {
                let range = hit.range;
                range.start <= at && at < range.end() && hit.hits >= 2000
            });
            stop.store(true, Ordering::Relaxed);
            hit
        });
        if bits.report().taken == 0 {
            return isotherm_skip::skip!("accessed bits: {}", bits.report().warning);
        }
        assert_eq!(hit.expect("the mapping of the data").process.image, PROCESS);
        let pays = bits.report().usable * PROGRAM_PAYS.0;
        assert!(bits.report().cost > Nanos(pays), "{:?}", bits.report());
    }

    #[test]
    fn a_source_without_a_budget_opens_fewer_windows() {
        // One millionth of a processor: every window costs more.
        let mut bits = MappingBits::new(1);
        let windows = (0..10).filter(|_| !look(&mut bits).is_empty()).count();
        assert!(windows <= 3, "{windows} windows in ten epochs");
    }
}
