//! Looks up a heap block by its address: its arena, the jemalloc instance that holds it, and its size; and copies the contents of a block.

use core::ffi::c_void;

use isotherm_abi::session::SHARED_ARENA;

use crate::c_library;
use crate::instance::{self, INSTANCES, Instance};
use crate::pool;

/// The arena that owns a block: 0 for one outside the pool.
#[inline]
pub(crate) fn arena_of(block: *const c_void) -> u32 {
    pool::owner_or(block.addr(), SHARED_ARENA + 1).wrapping_sub(1)
}

/// `malloc_usable_size`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn usable_size(block: *mut c_void) -> usize {
    // SAFETY: the caller's promise.
    unsafe {
        match c_library::has(block) {
            true => c_library::size_of_block(block),
            false => (holder(block).usable_size)(block),
        }
    }
}

/// The instance that holds a block; an arena that is no instance belongs to the first one.
#[inline]
pub(crate) fn holder(block: *const c_void) -> &'static Instance {
    instance::running_as(arena_of(block)).unwrap_or(&INSTANCES[0])
}

/// Copies what a block holds to the beginning of another one of `bytes` bytes.
///
/// # Safety
/// Both are blocks of the caller, and not the same one.
pub(crate) unsafe fn copy_contents(block: *mut c_void, to: *mut c_void, bytes: usize) {
    // SAFETY: both blocks are at least as long as what is copied, and they do not overlap.
    unsafe {
        let held = usable_size(block);
        core::ptr::copy_nonoverlapping(block.cast::<u8>(), to.cast::<u8>(), held.min(bytes));
    }
}
