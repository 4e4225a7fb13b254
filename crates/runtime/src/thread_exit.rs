//! The end of a thread, and of the process: what a thread has gathered is counted, its state given back.

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
