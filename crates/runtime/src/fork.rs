//! Handles forks, by `pthread_atfork`: before one it takes every lock of the library and brings back the pages that the emulation or a move
//! keeps elsewhere, which the child would lack; after it the locks are free and pages may be taken away again. A child drops its parent's
//! session file and, where an emulation runs, starts it again with a file of its own. For processes that are made in other ways
//! ([`crate::process_hooks`]), [`bring_home`], [`let_go`] (parent) and [`start_over`] (child) do so without the locks.
//!
//! jemalloc registers its own handlers, once per instance; the build redirects that to nothing, because the
//! lock order matters across instances and our own locks: the outermost first, as anywhere else. The child has
//! one thread and gets every lock free.

use crate::arena;
use crate::delay;
use crate::emulation::{self, ForkPhase};
use crate::hints;
use crate::instance;
use crate::lock::Lock;
use crate::mapping;
use crate::module;
use crate::mover_lock;
use crate::pool;
use crate::session;
use crate::site;
use crate::text_area;
use crate::thread_list;

/// The locks that are held while a lock of jemalloc is taken, outermost first.
static OUTER: [&Lock; 4] = [
    &mapping::LOCK,
    &site::LOCK,
    &arena::LOCK,
    &thread_list::LOCK,
];
/// The locks that are taken under those of jemalloc, outermost first. Only the session's lock comes after them.
static INNER: [&Lock; 4] = [&pool::LOCK, &module::LOCK, &text_area::LOCK, &hints::LOCK];

/// Registers the handlers. Called once, at start.
pub(crate) fn start() {
    // SAFETY: the handlers are functions of this library, which is never unloaded. A failure leaves forks of
    // several threads as safe as without handlers; the program continues.
    unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
}

/// Takes every lock, outermost first.
unsafe extern "C" fn before() {
    OUTER.iter().for_each(|lock| lock.acquire());
    arena::remember_tiers();
    for instance in instance::all_running() {
        // SAFETY: the instance was started, and the handler is called before a fork.
        unsafe { (instance.prefork)() };
    }
    INNER.iter().for_each(|lock| lock.acquire());
    session::before_fork();
    bring_home();
}

/// Releases every lock, innermost first.
unsafe extern "C" fn after_in_parent() {
    let_go();
    session::after_fork_parent();
    release(&INNER);
    for instance in instance::all_running().iter().rev() {
        // SAFETY: the instance was prepared by `before`.
        unsafe { (instance.postfork_parent)() };
    }
    release(&OUTER);
}

/// Frees every lock in the child, and drops the parent's session.
unsafe extern "C" fn after_in_child() {
    forget_parent();
    release(&INNER);
    for instance in instance::all_running().iter().rev() {
        // SAFETY: the instance was prepared by `before`.
        unsafe { (instance.postfork_child)() };
    }
    release(&OUTER);
    serve_child();
}

/// Brings every page home and keeps it there until [`let_go`].
pub(crate) fn bring_home() {
    emulation::fork(ForkPhase::Before);
    mover_lock::before_fork();
}

/// In the parent, or where no process was made: pages may be away again.
pub(crate) fn let_go() {
    mover_lock::after_fork_parent();
    emulation::fork(ForkPhase::Parent);
}

/// In a child whose locks are free already: lets go of the parent's session, and starts the emulation again where
/// one runs.
pub(crate) fn start_over() {
    forget_parent();
    serve_child();
}

/// In the child: lets go of the parent's mover and session.
fn forget_parent() {
    mover_lock::after_fork_child();
    session::after_fork_child();
}

/// In the child: starts the emulation again where one runs.
fn serve_child() {
    if emulation::runs() {
        // The service needs a session to report what it does.
        session::ensure();
        emulation::fork(ForkPhase::Child(session::tables()));
    }
    if delay::runs() {
        session::ensure();
        delay::start_over(session::tables());
    }
}

/// Releases locks, innermost first.
fn release(locks: &[&Lock]) {
    locks.iter().rev().for_each(|lock| lock.release());
}
