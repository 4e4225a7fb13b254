//! [`ForkLock`] keeps moves and `fork` apart: a child that is made while a unit moves would find the unit missing.

use core::sync::atomic::{AtomicU32, Ordering};

use isotherm_sys::staged::Exclusion;
use rustix::thread::futex;

const OPEN: u32 = 0;
const CLOSED: u32 = 1;
const AWAITED: u32 = 2;

impl Exclusion for ForkLock {
    fn enter(&self) {
        self.close();
    }

    fn leave(&self) {
        self.open();
    }
}

/// Held by the mover for each unit, and by a thread that forks from before the fork until after it, in parent
/// and child. It stores no owner: a thread that holds it must not close it again.
#[derive(Debug, Default)]
pub struct ForkLock(AtomicU32);

impl ForkLock {
    /// An open lock.
    #[must_use]
    pub const fn new() -> Self {
        Self(AtomicU32::new(OPEN))
    }

    /// Waits until the lock is open and closes it. A mover holds it for one unit, well under a
    /// millisecond on an idle machine.
    pub fn close(&self) {
        let closed = self
            .0
            .compare_exchange(OPEN, CLOSED, Ordering::Acquire, Ordering::Relaxed);
        if closed.is_ok() {
            return;
        }
        while self.0.swap(AWAITED, Ordering::Acquire) != OPEN {
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, AWAITED, None);
        }
    }

    /// Opens it for the next thread.
    pub fn open(&self) {
        if self.0.swap(OPEN, Ordering::Release) == AWAITED {
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ForkLock;
    use core::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn one_at_a_time_goes_through_the_gate() {
        let (lock, inside, passed) = (ForkLock::new(), AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        lock.close();
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        inside.fetch_sub(1, Ordering::Relaxed);
                        passed.fetch_add(1, Ordering::Relaxed);
                        lock.open();
                    }
                });
            }
        });
        assert_eq!(passed.load(Ordering::Relaxed), 4_000);
    }
}
