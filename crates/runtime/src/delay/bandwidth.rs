//! [`Bandwidth`] tells how long a thread must wait for its bytes from the bandwidths of fast and slow memory that all programs on an
//! emulated machine share: a shared file ([`isotherm_abi::machine`]) has the time until which each memory is busy, and bytes prolong it.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering};

use isotherm_abi::VERSION;
use isotherm_abi::machine::{FILE_BYTES, FILE_NAME, MAGIC, MachineHeader};
use isotherm_abi::session::OffReason;

use super::traffic::Traffic;
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
    /// The bandwidths of the session's machine; `None` where none is limited.
    ///
    /// # Errors
    /// [`OffReason::NoSession`], [`OffReason::NoAddressSpace`], [`OffReason::BadConfig`] for a file of another version.
    pub(crate) fn of_session(directory: Option<&CStr>) -> Result<Option<Self>, OffReason> {
        let Some(base) = shared_file::map(directory, FILE_NAME, FILE_BYTES)? else {
            return Ok(None);
        };
        // SAFETY: the file is as long as that, aligned to a page and never unmapped; all that changes is atomic.
        let header = unsafe { &*core::ptr::with_exposed_provenance::<MachineHeader>(base) };
        match header.magic == MAGIC && header.version == VERSION {
            true => Ok(Some(Self(header))),
            false => Err(OffReason::BadConfig),
        }
    }

    /// The bytes that a thread is served before others have their turn: as many as the memory delivers in 20 ms.
    pub(crate) fn of_a_turn(self) -> Traffic {
        let [fast, slow] = self.tiers().map(TierBandwidth::bytes_of_a_turn);
        Traffic { fast, slow }
    }

    /// Serves bytes that a thread accessed until `now_ns`, a time of [`crate::clock::now_ns`], both tiers at the same time. Returns the
    /// time until which the thread waits for them: at most `now_ns` where the memory had time for them already.
    pub(crate) fn serve(self, traffic: Traffic, now_ns: u64) -> u64 {
        let [fast, slow] = self.tiers();
        let fast = fast.serve(traffic.fast, now_ns);
        fast.max(slow.serve(traffic.slow, now_ns))
    }

    fn tiers(self) -> [TierBandwidth; 2] {
        let [fast, slow] = &self.0.bytes_per_second;
        let [fast_busy, slow_busy] = &self.0.busy_until_ns;
        [
            TierBandwidth {
                limit: fast,
                busy_until_ns: fast_busy,
            },
            TierBandwidth {
                limit: slow,
                busy_until_ns: slow_busy,
            },
        ]
    }
}

/// The memory of one tier.
#[derive(Clone, Copy)]
struct TierBandwidth {
    /// Bytes in a second; 0 where nothing limits it.
    limit: &'static AtomicU64,
    busy_until_ns: &'static AtomicU64,
}

impl TierBandwidth {
    fn limit(self) -> Option<u64> {
        let limit = self.limit.load(Ordering::Relaxed);
        (limit > 0).then_some(limit)
    }

    fn bytes_of_a_turn(self) -> u64 {
        self.limit().map_or(u64::MAX, |limit| (limit / 50).max(1))
    }

    fn serve(self, bytes: u64, now_ns: u64) -> u64 {
        let Some(limit) = self.limit().filter(|_| bytes > 0) else {
            return now_ns;
        };
        let takes = (u128::from(bytes) * 1_000_000_000 / u128::from(limit)) as u64;
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
        let before = self
            .busy_until_ns
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |old| Some(after(old)))
            .unwrap_or_else(|old| old);
        after(before).min(now_ns.saturating_add(WAIT_AT_MOST_NS))
    }
}

#[cfg(test)]
mod tests {
    use core::sync::atomic::AtomicU64;

    use super::{Bandwidth, MAGIC, MachineHeader, Traffic, VERSION};

    const MS: u64 = 1_000_000;
    /// 1 byte takes 1 ns.
    const LIMIT: u64 = 1_000_000_000;

    /// With a limit of slow memory, and this one of fast memory.
    fn bandwidth(fast: u64) -> Bandwidth {
        Bandwidth(Box::leak(Box::new(MachineHeader {
            magic: MAGIC,
            version: VERSION,
            reserved: 0,
            bytes_per_second: [fast, LIMIT].map(AtomicU64::new),
            busy_until_ns: [0, 0].map(AtomicU64::new),
        })))
    }

    fn slow(bytes: u64) -> Traffic {
        Traffic {
            fast: 0,
            slow: bytes,
        }
    }

    #[test]
    fn a_thread_below_the_limit_does_not_wait() {
        let memory = bandwidth(0);
        for step in 1..100 {
            let now = 1_000 * MS + step * MS;
            assert!(memory.serve(slow(MS * 8 / 10), now) <= now);
        }
    }

    #[test]
    fn two_threads_above_the_limit_get_half_each() {
        let memory = bandwidth(0);
        let mut resumed = [1_000 * MS; 2];
        let mut served = [0, 0];
        let end = 2_000 * MS;
        while let Some(thread) = (0..2)
            .filter(|it| resumed[*it] < end)
            .min_by_key(|it| resumed[*it])
        {
            // Each thread reads 3 bytes a nanosecond while it works.
            let now = resumed[thread] + MS;
            resumed[thread] = memory.serve(slow(3 * MS), now).max(now);
            served[thread] += 3 * MS;
        }
        for bytes in served {
            assert!(bytes.abs_diff(LIMIT / 2) < LIMIT / 50, "{served:?}");
        }
    }

    #[test]
    fn fast_memory_has_a_limit_of_its_own_and_serves_while_slow_memory_does() {
        // 1 byte of fast memory takes half a nanosecond, of slow memory one.
        let memory = bandwidth(2 * LIMIT);
        let both = |fast, slow| Traffic { fast, slow };
        assert_eq!(memory.of_a_turn(), both(40 * MS, 20 * MS));
        let now = 1_000 * MS;
        assert_eq!(memory.serve(both(80 * MS, 0), now), now + 24 * MS);
        assert_eq!(
            memory.serve(both(0, 30 * MS), now),
            now + 14 * MS,
            "slow memory was idle"
        );
        assert_eq!(memory.serve(both(2 * MS, 20 * MS), now), now + 34 * MS);
        assert_eq!(bandwidth(0).serve(both(1 << 40, 0), now), now, "no limit");
    }

    #[test]
    fn a_time_of_another_clock_is_forgotten() {
        let memory = bandwidth(0);
        memory.0.busy_until_ns[1].store(u64::MAX, super::Ordering::Relaxed);
        assert_eq!(memory.serve(slow(20 * MS), 1_000 * MS), 1_004 * MS);
        assert_eq!(memory.serve(slow(3 * MS), 1_001 * MS), 1_007 * MS);
    }

    #[test]
    fn one_wait_is_bounded() {
        let memory = bandwidth(0);
        assert_eq!(memory.serve(slow(1 << 40), 5 * MS), 1_005 * MS);
    }
}
