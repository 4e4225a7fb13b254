//! jemalloc's own interface.
//!
//! A program that is linked with a shared jemalloc (Debian's redis is) would otherwise hand our
//! blocks to it. Flags that name arenas or thread caches are meant for the plain instance, whose
//! numbers `mallctl` answers.

use core::ffi::{c_char, c_int, c_void};

use crate::heap;
use crate::instance::{self, INSTANCES, PLACE_FLAGS};
use crate::unwind::Caller;
use crate::visit;

/// `mallocx`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn mallocx(
    bytes: usize,
    flags: c_int,
    address: usize,
    stack: usize,
) -> *mut c_void {
    if flags & PLACE_FLAGS != 0 {
        // SAFETY: the caller's promise.
        return unsafe { (INSTANCES[0].mallocx)(bytes, flags) };
    }
    heap::allocate(bytes, flags, Caller { address, stack })
}

/// `rallocx`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn rallocx(
    block: *mut c_void,
    bytes: usize,
    flags: c_int,
    address: usize,
    stack: usize,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        heap::resize(
            block,
            bytes,
            flags & !PLACE_FLAGS,
            Caller { address, stack },
        )
    }
}

/// `xallocx`: resizes in place or not at all, so the block stays in its arena.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn xallocx(
    block: *mut c_void,
    bytes: usize,
    extra: usize,
    flags: c_int,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe { visit::resize_in_place(block, bytes, extra, flags & !PLACE_FLAGS) }
}

/// `sallocx`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn sallocx(block: *const c_void, _: c_int) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (heap::holder(block).sallocx)(block, 0) }
}

/// `dallocx`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn dallocx(block: *mut c_void, flags: c_int) {
    let arena = heap::arena_of(block);
    // SAFETY: the caller's promise.
    unsafe {
        match instance::straight(arena) {
            // Thread caches of the program are those of the plain instance.
            Some(instance) if arena == 0 => (instance.dallocx)(block, flags),
            Some(instance) => (instance.dallocx)(block, flags & !PLACE_FLAGS),
            None => visit::free(arena, block),
        }
    }
}

/// `sdallocx`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn sdallocx(block: *mut c_void, _: usize, flags: c_int) {
    // SAFETY: the caller's promise.
    unsafe { dallocx(block, flags) }
}

/// `nallocx`.
pub(crate) extern "C" fn nallocx(bytes: usize, flags: c_int) -> usize {
    // SAFETY: computes a size and touches nothing.
    unsafe { instance::_je0_nallocx(bytes, flags & !PLACE_FLAGS) }
}

/// `mallctl`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn mallctl(
    name: *const c_char,
    old: *mut c_void,
    old_bytes: *mut usize,
    new: *mut c_void,
    new_bytes: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { (INSTANCES[0].mallctl)(name, old, old_bytes, new, new_bytes) }
}

/// `mallctlnametomib`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn mallctlnametomib(
    name: *const c_char,
    mib: *mut usize,
    length: *mut usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { (INSTANCES[0].mallctlnametomib)(name, mib, length) }
}

/// `mallctlbymib`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn mallctlbymib(
    mib: *const usize,
    length: usize,
    old: *mut c_void,
    old_bytes: *mut usize,
    new: *mut c_void,
    new_bytes: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { (INSTANCES[0].mallctlbymib)(mib, length, old, old_bytes, new, new_bytes) }
}

/// `malloc_stats_print`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn stats_print(
    write: *mut c_void,
    data: *mut c_void,
    options: *const c_char,
) {
    // SAFETY: the caller's promise.
    unsafe { (INSTANCES[0].stats_print)(write, data, options) }
}
