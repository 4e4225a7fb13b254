//! Keeps five words for each thread, which the hooks reach without a call: the address of its state ([`crate::thread`]); which copies of
//! jemalloc it is executing in, and the blocks to free once it has left ([`ReentrancyState`]); the number of its cache filter
//! ([`crate::line_filter`]); and the address of its state in the emulation by time ([`crate::delay`]). [`thread_pointer`] is a number that
//! stands for a thread, as the owner of a lock.
//!
//! `thread_local!` in a shared object calls `__tls_get_addr` for each access and registers destructors that allocate. A
//! preloaded object has room in the static block, so the words are reached relative to the thread pointer (the
//! initial-exec model of the ELF TLS specification), as jemalloc reaches its own.

use core::arch::{asm, global_asm};
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

global_asm!(
    ".section .tbss.isotherm_thread,\"awT\",@nobits",
    ".globl isotherm_thread_word",
    ".hidden isotherm_thread_word",
    ".type isotherm_thread_word,@object",
    ".p2align 3",
    "isotherm_thread_word:",
    ".zero 40",
    ".size isotherm_thread_word, 40",
    ".previous",
);

/// The thread pointer: a number that no other living thread has.
#[inline]
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the first word of the thread block holds its own address (System V ABI).
    unsafe {
        asm!("mov {}, qword ptr fs:[0]", out(reg) pointer, options(pure, readonly, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reading the thread pointer changes nothing.
    unsafe {
        asm!("mrs {}, tpidr_el0", out(reg) pointer, options(pure, nomem, nostack, preserves_flags));
    }
    pointer
}

/// Which instances a thread is in. Zeroes are a thread outside.
///
/// Only its thread and handlers on it touch this, so plain loads and stores in program order do.
#[repr(C)]
pub(crate) struct ReentrancyState {
    /// The thread may be in the instances below this number.
    pub(crate) level: AtomicU32,
    /// Blocks to free, linked by their first words.
    pub(crate) deferred: AtomicPtr<c_void>,
}

// The word, [`ReentrancyState`] behind it, the number of the thread's filter, and the address of its delays.
const _: () = assert!(size_of::<ReentrancyState>() == 16);

/// Offset of the word from the thread pointer.
#[inline]
fn offset() -> isize {
    let offset: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: reads the slot of the global offset table that the loader filled.
    unsafe {
        asm!("mov {}, qword ptr [rip + isotherm_thread_word@GOTTPOFF]", out(reg) offset, options(pure, readonly, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads the slot of the global offset table that the loader filled.
    unsafe {
        asm!(
            "adrp {0}, :gottprel:isotherm_thread_word",
            "ldr {0}, [{0}, :gottprel_lo12:isotherm_thread_word]",
            out(reg) offset,
            options(pure, readonly, nostack, preserves_flags)
        );
    }
    offset
}

/// This thread's word; 0 in a new thread.
#[inline]
pub(crate) fn get() -> usize {
    #[cfg(target_arch = "x86_64")]
    {
        let word: usize;
        // SAFETY: the word is in the static block of every thread of the C library.
        unsafe {
            asm!("mov {}, qword ptr fs:[{}]", out(reg) word, in(reg) offset(), options(readonly, nostack, preserves_flags));
        }
        word
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the word is in the static block of every thread of the C library.
    unsafe {
        core::ptr::with_exposed_provenance::<usize>(thread_pointer().wrapping_add_signed(offset()))
            .read_volatile()
    }
}

/// Sets this thread's word.
pub(crate) fn set(word: usize) {
    let address = thread_pointer().wrapping_add_signed(offset());
    // SAFETY: the word is in the static block of this thread and only this thread uses it.
    unsafe { core::ptr::with_exposed_provenance_mut::<usize>(address).write_volatile(word) };
}

/// The instances that this thread is in. Valid while the thread lives.
#[inline]
pub(crate) fn inside() -> &'static ReentrancyState {
    let address = thread_pointer().wrapping_add_signed(offset()) + size_of::<usize>();
    // SAFETY: the place is behind the word in the static block of this thread, is zero at first,
    // and is made of atomics.
    unsafe { &*core::ptr::with_exposed_provenance(address) }
}

/// The number of this thread's cache filter ([`crate::line_filter`]), plus 1; 0 in a new thread. Valid while the thread lives.
#[inline]
pub(crate) fn filter() -> &'static AtomicU64 {
    let before = size_of::<usize>() + size_of::<ReentrancyState>();
    let address = thread_pointer().wrapping_add_signed(offset()) + before;
    // SAFETY: the place is behind `ReentrancyState` in the static block of this thread and is zero at first.
    unsafe { &*core::ptr::with_exposed_provenance(address) }
}

/// The address of what the emulation by time keeps for this thread ([`crate::delay`]); null in a new thread. Valid while
/// the thread lives.
#[inline]
pub(crate) fn delayed() -> &'static AtomicPtr<c_void> {
    let before = size_of::<usize>() + size_of::<ReentrancyState>() + size_of::<u64>();
    let address = thread_pointer().wrapping_add_signed(offset()) + before;
    // SAFETY: the place is behind the number of the filter in the static block of this thread and is zero at first.
    unsafe { &*core::ptr::with_exposed_provenance(address) }
}

#[cfg(test)]
mod tests {
    #[test]
    fn each_thread_has_its_own_word_that_starts_at_zero() {
        super::set(7);
        let other = std::thread::spawn(|| {
            let first = super::get();
            super::set(9);
            (first, super::get(), super::thread_pointer())
        })
        .join()
        .unwrap();
        assert_eq!((other.0, other.1), (0, 9));
        assert_eq!(super::get(), 7);
        assert_ne!(other.2, super::thread_pointer());
        super::set(0);
    }
}
