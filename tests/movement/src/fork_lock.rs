//! [`ForkLock`] keeps moves and `fork` apart: a child that is made while a unit moves would find the unit missing.

use std::sync::{Condvar, Mutex, PoisonError};

use isotherm_sys::staged::Exclusion;

/// Held by the mover for each unit, well under a millisecond on an idle machine, and by a thread that forks from before the fork
/// until after it. It stores no owner: a thread that holds it must not enter again. A child never uses it.
#[derive(Debug, Default)]
pub struct ForkLock {
    is_closed: Mutex<bool>,
    opened: Condvar,
}

impl Exclusion for ForkLock {
    fn enter(&self) {
        let guard = self
            .is_closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let open = self.opened.wait_while(guard, |is_closed| *is_closed);
        *open.unwrap_or_else(PoisonError::into_inner) = true;
    }

    fn leave(&self) {
        *self
            .is_closed
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = false;
        self.opened.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::{Exclusion as _, ForkLock};
    use core::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn one_at_a_time_goes_through_the_gate() {
        let (lock, inside, passed) = (ForkLock::default(), AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1_000 {
                        lock.enter();
                        assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                        inside.fetch_sub(1, Ordering::Relaxed);
                        passed.fetch_add(1, Ordering::Relaxed);
                        lock.leave();
                    }
                });
            }
        });
        assert_eq!(passed.load(Ordering::Relaxed), 4_000);
    }
}
