//! [`Progress`] is the clock of the emulation's periods, at the end of which slow pages are taken away again: the processor time of the
//! program, without the cost of the faults that the emulation causes.
//!
//! The kernel charges a program for these faults, and after each the program's caches are cold. A clock that counted that would begin a new
//! period while the program still pays for the last; above some number of pages, the program would make no progress.
//!
//! So the clock advances in windows of a few milliseconds, and subtracts the cost of faults from each. The cost differs
//! (4 us measured on an idle machine, 12 us where two threads fault), so it is estimated: where a program only faults,
//! as at the beginning of a period, a window's time divided by its faults is the cost, and it is never less elsewhere.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::clock::{process_ns, thread_ns};

/// Shortest time between two reads of the clock, each a system call that queries every thread.
const SHORTEST_LOOK_NS: u64 = 500_000;

/// The program may run on several processors, so its clock may be faster than ours: we read it again after this
/// fraction of what is left.
const LOOKS_PER_REST: u64 = 4;

/// The base cost of a fault, measured at the start.
#[derive(Default)]
pub(crate) struct FaultCosts {
    round_trip_ns: AtomicU64,
    processor_ns: AtomicU64,
}

impl FaultCosts {
    pub(crate) fn set(&self, round_trip_ns: u64, processor_ns: u64) {
        self.round_trip_ns.store(round_trip_ns, Ordering::Relaxed);
        self.processor_ns.store(processor_ns, Ordering::Relaxed);
    }

    /// Wall-clock time from the access until the program continues, without any delay.
    pub(crate) fn round_trip_ns(&self) -> u64 {
        self.round_trip_ns.load(Ordering::Relaxed)
    }

    /// Processor time that the kernel charges to the faulting thread.
    pub(crate) fn processor_ns(&self) -> u64 {
        self.processor_ns.load(Ordering::Relaxed)
    }
}

/// Longest window while there are faults: short enough that a burst of faults fills some windows.
const WINDOW_NS: u64 = 2_000_000;

/// Faults in a window that are enough for an estimate.
const FAULTS_TO_LEARN: u64 = 32;

/// The estimate is between the cost on an idle machine and this many times that.
const COST_SPREAD: u64 = 6;

/// The estimate grows by this fraction a window, so that an outlier is forgotten.
const FORGET: u64 = 64;

/// The clock.
#[derive(Default)]
pub(crate) struct Progress {
    /// Faults in the window.
    faults: u64,
    /// Processor time at its beginning.
    begun_ns: u64,
    /// Estimated cost of a fault; 0 before the first window.
    fault_ns: u64,
    done_ns: u64,
    next_look_ns: u64,
}

impl Progress {
    /// Counts one more fault that we caused.
    pub(crate) fn count_fault(&mut self, now_ns: u64) {
        self.faults += 1;
        self.next_look_ns = self.next_look_ns.min(now_ns + WINDOW_NS);
    }

    /// Whether a read of the clock is worthwhile.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_look_ns
    }

    pub(crate) fn next_look_ns(&self) -> u64 {
        self.next_look_ns
    }

    /// Ends the window and reads the clock: work of all threads but this one. `least_ns` is the cost of a fault
    /// on an idle machine. Service thread only.
    pub(crate) fn read(&mut self, least_ns: u64) -> u64 {
        let used_ns = process_ns().saturating_sub(thread_ns());
        self.advance(used_ns, least_ns)
    }

    fn advance(&mut self, used_ns: u64, least_ns: u64) -> u64 {
        let window_ns = used_ns.saturating_sub(self.begun_ns);
        self.learn(window_ns, least_ns);
        self.done_ns += window_ns.saturating_sub(self.faults * self.fault_ns);
        self.begun_ns = self.begun_ns.max(used_ns);
        self.faults = 0;
        self.done_ns
    }

    fn learn(&mut self, window_ns: u64, least_ns: u64) {
        let greatest_ns = least_ns * COST_SPREAD;
        let mut fault_ns = if self.fault_ns == 0 {
            greatest_ns
        } else {
            self.fault_ns + self.fault_ns / FORGET
        };
        if self.faults >= FAULTS_TO_LEARN {
            fault_ns = fault_ns.min(window_ns / self.faults);
        }
        self.fault_ns = fault_ns.clamp(least_ns, greatest_ns);
    }

    /// Sets the time of the next read, with `left_ns` of work left in the period.
    pub(crate) fn look_again(&mut self, now_ns: u64, left_ns: u64) {
        self.next_look_ns = now_ns + (left_ns / LOOKS_PER_REST).max(SHORTEST_LOOK_NS);
    }
}

#[cfg(test)]
mod tests {
    use super::{Progress, SHORTEST_LOOK_NS, WINDOW_NS};

    #[test]
    fn the_clock_stands_while_the_program_does_nothing_but_fault() {
        let mut progress = Progress::default();
        assert_eq!(progress.advance(1_000_000, 4000), 1_000_000);
        let mut used_ns = 1_000_000;
        for _ in 0..100 {
            (0..100).for_each(|_| progress.count_fault(0));
            // 12 us a fault, three times the idle cost.
            used_ns += 100 * 12_000;
            progress.advance(used_ns, 4000);
        }
        assert_eq!(progress.done_ns, 1_000_000);
        used_ns += 5_000_000;
        assert_eq!(progress.advance(used_ns, 4000), 6_000_000, "no fault");
        (0..10).for_each(|_| progress.count_fault(0));
        used_ns += 1_000_000;
        let done_ns = progress.advance(used_ns, 4000);
        assert!((6_850_000..6_900_000).contains(&done_ns), "{done_ns}");
        assert_eq!(progress.advance(0, 4000), done_ns, "it never goes back");
    }

    #[test]
    fn an_outlier_is_forgotten_and_a_wild_cost_is_not_believed() {
        let mut progress = Progress::default();
        let mut used_ns = 0;
        let mut window = |progress: &mut Progress, fault_ns: u64| {
            (0..50).for_each(|_| progress.count_fault(0));
            used_ns += 50 * fault_ns;
            progress.advance(used_ns, 4000);
            progress.fault_ns
        };
        assert_eq!(window(&mut progress, 10_000), 10_000);
        assert_eq!(window(&mut progress, 1000), 4000);
        assert!((0..200).any(|_| window(&mut progress, 10_000) == 10_000));
        assert!((0..200).all(|_| window(&mut progress, 10_000_000) <= 24_000));
    }

    #[test]
    fn the_clock_is_looked_at_more_often_towards_the_end_of_a_period() {
        let mut progress = Progress::default();
        assert!(progress.is_due(0));
        progress.look_again(100, 40_000_000);
        assert!(!progress.is_due(10_000_099));
        assert!(progress.is_due(10_000_100));
        progress.count_fault(1_000_000);
        assert!(progress.is_due(1_000_000 + WINDOW_NS), "a window is short");
        progress.look_again(0, 1);
        assert_eq!(progress.next_look_ns(), SHORTEST_LOOK_NS);
    }
}
