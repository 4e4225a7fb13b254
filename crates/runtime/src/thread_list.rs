//! Keeps the states that ended threads left, for later threads ([`crate::thread`]).

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::lock::Lock;

pub(crate) static LOCK: Lock = Lock::new();
/// Address of the first state on the list; 0 where there is none.
static FIRST: AtomicUsize = AtomicUsize::new(0);

/// Takes a state, whose successor `next` reads.
pub(crate) fn take(next: impl FnOnce(usize) -> usize) -> Option<usize> {
    let _guard = LOCK.lock()?;
    let address = FIRST.load(Ordering::Relaxed);
    if address == 0 {
        return None;
    }
    FIRST.store(next(address), Ordering::Relaxed);
    Some(address)
}

/// Adds a state, whose successor `link` stores.
pub(crate) fn give(address: usize, link: impl FnOnce(usize)) {
    // A thread that holds the lock already is in a signal handler; the state is lost then.
    if let Some(_guard) = LOCK.lock() {
        link(FIRST.load(Ordering::Relaxed));
        FIRST.store(address, Ordering::Relaxed);
    }
}
