//! Moves the timer's handler from the stack on which the kernel starts it, which the program chose, to one of our own, on which it does its
//! work. The file also maps that stack below the state of a thread, and tells whether the program's stack has room for the signal.
//!
//! A thread may have an alternate stack for signals that holds hardly more than the frame of a signal: Rust's threads have 8 KiB,
//! of which the frame takes 3 KiB with AVX-512. A sample takes more than is left.

use core::ffi::c_void;
use core::mem::MaybeUninit;
use core::ptr::null;

use isotherm_sys::memory::{self, PAGE_BYTES, Result};

/// Bytes of the own stack: a sample takes some 8 KiB, and more than 64 KiB in a debug build. What is not touched takes no memory.
const BYTES: usize = 1 << 20;

/// Bytes that the handler takes on the program's stack besides the frame of the signal.
const BEGINNING_BYTES: usize = 1024;

/// The smallest frame of a signal on any processor (`MINSIGSTKSZ`), where the kernel does not tell its own.
const LEAST_FRAME_BYTES: usize = 2048;

/// Whether an alternate stack of this size has room for the timer's signal (`AT_MINSIGSTKSZ` of `getauxval(3)`).
pub(crate) fn is_enough(bytes: usize) -> bool {
    // SAFETY: reads a vector that the kernel wrote at the start of the program.
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    bytes >= frame.max(LEAST_FRAME_BYTES) + BEGINNING_BYTES
}

/// Whether the calling thread's alternate stack has room for the timer's signal, or it has none.
pub(super) fn has_room() -> bool {
    let mut stack = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: the pointer is live, and nothing is changed.
    if unsafe { libc::sigaltstack(null(), stack.as_mut_ptr()) } != 0 {
        return true;
    }
    // SAFETY: zeroes are valid, and the kernel has filled it in.
    let stack = unsafe { stack.assume_init() };
    stack.ss_flags & libc::SS_DISABLE != 0 || is_enough(stack.ss_size)
}

/// Bytes below the state of a thread that are the stack of its handler, with a page at their beginning that no access may reach.
pub(super) const BELOW_BYTES: usize = PAGE_BYTES + BYTES;

/// Maps fresh memory of zeroes for a state of this size, with the stack of its handler below. Returns the address of the state.
///
/// # Errors
/// The kernel's error number.
pub(super) fn map_above(bytes: usize) -> Result<usize> {
    let base = memory::fresh(BELOW_BYTES + bytes)?;
    // SAFETY: the page was just mapped, and nothing refers to it.
    let guarded = unsafe { memory::protect(base, PAGE_BYTES, libc::PROT_NONE) };
    if let Err(error) = guarded {
        // SAFETY: the range was just mapped, and nothing refers to it.
        let _ = unsafe { memory::unmap(base, BELOW_BYTES + bytes) };
        return Err(error);
    }
    Ok(base + BELOW_BYTES)
}

/// Frees what [`map_above`] mapped for a state of this size at this address.
///
/// # Safety
/// Nothing refers to the state any more, and no handler runs on its stack.
pub(super) unsafe fn unmap(state: usize, bytes: usize) {
    // SAFETY: `map_above` mapped the range; the rest is the caller's promise.
    let _ = unsafe { memory::unmap(state - BELOW_BYTES, BELOW_BYTES + bytes) };
}

/// Calls a function with a state and a second argument on the stack below the state.
///
/// # Safety
/// As for the function, which returns; [`map_above`] mapped the state, and nothing else uses its stack until then.
pub(super) unsafe fn call(
    function: unsafe extern "C" fn(*mut c_void, *mut c_void),
    state: *mut c_void,
    second: *mut c_void,
) {
    // SAFETY: the stack ends at the state, which is aligned to a page; the function keeps the register that brings the former
    // stack back (r12, x20).
    unsafe {
        #[cfg(target_arch = "x86_64")]
        core::arch::asm!(
            "mov r12, rsp",
            "mov rsp, rdi",
            "call {function}",
            "mov rsp, r12",
            function = in(reg) function,
            in("rdi") state,
            in("rsi") second,
            out("r12") _,
            clobber_abi("C"),
        );
        #[cfg(target_arch = "aarch64")]
        core::arch::asm!(
            "mov x20, sp",
            "mov sp, x0",
            "blr {function}",
            "mov sp, x20",
            function = in(reg) function,
            in("x0") state,
            in("x1") second,
            out("x20") _,
            clobber_abi("C"),
        );
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::c_void;

    use super::{BYTES, call, is_enough, map_above, unmap};

    const STATE_BYTES: usize = 64;

    /// Stores where its frame is in the first word of a state, and the second argument in the next.
    unsafe extern "C" fn note_frame(state: *mut c_void, second: *mut c_void) {
        let frame = core::hint::black_box([second.addr(); 64]);
        // SAFETY: the test passes a live state.
        unsafe {
            state
                .cast::<[usize; 2]>()
                .write([frame.as_ptr().addr(), frame[63]])
        };
    }

    #[test]
    fn a_function_runs_on_the_stack_below_its_state_and_returns() {
        let address = map_above(STATE_BYTES).expect("memory");
        let state = core::ptr::with_exposed_provenance_mut::<c_void>(address);
        for value in 1..100 {
            // SAFETY: the state is live, and no one else uses its stack.
            unsafe { call(note_frame, state, core::ptr::without_provenance_mut(value)) };
            // SAFETY: the call wrote these words.
            let [frame, second] = unsafe { state.cast::<[usize; 2]>().read() };
            assert!((address - BYTES..address).contains(&frame), "{frame:x}");
            assert_eq!(second, value);
        }
        // SAFETY: nothing refers to it.
        unsafe { unmap(address, STATE_BYTES) };
    }

    #[test]
    fn a_stack_for_the_frame_alone_is_not_enough() {
        assert!(!is_enough(2048) && is_enough(64 << 10));
    }
}
