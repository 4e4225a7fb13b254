//! [`Lock`] is the mutual exclusion lock of the runtime's tables: a small one that knows its owner, so that a signal handler that
//! interrupted the owner gets no lock ([`Lock::lock`] returns `None`) instead of a deadlock.
//!
//! The handler's call then uses a path without the lock. The owner is the lock's only word: with a second word beside it, a handler that
//! interrupts between the two would wait for its own thread. The C library's mutexes cannot be used: a forked child may not reset them.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use rustix::thread::futex;

use crate::tls;

const FREE: usize = 0;
/// Set beside the owner where other threads may sleep; thread pointers are even.
const AWAITED: usize = 1;

/// Tries before the thread sleeps.
const SPINS: u32 = 100;

pub(crate) struct Lock {
    /// [`FREE`], or the thread pointer of the owner with or without [`AWAITED`].
    state: AtomicUsize,
    /// How often the owner has taken it again; no other thread reads it.
    again: AtomicU32,
}

// The kernel compares the low half of the word, which must come first.
const _: () = assert!(cfg!(target_endian = "little") && size_of::<usize>() == 8);

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
            state: AtomicUsize::new(FREE),
            again: AtomicU32::new(0),
        }
    }

    /// Takes the lock; `None` if this thread holds it already.
    pub(crate) fn lock(&self) -> Option<Guard<'_>> {
        let me = tls::thread_pointer();
        if self.is_held_by(me) {
            return None;
        }
        self.wait(me);
        Some(Guard(self))
    }

    /// Takes the lock without a guard, for [`crate::fork`]. A thread that holds it already (a fork from a
    /// signal handler) holds it once more.
    pub(crate) fn acquire(&self) {
        let me = tls::thread_pointer();
        if self.is_held_by(me) {
            self.again.fetch_add(1, Ordering::Relaxed);
        } else {
            self.wait(me);
        }
    }

    fn is_held_by(&self, thread: usize) -> bool {
        self.state.load(Ordering::Relaxed) & !AWAITED == thread
    }

    fn wait(&self, me: usize) {
        if self.spin(me) {
            return;
        }
        loop {
            let seen = self.state.load(Ordering::Relaxed);
            // A thread that has slept takes the lock as awaited: others may sleep still, and a plain hold would
            // make its release forget them.
            let next = if seen == FREE { me } else { seen } | AWAITED;
            if !self.change(seen, next) {
                continue;
            }
            if seen == FREE {
                return;
            }
            // After an interrupted or refused wait, the loop tries again.
            let _ = futex::wait(self.low_half(), futex::Flags::PRIVATE, next as u32, None);
        }
    }

    /// Tries to take the lock for a short while; false where it stays taken.
    fn spin(&self, me: usize) -> bool {
        (0..SPINS).any(|_| {
            core::hint::spin_loop();
            self.change(FREE, me)
        })
    }

    fn change(&self, from: usize, to: usize) -> bool {
        let changed =
            self.state
                .compare_exchange_weak(from, to, Ordering::Acquire, Ordering::Relaxed);
        changed.is_ok()
    }

    /// Releases the lock, or undoes one [`Lock::acquire`] more than the first.
    pub(crate) fn release(&self) {
        let again = self.again.load(Ordering::Relaxed);
        if again > 0 {
            self.again.store(again - 1, Ordering::Relaxed);
        } else if self.state.swap(FREE, Ordering::Release) & AWAITED != 0 {
            let _ = futex::wake(self.low_half(), futex::Flags::PRIVATE, 1);
        }
    }

    /// The word of the futex wait.
    fn low_half(&self) -> &AtomicU32 {
        let word = core::ptr::from_ref(&self.state).cast::<AtomicU32>();
        // SAFETY: the first four bytes of the word, which lives as long and is aligned for both. Only
        // the kernel reads through this.
        unsafe { &*word }
    }
}

#[cfg(test)]
mod tests {
    use super::Lock;
    use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    #[test]
    fn the_owner_is_told_instead_of_waiting_for_itself() {
        let lock = Lock::new();
        let guard = lock.lock();
        assert!(guard.is_some());
        assert!(lock.lock().is_none());
        drop(guard);
        assert!(lock.lock().is_some());
    }

    /// The result of the signal handler below.
    static HANDLER_WAS_OWNER: AtomicU64 = AtomicU64::new(0);
    static HANDLER_TOOK: AtomicU64 = AtomicU64::new(0);
    static INTERRUPTED: Lock = Lock::new();

    extern "C" fn on_signal(_: libc::c_int) {
        let counter = match INTERRUPTED.lock() {
            Some(_guard) => &HANDLER_TOOK,
            None => &HANDLER_WAS_OWNER,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn a_signal_handler_never_waits_for_the_thread_that_it_interrupts() {
        // SAFETY: the handler only takes our lock and counts.
        unsafe { libc::signal(libc::SIGUSR2, on_signal as *const () as libc::sighandler_t) };
        // SAFETY: queries the caller's own number.
        let target = unsafe { libc::pthread_self() };
        let done = AtomicBool::new(false);
        let (took, was) = (&HANDLER_TOOK, &HANDLER_WAS_OWNER);
        let both_happened = || took.load(Ordering::Relaxed) > 0 && was.load(Ordering::Relaxed) > 0;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    // SAFETY: the thread lives until the scope ends.
                    unsafe { libc::pthread_kill(target, libc::SIGUSR2) };
                }
            });
            // On busy processors the sender has few turns.
            for turn in 0..2_000_000_000 {
                let guard = INTERRUPTED.lock();
                assert!(guard.is_some(), "{turn}");
                if turn >= 2_000_000 && both_happened() {
                    break;
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(both_happened());
    }

    #[test]
    fn who_takes_a_lock_again_releases_it_as_often() {
        let lock = Lock::new();
        lock.acquire();
        lock.acquire();
        lock.release();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| lock.state.load(Ordering::Relaxed));
            assert_ne!(other.join().unwrap(), super::FREE, "still held");
        });
        lock.release();
        assert_eq!(lock.state.load(Ordering::Relaxed), super::FREE);
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
                        // A hold over a context switch puts several others to sleep.
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
