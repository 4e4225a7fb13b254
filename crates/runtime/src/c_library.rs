//! Recognises blocks that another allocator than ours made, and passes them to the C library's `free`, `realloc` and
//! `malloc_usable_size`.
//!
//! A library that the program loads with `RTLD_DEEPBIND`, or into its own namespace, finds the C library's `malloc`
//! before ours, and hands its blocks to the program, which frees them here. Without Isotherm the program calls the C
//! library's `free`, so these blocks go there. The reverse has no remedy: a block of ours that such a library frees.
//!
//! The pool identifies the owner of a block; outside the pool, jemalloc's own tree of its pages does.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::next_symbol::Next;
use crate::pool;

/// Words of jemalloc's cache for searches (`rtree_ctx_t`): 16 and 8 entries of two. A search fills it; this one
/// is discarded.
const CACHE_WORDS: usize = 2 * (16 + 8);

unsafe extern "C" {
    /// Which extent each page of instance 0 belongs to (`emap_t`, whose first member is the tree).
    static _je0_je_arena_emap_global: c_void;

    /// The place of a page in a tree; null where the tree has none for it and need not make one. Its first word
    /// is 0 where the page belongs to no extent.
    fn _je0_je_rtree_leaf_elm_lookup_hard(
        thread: *mut c_void,
        tree: *const c_void,
        cache: *mut usize,
        address: usize,
        must_be_there: bool,
        make: bool,
    ) -> *const AtomicUsize;
}

/// Whether another allocator than ours made the block. False for null.
#[inline]
pub(crate) fn has(block: *const c_void) -> bool {
    !block.is_null() && !pool::range().contains(&block.addr()) && !is_of_first_instance(block)
}

#[inline(never)]
fn is_of_first_instance(block: *const c_void) -> bool {
    let mut cache = [0; CACHE_WORDS];
    // SAFETY: the tree exists from the start, empty at first, and is read without a lock or a thread where
    // nothing is to be made; the cache is as large as jemalloc's. A place never moves.
    unsafe {
        let place = _je0_je_rtree_leaf_elm_lookup_hard(
            null_mut(),
            &raw const _je0_je_arena_emap_global,
            cache.as_mut_ptr(),
            block.addr(),
            false,
            false,
        );
        place
            .as_ref()
            .is_some_and(|extent| extent.load(Ordering::Acquire) != 0)
    }
}

// SAFETY: the C library's function has this type.
static FREE: Next<unsafe extern "C" fn(*mut c_void)> = unsafe { Next::new(c"free") };
// SAFETY: the C library's function has this type.
static REALLOC: Next<unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void> =
    unsafe { Next::new(c"realloc") };
// SAFETY: the C library's function has this type.
static USABLE_SIZE: Next<unsafe extern "C" fn(*mut c_void) -> usize> =
    unsafe { Next::new(c"malloc_usable_size") };

/// Looks the functions up before the program can free a block while the loader runs.
pub(crate) fn start() {
    FREE.find();
    REALLOC.find();
    USABLE_SIZE.find();
}

/// `free`. Does nothing where the C library has no such function.
///
/// # Safety
/// As for the C function, for a block that another allocator has ([`has`]).
pub(crate) unsafe fn release(block: *mut c_void) {
    if let Some(free) = FREE.get() {
        // SAFETY: the caller's promise.
        unsafe { free(block) };
    }
}

/// `realloc`. Null where there is no such function.
///
/// # Safety
/// As for the C function, for a block that another allocator has ([`has`]).
pub(crate) unsafe fn resize(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: the caller's promise.
    REALLOC
        .get()
        .map_or(null_mut(), |realloc| unsafe { realloc(block, bytes) })
}

/// `malloc_usable_size`. 0 where there is no such function.
///
/// # Safety
/// As for the C function, for a block that another allocator has ([`has`]).
pub(crate) unsafe fn size_of_block(block: *mut c_void) -> usize {
    // SAFETY: the caller's promise.
    USABLE_SIZE.get().map_or(0, |size| unsafe { size(block) })
}

#[cfg(test)]
mod tests {
    use super::has;
    use crate::instance::INSTANCES;

    #[test]
    fn blocks_of_the_first_instance_are_told_from_all_others() {
        let local = 0_u64;
        assert!(!has(core::ptr::null()));
        assert!(has((&raw const local).cast()), "on the stack");
        for bytes in [1, 4096, 40_000, 5 << 20] {
            // SAFETY: each block is freed once, by the allocator that made it.
            unsafe {
                let (ours, theirs) = ((INSTANCES[0].malloc)(bytes), libc::malloc(bytes));
                assert!(!ours.is_null() && !theirs.is_null());
                assert!(!has(ours), "{bytes}");
                assert!(has(theirs), "{bytes}");
                (INSTANCES[0].free)(ours);
                libc::free(theirs);
            }
        }
    }
}
