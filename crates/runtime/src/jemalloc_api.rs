//! Serves jemalloc's own interface (`mallocx` and its relatives, `mallctl`), for programs that call it: their blocks are placed as those of
//! `malloc`, but a `mallocx` whose flags name an arena or a thread cache is served by the plain one of the runtime's copies of jemalloc.
//! The totals in bytes of `mallctl` are sums over all copies.
//!
//! A program that is linked with a shared jemalloc (Debian's redis is) would otherwise pass our blocks to it.
//! Flags that name arenas or thread caches refer to the plain instance, number 0, and so do the numbers that
//! `mallctl` returns. Only totals are those of all instances: where a plan puts all data into another tier,
//! the plain instance has nothing to report.

use core::ffi::{CStr, c_char, c_int, c_void};

use crate::block;
use crate::for_origin::for_origin;
use crate::heap;
use crate::instance::{self, INSTANCES, Instance, PLACE_FLAGS};
use crate::reentrancy;
use crate::unwind::Caller;

unsafe extern "C" {
    // The plain instance's functions, to which the shims of these names jump.
    pub(crate) fn _je0_mallctlnametomib(
        name: *const c_char,
        mib: *mut usize,
        length: *mut usize,
    ) -> c_int;
    pub(crate) fn _je0_mallctlbymib(
        mib: *const usize,
        length: usize,
        old: *mut c_void,
        old_bytes: *mut usize,
        new: *mut c_void,
        new_bytes: usize,
    ) -> c_int;
    pub(crate) fn _je0_malloc_stats_print(
        write: *mut c_void,
        data: *mut c_void,
        options: *const c_char,
    );
}

for_origin! {
    (address: usize, stack: usize) => Caller { address, stack };
    "C" mallocx_hook(bytes: usize, flags: c_int) -> *mut c_void => |caller| match flags & PLACE_FLAGS {
        0 => heap::allocate(bytes, flags, caller),
        _ => (INSTANCES[0].mallocx)(bytes, flags),
    };
    "C" rallocx_hook(block: *mut c_void, bytes: usize, flags: c_int) -> *mut c_void =>
        |caller| heap::resize(block, bytes, flags & !PLACE_FLAGS, caller);
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

/// The instances beside the plain one.
fn others() -> impl Iterator<Item = &'static Instance> {
    instance::all_running().iter().skip(1)
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
        // Takes new statistics, as writing `epoch` does.
        others().for_each(|other| _ = other.command(name, &1_u64));
    } else if TOTALS.contains(&name) && !old.is_null() {
        let total = old.cast::<usize>();
        let of_others = others().filter_map(|other| other.control::<usize>(name));
        // SAFETY: jemalloc has just written a size there, which it does for no other length.
        unsafe { total.write(total.read() + of_others.sum::<usize>()) };
    }
    error
}
