//! The clock that periods are counted by: how much work the program has done, in processor time.
//!
//! The kernel charges a program for the faults that we cause, some microseconds each. They are not
//! the program's work, and a clock that counted them would begin a new period while the program
//! still pays for the last; so they are taken off, at what a fault was measured to cost.

use core::sync::atomic::{AtomicU64, Ordering};

use rustix::time::{ClockId, clock_gettime};

/// Shortest time between two looks at the clock, which costs a system call that asks every thread.
const SHORTEST_LOOK_NS: u64 = 500_000;

/// The program may run on several processors, so its clock may be faster than ours: we look again
/// after this fraction of what is left.
const LOOKS_PER_REST: u64 = 4;

/// What a fault costs by nature, measured at the start.
pub(crate) struct FaultCosts {
    round_trip_ns: AtomicU64,
    processor_ns: AtomicU64,
}

impl FaultCosts {
    pub(crate) const fn new() -> Self {
        Self {
            round_trip_ns: AtomicU64::new(0),
            processor_ns: AtomicU64::new(0),
        }
    }

    pub(crate) fn set(&self, round_trip_ns: u64, processor_ns: u64) {
        self.round_trip_ns.store(round_trip_ns, Ordering::Relaxed);
        self.processor_ns.store(processor_ns, Ordering::Relaxed);
    }

    /// From the access until the program goes on, without any delay.
    pub(crate) fn round_trip_ns(&self) -> u64 {
        self.round_trip_ns.load(Ordering::Relaxed)
    }

    /// Processor time that the faulting thread is charged.
    pub(crate) fn processor_ns(&self) -> u64 {
        self.processor_ns.load(Ordering::Relaxed)
    }
}

/// The clock.
pub(crate) struct Progress {
    faults: u64,
    done_ns: u64,
    next_look_ns: u64,
}

impl Progress {
    pub(crate) const fn new() -> Self {
        Self {
            faults: 0,
            done_ns: 0,
            next_look_ns: 0,
        }
    }

    /// The program was made to fault once more.
    pub(crate) fn count_fault(&mut self) {
        self.faults += 1;
    }

    /// Whether it is worth looking at the clock.
    pub(crate) fn is_due(&self, now_ns: u64) -> bool {
        now_ns >= self.next_look_ns
    }

    pub(crate) fn next_look_ns(&self) -> u64 {
        self.next_look_ns
    }

    /// Reads the clock: work of all threads but this one. Service thread only.
    pub(crate) fn read(&mut self, fault_ns: u64) -> u64 {
        let work_ns = nanos(ClockId::ProcessCPUTime).saturating_sub(thread_ns());
        self.advance(work_ns, fault_ns)
    }

    /// The clock never goes back, although what a fault costs is a guess.
    fn advance(&mut self, work_ns: u64, fault_ns: u64) -> u64 {
        let done_ns = work_ns.saturating_sub(self.faults * fault_ns);
        self.done_ns = self.done_ns.max(done_ns);
        self.done_ns
    }

    /// Sets the next look, with `left_ns` of work left in the period.
    pub(crate) fn look_again(&mut self, now_ns: u64, left_ns: u64) {
        self.next_look_ns = now_ns + (left_ns / LOOKS_PER_REST).max(SHORTEST_LOOK_NS);
    }
}

/// Monotonic time.
pub(crate) fn now_ns() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Processor time of the calling thread.
pub(crate) fn thread_ns() -> u64 {
    nanos(ClockId::ThreadCPUTime)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::{Progress, SHORTEST_LOOK_NS};

    #[test]
    fn faults_are_not_work_and_the_clock_never_goes_back() {
        let mut progress = Progress::new();
        assert_eq!(progress.advance(1_000_000, 4000), 1_000_000);
        for _ in 0..1000 {
            progress.count_fault();
        }
        assert_eq!(
            progress.advance(4_500_000, 4000),
            1_000_000,
            "the program did nothing but fault"
        );
        assert_eq!(progress.advance(9_000_000, 4000), 5_000_000);
    }

    #[test]
    fn the_clock_is_looked_at_more_often_towards_the_end_of_a_period() {
        let mut progress = Progress::new();
        assert!(progress.is_due(0));
        progress.look_again(100, 40_000_000);
        assert!(!progress.is_due(10_000_099));
        assert!(progress.is_due(10_000_100));
        progress.look_again(0, 1);
        assert_eq!(progress.next_look_ns(), SHORTEST_LOOK_NS);
    }
}
