//! Ends a thread's part in the runtime: when the thread ends, [`leave`] counts at their sites the allocations that its state has gathered,
//! ends the thread's timer of the emulation by time, and gives the state back. At the exit of the process, [`finish`] counts those of the
//! calling thread.

use core::ffi::c_void;

use crate::delay;
use crate::reentrancy;
use crate::thread::{self, Thread};

/// Called when a thread ends, once a round.
pub(crate) unsafe extern "C" fn leave(state: *mut c_void) {
    // SAFETY: the value of the key is this thread's state.
    let state = unsafe { &mut *state.cast::<Thread>() };
    if state.stays() {
        return;
    }
    let visit = reentrancy::enter(0);
    state.detach();
    delay::leave_thread();
    drop(visit);
    thread::give_free(state);
}

/// Counts what this thread has gathered: at exit of the process.
pub(crate) fn finish() {
    if let Some(state) = thread::existing() {
        let _visit = reentrancy::enter(0);
        state.settle();
    }
}
