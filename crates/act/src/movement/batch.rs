//! `BatchSize` adapts the size of the next batch of migration or page-out: as much as the machine moves in half of the time for which a
//! program may be blocked.
//!
//! Each call has a fixed cost, whatever it moves: the kernel drains the lists of all processors and waits for each of them
//! (`lru_cache_disable`). With all processors busy that took 10 ms in a virtual machine, several times as long as the copy of 2 MiB. It
//! blocks no page, so it is no reason for smaller batches: only the time beyond that of the shortest call counts.

use isotherm_model::units::portion;

/// The size of the next batch, estimated from the batches before.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchSize {
    limit_ns: u64,
    bytes: u64,
    /// The shortest batch: its bytes and its time.
    shortest: Option<(u64, u64)>,
}

/// The first batch, before any measurement: 1 MiB takes 5 ms at 200 MB/s, the slowest migration
/// observed on any machine.
const FIRST: u64 = 1 << 20;
/// The smallest batch: 64 small pages. With fewer, the cost of more calls exceeds the saved waiting time.
const LEAST: u64 = 256 << 10;
/// The largest batch: the list of 4 KiB pages of 256 MiB has 65,536 entries.
const MOST: u64 = 256 << 20;

impl BatchSize {
    /// For calls that take at most this time.
    pub(super) const fn new(limit_ns: u64) -> Self {
        Self {
            limit_ns,
            bytes: FIRST,
            shortest: None,
        }
    }

    /// Bytes of the next batch; a larger single page is moved alone.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adapts the size to the time of a batch. The target is half of the limit, because the next
    /// batch may be slower; the size grows twofold at most, so that one quick batch (pages that
    /// refuse at once) does not lead to a long one.
    pub(super) fn learn(&mut self, bytes: u64, took_ns: u64) {
        if bytes == 0 {
            return;
        }
        let (least_bytes, least_ns) = *self.shortest.get_or_insert((bytes, took_ns));
        if took_ns < least_ns {
            self.shortest = Some((bytes, took_ns));
        }
        let added_ns = took_ns.saturating_sub(least_ns).max(1);
        let fits = match bytes.saturating_sub(least_bytes) {
            // Nothing is known of further bytes yet; a larger batch will give a time for them.
            0 => u64::MAX,
            further => portion(further, self.limit_ns / 2, added_ns),
        };
        self.bytes = fits.clamp(LEAST, MOST).min(self.bytes.saturating_mul(2));
    }
}

#[cfg(test)]
mod tests {
    use super::BatchSize;

    #[test]
    fn batches_shrink_at_once_and_grow_by_steps_towards_half_of_the_limit() {
        let mut size = BatchSize::new(20_000_000);
        // 1 GB/s: 10 ms are 10 MB.
        for _ in 0..10 {
            let bytes = size.bytes();
            size.learn(bytes, bytes);
        }
        assert_eq!(size.bytes(), 10_000_000);
        let bytes = size.bytes();
        size.learn(bytes, bytes * 100);
        assert_eq!(size.bytes(), 262_144);
        size.learn(1 << 18, 1);
        assert_eq!(size.bytes(), 524_288);
    }

    #[test]
    fn what_a_call_costs_by_itself_does_not_shrink_batches() {
        // 15 ms for each call, and 1 GB/s.
        let mut size = BatchSize::new(20_000_000);
        for _ in 0..10 {
            let bytes = size.bytes();
            size.learn(bytes, 15_000_000 + bytes);
        }
        assert!(size.bytes() > 8 << 20, "{}", size.bytes());
    }

    #[test]
    fn no_time_and_no_bytes_teach_nothing_absurd() {
        let mut size = BatchSize::new(u64::MAX);
        let before = size.bytes();
        size.learn(0, 0);
        assert_eq!(size.bytes(), before);
        for _ in 0..100 {
            size.learn(u64::MAX, 0);
        }
        assert_eq!(size.bytes(), 256 << 20);
    }
}
