//! Implements the C allocation interface, from `malloc` to `malloc_trim`: finds the arena that serves an allocation by its [`Origin`] (the
//! caller, or a site that the compiler pass or the program names), and allocates, resizes or frees there. The entry shims ([`crate::hook`])
//! jump to [`trim`] and the functions `..._hook`, of which those that allocate take the caller; C++ operators, sites of the compiler pass
//! and named data use the others.

use core::ffi::{c_int, c_void};
use core::ptr::null_mut;

use crate::block::{self, arena_of};
use crate::c_library;
use crate::callers;
use crate::config::{self, Config};
use crate::errno::{errno, set_errno};
use crate::fast_path::HOT;
use crate::for_origin::for_origin;
use crate::instance::{self, INSTANCES, Instance};
use crate::plan::Target;
use crate::python;
use crate::reentrancy;
use crate::split;
use crate::start;
use crate::state;
use crate::thread;
use crate::unwind::Caller;

/// The instance that serves where no other does. It also serves tier 0 in guided mode, and else the arenas of sites.
const PLAIN: &Instance = &INSTANCES[0];

/// Identifies an allocation's site: its calling context, or a record of the compiler pass.
pub(crate) trait Origin: Copy {
    /// The arena that serves an allocation of this many bytes, or the number of a split; counts the allocation, where sites are counted.
    fn arena(self, bytes: usize) -> u32;
}

impl Origin for Caller {
    #[inline]
    fn arena(self, bytes: usize) -> u32 {
        arena_for(self, bytes)
    }
}

/// The arena that serves an allocation, if no call is needed: the hot path of almost every allocation, so it is
/// inlined into each hook. Without the call that reads Python functions a hook saves no registers.
#[inline(always)]
fn quick_arena(caller: Caller, bytes: usize) -> Option<u32> {
    match python::is_read() {
        false => cached_arena(caller, bytes, 0),
        true => None,
    }
}

/// The arena that serves an allocation, if the thread's cache has it. `python` is the thread's [`python::key`].
#[inline(always)]
fn cached_arena(caller: Caller, bytes: usize, python: u64) -> Option<u32> {
    match HOT.state.get() {
        state::GUIDED => match callers::instance_of(caller.address) {
            Some(instance) => Some(instance.number),
            None => thread::existing()?.cache.quick_value(caller, python),
        },
        state::PROFILE => thread::existing()?.cache.quick_arena(caller, bytes, python),
        _ => None,
    }
}

/// As [`cached_arena`], for the Python functions that run on this thread.
#[inline(never)]
fn cached_arena_in_python(caller: Caller, bytes: usize) -> Option<u32> {
    cached_arena(caller, bytes, python::key())
}

/// The arena that serves an allocation.
#[inline]
fn arena_for(caller: Caller, bytes: usize) -> u32 {
    quick_arena(caller, bytes).unwrap_or_else(|| slow_arena(caller, bytes))
}

/// As [`arena_for`], for the other cases.
#[inline(never)]
fn slow_arena(caller: Caller, bytes: usize) -> u32 {
    if HOT.state.get() == state::UNDECIDED {
        return decide(caller, bytes);
    }
    if python::is_read()
        && let Some(arena) = cached_arena_in_python(caller, bytes)
    {
        return arena;
    }
    let Some(config) = config::current() else {
        return 0;
    };
    let Some(thread) = thread::current() else {
        return unplaced(config);
    };
    match HOT.state.get() {
        state::GUIDED => thread.cache.value(config, caller),
        // A signal handler that interrupts here must not make arenas.
        state::PROFILE if reentrancy::level() == 0 => {
            let _visit = reentrancy::enter(0);
            thread.cache.arena(config, caller, bytes)
        }
        _ => None,
    }
    .unwrap_or(unplaced(config))
}

/// The arena of data without a placement of its own.
pub(crate) fn unplaced(config: &Config) -> u32 {
    if HOT.state.get() == state::GUIDED {
        config.default_tier
    } else {
        0
    }
}

/// Decides the mode, if the C library is initialised, and looks the arena up in it; arena 0 before.
#[cold]
fn decide(caller: Caller, bytes: usize) -> u32 {
    if start::decide() {
        arena_for(caller, bytes)
    } else {
        0
    }
}

/// Allocates from an arena; where that fails, from the plain instance. Sets `errno`.
#[inline]
fn allocate_in(arena: u32, bytes: usize, flags: c_int) -> *mut c_void {
    let block = match instance::straight(arena) {
        // SAFETY: any size is valid.
        Some(instance) if flags == 0 => unsafe { (instance.malloc)(bytes) },
        // SAFETY: the size is not 0.
        Some(instance) => unsafe { (instance.mallocx)(bytes.max(1), flags) },
        None => return allocate_in_arena(arena, bytes, flags),
    };
    if block.is_null() {
        return allocate_anywhere(bytes, flags);
    }
    block
}

/// As [`allocate_in`], for an arena that is not called directly, or the number of a split.
#[inline(never)]
fn allocate_in_arena(arena: u32, bytes: usize, flags: c_int) -> *mut c_void {
    if let Some(index) = Target::split_of_arena(arena) {
        return allocate_split(index, bytes, flags);
    }
    let block = reentrancy::allocate(arena, bytes, flags);
    if block.is_null() {
        set_errno(libc::ENOMEM);
    }
    block
}

/// As [`allocate_in`], for a site that has a split. A function of its own, so that the others save no registers for it.
#[inline(never)]
fn allocate_split(index: u32, bytes: usize, flags: c_int) -> *mut c_void {
    if split::is_large(bytes) && split::runs() {
        let block = reentrancy::allocate_in_parts(index, bytes, flags);
        if !block.is_null() {
            return block;
        }
    }
    allocate_in(split::base_tier(index), bytes, flags)
}

/// The last resort where a tier's instance has no memory.
#[cold]
#[inline(never)]
fn allocate_anywhere(bytes: usize, flags: c_int) -> *mut c_void {
    // SAFETY: the size is not 0.
    let block = unsafe { (PLAIN.mallocx)(bytes.max(1), flags) };
    if block.is_null() {
        set_errno(libc::ENOMEM);
    }
    block
}

/// Allocates for a site. `flags` are jemalloc's, without arena and thread cache.
#[inline]
pub(crate) fn allocate(bytes: usize, flags: c_int, origin: impl Origin) -> *mut c_void {
    allocate_in(origin.arena(bytes), bytes, flags)
}

/// `malloc`.
pub(crate) extern "C" fn malloc_hook(bytes: usize, address: usize, stack: usize) -> *mut c_void {
    let caller = Caller { address, stack };
    let Some(arena) = quick_arena(caller, bytes) else {
        return slow_malloc(bytes, caller);
    };
    let Some(instance) = instance::straight(arena) else {
        return allocate_in_arena(arena, bytes, 0);
    };
    // SAFETY: any size is valid.
    let block = unsafe { (instance.malloc)(bytes) };
    if block.is_null() {
        return allocate_anywhere(bytes, 0);
    }
    block
}

/// As [`malloc_hook`], for the other cases.
#[inline(never)]
fn slow_malloc(bytes: usize, caller: Caller) -> *mut c_void {
    allocate_in(slow_arena(caller, bytes), bytes, 0)
}

// The functions that the entry shims of the C interface jump to.
for_origin! {
    (address: usize, stack: usize) => Caller { address, stack };
    "C" calloc_hook(count: usize, bytes: usize) -> *mut c_void =>
        |caller| allocate_zeroed(count, bytes, caller);
    "C" realloc_hook(block: *mut c_void, bytes: usize) -> *mut c_void =>
        |caller| reallocate(block, bytes, caller);
    "C" reallocarray_hook(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void =>
        |caller| reallocate_array(block, count, bytes, caller);
    "C" memalign_hook(alignment: usize, bytes: usize) -> *mut c_void =>
        |caller| allocate_at_multiple(alignment, bytes, caller);
    "C" posix_memalign_hook(place: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int =>
        |caller| place_aligned(place, alignment, bytes, caller);
    "C" valloc_hook(bytes: usize) -> *mut c_void => |caller| allocate_at_multiple(PAGE, bytes, caller);
    "C" pvalloc_hook(bytes: usize) -> *mut c_void => |caller| allocate_pages(bytes, caller);
}

/// `calloc`.
#[inline]
pub(crate) fn allocate_zeroed(count: usize, bytes: usize, origin: impl Origin) -> *mut c_void {
    let Some(total) = count.checked_mul(bytes) else {
        set_errno(libc::ENOMEM);
        return null_mut();
    };
    let arena = origin.arena(total);
    if let Some(instance) = instance::straight(arena) {
        // SAFETY: any size is valid.
        let block = unsafe { (instance.calloc)(1, total) };
        if !block.is_null() {
            return block;
        }
    }
    allocate_in(arena, total, instance::ZERO)
}

/// `free`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn free_hook(block: *mut c_void) {
    let arena = arena_of(block);
    // SAFETY: the caller's promise, and the block belongs to the arena. Null is in no pool, and an instance
    // accepts it.
    unsafe {
        match instance::straight(arena) {
            Some(instance) => (instance.free)(block),
            None => reentrancy::free_block(arena, block),
        }
    }
}

/// `realloc`.
///
/// # Safety
/// As for the C function.
#[inline]
pub(crate) unsafe fn reallocate(
    block: *mut c_void,
    bytes: usize,
    origin: impl Origin,
) -> *mut c_void {
    if block.is_null() {
        return allocate(bytes, 0, origin);
    }
    if bytes == 0 {
        // As the GNU C library does.
        // SAFETY: the caller's promise.
        unsafe { free_hook(block) };
        return null_mut();
    }
    if c_library::has(block) {
        // SAFETY: the caller's promise.
        return unsafe { c_library::resize(block, bytes) };
    }
    // SAFETY: the caller's promise.
    let moved = unsafe { resize(block, bytes, 0, origin) };
    if moved.is_null() {
        set_errno(libc::ENOMEM);
    }
    moved
}

/// Resizes a block. It keeps its arena, unless the caller's site has [another](other_arena).
///
/// # Safety
/// The block is one of ours and, if the answer is not null, is not used any more.
pub(crate) unsafe fn resize(
    block: *mut c_void,
    bytes: usize,
    flags: c_int,
    origin: impl Origin,
) -> *mut c_void {
    let arena = arena_of(block);
    if let Some(wanted) = other_arena(arena, bytes, origin) {
        // SAFETY: the caller's promise.
        let moved = unsafe { move_block(block, wanted, bytes, flags) };
        if !moved.is_null() {
            return moved;
        }
    }
    // SAFETY: the caller's promise, and the block belongs to the arena.
    unsafe {
        match instance::straight(arena) {
            Some(instance) if flags == 0 => (instance.realloc)(block, bytes),
            Some(instance) => (instance.rallocx)(block, bytes.max(1), flags),
            None if split::owns(arena) => resize_split(block, bytes, flags),
            None => reentrancy::reallocate(arena, block, bytes, flags),
        }
    }
}

/// The arena to which a block moves when it is resized: data without a placement moves to the arena of the caller's site, and any
/// data to the parts of a site that is placed in parts. A block that grows at a hot site belongs to that site.
#[inline]
fn other_arena(arena: u32, bytes: usize, origin: impl Origin) -> Option<u32> {
    let is_unplaced = arena == config::current().map_or(0, unplaced);
    let grows = split::is_large(bytes) && split::runs() && !split::owns(arena);
    if !is_unplaced && !grows {
        return None;
    }
    let wanted = split::arena_for(origin.arena(bytes), bytes);
    let may_move = is_unplaced || Target::split_of_arena(wanted).is_some();
    (wanted != arena && may_move).then_some(wanted)
}

/// Resizes a block that is placed in parts. A small one goes to the base tier.
///
/// # Safety
/// As for [`resize`].
#[inline(never)]
unsafe fn resize_split(block: *mut c_void, bytes: usize, flags: c_int) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe {
        if split::is_large(bytes) {
            let moved = reentrancy::reallocate_in_parts(block, bytes, flags);
            if !moved.is_null() {
                return moved;
            }
        }
        move_block(
            block,
            split::base_tier(split::of_block(block)),
            bytes,
            flags,
        )
    }
}

/// Copies a block into another arena and frees the old one.
///
/// # Safety
/// As for [`resize`].
pub(crate) unsafe fn move_block(
    block: *mut c_void,
    arena: u32,
    bytes: usize,
    flags: c_int,
) -> *mut c_void {
    let moved = allocate_in(arena, bytes, flags);
    if moved.is_null() {
        return moved;
    }
    // SAFETY: the new block has that many bytes, and the caller gives the old one up.
    unsafe {
        block::copy_contents(block, moved, bytes);
        free_hook(block);
    }
    moved
}

/// `reallocarray`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe fn reallocate_array(
    block: *mut c_void,
    count: usize,
    bytes: usize,
    origin: impl Origin,
) -> *mut c_void {
    let Some(total) = count.checked_mul(bytes) else {
        set_errno(libc::ENOMEM);
        return null_mut();
    };
    // SAFETY: the caller's promise.
    unsafe { reallocate(block, total, origin) }
}

/// Allocates at a multiple of a power of two; another alignment is an error of the caller, answered with null
/// and no `errno`.
pub(crate) fn allocate_aligned(alignment: usize, bytes: usize, origin: impl Origin) -> *mut c_void {
    if !alignment.is_power_of_two() || alignment > isize::MAX as usize / 2 {
        return null_mut();
    }
    let flags = if alignment <= 16 && bytes >= alignment {
        // Every block has this alignment.
        0
    } else {
        instance::align(alignment)
    };
    allocate(bytes, flags, origin)
}

/// `memalign` and `aligned_alloc`; as in the GNU C library before 2.38, an alignment that is no
/// power of two is raised to the next.
pub(crate) fn allocate_at_multiple(
    alignment: usize,
    bytes: usize,
    origin: impl Origin,
) -> *mut c_void {
    if alignment > isize::MAX as usize {
        set_errno(libc::EINVAL);
        return null_mut();
    }
    let alignment = alignment.max(1).next_power_of_two();
    let block = allocate_aligned(alignment, bytes, origin);
    if block.is_null() {
        set_errno(libc::ENOMEM);
    }
    block
}

/// `posix_memalign`. Answers an error number and leaves `errno` alone.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe fn place_aligned(
    place: *mut *mut c_void,
    alignment: usize,
    bytes: usize,
    origin: impl Origin,
) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<usize>()) {
        return libc::EINVAL;
    }
    let before = errno();
    let block = allocate_aligned(alignment, bytes, origin);
    if block.is_null() {
        set_errno(before);
        return libc::ENOMEM;
    }
    // SAFETY: the caller passes a valid place.
    unsafe { *place = block };
    0
}

/// Bytes of a page of the C interface.
pub(crate) const PAGE: usize = 4096;

/// `pvalloc`.
pub(crate) fn allocate_pages(bytes: usize, origin: impl Origin) -> *mut c_void {
    let Some(rounded) = bytes.checked_next_multiple_of(PAGE) else {
        set_errno(libc::ENOMEM);
        return null_mut();
    };
    allocate_at_multiple(PAGE, rounded.max(PAGE), origin)
}

/// `malloc_trim`: gives freed memory back to the system. Answers 1 as if some had been.
pub(crate) extern "C" fn trim(_: usize) -> c_int {
    for instance in instance::all_running() {
        // 4096 is MALLCTL_ARENAS_ALL.
        // SAFETY: the name is a command without values.
        unsafe {
            (instance.mallctl)(
                c"arena.4096.purge".as_ptr(),
                null_mut(),
                null_mut(),
                null_mut(),
                0,
            );
        }
    }
    1
}
