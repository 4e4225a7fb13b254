//! The stacks of the timer's handler: the one on which the kernel starts it, which the program chose, and one of our own on
//! which it does its work.
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

/// A stack of a thread's handler, with a page below it that no access may reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandlerStack {
    base: usize,
}

impl HandlerStack {
    /// Maps one; its memory is taken at its first use.
    ///
    /// # Errors
    /// The kernel's error number.
    pub(super) fn map() -> Result<Self> {
        let base = memory::fresh(PAGE_BYTES + BYTES)?;
        // SAFETY: the page was just mapped, and nothing refers to it.
        unsafe { memory::protect(base, PAGE_BYTES, libc::PROT_NONE) }?;
        Ok(Self { base })
    }

    /// Frees it; no copy of it is used any more.
    pub(super) fn release(self) {
        // SAFETY: `map` mapped the range, and no handler runs on it: its owner is being freed.
        let _ = unsafe { memory::unmap(self.base, PAGE_BYTES + BYTES) };
    }

    /// Its end, where it begins to grow.
    const fn top(self) -> usize {
        self.base + PAGE_BYTES + BYTES
    }

    /// Calls a function with two arguments on this stack.
    ///
    /// # Safety
    /// As for the function, which returns; nothing else uses the stack until then.
    #[cfg(target_arch = "x86_64")]
    pub(super) unsafe fn call(
        self,
        function: unsafe extern "C" fn(*mut c_void, *mut c_void),
        first: *mut c_void,
        second: *mut c_void,
    ) {
        // SAFETY: the stack is mapped and aligned to a page; the function keeps r12, which brings the former stack back.
        unsafe {
            core::arch::asm!(
                "mov r12, rsp",
                "mov rsp, {top}",
                "call {function}",
                "mov rsp, r12",
                top = in(reg) self.top(),
                function = in(reg) function,
                in("rdi") first,
                in("rsi") second,
                out("r12") _,
                clobber_abi("C"),
            );
        }
    }

    /// Calls a function with two arguments on this stack.
    ///
    /// # Safety
    /// As for the function, which returns; nothing else uses the stack until then.
    #[cfg(target_arch = "aarch64")]
    pub(super) unsafe fn call(
        self,
        function: unsafe extern "C" fn(*mut c_void, *mut c_void),
        first: *mut c_void,
        second: *mut c_void,
    ) {
        // SAFETY: the stack is mapped and aligned to a page; the function keeps x20, which brings the former stack back.
        unsafe {
            core::arch::asm!(
                "mov x20, sp",
                "mov sp, {top}",
                "blr {function}",
                "mov sp, x20",
                top = in(reg) self.top(),
                function = in(reg) function,
                in("x0") first,
                in("x1") second,
                out("x20") _,
                clobber_abi("C"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use core::ffi::c_void;

    use super::{BYTES, HandlerStack, PAGE_BYTES, is_enough};

    /// Stores where its frame is.
    unsafe extern "C" fn note_frame(place: *mut c_void, value: *mut c_void) {
        let frame = core::hint::black_box([value.addr(); 64]);
        // SAFETY: the test passes a live place.
        unsafe { place.cast::<usize>().write(frame.as_ptr().addr()) };
        assert!(frame.iter().all(|word| *word == value.addr()));
    }

    #[test]
    fn a_function_runs_on_the_stack_and_returns() {
        let stack = HandlerStack::map().expect("memory");
        for value in 1..100 {
            let mut frame = 0usize;
            let place = (&raw mut frame).cast();
            // SAFETY: the place is live, and no one else uses the stack.
            unsafe { stack.call(note_frame, place, core::ptr::without_provenance_mut(value)) };
            let inside = stack.base + PAGE_BYTES..stack.base + PAGE_BYTES + BYTES;
            assert!(inside.contains(&frame), "{frame:x} of {inside:x?}");
        }
        stack.release();
    }

    #[test]
    fn a_stack_for_the_frame_alone_is_not_enough() {
        assert!(!is_enough(2048) && is_enough(64 << 10));
    }
}
