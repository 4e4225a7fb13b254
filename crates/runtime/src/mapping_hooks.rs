//! Implements the hooks of `mmap`, `munmap`, `mremap`, `mprotect` and `madvise`: serves large private anonymous mappings of the program
//! from the pool in guided, profile and online mode, and unmaps and remaps them there. Other calls go to the kernel as a rule; pages of the
//! pool that they change and that the emulation keeps elsewhere are brought back before, and no chunk of the range moves meanwhile.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

use isotherm_abi::hash::SiteHashKind;
use isotherm_abi::session::{CHUNK_FREE, CHUNK_MAPPING, NO_TIER};
use isotherm_sys::memory::{self, Errno};

use crate::config::{self, Config};
use crate::emulation;
use crate::errno::{answer, answer_number};
use crate::fast_path::HOT;
use crate::mapping::{self, Mapping};
use crate::placement;
use crate::pool::{self, CHUNK};
use crate::resident;
use crate::site;
use crate::split;
use crate::state;
use crate::unwind::{Caller, unwind};

const PAGE: usize = 4096;

/// Protection of the mappings that are served.
const READ_WRITE: i32 = libc::PROT_READ | libc::PROT_WRITE;
/// Flags that a served mapping must have.
const WANTED_FLAGS: i32 = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
/// Flags that a served mapping may have besides.
const HARMLESS_FLAGS: i32 = libc::MAP_NORESERVE | libc::MAP_POPULATE;

/// `mmap` and `mmap64`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn mmap_hook(
    hint: usize,
    bytes: usize,
    protection: i32,
    flags: i32,
    descriptor: i32,
    offset: i64,
) -> usize {
    if protection == READ_WRITE && flags & !HARMLESS_FLAGS == WANTED_FLAGS {
        if let Some(address) = serve(bytes, flags) {
            return address;
        }
    } else if flags & libc::MAP_FIXED != 0 {
        // The range is replaced: its trapped pages are no longer ours to move.
        settle_overlap(hint, bytes);
    }
    let map = || {
        // SAFETY: the caller's promise.
        answer_number(unsafe { memory::map(hint, bytes, protection, flags, descriptor, offset) })
    };
    match flags & libc::MAP_FIXED {
        0 => map(),
        _ => placement::apart(hint, bytes, map),
    }
}

/// Serves a mapping from the pool, if it is large enough and there is room.
fn serve(bytes: usize, flags: i32) -> Option<usize> {
    let config = large_enough(bytes, flags)?;
    let bytes = bytes.checked_next_multiple_of(PAGE)?;
    let rounded = bytes.checked_next_multiple_of(CHUNK)?;
    let (site, tier) = site_and_tier(config, bytes);
    let mappings = mapping::lock()?;
    if !mappings.has_room(1) {
        return None;
    }
    let address = pool::take(rounded / CHUNK, CHUNK, CHUNK_MAPPING)?;
    // SAFETY: the chunks were taken just now and no other code knows them.
    if unsafe { memory::protect(address, bytes, READ_WRITE) }.is_err() {
        pool::release(address, rounded);
        return None;
    }
    let mapping = Mapping {
        address,
        bytes,
        site,
        tier,
    };
    place(&mapping, address, address..address + rounded);
    mappings.add(mapping);
    drop(mappings);
    if flags & libc::MAP_POPULATE != 0 {
        // As with mmap itself, a failure to populate is no failure. Linux 5.14 knows the advice.
        // SAFETY: the range is the program's new mapping.
        let _ = unsafe { memory::advise(address, bytes, libc::MADV_POPULATE_WRITE) };
    }
    Some(address)
}

/// The configuration, if it says to serve a mapping of this size.
fn large_enough(bytes: usize, flags: i32) -> Option<&'static Config> {
    let working = matches!(HOT.state.get(), state::GUIDED | state::PROFILE);
    let config = config::current().filter(|_| working)?;
    // The pool does not count as memory; a mapping that the kernel would refuse as too large goes to the
    // kernel.
    let believable = flags & libc::MAP_NORESERVE != 0 || bytes as u64 <= memory_bytes();
    (bytes >= config.mapping_bytes && believable).then_some(config)
}

/// Memory and swap of the machine.
fn memory_bytes() -> u64 {
    static BYTES: AtomicU64 = AtomicU64::new(0);
    let known = BYTES.load(Ordering::Relaxed);
    if known > 0 {
        return known;
    }
    let information = rustix::system::sysinfo();
    #[allow(clippy::useless_conversion, reason = "the type differs by platform")]
    let bytes = (u64::from(information.totalram) + u64::from(information.totalswap))
        .saturating_mul(u64::from(information.mem_unit));
    BYTES.store(bytes, Ordering::Relaxed);
    bytes
}

/// Places chunks that a mapping has got, and its bytes from `first` on where its site has a split.
fn place(mapping: &Mapping, first: usize, chunks: Range<usize>) {
    let split = config::current().and_then(|config| {
        let target = site::target(config, mapping.site);
        Some((config.slowest(), split::of_target(config, target)?))
    });
    let tier = split.as_ref().map_or(mapping.tier, |(slowest, _)| *slowest);
    if !chunks.is_empty() {
        placement::place(chunks.start, chunks.len(), tier);
    }
    if let Some((_, split)) = split {
        let end = mapping.address + mapping.bytes;
        split::place(&split, mapping.address, &(first..end));
    }
}

/// Site and tier of the mapping that the program is making.
fn site_and_tier(config: &Config, bytes: usize) -> (u32, u32) {
    let caller = Caller {
        address: 0,
        stack: 0,
    };
    let context = unwind(caller, config.depth);
    let site = site::of(&context, SiteHashKind::Mapping);
    site::add_mapping(site, bytes as u64);
    let tier = if config.tiers.is_empty() {
        NO_TIER
    } else {
        config.tier_of(site::target(config, site))
    };
    (site, tier)
}

/// Brings contents home where a range overlaps the pool.
fn settle_overlap(address: usize, bytes: usize) {
    let inside = pool::overlap(address, bytes);
    if !inside.is_empty() {
        placement::settle(inside.start, inside.len());
    }
}

/// The part of a range that holds mappings served from the pool.
fn served(address: usize, bytes: usize) -> Option<Range<usize>> {
    let inside = pool::overlap(address, bytes);
    (!inside.is_empty() && address.is_multiple_of(PAGE) && mapping::any_in(&inside))
        .then_some(inside)
}

/// Whether an address is in a free chunk of the pool: for the program there is no mapping.
fn is_free(address: usize) -> bool {
    pool::range().contains(&address) && pool::owner(address) == CHUNK_FREE
}

/// `munmap`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn munmap_hook(address: usize, bytes: usize) -> i32 {
    let rounded = bytes.checked_next_multiple_of(PAGE).unwrap_or(bytes);
    match served(address, rounded) {
        // SAFETY: the caller's promise.
        Some(inside) => answer(unsafe { unmap_around(address, rounded, &inside) }),
        None => placement::apart(address, bytes, || {
            // SAFETY: the caller's promise.
            answer(unsafe { memory::unmap(address, bytes) })
        }),
    }
}

/// Unmaps the part outside the pool, and gives back the part inside.
///
/// # Safety
/// The caller owns the range.
unsafe fn unmap_around(address: usize, bytes: usize, inside: &Range<usize>) -> memory::Result<()> {
    let end = address + bytes;
    for outside in [address..inside.start, inside.end..end] {
        if !outside.is_empty() {
            // SAFETY: the caller's promise.
            unsafe { memory::unmap(outside.start, outside.len())? };
        }
    }
    // SAFETY: the caller's promise; the range stays in the pool's reservation.
    let close = || unsafe { memory::reserve_again(inside.start, inside.len()) };
    match mapping::lock() {
        Some(mappings) => {
            if let Some((_, mapping)) = mappings.at(inside.start) {
                resident::before_unmap(mapping.site, inside);
            }
            mappings.release(inside, close)
        }
        // In a signal handler that interrupted the bookkeeping, the chunks stay taken.
        None => close(),
    }
}

/// `mremap`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn mremap_hook(
    address: usize,
    bytes: usize,
    new_bytes: usize,
    flags: i32,
    new_address: usize,
) -> usize {
    if flags & libc::MREMAP_FIXED != 0 {
        settle_overlap(new_address, new_bytes);
    }
    let Some(inside) = served(address, bytes.next_multiple_of(PAGE)) else {
        if is_free(address) {
            return answer_number(Err(Errno::FAULT));
        }
        return placement::apart(address, bytes, || {
            // SAFETY: the caller's promise.
            answer_number(unsafe { memory::remap(address, bytes, new_bytes, flags, new_address) })
        });
    };
    // SAFETY: the caller's promise.
    answer_number(unsafe { remap_served(&inside, new_bytes, flags, new_address) })
}

/// `mremap` of a mapping that was served from the pool.
///
/// # Safety
/// As for `mremap`.
unsafe fn remap_served(
    old: &Range<usize>,
    new_bytes: usize,
    flags: i32,
    new_address: usize,
) -> memory::Result<usize> {
    let elsewhere = libc::MREMAP_FIXED | libc::MREMAP_DONTUNMAP;
    let new_bytes = new_bytes
        .checked_next_multiple_of(PAGE)
        .filter(|&bytes| bytes > 0)
        .ok_or(Errno::INVAL)?;
    if flags & elsewhere != 0 {
        // SAFETY: the caller's promise.
        return unsafe { remap_out(old, new_bytes, flags, new_address) };
    }
    if new_bytes <= old.len() {
        let tail = old.start + new_bytes..old.end;
        if !tail.is_empty() {
            // SAFETY: the caller gives the tail up.
            unsafe { unmap_around(tail.start, tail.len(), &tail)? };
        }
        return Ok(old.start);
    }
    // SAFETY: the caller's promise.
    match unsafe { grow_in_place(old, new_bytes) } {
        Some(grown) => Ok(grown),
        None if flags & libc::MREMAP_MAYMOVE == 0 => Err(Errno::NOMEM),
        // SAFETY: the caller's promise.
        None => unsafe { grow_elsewhere(old, new_bytes) },
    }
}

/// Moves (part of) a mapping out of the pool, to the place that the program requests.
///
/// # Safety
/// As for `mremap`.
unsafe fn remap_out(
    old: &Range<usize>,
    new_bytes: usize,
    flags: i32,
    new_address: usize,
) -> memory::Result<usize> {
    placement::settle(old.start, old.len());
    // SAFETY: the caller's promise.
    let moved = unsafe { memory::remap(old.start, old.len(), new_bytes, flags, new_address)? };
    if flags & libc::MREMAP_DONTUNMAP == 0
        && let Some(mappings) = mapping::lock()
    {
        // If another thread mapped the hole first, its chunks are never reused.
        let _ = mappings.release(old, || close_hole(old));
    }
    Ok(moved)
}

/// Reserves the hole that a moved mapping left again, unless another thread mapped it first.
fn close_hole(hole: &Range<usize>) -> memory::Result<()> {
    let flags = WANTED_FLAGS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: the kernel replaces nothing.
    let address = unsafe { memory::map(hole.start, hole.len(), libc::PROT_NONE, flags, -1, 0)? };
    if address == hole.start {
        return Ok(());
    }
    // Kernels before 4.17 treat the flag as a hint.
    // SAFETY: the mapping was made just now.
    unsafe { memory::unmap(address, hole.len())? };
    Err(Errno::EXIST)
}

/// Grows a mapping into the rest of its last chunk and the free chunks behind it.
///
/// # Safety
/// The caller owns the range.
unsafe fn grow_in_place(old: &Range<usize>, new_bytes: usize) -> Option<usize> {
    let mappings = mapping::lock()?;
    let (slot, mapping) = mappings.at(old.start)?;
    if mapping.address + mapping.bytes != old.end {
        return None;
    }
    let chunk_end = old.end.next_multiple_of(CHUNK);
    let new_end = old.start.checked_add(new_bytes)?;
    let new_chunk_end = new_end.checked_next_multiple_of(CHUNK)?;
    // Another piece of the same mapping may be in the rest of the last chunk.
    if mappings.at(old.end).is_some()
        || (chunk_end > old.end && piece_behind(&mappings, old.end, chunk_end))
    {
        return None;
    }
    if new_chunk_end > chunk_end {
        let chunks = (new_chunk_end - chunk_end) / CHUNK;
        pool::extend(chunk_end, chunks, CHUNK_MAPPING)?;
    }
    // SAFETY: the range is reserved, belongs to the mapping's chunks, and holds nothing.
    if unsafe { memory::protect(old.end, new_end - old.end, READ_WRITE) }.is_err() {
        if new_chunk_end > chunk_end {
            pool::release(chunk_end, new_chunk_end - chunk_end);
        }
        return None;
    }
    let grown = Mapping {
        bytes: new_end - mapping.address,
        ..mapping
    };
    place(&grown, old.end, chunk_end..new_chunk_end);
    mappings.set(slot, grown);
    Some(old.start)
}

/// Whether a record touches the range.
fn piece_behind(mappings: &mapping::Mappings, start: usize, end: usize) -> bool {
    (start..end)
        .step_by(PAGE)
        .any(|address| mappings.at(address).is_some())
}

/// Moves a mapping to other chunks, where it fits.
///
/// # Safety
/// The caller owns the range.
unsafe fn grow_elsewhere(old: &Range<usize>, new_bytes: usize) -> memory::Result<usize> {
    let no_memory = Errno::NOMEM;
    let rounded = new_bytes.checked_next_multiple_of(CHUNK).ok_or(no_memory)?;
    let mappings = mapping::lock().ok_or(no_memory)?;
    let (_, mapping) = mappings.at(old.start).ok_or(Errno::FAULT)?;
    // A part of a mapping may leave two pieces, and is one more at its new place.
    let moves_whole = mapping.address == old.start && mapping.bytes == old.len();
    if !moves_whole && !mappings.has_room(2) {
        return Err(no_memory);
    }
    placement::settle(old.start, old.len());
    let new = pool::take(rounded / CHUNK, CHUNK, CHUNK_MAPPING).ok_or(no_memory)?;
    let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
    // SAFETY: the caller owns the old range, and the new one was taken just now.
    let moved = unsafe { memory::remap(old.start, old.len(), new_bytes, flags, new) };
    if let Err(error) = moved {
        pool::release(new, rounded);
        return Err(error);
    }
    // If another thread mapped the hole first, its chunks are never reused.
    let _ = mappings.release(old, || close_hole(old));
    let moved = Mapping {
        address: new,
        bytes: new_bytes,
        ..mapping
    };
    place(&moved, new, new..new + rounded);
    mappings.add(moved);
    Ok(new)
}

/// `mprotect`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn mprotect_hook(
    address: usize,
    bytes: usize,
    protection: i32,
) -> i32 {
    settle_overlap(address, bytes);
    placement::apart(address, bytes, || {
        // SAFETY: the caller's promise.
        answer(unsafe { memory::protect(address, bytes, protection) })
    })
}

/// `madvise`.
///
/// # Safety
/// As for the C function.
pub(crate) unsafe extern "C" fn madvise_hook(address: usize, bytes: usize, advice: i32) -> i32 {
    let rounded = bytes.next_multiple_of(PAGE);
    let inside = pool::overlap(address, rounded);
    if emulation::runs() && !inside.is_empty() && address.is_multiple_of(PAGE) {
        match advice {
            // Contents may be in the shadow, where the kernel would not find them.
            libc::MADV_DONTNEED | libc::MADV_FREE if inside.len() == rounded => {
                return answer(placement::discard(address, rounded));
            }
            // The trap moves single pages.
            libc::MADV_HUGEPAGE | libc::MADV_COLLAPSE => return 0,
            // Nothing to do with contents.
            libc::MADV_NORMAL
            | libc::MADV_RANDOM
            | libc::MADV_SEQUENTIAL
            | libc::MADV_WILLNEED
            | libc::MADV_NOHUGEPAGE
            | libc::MADV_DONTDUMP
            | libc::MADV_DODUMP
            | libc::MADV_COLD => {}
            _ => placement::settle(inside.start, inside.len()),
        }
    }
    placement::apart(address, bytes, || {
        // SAFETY: the caller's promise.
        answer(unsafe { memory::advise(address, bytes, advice) })
    })
}
