//! Keeps, in place of the kernel, the program's own action of the signal that the emulation by time uses ([`crate::delay`]), and calls it
//! for the signals that are not from a timer of the emulation.
//!
//! The handler runs with all signals blocked, and a system call that it interrupts goes on.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering};

static HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static FLAGS: AtomicI32 = AtomicI32::new(0);
static MASK: AtomicU64 = AtomicU64::new(0);

/// What `sigaction` does: writes the action so far to `before`, and takes `action`; each may be null.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe fn exchange(action: *const libc::sigaction, before: *mut libc::sigaction) {
    // Both may be the same object.
    // SAFETY: the caller's promise.
    let action = unsafe { action.as_ref() }.copied();
    if !before.is_null() {
        // SAFETY: the caller's promise; zeroes are a valid action, and its set begins with the kernel's.
        unsafe {
            before.write_bytes(0, 1);
            (*before).sa_sigaction = HANDLER.load(Ordering::Acquire);
            (*before).sa_flags = FLAGS.load(Ordering::Relaxed);
            let mask = (&raw mut (*before).sa_mask).cast::<u64>();
            mask.write(MASK.load(Ordering::Relaxed));
        }
    }
    if let Some(action) = action {
        FLAGS.store(action.sa_flags, Ordering::Relaxed);
        // SAFETY: the caller's promise; the C library's set begins with the kernel's.
        let mask = unsafe { (&raw const action.sa_mask).cast::<u64>().read() };
        MASK.store(mask, Ordering::Relaxed);
        HANDLER.store(action.sa_sigaction, Ordering::Release);
    }
}

/// What `signal` does: takes a handler, and returns the one so far.
pub(crate) fn exchange_handler(handler: *mut c_void) -> *mut c_void {
    FLAGS.store(libc::SA_RESTART, Ordering::Relaxed);
    MASK.store(0, Ordering::Relaxed);
    ptr::with_exposed_provenance_mut(HANDLER.swap(handler.expose_provenance(), Ordering::AcqRel))
}

/// Calls the program's handler; by default the signal is ignored.
///
/// # Safety
/// The arguments are those of a handler with `SA_SIGINFO`.
pub(crate) unsafe fn call(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
    let handler = HANDLER.load(Ordering::Acquire);
    if matches!(handler, libc::SIG_DFL | libc::SIG_IGN) {
        return;
    }
    let handler = ptr::with_exposed_provenance::<c_void>(handler);
    // SAFETY: the program gave this function as a handler of the signal. One that takes the signal only ignores the rest, by the
    // calling convention.
    unsafe { core::mem::transmute::<*const c_void, Handler>(handler)(signal, info, context) }
}
