//! Lets a thread wait as if its memory were slower: it stays on its processor.

use crate::clock;

/// A longer time between two looks at the clock is not waiting: another thread had the processor. Shorter ones are interrupts,
/// or a hypervisor's.
const GAP_NS: u64 = 1_000_000;

/// Keeps the calling thread busy for `ns` nanoseconds of its own processor time. No system call.
pub(crate) fn busy(ns: u64) {
    let (mut left, mut last) = (ns, clock::now_ns());
    while left > 0 {
        for _ in 0..32 {
            core::hint::spin_loop();
        }
        let now = clock::now_ns();
        left = left.saturating_sub(now.saturating_sub(last).min(GAP_NS));
        last = now;
    }
}

/// Keeps the calling thread busy until this time of [`clock::now_ns`]. No system call.
pub(crate) fn until(end_ns: u64) {
    while clock::now_ns() < end_ns {
        for _ in 0..32 {
            core::hint::spin_loop();
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::clock;

    #[test]
    fn the_thread_works_for_as_long_as_it_waits() {
        let (begin, wall) = (clock::thread_ns(), clock::now_ns());
        super::busy(20_000_000);
        let used = clock::thread_ns() - begin;
        assert!(clock::now_ns() - wall >= 20_000_000);
        assert!(used > 10_000_000, "{used}");
    }
}
