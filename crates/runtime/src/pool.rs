//! Hands out the pool, one reservation of address space, in chunks of 2 MiB to the arenas of jemalloc and to large mappings, takes them
//! back, publishes their owners for the observer, and finds the owner of an address ([`owner`]).
//!
//! ```text
//! base                                                             base + bytes
//! | arena 1 | arena 1 | arena 3 | mapping | mapping | free | free | ... |
//!   2 MiB     owner 2   owner 4   CHUNK_MAPPING       0
//! ```
//!
//! A long run keeps its distance from the run below it. Instances grow by powers of two, so equal arrays of two
//! sites would otherwise be a power of two apart, where their lines and pages meet in the same sets of the
//! processor's caches: a stencil over two such grids took 1.12 times as long as with a sixteenth more between
//! them. Short runs fill the gaps.
//!
//! The first chunks are for signal handlers that interrupt their own thread while it has the pool's lock.
//!
//! A subtraction, a comparison, a shift and a load find the owner of an address. The table of owners is private
//! memory: a child of fork or of a plain `clone` has its own.

use core::ops::Range;
use core::sync::atomic::{AtomicUsize, Ordering};

use isotherm_abi::session::CHUNK_FREE;
use isotherm_abi::{CHUNK_BYTES, CHUNK_SHIFT};
use isotherm_sys::memory;
use rustix::process::Resource;

use crate::config::POOL_BYTES_MIN;
use crate::fast_path::HOT;
use crate::free_map;
use crate::lock::Lock;
use crate::session;
use crate::tables::{self, Tables, part};

/// Bytes of a chunk, as the type of addresses.
pub(crate) const CHUNK: usize = CHUNK_BYTES as usize;

/// A run is kept apart from the run below it by one chunk for each of this many of its own.
const GAP: usize = 16;

/// Most chunks that are kept for handlers: one is enough for thousands of small blocks.
const FOR_HANDLERS: usize = 64;

/// No chunk from those for handlers up to this one is free.
static LOWEST_FREE: AtomicUsize = AtomicUsize::new(0);
pub(crate) static LOCK: Lock = Lock::new();

/// The address range of the pool; empty where there is none.
pub(crate) fn range() -> Range<usize> {
    let base = HOT.base.load(Ordering::Relaxed);
    base..base + HOT.bytes.load(Ordering::Relaxed)
}

/// The owner of this address's chunk: [`CHUNK_FREE`] for an address outside the pool.
#[inline]
pub(crate) fn owner(address: usize) -> u32 {
    owner_or(address, CHUNK_FREE)
}

/// The owner of this address's chunk, or `outside` for an address outside the pool.
#[inline]
pub(crate) fn owner_or(address: usize, outside: u32) -> u32 {
    let offset = address.wrapping_sub(HOT.base.load(Ordering::Relaxed));
    if offset >= HOT.bytes.load(Ordering::Relaxed) {
        return outside;
    }
    // SAFETY: the table has an entry for each chunk of the pool, and the offset is within.
    unsafe {
        &*HOT
            .owners
            .load(Ordering::Relaxed)
            .add(offset >> CHUNK_SHIFT)
    }
    .load(Ordering::Relaxed)
}

/// The part of a range that is in the pool; empty where none is.
pub(crate) fn overlap(address: usize, bytes: usize) -> Range<usize> {
    let pool = range();
    let start = address.max(pool.start);
    let end = address.saturating_add(bytes).min(pool.end);
    start..end.max(start)
}

/// Chunks of the pool.
fn chunks_in_all() -> usize {
    HOT.bytes.load(Ordering::Relaxed) >> CHUNK_SHIFT
}

/// Calls `visit` with the addresses of each run of neighbouring chunks of one owner.
pub(crate) fn for_each_run(owner: u32, mut visit: impl FnMut(Range<usize>)) {
    let Some(private) = tables::private() else {
        return;
    };
    let base = HOT.base.load(Ordering::Relaxed);
    let end = tables::chunks_ever_used();
    let is_own = |index: &usize| private.chunk(*index).load(Ordering::Relaxed) == owner;
    let mut index = 0;
    while let Some(first) = (index..end).find(is_own) {
        index = (first..end).find(|index| !is_own(index)).unwrap_or(end);
        visit(base + first * CHUNK..base + index * CHUNK);
    }
}

/// Reserves the address space: `wanted` bytes, or half of it, and so on.
///
/// Where the address space is limited, the program needs some of it itself, so the pool takes half of the limit
/// at most. Returns the range.
pub(crate) fn reserve(wanted: u64) -> Option<(usize, usize)> {
    let limit = rustix::process::getrlimit(Resource::As).current;
    let mut bytes = wanted.min(limit.map_or(u64::MAX, |limit| limit / 2));
    bytes -= bytes % CHUNK_BYTES;
    while bytes >= POOL_BYTES_MIN {
        // One chunk more, to cut the range to whole chunks.
        if let Ok(start) = memory::reserve(bytes as usize + CHUNK) {
            let base = start.next_multiple_of(CHUNK);
            // SAFETY: the ends were reserved just now and are not used.
            unsafe {
                let _ = memory::unmap(start, base - start);
                let end = base + bytes as usize;
                let _ = memory::unmap(end, start + CHUNK - base);
            }
            return Some((base, bytes as usize));
        }
        bytes = (bytes / 2) / CHUNK_BYTES * CHUNK_BYTES;
    }
    None
}

/// Makes the reserved range the pool. Called once, at start, after the private tables exist.
pub(crate) fn open(base: usize, bytes: usize) {
    let Some(private) = tables::private() else {
        return;
    };
    HOT.owners.store(
        core::ptr::from_ref(private.chunk(0)).cast_mut(),
        Ordering::Relaxed,
    );
    LOWEST_FREE.store(for_handlers(bytes >> CHUNK_SHIFT), Ordering::Relaxed);
    HOT.base.store(base, Ordering::Relaxed);
    HOT.bytes.store(bytes, Ordering::Release);
}

/// Number of the pool's first chunks that are for handlers.
fn for_handlers(total: usize) -> usize {
    FOR_HANDLERS.min(total / 16)
}

/// Undoes [`open`], before any chunk was taken.
pub(crate) fn close() {
    HOT.bytes.store(0, Ordering::Release);
}

/// Takes `chunks` neighbouring chunks for `owner`; the first address is a multiple of
/// `alignment`, a power of two. They are still closed.
pub(crate) fn take(chunks: usize, alignment: usize, owner: u32) -> Option<usize> {
    let Some(guard) = LOCK.lock() else {
        return take_in_handler(chunks, alignment, owner);
    };
    let private = tables::private()?;
    let base = HOT.base.load(Ordering::Relaxed);
    let total = chunks_in_all();
    let is_free = |index: usize| private.chunk(index).load(Ordering::Relaxed) == CHUNK_FREE;
    let lowest = LOWEST_FREE.load(Ordering::Relaxed);
    let wanted = Run {
        chunks,
        alignment,
        gap: chunks / GAP,
    };
    let first = find_run(base, lowest, total, wanted, is_free)
        .or_else(|| find_run(base, lowest, total, Run { gap: 0, ..wanted }, is_free))?;
    own(private, first, chunks, owner);
    if first == lowest {
        LOWEST_FREE.store(first + chunks, Ordering::Relaxed);
    }
    tables::note_chunks_used(first + chunks);
    drop(guard);
    publish(first, chunks, owner);
    Some(base + first * CHUNK)
}

/// Takes chunks while this thread holds the lock, so that only handlers of the same thread can interrupt.
fn take_in_handler(chunks: usize, alignment: usize, owner: u32) -> Option<usize> {
    let private = tables::private()?;
    let base = HOT.base.load(Ordering::Relaxed);
    let end = for_handlers(chunks_in_all());
    let is_free = |index: usize| private.chunk(index).load(Ordering::Relaxed) == CHUNK_FREE;
    let change = |index: usize, from, to| {
        let chunk = private.chunk(index);
        chunk
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    };
    let wanted = Run {
        chunks,
        alignment,
        gap: 0,
    };
    loop {
        let first = find_run(base, 0, end, wanted, is_free)?;
        let taken = (first..first + chunks)
            .take_while(|index| change(*index, CHUNK_FREE, owner))
            .count();
        if taken == chunks {
            tables::note_chunks_used(first + chunks);
            free_map::note(base + first * CHUNK, chunks, owner);
            publish(first, chunks, owner);
            return Some(base + first * CHUNK);
        }
        for index in first..first + taken {
            change(index, owner, CHUNK_FREE);
        }
    }
}

/// A search for free chunks.
#[derive(Clone, Copy)]
struct Run {
    chunks: usize,
    /// Alignment of the first address.
    alignment: usize,
    /// Chunks between this run and the run below it.
    gap: usize,
}

/// The first such run at or after `lowest`.
fn find_run(
    base: usize,
    lowest: usize,
    total: usize,
    run: Run,
    is_free: impl Fn(usize) -> bool,
) -> Option<usize> {
    let mut first = lowest;
    loop {
        let aligned = (base + first * CHUNK).checked_next_multiple_of(run.alignment.max(CHUNK))?;
        first = (aligned - base) >> CHUNK_SHIFT;
        let end = first.checked_add(run.chunks)?;
        if end > total {
            return None;
        }
        let below = first.saturating_sub(run.gap);
        match (below..end).rev().find(|&index| !is_free(index)) {
            None => return Some(first),
            Some(taken) => first = taken + 1 + run.gap,
        }
    }
}

/// Takes the chunks that follow a range of the same owner, if all are free.
pub(crate) fn extend(end: usize, chunks: usize, owner: u32) -> Option<()> {
    let guard = LOCK.lock()?;
    let private = tables::private()?;
    let base = HOT.base.load(Ordering::Relaxed);
    let total = chunks_in_all();
    let first = (end - base) >> CHUNK_SHIFT;
    let last = first.checked_add(chunks).filter(|&last| last <= total)?;
    let free = |index| private.chunk(index).load(Ordering::Relaxed) == CHUNK_FREE;
    if !(first..last).all(free) {
        return None;
    }
    own(private, first, chunks, owner);
    tables::note_chunks_used(last);
    drop(guard);
    publish(first, chunks, owner);
    Some(())
}

/// Releases closed chunks: the range is a reservation again and holds nothing.
pub(crate) fn release(address: usize, bytes: usize) {
    let Some(private) = tables::private() else {
        return;
    };
    let first = (address - HOT.base.load(Ordering::Relaxed)) >> CHUNK_SHIFT;
    let chunks = bytes >> CHUNK_SHIFT;
    publish(first, chunks, CHUNK_FREE);
    let _guard = LOCK.lock();
    own(private, first, chunks, CHUNK_FREE);
    if first >= for_handlers(chunks_in_all()) {
        LOWEST_FREE.fetch_min(first, Ordering::Relaxed);
    }
}

/// Gives chunks to an owner.
fn own(private: &Tables, first: usize, chunks: usize, owner: u32) {
    for index in first..first + chunks {
        private.chunk(index).store(owner, Ordering::Release);
    }
    free_map::note(
        HOT.base.load(Ordering::Relaxed) + first * CHUNK,
        chunks,
        owner,
    );
}

/// Publishes the new owner of some chunks to the observer.
fn publish(first: usize, chunks: usize, owner: u32) {
    session::ensure();
    let Some(private) = tables::private() else {
        return;
    };
    let offset = private.offset(part::CHUNKS) + first as u64 * 4;
    if let Some(session) = session::writable(offset, chunks as u64 * 4) {
        for index in first..first + chunks {
            session.chunk(index).store(owner, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE_ADDRESS: usize = 0x7000_0000_0000;

    fn run(lowest: usize, chunks: usize, alignment: usize, free: &[usize]) -> Option<usize> {
        apart(0, lowest, chunks, alignment, free)
    }

    fn apart(
        gap: usize,
        lowest: usize,
        chunks: usize,
        alignment: usize,
        free: &[usize],
    ) -> Option<usize> {
        let wanted = Run {
            chunks,
            alignment,
            gap,
        };
        find_run(BASE_ADDRESS, lowest, 16, wanted, |index| {
            free.contains(&index)
        })
    }

    #[test]
    fn a_run_keeps_its_distance_from_what_lies_below() {
        let all: Vec<usize> = (0..16).collect();
        assert_eq!(apart(2, 0, 4, 0, &all), Some(0), "nothing lies below");
        let above: Vec<usize> = (3..16).collect();
        assert_eq!(apart(2, 3, 4, 0, &above), Some(5));
        let hole: Vec<usize> = (0..16).filter(|index| *index != 4).collect();
        assert_eq!(apart(2, 3, 4, 0, &hole), Some(7));
        assert_eq!(apart(2, 3, 4, 4 * CHUNK, &hole), Some(8));
        assert_eq!(apart(2, 3, 12, 0, &above), None);
    }

    #[test]
    fn the_first_run_that_is_long_enough_is_taken() {
        // 0 1 2 3 4 5 6 7 ... 15
        // . x . . x . . .
        let free = [0, 2, 3, 5, 6, 7];
        assert_eq!(run(0, 1, 0, &free), Some(0));
        assert_eq!(run(0, 2, 0, &free), Some(2));
        assert_eq!(run(0, 3, 0, &free), Some(5));
        assert_eq!(run(0, 4, 0, &free), None);
        assert_eq!(run(1, 1, 0, &free), Some(2));
    }

    #[test]
    fn an_aligned_run_begins_at_a_multiple() {
        let free: Vec<usize> = (1..16).collect();
        assert_eq!(run(0, 2, 4 * CHUNK, &free), Some(4));
        assert_eq!(run(5, 9, 4 * CHUNK, &free), None);
    }

    #[test]
    fn a_run_never_reaches_past_the_end() {
        let free: Vec<usize> = (0..16).collect();
        assert_eq!(run(0, 16, 0, &free), Some(0));
        assert_eq!(run(0, 17, 0, &free), None);
        assert_eq!(run(0, usize::MAX, 0, &free), None);
    }
}
