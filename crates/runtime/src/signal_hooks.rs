//! Implements the hooks of `sigprocmask`, `pthread_sigmask`, `sigaction`, `signal` and `sigaltstack`, which keep the signal of the
//! emulation by time ([`crate::delay`]) from the program: it is not blocked, its handler is not replaced ([`crate::program_action`] keeps
//! the program's own), and a thread whose signal stack is too small for it is sampled no more. Without that emulation they behave as the C
//! library's functions.

use core::ffi::{c_int, c_void};

use isotherm_sys::system_call::{Result, call};

use crate::c_signals;
use crate::delay::{self, SIGNAL};
use crate::errno::answer;
use crate::program_action;

/// Signals of the C library's own, which programs cannot block: `SIGCANCEL` and `SIGSETXID` of the GNU C library.
const OF_C_LIBRARY: u64 = 0b11 << (32 - 1);

/// Bytes of a set of signals in the kernel.
const SET_BYTES: usize = 8;

/// Changes the calling thread's blocked signals.
///
/// # Safety
/// As for `sigprocmask`.
unsafe fn change_mask(how: c_int, set: *const c_void, before: *mut c_void) -> Result<usize> {
    let mut wanted = 0;
    let mut pointer = set.addr();
    if !set.is_null() {
        // SAFETY: the caller's promise; the C library's set begins with the kernel's.
        wanted = unsafe { set.cast::<u64>().read_unaligned() } & !OF_C_LIBRARY;
        if how != libc::SIG_UNBLOCK && delay::runs() {
            wanted &= !(1 << (SIGNAL - 1));
        }
        pointer = (&raw const wanted).expose_provenance();
    }
    let arguments = [how as usize, pointer, before.expose_provenance(), SET_BYTES];
    // SAFETY: `wanted` lives until the call has returned; the rest is the caller's promise.
    let changed = unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
    core::hint::black_box(&wanted);
    changed
}

/// `sigprocmask`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn sigprocmask_hook(
    how: c_int,
    set: *const c_void,
    before: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    answer(unsafe { change_mask(how, set, before) }.map(|_| ()))
}

/// `pthread_sigmask`, which returns its error.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn pthread_sigmask_hook(
    how: c_int,
    set: *const c_void,
    before: *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { change_mask(how, set, before) }.map_or_else(|error| error.raw_os_error(), |_| 0)
}

/// `sigaction`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn sigaction_hook(
    signal: c_int,
    action: *const libc::sigaction,
    before: *mut libc::sigaction,
) -> c_int {
    if signal == SIGNAL && delay::runs() {
        // SAFETY: the caller's promise.
        unsafe { program_action::exchange(action, before) };
        return 0;
    }
    // SAFETY: the caller's promise.
    unsafe { c_signals::set_action(signal, action, before) }
}

/// `signal`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn signal_hook(signal: c_int, handler: *mut c_void) -> *mut c_void {
    if signal == SIGNAL && delay::runs() {
        return program_action::exchange_handler(handler);
    }
    // SAFETY: the caller's promise.
    unsafe { c_signals::set_handler(signal, handler) }
}

/// `sigaltstack`. The calling thread is sampled no more once its stack for signals has no room for the timer's.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn sigaltstack_hook(
    stack: *const libc::stack_t,
    before: *mut libc::stack_t,
) -> c_int {
    let is_small = |stack: &libc::stack_t| {
        stack.ss_flags & libc::SS_DISABLE == 0 && !delay::has_room_for_signals(stack.ss_size)
    };
    // SAFETY: the caller's promise.
    if delay::runs() && unsafe { stack.as_ref() }.is_some_and(is_small) {
        // Before the change: a signal after it would end the program.
        delay::leave_thread();
    }
    let arguments = [stack.expose_provenance(), before.expose_provenance()];
    // SAFETY: the caller's promise.
    answer(unsafe { call(libc::SYS_sigaltstack, arguments) }.map(|_| ()))
}
