//! Serves a signal handler that allocates or frees while its thread is inside the allocator: while profiling it allocates from a spare copy
//! of jemalloc, and a block that cannot be freed at once waits in a list until the thread has left. [`allocate`], [`free_block`],
//! [`reallocate`] and [`resize_in_place`] mark the thread as inside. Calls go through them while profiling, and in a guided run for blocks
//! outside the copies of jemalloc that serve the first tiers and are called directly ([`crate::instance::straight`]).
//!
//! jemalloc does not support that: a handler can wait for a lock that its own thread holds. Plain jemalloc
//! almost never deadlocks, because its thread caches need no lock. The arenas of sites take locks often, so
//! while they are in use (profile and online mode) each thread records the instances that it is in:
//!
//! ```text
//! program            in instance 0
//!   handler          is served by instance 1, which serves nothing else in this mode
//!     handler of it  is served by instance 2, and so on
//! ```
//!
//! A block of an instance that the thread is in is not freed at once, but put on a list of the thread, which is
//! freed when the thread has left the allocator. In guided mode only blocks that are placed in parts ([`crate::split`]) need this.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{Ordering, compiler_fence};

use crate::arena;
use crate::block;
use crate::errno::set_errno;
use crate::instance::{self, INSTANCES, Instance};
use crate::split;
use crate::thread;
use crate::tls::{self, ReentrancyState};

/// Keeps the thread marked as inside an instance until it is dropped.
pub(crate) struct AllocatorGuard {
    inside: &'static ReentrancyState,
    before: u32,
}

/// How deep this thread is in the allocator; not 0 in a handler that interrupted it.
#[inline]
pub(crate) fn level() -> u32 {
    tls::inside().level.load(Ordering::Relaxed)
}

/// Enters instance `number`.
#[inline]
pub(crate) fn enter(number: u32) -> AllocatorGuard {
    let inside = tls::inside();
    let before = inside.level.load(Ordering::Relaxed);
    inside
        .level
        .store(before.max(number + 1), Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    AllocatorGuard { inside, before }
}

impl Drop for AllocatorGuard {
    #[inline]
    fn drop(&mut self) {
        compiler_fence(Ordering::SeqCst);
        self.inside.level.store(self.before, Ordering::Relaxed);
        if self.before == 0 && !self.inside.deferred.load(Ordering::Relaxed).is_null() {
            self.inside.free_deferred();
        }
    }
}

impl ReentrancyState {
    /// Keeps a block for [`Self::free_deferred`].
    ///
    /// # Safety
    /// The block is the caller's, and the caller does not use it any more.
    unsafe fn defer(&self, block: *mut c_void) {
        let link = block.cast::<*mut c_void>();
        let mut first = self.deferred.load(Ordering::Relaxed);
        loop {
            // SAFETY: a block has room for a word: the smallest has 8 bytes.
            unsafe { link.write(first) };
            match self
                .deferred
                .compare_exchange(first, block, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(newer) => first = newer,
            }
        }
    }

    /// Frees the blocks that handlers deferred, outside of every instance.
    #[cold]
    #[inline(never)]
    fn free_deferred(&self) {
        let mut block = self.deferred.swap(null_mut(), Ordering::Relaxed);
        while !block.is_null() {
            // SAFETY: `defer` wrote the link, and no code has used the block since.
            unsafe {
                let next = block.cast::<*mut c_void>().read();
                // Blocks wait only while each free comes here.
                free_block(block::arena_of(block), block);
                block = next;
            }
        }
    }
}

/// Whether handlers have their own instances.
fn has_spares() -> bool {
    instance::in_use() == 0
}

/// Whether a block of this arena must wait until the thread has left the allocator.
fn must_wait(arena: u32, level: u32) -> bool {
    let is_inside = || {
        let number = instance::running_as(arena).map_or(0, |_| arena);
        (has_spares() && number < level) || split::owns(arena)
    };
    level > 0 && is_inside()
}

/// Allocates from an arena that is not called directly; in a handler that interrupted the allocator, from a
/// spare instance. Null where there is no memory.
pub(crate) fn allocate(arena: u32, bytes: usize, flags: c_int) -> *mut c_void {
    let level = level();
    if level > 0 && has_spares() {
        let _visit = enter(level);
        // The instance of its level serves a handler; deeper levels may have none.
        // SAFETY: the size is not 0.
        return instance::running_as(level).map_or(null_mut(), |spare| unsafe {
            (spare.mallocx)(bytes.max(1), flags)
        });
    }
    let _visit = enter(0);
    if arena != 0 {
        let block = thread::allocate(arena, bytes, flags);
        if !block.is_null() {
            return block;
        }
    }
    // SAFETY: any size is valid, and none is 0 where there are flags.
    unsafe {
        match flags {
            0 => (INSTANCES[0].malloc)(bytes),
            _ => (INSTANCES[0].mallocx)(bytes.max(1), flags),
        }
    }
}

/// Frees a block of an arena that is not called directly.
///
/// # Safety
/// As for the C function; the block belongs to the arena.
pub(crate) unsafe extern "C" fn free_block(arena: u32, block: *mut c_void) {
    if block.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        if must_wait(arena, level()) {
            return tls::inside().defer(block);
        }
        match whole_instance(arena) {
            Some((number, instance)) => {
                let _visit = enter(number);
                (instance.free)(block);
            }
            None => {
                let _visit = enter(0);
                match split::owns(arena) {
                    true => split::free_block(block),
                    false => thread::free_block(arena, block),
                }
            }
        }
    }
}

/// Allocates a large block of a site that has a split. Null where there is no memory, and in a handler that interrupted the
/// allocator: the base tier has other locks.
pub(crate) fn allocate_in_parts(index: u32, bytes: usize, flags: c_int) -> *mut c_void {
    if level() > 0 {
        return null_mut();
    }
    let _visit = enter(0);
    split::allocate(index, bytes, flags)
}

/// Resizes a block that is placed in parts to one that is large, too. Null as for [`allocate_in_parts`].
///
/// # Safety
/// As for [`free_block`], unless the answer is null.
pub(crate) unsafe fn reallocate_in_parts(
    block: *mut c_void,
    bytes: usize,
    flags: c_int,
) -> *mut c_void {
    if level() > 0 {
        return null_mut();
    }
    let _visit = enter(0);
    // SAFETY: the caller's promise.
    unsafe { split::reallocate(block, bytes, flags) }
}

/// Resizes a block of an arena that is not called directly; it stays in that arena, except in a handler that
/// interrupted the allocator.
///
/// # Safety
/// As for [`free_block`], unless the answer is null.
pub(crate) unsafe fn reallocate(
    arena: u32,
    block: *mut c_void,
    bytes: usize,
    flags: c_int,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        if must_wait(arena, level()) {
            return move_block(block, arena, bytes, flags);
        }
        match whole_instance(arena) {
            Some((number, instance)) => {
                let _visit = enter(number);
                (instance.rallocx)(block, bytes.max(1), flags)
            }
            None => {
                let _visit = enter(0);
                thread::reallocate(arena, block, bytes, flags)
            }
        }
    }
}

/// Copies a block that must wait into one that a handler can have.
///
/// # Safety
/// As for [`reallocate`].
unsafe fn move_block(block: *mut c_void, arena: u32, bytes: usize, flags: c_int) -> *mut c_void {
    let moved = allocate(arena, bytes, flags);
    if moved.is_null() {
        set_errno(libc::ENOMEM);
        return moved;
    }
    // SAFETY: the new block has that many bytes, and the caller gives the old one up.
    unsafe {
        block::copy_contents(block, moved, bytes);
        free_block(arena, block);
    }
    moved
}

/// jemalloc's `xallocx`: resizes a block in place as far as that goes, in a handler that came in
/// between not at all, and answers its size.
///
/// # Safety
/// As for jemalloc's function.
pub(crate) unsafe fn resize_in_place(
    block: *mut c_void,
    bytes: usize,
    extra: usize,
    flags: c_int,
) -> usize {
    let arena = block::arena_of(block);
    let (number, instance) = whole_instance(arena).unwrap_or((0, &INSTANCES[0]));
    // SAFETY: the caller's promise, and the block belongs to the instance.
    unsafe {
        if must_wait(arena, level()) {
            return (instance.sallocx)(block, 0);
        }
        let _visit = enter(number);
        match split::owns(arena) {
            true => split::resize_in_place(block, bytes, extra, flags),
            false => (instance.xallocx)(block, bytes, extra, flags),
        }
    }
}

/// The instance of an arena, with its number. Any other value holds no block: the program's error, which
/// jemalloc handles.
fn whole_instance(arena: u32) -> Option<(u32, &'static Instance)> {
    let belongs_nowhere = arena >= arena::count();
    instance::running_as(arena)
        .map(|instance| (arena, instance))
        .or(belongs_nowhere.then_some((0, &INSTANCES[0])))
}

#[cfg(test)]
mod tests {
    use super::{enter, level};

    #[test]
    fn a_thread_is_outside_again_after_every_visit() {
        assert_eq!(level(), 0);
        {
            let _outer = enter(0);
            assert_eq!(level(), 1);
            let inner = enter(2);
            assert_eq!(level(), 3);
            assert_eq!(enter(0).before, 3, "an instance further in stays entered");
            drop(inner);
            assert_eq!(level(), 1);
            assert_eq!(std::thread::spawn(level).join().unwrap(), 0);
        }
        assert_eq!(level(), 0);
    }
}
