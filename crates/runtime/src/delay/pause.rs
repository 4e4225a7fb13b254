//! Lets a thread wait as if its memory were slower, busy on its processor: for some of its processor time, or until a time of the clock.

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
        let wall = clock::now_ns();
        let gave_up = times_it_gave_up_its_processor();
        super::busy(20_000_000);
        assert_eq!(times_it_gave_up_its_processor(), gave_up);
        assert!(clock::now_ns() - wall >= 20_000_000);
    }

    /// Voluntary context switches of this thread: a sleep is one, and a loaded machine makes others only.
    fn times_it_gave_up_its_processor() -> i64 {
        let mut usage = core::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: zeroes are a valid value, which the kernel overwrites.
        unsafe {
            assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
            usage.assume_init().ru_nvcsw
        }
    }
}
