//! Connects jemalloc's arenas to the pool, the address space that the runtime serves data from: gives them chunks of it, placed in their
//! tier, discards the contents that jemalloc purges ([`purge`]), and makes further arenas of jemalloc's first copy, such as those of sites,
//! with extent hooks that do both ([`create_arena`]).
//!
//! The automatic arenas of an instance keep jemalloc's default hooks, whose fast paths are faster; the build redirects their one call for
//! fresh memory to [`supply`].

use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};

use isotherm_sys::memory;

use crate::arena;
use crate::capacity;
use crate::hidden_symbols::hidden;
use crate::instance::{self, INSTANCES};
use crate::leading;
use crate::placement;
use crate::pool::{self, CHUNK};
use crate::resident;
use crate::session;
use crate::tables::{self, part};

/// jemalloc's `extent_hooks_t`.
#[repr(C)]
pub(crate) struct ExtentHooks {
    alloc: unsafe extern "C" fn(
        *mut ExtentHooks,
        *mut c_void,
        usize,
        usize,
        *mut bool,
        *mut bool,
        c_uint,
    ) -> *mut c_void,
    /// `dalloc`, `destroy`, `commit`, `decommit` and `purge_lazy`: null.
    absent: [usize; 5],
    purge_forced:
        unsafe extern "C" fn(*mut ExtentHooks, *mut c_void, usize, usize, usize, c_uint) -> bool,
    split: unsafe extern "C" fn(
        *mut ExtentHooks,
        *mut c_void,
        usize,
        usize,
        usize,
        bool,
        c_uint,
    ) -> bool,
    merge: unsafe extern "C" fn(
        *mut ExtentHooks,
        *mut c_void,
        usize,
        *mut c_void,
        usize,
        bool,
        c_uint,
    ) -> bool,
}

/// Hooks of an arena, with its number in the chunk table.
#[repr(C)]
pub(crate) struct ArenaHooks {
    hooks: ExtentHooks,
    number: u32,
}

impl ArenaHooks {
    /// Hooks for arena `number`. The absent ones make jemalloc keep freed extents and purge them, as it does by
    /// default on Linux.
    pub(crate) fn new(number: u32) -> Self {
        Self {
            hooks: ExtentHooks {
                alloc: arena_alloc,
                absent: [0; 5],
                purge_forced: arena_purge,
                split: arena_split,
                merge: arena_merge,
            },
            number,
        }
    }
}

/// The hooks of all arenas, by number; null before the first.
static HOOKS: AtomicPtr<ArenaHooks> = AtomicPtr::new(core::ptr::null_mut());

hidden! {
    "isotherm_extent_alloc_0" => extent_alloc::<0>,
    "isotherm_extent_alloc_1" => extent_alloc::<1>,
    "isotherm_extent_alloc_2" => extent_alloc::<2>,
    "isotherm_extent_alloc_3" => extent_alloc::<3>,
    "isotherm_no_break" => no_break,
}

/// Fresh memory for the automatic arenas of instance `N`.
unsafe extern "C" fn extent_alloc<const N: usize>(
    new: *mut c_void,
    bytes: usize,
    alignment: usize,
    zero: *mut bool,
    commit: *mut bool,
) -> *mut c_void {
    if pool::range().is_empty() || N as u32 >= instance::running() {
        let plain_source = INSTANCES[N].extent_alloc_mmap;
        // SAFETY: the arguments are passed on unchanged.
        return unsafe { plain_source(new, bytes, alignment, zero, commit) };
    }
    // SAFETY: jemalloc passes valid flags.
    unsafe { pass_on(N as u32, new, bytes, alignment, zero, commit) }
}

/// Fresh memory of an arena: zeroed and open. Null where there is none, and for an extent at a given address, which is for the
/// growth of a neighbour: chunks do not grow so.
///
/// # Safety
/// Both flags can be written.
unsafe fn pass_on(
    number: u32,
    new: *mut c_void,
    bytes: usize,
    alignment: usize,
    zero: *mut bool,
    commit: *mut bool,
) -> *mut c_void {
    let wanted = new.is_null().then(|| supply(number, bytes, alignment));
    let Some(address) = wanted.flatten() else {
        return core::ptr::null_mut();
    };
    // SAFETY: the caller's promise.
    unsafe {
        *zero = true;
        *commit = true;
    }
    core::ptr::with_exposed_provenance_mut(address)
}

/// No memory from the program break, which jemalloc uses when its usual source is empty: blocks outside the
/// pool are treated as the first instance's.
unsafe extern "C" fn no_break() -> *mut c_void {
    core::ptr::null_mut()
}

/// Opens chunks for `bytes` bytes of the arena and gives them its tier.
fn supply(number: u32, bytes: usize, alignment: usize) -> Option<usize> {
    let rounded = bytes.checked_next_multiple_of(CHUNK)?;
    let address = pool::take(rounded / CHUNK, alignment, number + 1)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the chunks were taken just now and no other code knows them.
    if unsafe { memory::protect(address, rounded, access) }.is_err() {
        pool::release(address, rounded);
        return None;
    }
    arena::follow_tier(number);
    leading::place(number, address, bytes, alignment);
    capacity::note_rounded_up(address, rounded);
    count_mapped(number, rounded as u64);
    Some(address)
}

/// Adds to the bytes that an arena has mapped.
fn count_mapped(number: u32, bytes: u64) {
    let Some(private) = tables::private() else {
        return;
    };
    let mapped = &private.arena(number).mapped_bytes;
    let total = mapped.fetch_add(bytes, Ordering::Relaxed) + bytes;
    if let Some(session) = session::with_record(part::ARENAS, number) {
        let told = &session.arena(number).mapped_bytes;
        told.store(total, Ordering::Relaxed);
    }
}

/// Discards the contents of jemalloc's memory; it reads as zero afterwards.
///
/// # Errors
/// The kernel's error number.
pub(crate) fn purge(address: usize, bytes: usize) -> memory::Result<()> {
    if pool::owner(address) != 0 {
        resident::before_loss(bytes);
        return placement::discard(address, bytes);
    }
    // SAFETY: the range belongs to jemalloc, which wants its contents discarded.
    unsafe { memory::advise(address, bytes, libc::MADV_DONTNEED) }
}

/// Fresh memory for a site's arena.
unsafe extern "C" fn arena_alloc(
    hooks: *mut ExtentHooks,
    new: *mut c_void,
    bytes: usize,
    alignment: usize,
    zero: *mut bool,
    commit: *mut bool,
    _: c_uint,
) -> *mut c_void {
    // SAFETY: the arena was made with the hooks of an `ArenaHooks`, which lives for ever; jemalloc passes valid flags.
    unsafe {
        let number = (*hooks.cast::<ArenaHooks>()).number;
        pass_on(number, new, bytes, alignment, zero, commit)
    }
}

/// `purge_forced`; returns true where the contents are still there.
unsafe extern "C" fn arena_purge(
    _: *mut ExtentHooks,
    address: *mut c_void,
    _: usize,
    offset: usize,
    bytes: usize,
    _: c_uint,
) -> bool {
    purge(address.expose_provenance() + offset, bytes).is_err()
}

/// Splitting costs nothing: an extent is only a range.
unsafe extern "C" fn arena_split(
    _: *mut ExtentHooks,
    _: *mut c_void,
    _: usize,
    _: usize,
    _: usize,
    _: bool,
    _: c_uint,
) -> bool {
    false
}

/// Merging costs nothing: jemalloc only requests it for neighbours of one arena and one mapping.
unsafe extern "C" fn arena_merge(
    _: *mut ExtentHooks,
    _: *mut c_void,
    _: usize,
    _: *mut c_void,
    _: usize,
    _: bool,
    _: c_uint,
) -> bool {
    false
}

/// The configuration for `experimental.arenas_create_ext`.
#[derive(Clone, Copy)]
#[repr(C)]
struct ArenaConfig {
    hooks: *const ExtentHooks,
    /// False: jemalloc's own structures stay out of the pool.
    metadata_use_hooks: bool,
}

/// Makes an arena for a site, in instance 0. `None` as for [`arena::add`], or where jemalloc refuses.
pub(crate) fn create_arena(site: u32, tier: u32) -> Option<u32> {
    arena::add(site, tier, |number| hooks(number).and_then(jemalloc_arena))
}

/// The place of an arena's hooks, filled.
fn hooks(number: u32) -> Option<&'static ArenaHooks> {
    let mut first = HOOKS.load(Ordering::Acquire);
    if first.is_null() {
        let bytes = arena::ARENAS_MAX as usize * size_of::<ArenaHooks>();
        first = core::ptr::with_exposed_provenance_mut(memory::fresh(bytes).ok()?);
        HOOKS.store(first, Ordering::Release);
    }
    // SAFETY: the memory has room for all arenas, is never unmapped, and the caller holds the
    // lock, so no other thread writes this place; each place is written once.
    unsafe {
        let place = first.add(number as usize);
        place.write(ArenaHooks::new(number));
        Some(&*place)
    }
}

/// Makes a jemalloc arena of instance 0 with these hooks, which must live for ever. Returns its
/// jemalloc number.
fn jemalloc_arena(hooks: &'static ArenaHooks) -> Option<u32> {
    let config = ArenaConfig {
        hooks: &raw const hooks.hooks,
        metadata_use_hooks: false,
    };
    let mut index: c_uint = 0;
    let mut bytes = size_of::<c_uint>();
    // SAFETY: name, results and configuration are as the control expects; the hooks outlive the arena.
    let error: c_int = unsafe {
        instance::_je0_mallctl(
            c"experimental.arenas_create_ext".as_ptr(),
            (&raw mut index).cast(),
            &raw mut bytes,
            (&raw const config).cast_mut().cast(),
            size_of::<ArenaConfig>(),
        )
    };
    (error == 0).then_some(index)
}
