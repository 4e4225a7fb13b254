//! A small mutual exclusion that knows its owner.
//!
//! A signal handler may call `malloc` while this thread holds one of our locks. Waiting would be
//! a deadlock with itself, so [`Lock::lock`] answers `None` to the owner, and the caller takes
//! the way that needs no lock. The C library's mutexes cannot be used: they are not ours to reset
//! in a forked child.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rustix::thread::futex;

use crate::tls;

const FREE: u32 = 0;
const HELD: u32 = 1;
const AWAITED: u32 = 2;

/// Tries before the thread sleeps.
const SPINS: u32 = 100;

/// The lock.
pub(crate) struct Lock {
    state: AtomicU32,
    owner: AtomicUsize,
}

/// Holds the lock; releases it when dropped.
pub(crate) struct Guard<'a>(&'a Lock);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Lock {
    /// A free lock.
    pub(crate) const fn new() -> Self {
        Self {
            state: AtomicU32::new(FREE),
            owner: AtomicUsize::new(0),
        }
    }

    /// Takes the lock; `None` if this thread holds it already.
    pub(crate) fn lock(&self) -> Option<Guard<'_>> {
        let me = tls::thread_pointer();
        if self.owner.load(Ordering::Relaxed) == me {
            return None;
        }
        self.acquire();
        Some(Guard(self))
    }

    /// Takes the lock without a guard, for [`crate::fork`]. A thread that holds it already (a
    /// fork from a signal handler) goes on without.
    pub(crate) fn acquire(&self) {
        let me = tls::thread_pointer();
        if self.owner.load(Ordering::Relaxed) == me {
            return;
        }
        if !self.spin() {
            // A thread that has slept takes the lock as awaited: others may sleep still, and a
            // plain hold would let its release forget them.
            while self.state.swap(AWAITED, Ordering::Acquire) != FREE {
                // An interrupted or refused wait only means another look.
                let _ = futex::wait(&self.state, futex::Flags::PRIVATE, AWAITED, None);
            }
        }
        self.owner.store(me, Ordering::Relaxed);
    }

    /// Tries for a short while.
    fn spin(&self) -> bool {
        (0..SPINS).any(|_| {
            core::hint::spin_loop();
            self.state
                .compare_exchange_weak(FREE, HELD, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        })
    }

    /// Releases the lock.
    pub(crate) fn release(&self) {
        self.owner.store(0, Ordering::Relaxed);
        if self.state.swap(FREE, Ordering::Release) == AWAITED {
            let _ = futex::wake(&self.state, futex::Flags::PRIVATE, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lock;
    use core::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_owner_is_told_instead_of_waiting_for_itself() {
        let lock = Lock::new();
        let guard = lock.lock();
        assert!(guard.is_some());
        assert!(lock.lock().is_none());
        drop(guard);
        assert!(lock.lock().is_some());
    }

    #[test]
    fn no_increment_and_no_sleeper_is_lost_under_contention() {
        static LOCK: Lock = Lock::new();
        static SUM: AtomicU64 = AtomicU64::new(0);
        let threads: Vec<_> = (0..8)
            .map(|_| {
                std::thread::spawn(|| {
                    for turn in 0..5_000 {
                        let _guard = LOCK.lock().expect("no thread takes it twice");
                        let seen = SUM.load(Ordering::Relaxed);
                        // Holding the lock over a switch puts several others to sleep.
                        if turn % 8 == 0 {
                            std::thread::yield_now();
                        }
                        SUM.store(seen + 1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(SUM.load(Ordering::Relaxed), 40_000);
    }
}
