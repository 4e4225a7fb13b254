//! Keeps the thread that moves chunks ([`crate::staged`]) apart from work that must not run while a chunk moves, such as a fork or a
//! discard of contents, by one lock. Also holds the state of that thread for other modules: whether it runs, the number of its helpers, and
//! the forks while it ran.

use core::sync::atomic::{AtomicU32, Ordering};

use isotherm_sys::thread;

use crate::lock::{Guard, Lock};

/// There is no mover thread.
pub(crate) const OFF: u32 = 0;
/// The thread was started, and has not yet reported whether it can serve.
pub(crate) const STARTING: u32 = 1;
/// The thread serves requests.
pub(crate) const RUNNING: u32 = 2;
/// The thread was asked to end.
pub(crate) const ENDING: u32 = 3;

/// The state of the thread, a futex.
pub(crate) static STATUS: AtomicU32 = AtomicU32::new(OFF);
/// Held by the thread for each chunk, and by threads whose work must not meet a chunk on the move.
static APART: Lock = Lock::new();
/// Other threads that wait for [`APART`]. Without this count the mover thread would take the lock again and again before they wake.
static WAITING: AtomicU32 = AtomicU32::new(0);
/// Forks while the thread ran: each makes the pages that the mover keeps ready shared with a child.
static FORKS: AtomicU32 = AtomicU32::new(0);
/// Threads that copy beside the mover's thread; changed by that thread while it holds [`APART`].
static HELPERS: AtomicU32 = AtomicU32::new(0);

/// Whether chunks may be on the move.
#[inline]
pub(crate) fn runs() -> bool {
    STATUS.load(Ordering::Relaxed) != OFF
}

/// Number of forks while the thread ran, failed ones included.
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// The number of threads that copy beside the mover's thread from now on. That thread holds the lock, or ends.
pub(crate) fn set_helpers(helpers: u32) {
    HELPERS.store(helpers, Ordering::Relaxed);
}

/// Whether the caller's thread is the program's only one, where the library's thread runs in this process.
pub(crate) fn program_has_one_thread() -> bool {
    // A child that was made by a system call of the program's own may have the lock held for ever.
    if thread::count() == 1 {
        return false;
    }
    let _kept = keep();
    thread::count() == 2 + u64::from(HELPERS.load(Ordering::Relaxed))
}

/// Whether others than the mover's thread wait.
pub(crate) fn is_awaited() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

/// Mover thread: takes the lock for a chunk.
pub(crate) fn acquire() {
    APART.acquire();
}

/// Mover thread: releases the lock.
pub(crate) fn release() {
    APART.release();
}

/// Keeps chunks where they are until it is dropped; `None` where nothing moves, or this thread keeps
/// them already.
pub(crate) fn keep() -> Option<Guard<'static>> {
    if !runs() {
        return None;
    }
    WAITING.fetch_add(1, Ordering::Relaxed);
    let guard = APART.lock();
    WAITING.fetch_sub(1, Ordering::Relaxed);
    guard
}

/// Keeps chunks where they are from before a fork until after it.
pub(crate) fn before_fork() {
    if runs() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        WAITING.fetch_add(1, Ordering::Relaxed);
        APART.acquire();
        WAITING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Lets chunks move again in the parent, after the fork or where it failed.
pub(crate) fn after_fork_parent() {
    if runs() {
        APART.release();
    }
}

/// In the child, which has no mover: its memory is moved from outside.
pub(crate) fn after_fork_child() {
    WAITING.store(0, Ordering::Relaxed);
    HELPERS.store(0, Ordering::Relaxed);
    if STATUS.swap(OFF, Ordering::Relaxed) != OFF {
        APART.release();
    }
}
