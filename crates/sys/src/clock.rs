//! Reads monotonic time, and the processor time of the calling thread and of this process, in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// Monotonic time.
#[must_use]
pub fn now_ns() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Processor time of the calling thread.
#[must_use]
pub fn thread_ns() -> u64 {
    nanos(ClockId::ThreadCPUTime)
}

/// Processor time of all threads of the process.
#[must_use]
pub fn process_ns() -> u64 {
    nanos(ClockId::ProcessCPUTime)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
