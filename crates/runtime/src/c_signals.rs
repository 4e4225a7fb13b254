//! Sets actions of signals by the C library's own `sigaction` and `signal`, which our hooks hide, for these hooks and for the emulation by
//! time (`delay`), and unblocks a signal.

use core::ffi::{c_int, c_void};

use isotherm_sys::system_call::call;

use crate::next_symbol::Next;

/// The C library's `sigaction`.
type Sigaction = unsafe extern "C" fn(c_int, *const libc::sigaction, *mut libc::sigaction) -> c_int;

// SAFETY: the C library's function has this type.
static SIGACTION: Next<Sigaction> = unsafe { Next::new(c"sigaction") };
// SAFETY: the C library's function has this type.
static SIGNAL: Next<unsafe extern "C" fn(c_int, *mut c_void) -> *mut c_void> =
    unsafe { Next::new(c"signal") };

/// Looks the functions up before the program can set a signal's action in a handler.
pub(crate) fn start() {
    SIGACTION.find();
    SIGNAL.find();
}

/// `sigaction`. -1 where there is no such function.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe fn set_action(
    signal: c_int,
    action: *const libc::sigaction,
    before: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's promise.
    SIGACTION
        .get()
        .map_or(-1, |set| unsafe { set(signal, action, before) })
}

/// `signal`. `SIG_ERR` where there is no such function.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe fn set_handler(number: c_int, handler: *mut c_void) -> *mut c_void {
    let Some(signal) = SIGNAL.get() else {
        return core::ptr::without_provenance_mut(libc::SIG_ERR);
    };
    // SAFETY: the caller's promise.
    unsafe { signal(number, handler) }
}

/// Unblocks a signal in the calling thread. Where the kernel refuses it stays blocked.
pub(crate) fn unblock(signal: c_int) {
    let set = 1_u64 << (signal - 1);
    let arguments = [
        libc::SIG_UNBLOCK as usize,
        (&raw const set).expose_provenance(),
        0,
        size_of_val(&set),
    ];
    // SAFETY: the set, as long as the kernel's, lives until the call has returned.
    let _ = unsafe { call(libc::SYS_rt_sigprocmask, arguments) };
    core::hint::black_box(&set);
}
