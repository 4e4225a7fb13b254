//! Defines the allocation functions that a program calls at sites which the compiler pass described ([`crate::compiled_site`]), as tables
//! for C ([`HeapRoute`]) and C++ ([`NewRoute`]): in guided mode one for each tier with a jemalloc instance, and one for all other sites. No
//! function has the name of an exported one of the library: a debugger would use it in place of that one.
//!
//! In guided mode each tier with an instance has its own `malloc`, which is jemalloc's, called through one pointer, its own
//! `calloc`, and its own plain `operator new`. All other functions, and all functions while profiling and for tiers without
//! an instance, look the arena up at each allocation.

use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;

use isotherm_abi::site::{HeapRoute, NewRoute, SitePointer};

use crate::compiled_site::CompiledSite;
use crate::for_origin::for_origin;
use crate::heap;
use crate::instance::{self, INSTANCES};
use crate::operators;

/// The functions of the C interface: for a tier's sites, or with a lookup of the arena.
pub(crate) fn heap(tier: Option<u32>) -> &'static HeapRoute {
    straight(tier).map_or(&LOOKED_UP, |tier| &HEAP[tier])
}

/// The functions of `operator new`.
pub(crate) fn operator_new(tier: Option<u32>) -> &'static NewRoute {
    straight(tier).map_or(&NEW_LOOKED_UP, |tier| &NEW[tier])
}

/// The tier, if it is an instance that is called directly.
fn straight(tier: Option<u32>) -> Option<usize> {
    let tier = tier?;
    (tier < instance::in_use() && (tier as usize) < HEAP.len()).then_some(tier as usize)
}

static HEAP: [HeapRoute; 4] = [
    of_tier::<0>(INSTANCES[0].malloc),
    of_tier::<1>(INSTANCES[1].malloc),
    of_tier::<2>(INSTANCES[2].malloc),
    of_tier::<3>(INSTANCES[3].malloc),
];
static NEW: [NewRoute; 4] = [
    new_of_tier::<0>(),
    new_of_tier::<1>(),
    new_of_tier::<2>(),
    new_of_tier::<3>(),
];
const _: () = assert!(HEAP.len() == INSTANCES.len() && NEW.len() == INSTANCES.len());

const LOOKED_UP: HeapRoute = HeapRoute {
    malloc: site_malloc,
    calloc: site_calloc,
    realloc: site_realloc,
    reallocarray: site_reallocarray,
    memalign: site_memalign,
    aligned_alloc: site_memalign,
    posix_memalign: site_posix_memalign,
    valloc: site_valloc,
    pvalloc: site_pvalloc,
    strdup: site_strdup,
    strndup: site_strndup,
};
const NEW_LOOKED_UP: NewRoute = NewRoute {
    single: new,
    array: new,
    single_aligned: new_aligned,
    array_aligned: new_aligned,
    single_nothrow: new_nothrow,
    array_nothrow: new_nothrow,
    single_aligned_nothrow: new_aligned_nothrow,
    array_aligned_nothrow: new_aligned_nothrow,
};

/// jemalloc's `malloc`.
type Malloc = unsafe extern "C" fn(usize) -> *mut c_void;
/// `malloc` as a route stores it.
type SiteMalloc = unsafe extern "C" fn(usize, SitePointer) -> *mut c_void;

/// The functions of a tier: the frequent ones are specific to it.
///
/// A `malloc` that fails does not try the plain instance, as others do: the frame to return to would cost a
/// fifth of the whole, and that instance holds little more than its caches.
const fn of_tier<const TIER: usize>(malloc: Malloc) -> HeapRoute {
    // SAFETY: an argument in a register that the function does not read is harmless in the calling conventions
    // of x86-64 and aarch64.
    let malloc = unsafe { core::mem::transmute::<Malloc, SiteMalloc>(malloc) };
    HeapRoute {
        malloc,
        calloc: calloc_in::<TIER>,
        ..LOOKED_UP
    }
}

/// As [`of_tier`], for C++.
const fn new_of_tier<const TIER: usize>() -> NewRoute {
    NewRoute {
        single: new_in::<TIER>,
        array: new_in::<TIER>,
        ..NEW_LOOKED_UP
    }
}

unsafe extern "C" fn calloc_in<const TIER: usize>(
    count: usize,
    bytes: usize,
    site: SitePointer,
) -> *mut c_void {
    // SAFETY: any number and size are valid; jemalloc checks their product.
    let block = unsafe { (INSTANCES[TIER].calloc)(count, bytes) };
    if block.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { site_calloc(count, bytes, site) };
    }
    block
}

unsafe extern "C-unwind" fn new_in<const TIER: usize>(
    bytes: usize,
    site: SitePointer,
) -> *mut c_void {
    // SAFETY: any size is valid.
    let block = unsafe { (INSTANCES[TIER].malloc)(bytes) };
    if block.is_null() {
        // SAFETY: the caller's promise.
        return unsafe { new(bytes, site) };
    }
    block
}

// The functions that look the arena up.
for_origin! {
    (site: SitePointer) => CompiledSite::new(site);
    "C" site_malloc(bytes: usize) -> *mut c_void => |origin| heap::allocate(bytes, 0, origin);
    "C" site_calloc(count: usize, bytes: usize) -> *mut c_void =>
        |origin| heap::allocate_zeroed(count, bytes, origin);
    "C" site_realloc(block: *mut c_void, bytes: usize) -> *mut c_void =>
        |origin| heap::reallocate(block, bytes, origin);
    "C" site_reallocarray(block: *mut c_void, count: usize, bytes: usize) -> *mut c_void =>
        |origin| heap::reallocate_array(block, count, bytes, origin);
    "C" site_memalign(alignment: usize, bytes: usize) -> *mut c_void =>
        |origin| heap::allocate_at_multiple(alignment, bytes, origin);
    "C" site_posix_memalign(place: *mut *mut c_void, alignment: usize, bytes: usize) -> c_int =>
        |origin| heap::place_aligned(place, alignment, bytes, origin);
    "C" site_valloc(bytes: usize) -> *mut c_void =>
        |origin| heap::allocate_at_multiple(heap::PAGE, bytes, origin);
    "C" site_pvalloc(bytes: usize) -> *mut c_void => |origin| heap::allocate_pages(bytes, origin);
    "C" site_strdup(text: *const c_char) -> *mut c_char =>
        |origin| copy_text(text, libc::strlen(text), origin);
    "C" site_strndup(text: *const c_char, most: usize) -> *mut c_char =>
        |origin| copy_text(text, libc::strnlen(text, most), origin);
    "C-unwind" new(bytes: usize) -> *mut c_void => |origin| operators::throwing(0, bytes, origin);
    "C-unwind" new_aligned(bytes: usize, alignment: usize) -> *mut c_void =>
        |origin| operators::throwing(alignment.max(1), bytes, origin);
    "C-unwind" new_nothrow(bytes: usize) -> *mut c_void =>
        |origin| operators::nothrow(0, bytes, origin);
    "C-unwind" new_aligned_nothrow(bytes: usize, alignment: usize) -> *mut c_void =>
        |origin| operators::nothrow(alignment.max(1), bytes, origin);
}

/// A copy of the first `bytes` of a text, ended by NUL.
///
/// # Safety
/// The text has that many bytes.
unsafe fn copy_text(text: *const c_char, bytes: usize, origin: CompiledSite) -> *mut c_char {
    let copy = heap::allocate(bytes + 1, 0, origin).cast::<c_char>();
    if copy.is_null() {
        return null_mut();
    }
    // SAFETY: both are that long, and the copy is new.
    unsafe {
        copy.copy_from_nonoverlapping(text, bytes);
        copy.add(bytes).write(0);
    }
    copy
}
