//! Accessed bits of watched processes: by regions where the kernel has DAMON, else by mappings.
//!
//! `clear_refs` and `smaps` work on every kernel, but tell kilobytes of a whole mapping: data that
//! lies in one mapping with other data cannot be told apart by them. DAMON finds regions inside
//! mappings and adapts them to what is accessed alike; it needs the right to write its sysfs files.

use std::path::Path;

use isotherm_model::batch::{Process, SourceReport};
use isotherm_model::movement::AddressRange;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Evidence, Sighting};

use super::cost::Stride;
use crate::accessed::{AccessedBits, Vma};
use crate::clock::Clock;

/// Accessed bits by mapping.
#[derive(Debug)]
pub struct MappingBits {
    bits: AccessedBits,
    stride: Stride,
    turn: u32,
}

impl MappingBits {
    /// A source that may use so many millionths of one processor's time.
    #[must_use]
    pub fn new(budget_ppm: u64) -> Self {
        let mut bits = AccessedBits::new();
        "mapping-bits".clone_into(&mut bits.report.name);
        Self {
            bits,
            stride: Stride::new(budget_ppm),
            turn: 0,
        }
    }

    /// What it did so far.
    #[must_use]
    pub const fn report(&self) -> &SourceReport {
        &self.bits.report
    }

    /// Changes its budget.
    pub const fn set_budget(&mut self, budget_ppm: u64) {
        self.stride.set_budget(budget_ppm);
    }

    /// Opens a window on these processes and adds what was accessed in it. Where the source is too
    /// dear for its budget, most calls do nothing. `span` is the time since the last call.
    pub fn look(
        &mut self,
        clock: &dyn Clock,
        proc_root: &Path,
        processes: &[Process],
        page: u64,
        span: Nanos,
        sightings: &mut Vec<Sighting>,
    ) {
        self.turn += 1;
        if self.turn < self.stride.get() {
            return;
        }
        let strides = self.turn;
        self.turn = 0;
        let begin = clock.busy();
        let pids: Vec<u32> = processes.iter().map(|process| process.pid).collect();
        let mut taken = 0;
        self.bits.look_at(clock, proc_root, &pids, |pid, vma| {
            let process = processes.iter().find(|process| process.pid == pid);
            if let Some(sighting) = process.and_then(|process| sighting(*process, vma, page)) {
                taken += sighting.hits;
                sightings.push(sighting);
            }
        });
        let report = &mut self.bits.report;
        report.taken += taken;
        report.usable += taken;
        report.cost += clock.busy().saturating_sub(begin);
        // The window was for as many epochs as were left out.
        let span = Nanos(span.0.saturating_mul(u64::from(strides)));
        self.stride.learn(report.cost, span);
    }
}

fn sighting(process: Process, vma: Vma, page: u64) -> Option<Sighting> {
    let hits = vma.referenced_bytes / page.max(1);
    (hits > 0).then_some(Sighting {
        process,
        range: AddressRange {
            start: vma.start,
            bytes: Bytes(vma.end - vma.start),
        },
        hits,
        evidence: Evidence::AccessedBits,
    })
}

#[cfg(test)]
mod tests {
    use super::MappingBits;
    use crate::clock::{Clock, MachineClock};
    use isotherm_model::batch::Process;
    use isotherm_model::units::Nanos;
    use std::path::Path;

    #[test]
    fn what_this_process_touches_in_the_window_is_seen_and_its_cost_slows_the_source() {
        let data = vec![1_u8; 64 << 20];
        let stop = std::sync::atomic::AtomicBool::new(false);
        let process = Process {
            pid: std::process::id(),
            image: 3,
        };
        let mut seen = Vec::new();
        // One millionth of a processor: no window is that cheap.
        let mut bits = MappingBits::new(1);
        let second = Nanos(1_000_000_000);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    std::hint::black_box(
                        data.iter()
                            .step_by(4096)
                            .map(|b| u64::from(*b))
                            .sum::<u64>(),
                    );
                }
            });
            bits.look(
                &MachineClock,
                Path::new("/proc"),
                &[process],
                4096,
                second,
                &mut seen,
            );
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        if seen.is_empty() {
            return println!("skipped: accessed bits: {}", bits.report().trouble);
        }
        let at = data.as_ptr() as u64;
        let hit = seen
            .iter()
            .find(|s| s.range.start <= at && at < s.range.end());
        let hit = hit.expect("the mapping of the data");
        assert_eq!(hit.process, process);
        assert!(hit.hits > 1000, "{hit:?}");
        assert!(bits.report().cost > Nanos::ZERO);
        let before = MachineClock.busy();
        seen.clear();
        bits.look(
            &MachineClock,
            Path::new("/proc"),
            &[process],
            4096,
            second,
            &mut seen,
        );
        assert!(
            seen.is_empty(),
            "every second window at most, after {before}"
        );
    }
}
