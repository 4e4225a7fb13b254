//! Stands in for the C library in the copies of jemalloc: `mmap`, `munmap`, `mprotect` and `madvise` are made as system calls, but discards
//! of contents (`MADV_DONTNEED`) go through [`extent::purge`]; `pthread_atfork` does nothing.
//!
//! The build redirects jemalloc's own `mmap` and its relatives to these, because the plain names are hooks of
//! this same library.

use isotherm_sys::memory;

use crate::errno::{answer, answer_number};
use crate::extent;
use crate::hidden_symbols::hidden;

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
