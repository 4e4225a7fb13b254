//! Serves jemalloc's own interface (`mallocx` and its relatives, `mallctl`), for programs that call it: their blocks are placed as those of
//! `malloc`, but a `mallocx` whose flags name an arena or a thread cache is served by the plain one of the runtime's copies of jemalloc.
//! The totals in bytes of `mallctl` are sums over all copies.
//!
//! A program that is linked with a shared jemalloc (Debian's redis is) would otherwise pass our blocks to it.
//! Flags that name arenas or thread caches refer to the plain instance, number 0, and so do the numbers that
//! `mallctl` returns. Only totals are those of all instances: where a plan puts all data into another tier,
//! the plain instance has nothing to report.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::null_mut;

use crate::block;
use crate::heap;
use crate::instance::{self, INSTANCES, PLACE_FLAGS};
use crate::reentrancy;
use crate::unwind::Caller;

/// `mallocx`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn mallocx_hook(
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
pub(crate) unsafe extern "C" fn rallocx_hook(
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
pub(crate) unsafe extern "C" fn xallocx_hook(
    block: *mut c_void,
    bytes: usize,
    extra: usize,
    flags: c_int,
) -> usize {
    // SAFETY: the caller's promise.
    unsafe { reentrancy::resize_in_place(block, bytes, extra, flags & !PLACE_FLAGS) }
}

/// `sallocx`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn sallocx_hook(block: *const c_void, _: c_int) -> usize {
    // SAFETY: the caller's promise.
    unsafe { (block::holder(block).sallocx)(block, 0) }
}

/// `dallocx`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn dallocx_hook(block: *mut c_void, flags: c_int) {
    let arena = block::arena_of(block);
    // SAFETY: the caller's promise.
    unsafe {
        match instance::straight(arena) {
            // Thread caches of the program belong to the plain instance.
            Some(instance) if arena == 0 => (instance.dallocx)(block, flags),
            Some(instance) => (instance.dallocx)(block, flags & !PLACE_FLAGS),
            None => reentrancy::free_block(arena, block),
        }
    }
}

/// `sdallocx`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn sdallocx_hook(block: *mut c_void, _: usize, flags: c_int) {
    // SAFETY: the caller's promise.
    unsafe { dallocx_hook(block, flags) }
}

/// `nallocx`.
pub(crate) extern "C" fn nallocx_hook(bytes: usize, flags: c_int) -> usize {
    // SAFETY: computes a size and touches nothing.
    unsafe { instance::_je0_nallocx(bytes, flags & !PLACE_FLAGS) }
}

/// Statistics in bytes that are sums over the instances.
const TOTALS: [&CStr; 6] = [
    c"stats.allocated",
    c"stats.active",
    c"stats.metadata",
    c"stats.resident",
    c"stats.mapped",
    c"stats.retained",
];

/// Takes new statistics in the instances beside the plain one, as writing `epoch` does.
fn refresh_others() {
    for instance in instance::all_running().iter().skip(1) {
        let mut epoch = 1_u64;
        // SAFETY: the name is jemalloc's, and the value has the stated length.
        unsafe {
            (instance.mallctl)(
                c"epoch".as_ptr(),
                null_mut(),
                null_mut(),
                (&raw mut epoch).cast(),
                size_of::<u64>(),
            );
        }
    }
}

/// A statistic of the instances beside the plain one.
fn sum_of_others(name: &CStr) -> usize {
    let of = |instance: &instance::Instance| {
        let mut value = 0_usize;
        let mut bytes = size_of::<usize>();
        // SAFETY: the name is jemalloc's, and the value has the stated length.
        let error = unsafe {
            (instance.mallctl)(
                name.as_ptr(),
                (&raw mut value).cast(),
                &raw mut bytes,
                null_mut(),
                0,
            )
        };
        if error == 0 { value } else { 0 }
    };
    instance::all_running().iter().skip(1).map(of).sum()
}

/// `mallctl`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn mallctl_hook(
    name: *const c_char,
    old: *mut c_void,
    old_bytes: *mut usize,
    new: *mut c_void,
    new_bytes: usize,
) -> c_int {
    // SAFETY: the caller's promise.
    let error = unsafe { (INSTANCES[0].mallctl)(name, old, old_bytes, new, new_bytes) };
    if error != 0 || name.is_null() || instance::running() < 2 {
        return error;
    }
    // SAFETY: jemalloc knew the name, so it is a string.
    let name = unsafe { CStr::from_ptr(name) };
    if name == c"epoch" && !new.is_null() {
        refresh_others();
    } else if TOTALS.contains(&name) && !old.is_null() {
        let total = old.cast::<usize>();
        // SAFETY: jemalloc has just written a size there, which it does for no other length.
        unsafe { total.write(total.read() + sum_of_others(name)) };
    }
    error
}

/// `mallctlnametomib`.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe extern "C" fn mallctlnametomib_hook(
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
pub(crate) unsafe extern "C" fn mallctlbymib_hook(
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
