//! The system calls of jemalloc, in the C library's manner.
//!
//! The build bends jemalloc's own `mmap` and kin to these, because the plain names are hooks of
//! this very library.

use isotherm_sys::memory::{self, Errno};

use crate::extent;

/// Sets `errno`.
pub(crate) fn set_errno(number: i32) {
    // SAFETY: the C library gives each of its threads an `errno`; only such threads come here.
    unsafe { *libc::__errno_location() = number };
}

/// This thread's `errno`.
pub(crate) fn errno() -> i32 {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() }
}

/// The C library's way to answer: 0, or -1 and `errno`.
pub(crate) fn answer(result: Result<(), Errno>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(Errno(number)) => {
            set_errno(number);
            -1
        }
    }
}

/// The C library's way to answer an address or a number: it, or all bits set (`MAP_FAILED`, -1) and
/// `errno`.
pub(crate) fn answer_number(result: Result<usize, Errno>) -> usize {
    result.unwrap_or_else(|Errno(number)| {
        set_errno(number);
        usize::MAX
    })
}

/// Gives Rust functions names that the copies of jemalloc can be linked to and nobody else.
///
/// `no_mangle` would export them from the library, where they could catch another object's call.
macro_rules! hidden {
    ($($name:literal => $function:path,)*) => {
        $(
            #[cfg(target_arch = "x86_64")]
            core::arch::global_asm!(
                concat!(".text\n.globl ", $name, "\n.hidden ", $name, "\n.type ", $name, ",@function\n", $name, ":"),
                "jmp {function}",
                function = sym $function,
            );
            #[cfg(target_arch = "aarch64")]
            core::arch::global_asm!(
                concat!(".text\n.globl ", $name, "\n.hidden ", $name, "\n.type ", $name, ",%function\n", $name, ":"),
                "b {function}",
                function = sym $function,
            );
        )*
    };
}
pub(crate) use hidden;

hidden! {
    "isotherm_kernel_mmap" => map,
    "isotherm_kernel_munmap" => unmap,
    "isotherm_kernel_mprotect" => protect,
    "isotherm_kernel_madvise" => advise,
    "isotherm_no_atfork" => no_atfork,
}

/// `mmap` for jemalloc.
unsafe extern "C" fn map(
    address: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    descriptor: i32,
    offset: i64,
) -> usize {
    // SAFETY: jemalloc maps and replaces only memory of its own.
    answer_number(unsafe { memory::map(address, bytes, protection, flags, descriptor, offset) })
}

/// `munmap` for jemalloc.
unsafe extern "C" fn unmap(address: usize, bytes: usize) -> i32 {
    // SAFETY: jemalloc unmaps only memory of its own.
    answer(unsafe { memory::unmap(address, bytes) })
}

/// `mprotect` for jemalloc.
unsafe extern "C" fn protect(address: usize, bytes: usize, access: i32) -> i32 {
    // SAFETY: jemalloc protects only memory of its own.
    answer(unsafe { memory::protect(address, bytes, access) })
}

/// `madvise` for jemalloc.
unsafe extern "C" fn advise(address: usize, bytes: usize, advice: i32) -> i32 {
    if advice == libc::MADV_DONTNEED {
        return answer(extent::purge(address, bytes));
    }
    // SAFETY: jemalloc advises only on memory of its own.
    answer(unsafe { memory::advise(address, bytes, advice) })
}

/// `pthread_atfork` for jemalloc: [`crate::fork`] calls its handlers in the right order.
extern "C" fn no_atfork(_: usize, _: usize, _: usize) -> i32 {
    0
}
