//! The bandwidth of slow memory that all threads of all programs on an emulated machine share ([`isotherm_abi::machine`]).

use core::ffi::CStr;
use core::sync::atomic::Ordering;

use isotherm_abi::VERSION;
use isotherm_abi::machine::{FILE_BYTES, FILE_NAME, MAGIC, MachineHeader};
use isotherm_abi::session::OffReason;

use crate::shared_file;

/// Longest wait at a sample, in nanoseconds, because signals wait as long; the rest is waited for at the next samples.
pub(crate) const WAIT_AT_MOST_NS: u64 = 1_000_000_000;

/// A time until which memory is busy that is further ahead than an hour is not of this clock.
const BUSY_AT_MOST_NS: u64 = 3_600_000_000_000;

/// Time that memory can have been idle for bytes that it serves now, in nanoseconds: a thread accessed them since an earlier
/// sample, and samples count a little too much or too little.
const IDLE_AT_MOST_NS: u64 = 16_000_000;

/// The mapped file.
#[derive(Clone, Copy)]
pub(crate) struct Bandwidth(&'static MachineHeader);

impl Bandwidth {
    /// That of the session; `None` where it has no limit.
    ///
    /// # Errors
    /// [`OffReason::NoSession`], [`OffReason::NoAddressSpace`], [`OffReason::BadConfig`] for a file of another version.
    pub(crate) fn of_session(directory: Option<&CStr>) -> Result<Option<Self>, OffReason> {
        let file = directory.map(|directory| shared_file::map(directory, FILE_NAME, FILE_BYTES));
        let Some(base) = file.transpose()?.flatten() else {
            return Ok(None);
        };
        // SAFETY: the file is as long as that, aligned to a page and never unmapped; all that changes is atomic.
        let header = unsafe { &*core::ptr::with_exposed_provenance::<MachineHeader>(base) };
        match header.magic == MAGIC && header.version == VERSION {
            true => Ok(Some(Self(header))),
            false => Err(OffReason::BadConfig),
        }
    }

    /// The bytes that a thread is served before others have their turn: those of 20 ms.
    pub(crate) fn bytes_of_a_turn(self) -> u64 {
        (self.limit() / 50).max(1)
    }

    fn limit(self) -> u64 {
        self.0.bytes_per_second.load(Ordering::Relaxed).max(1)
    }

    /// Serves bytes that a thread accessed until `now_ns`, a time of [`crate::clock::now_ns`]. Returns the time until which the
    /// thread waits for them: before `now_ns` where the memory had time for them already.
    pub(crate) fn serve(self, bytes: u64, now_ns: u64) -> u64 {
        let takes = (u128::from(bytes) * 1_000_000_000 / u128::from(self.limit())) as u64;
        let since = now_ns.saturating_sub(IDLE_AT_MOST_NS);
        let after = |busy_until: u64| {
            let is_possible = busy_until < now_ns.saturating_add(BUSY_AT_MOST_NS);
            let begins = if is_possible {
                busy_until.max(since)
            } else {
                since
            };
            begins.saturating_add(takes)
        };
        let busy_until = &self.0.busy_until_ns;
        let before = busy_until
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(after(old)))
            .unwrap_or_else(|old| old);
        after(before).min(now_ns.saturating_add(WAIT_AT_MOST_NS))
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU64;

    use super::{Bandwidth, MAGIC, MachineHeader, VERSION};

    const MS: u64 = 1_000_000;
    /// 1 byte takes 1 ns.
    const LIMIT: u64 = 1_000_000_000;

    fn bandwidth() -> Bandwidth {
        Bandwidth(Box::leak(Box::new(MachineHeader {
            magic: MAGIC,
            version: VERSION,
            reserved: 0,
            bytes_per_second: AtomicU64::new(LIMIT),
            busy_until_ns: AtomicU64::new(0),
        })))
    }

    #[test]
    fn a_thread_below_the_limit_does_not_wait() {
        let memory = bandwidth();
        for step in 1..100 {
            let now = 1_000 * MS + step * MS;
            assert!(memory.serve(MS * 8 / 10, now) <= now);
        }
    }

    #[test]
    fn two_threads_above_the_limit_get_half_each() {
        let memory = bandwidth();
        let mut resumed = [1_000 * MS; 2];
        let mut served = [0, 0];
        let end = 2_000 * MS;
        while let Some(thread) = (0..2)
            .filter(|it| resumed[*it] < end)
            .min_by_key(|it| resumed[*it])
        {
            // Each thread reads 3 bytes a nanosecond while it works.
            let now = resumed[thread] + MS;
            resumed[thread] = memory.serve(3 * MS, now).max(now);
            served[thread] += 3 * MS;
        }
        for bytes in served {
            assert!(bytes.abs_diff(LIMIT / 2) < LIMIT / 50, "{served:?}");
        }
    }

    #[test]
    fn a_time_of_another_clock_is_forgotten() {
        let memory = bandwidth();
        memory
            .0
            .busy_until_ns
            .store(u64::MAX, super::Ordering::Relaxed);
        assert_eq!(memory.serve(20 * MS, 1_000 * MS), 1_004 * MS);
        assert_eq!(memory.serve(3 * MS, 1_001 * MS), 1_007 * MS);
    }

    #[test]
    fn one_wait_is_bounded() {
        let memory = bandwidth();
        assert_eq!(memory.serve(1 << 40, 5 * MS), 1_005 * MS);
    }
}
