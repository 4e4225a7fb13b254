//! Fork handlers that take and release every lock of the library.
//!
//! jemalloc registers its own handlers, once per instance; the build redirects that to nothing, because the
//! lock order matters across instances and our own locks: the outermost first, as anywhere else. The child has
//! one thread and gets every lock free.

use crate::arena;
use crate::delay;
use crate::emulation::{self, ForkPhase};
use crate::hints;
use crate::instance;
use crate::mapping;
use crate::module;
use crate::mover_lock;
use crate::pool;
use crate::session;
use crate::site;
use crate::text_area;
use crate::thread_list;

/// Registers the handlers. Called once, at start.
pub(crate) fn start() {
    // SAFETY: the handlers are functions of this library, which is never unloaded. A failure leaves forks of
    // several threads as safe as without handlers; the program continues.
    unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
}

/// Takes every lock, outermost first.
unsafe extern "C" fn before() {
    mapping::before_fork();
    site::before_fork();
    arena::before_fork();
    thread_list::before_fork();
    for instance in instance::all_running() {
        // SAFETY: the instance was started, and the handler is called before a fork.
        unsafe { (instance.prefork)() };
    }
    pool::before_fork();
    module::before_fork();
    text_area::before_fork();
    hints::before_fork();
    session::before_fork();
    bring_home();
}

/// Releases every lock, innermost first.
unsafe extern "C" fn after_in_parent() {
    let_go();
    session::after_fork_parent();
    release_inner();
    for instance in instance::all_running().iter().rev() {
        // SAFETY: the instance was prepared by `before`.
        unsafe { (instance.postfork_parent)() };
    }
    release_outer();
}

/// Frees every lock in the child, and drops the parent's session.
unsafe extern "C" fn after_in_child() {
    forget_parent();
    release_inner();
    for instance in instance::all_running().iter().rev() {
        // SAFETY: the instance was prepared by `before`.
        unsafe { (instance.postfork_child)() };
    }
    release_outer();
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

/// In a child whose locks are free already: lets go of the parent's session, and starts a service where the
/// emulator runs.
pub(crate) fn start_over() {
    forget_parent();
    serve_child();
}

/// In the child: lets go of the parent's mover and session.
fn forget_parent() {
    mover_lock::after_fork_child();
    session::after_fork_child();
}

/// In the child: starts a service where the emulator runs.
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

fn release_inner() {
    hints::after_fork();
    text_area::after_fork();
    module::after_fork();
    pool::after_fork();
}

fn release_outer() {
    thread_list::after_fork();
    arena::after_fork();
    site::after_fork();
    mapping::after_fork();
}
