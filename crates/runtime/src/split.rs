//! Allocates, resizes, frees and places objects in parts, in guided runs: for example, the first megabytes of an array in the fast tier,
//! its rest in the slow one. Serves the large blocks of sites that have a [`Split`], and places the parts of their mappings and variables.
//!
//! ```text
//! a site with a split   large allocations    one arena of instance 0, whose chunks are in the slowest tier
//!                       small ones           as those of a site without parts
//!                       mappings             chunks in the slowest tier
//!                       variables            where they are
//! then, of each object  | base tier | part | base tier | part |         ([`crate::page_placement`])
//! ```
//!
//! Blocks begin at a page, so that the parts do too. They bypass the caches of threads. A block remembers its split, for its
//! growth: in a table with an entry for each 64 KiB of the pool, in which at most one such block begins.
//!
//! Where a page trap emulates the slow tier, no site has parts: all of its data goes to its base tier.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use std::sync::OnceLock;

use isotherm_abi::config::RuntimeMode;
use isotherm_abi::session::{OBJECT_BYTES, OffReason};
use isotherm_sys::memory::PAGE_BYTES;

use crate::arena;
use crate::config::{self, Config};
use crate::emulation::Sparse;
use crate::extent;
use crate::instance::{self, INSTANCES};
use crate::page_placement;
use crate::placement;
use crate::plan::{FIRST_SPLIT, Target};
use crate::pool;
use crate::split_table::Split;

const _: () = assert!(FIRST_SPLIT >= arena::ARENAS_MAX);

/// Least bytes of an allocation that is placed in parts.
const LEAST: usize = OBJECT_BYTES as usize;

/// The arena of the blocks; a number that no arena has where there is none.
static ARENA: AtomicU32 = AtomicU32::new(NO_ARENA);
const NO_ARENA: u32 = FIRST_SPLIT;
/// The split of the block that begins in each 64 KiB of the pool. Set where objects are placed in parts.
static OF_BLOCKS: OnceLock<Sparse<AtomicU32>> = OnceLock::new();

/// Bits of `MALLOCX_ALIGN`: the logarithm of the alignment.
const ALIGNMENT_BITS: c_int = 0x3f;

/// Whether a run with this configuration places objects in parts.
pub(crate) const fn is_wanted(config: &Config) -> bool {
    let traps = config.emulation.period_ns != 0 || config.trapping.pages != 0;
    matches!(config.mode, RuntimeMode::Guided) && config.splits.len() > 0 && !traps
}

/// Makes the arena and the tables, if the configuration has splits. Called once, at start, after the tiers have their arenas.
///
/// # Errors
/// [`OffReason::NoAddressSpace`].
pub(crate) fn start(config: &Config) -> Result<(), OffReason> {
    if !is_wanted(config) {
        return Ok(());
    }
    let pool_bytes = pool::range().len();
    page_placement::start(config, pool_bytes)?;
    let blocks = Sparse::map(pool_bytes / LEAST).map_err(|_| OffReason::NoAddressSpace)?;
    // Called once.
    let _ = OF_BLOCKS.set(blocks);
    // Without an arena large allocations go to the base tier as small ones do.
    let arena = extent::create_arena(0, config.slowest()).unwrap_or(NO_ARENA);
    ARENA.store(arena, Ordering::Release);
    Ok(())
}

/// Whether objects are placed in parts.
#[inline]
pub(crate) fn runs() -> bool {
    OF_BLOCKS.get().is_some()
}

/// Whether this is the arena of blocks that are placed in parts.
#[inline]
pub(crate) fn owns(arena: u32) -> bool {
    arena == ARENA.load(Ordering::Relaxed)
}

/// Whether an allocation of this size is placed in parts at a site that has some.
#[inline]
pub(crate) fn is_large(bytes: usize) -> bool {
    bytes >= LEAST
}

/// The placement of a site's objects, if they are placed in parts.
pub(crate) fn of_target(config: &Config, target: Target) -> Option<Split> {
    match target {
        Target::Split(index) if runs() => config.splits.get(index),
        Target::Split(_) | Target::Leading(_) | Target::Tier(_) => None,
    }
}

/// The arena that serves an allocation: `number` is what its context leads to, and the number of a split is replaced by its base tier
/// where the allocation is not placed in parts.
pub(crate) fn arena_for(number: u32, bytes: usize) -> u32 {
    match Target::split_of_arena(number) {
        Some(index) if !is_large(bytes) || !runs() => base_tier(index),
        Some(_) | None => number,
    }
}

/// The tier of what lies in no part.
pub(crate) fn base_tier(index: u32) -> u32 {
    config::current().map_or(0, |config| config.tier_of(Target::Split(index)))
}

/// Places a range of an object that begins at this address: the pages of the pool hold nothing of use.
pub(crate) fn place(split: &Split, object: usize, range: &Range<usize>) {
    for (piece, tier) in split.pieces(range.start - object..range.end - object) {
        page_placement::place(object + piece.start..object + piece.end, tier);
    }
}

/// Places a variable of the program.
pub(crate) fn place_static(split: &Split, range: &Range<usize>) {
    for (piece, tier) in split.pieces(0..range.len()) {
        placement::place_static(range.start + piece.start..range.start + piece.end, tier);
    }
}

/// The entry of a block.
fn split_of(block: *const c_void) -> Option<&'static AtomicU32> {
    let offset = block.addr().wrapping_sub(pool::range().start);
    OF_BLOCKS.get()?.items().get(offset / LEAST)
}

/// The split of a block of [the arena](owns).
pub(crate) fn of_block(block: *const c_void) -> u32 {
    split_of(block).map_or(0, |entry| entry.load(Ordering::Relaxed))
}

/// The flags of an allocation in the arena, at a page or the caller's larger alignment.
fn flags_with_arena(arena: u32, flags: c_int) -> c_int {
    let alignment = (flags & ALIGNMENT_BITS).max(instance::align(PAGE_BYTES));
    let place = instance::arena(arena::jemalloc_number(arena)) | instance::TCACHE_NONE;
    flags & !ALIGNMENT_BITS | alignment | place
}

/// Allocates a block of at least [`LEAST`] bytes and places its parts. Null where there is no memory or no arena.
pub(crate) fn allocate(index: u32, bytes: usize, flags: c_int) -> *mut c_void {
    let arena = ARENA.load(Ordering::Relaxed);
    if arena == NO_ARENA {
        return core::ptr::null_mut();
    }
    // SAFETY: the size is not 0, and the arena exists.
    let block = unsafe { (INSTANCES[0].mallocx)(bytes, flags_with_arena(arena, flags)) };
    if block.is_null() {
        return block;
    }
    if let Some(entry) = split_of(block) {
        entry.store(index, Ordering::Relaxed);
    }
    // SAFETY: the block was allocated just now.
    let usable = unsafe { (INSTANCES[0].sallocx)(block, 0) };
    place_block(index, block, 0..usable);
    block
}

/// Places a range of a block, given from its start on.
fn place_block(index: u32, block: *const c_void, range: Range<usize>) {
    let split = config::current().and_then(|config| config.splits.get(index));
    if let Some(split) = split {
        let start = block.addr();
        place(&split, start, &(start + range.start..start + range.end));
    }
}

/// Frees a block of [the arena](owns).
///
/// # Safety
/// The block is one of that arena and is not used any more.
pub(crate) unsafe fn free_block(block: *mut c_void) {
    // SAFETY: the caller's promise.
    unsafe {
        let usable = (INSTANCES[0].sallocx)(block, 0);
        // Before another thread can have the pages.
        page_placement::give_back(&(block.addr()..block.addr() + usable));
        (INSTANCES[0].dallocx)(block, instance::TCACHE_NONE);
    }
}

/// Resizes a block of [the arena](owns) to at least [`LEAST`] bytes; it keeps its split. Null where there is no memory.
///
/// # Safety
/// As for [`free_block`], unless the answer is null.
pub(crate) unsafe fn reallocate(block: *mut c_void, bytes: usize, flags: c_int) -> *mut c_void {
    let alignment = 1_usize << (flags & ALIGNMENT_BITS);
    // SAFETY: the caller's promise.
    unsafe {
        let is_aligned = block.addr().is_multiple_of(alignment);
        if is_aligned && resize_in_place(block, bytes, 0, flags) >= bytes {
            return block;
        }
        let moved = allocate(of_block(block), bytes, flags);
        if !moved.is_null() {
            let held = (INSTANCES[0].sallocx)(block, 0);
            moved
                .cast::<u8>()
                .copy_from_nonoverlapping(block.cast(), held.min(bytes));
            free_block(block);
        }
        moved
    }
}

/// Resizes a block of [the arena](owns) in place as far as that goes, as jemalloc's `xallocx`, but to no less than [`LEAST`]
/// bytes. Answers its size.
///
/// # Safety
/// The block is one of that arena, and the caller's.
pub(crate) unsafe fn resize_in_place(
    block: *mut c_void,
    bytes: usize,
    extra: usize,
    flags: c_int,
) -> usize {
    let least = bytes.max(LEAST);
    let extra = extra.saturating_sub(least - bytes);
    // SAFETY: the caller's promise; no size is 0.
    unsafe {
        let before = (INSTANCES[0].sallocx)(block, 0);
        let most = (INSTANCES[0].nallocx)(least.saturating_add(extra), 0);
        // 0 stands for a size that does not exist.
        let kept = if most == 0 { before } else { before.min(most) };
        // Before another thread can have the pages.
        page_placement::give_back(&(block.addr() + kept..block.addr() + before));
        let after = (INSTANCES[0].xallocx)(block, least, extra, flags);
        place_block(of_block(block), block, kept..after);
        after
    }
}
