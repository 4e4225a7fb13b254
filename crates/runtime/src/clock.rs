//! Names the clocks that the runtime reads, in nanoseconds: monotonic time, and processor time of the process and of a thread.

use rustix::time::{ClockId, clock_gettime};

/// Monotonic time.
pub(crate) fn now_ns() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Processor time of the calling thread.
pub(crate) fn thread_ns() -> u64 {
    nanos(ClockId::ThreadCPUTime)
}

/// Processor time of all threads of the process.
pub(crate) fn process_ns() -> u64 {
    nanos(ClockId::ProcessCPUTime)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
