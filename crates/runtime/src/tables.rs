//! [`Tables`] gives access to the records of the session file ([`isotherm_abi::session`]), and of their private copy, by their index: the
//! header and its counters, modules, sites, arenas, chunks, mappings, large allocations, access counts, pages, text and outcomes.
//! [`SessionTables`] are those of the session file that the emulations read and write.
//!
//! Both have the same layout. The runtime trusts the private memory, of which a forked child, however it was made, has its own copy; the
//! observer reads the session file. A record that is in both is changed in the private memory first.

use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

use isotherm_abi::interface::OutcomeRecord;
use isotherm_abi::page_tiers::PageRequest;
use isotherm_abi::session::{
    ArenaRecord, MappingRecord, ModuleRecord, ObjectRecord, SessionCounter, SessionHeader,
    SessionLayout, SiteRecord, TouchRecord,
};
use isotherm_sys::memory::{self, Errno};

use crate::sandbox;

/// Indices into [`isotherm_abi::session::SessionLayout::offsets`].
pub(crate) mod part {
    pub(crate) const MODULES: usize = 0;
    pub(crate) const SITES: usize = 1;
    pub(crate) const ARENAS: usize = 2;
    pub(crate) const CHUNKS: usize = 3;
    pub(crate) const MAPPINGS: usize = 4;
    pub(crate) const TOUCHES: usize = 5;
    pub(crate) const TEXT: usize = 6;
    pub(crate) const OBJECTS: usize = 7;
    pub(crate) const REGIONS: usize = 8;
    pub(crate) const ACCESS_COUNTS: usize = 9;
    pub(crate) const PAGE_TIERS: usize = 10;
    pub(crate) const STATIC_TIERS: usize = 11;
    pub(crate) const OUTCOMES: usize = 12;
    pub(crate) const PAGE_REQUESTS: usize = 13;
    pub(crate) const END: usize = 14;
}

/// The tables of the session file that the emulation reads and writes.
#[derive(Clone, Copy)]
pub(crate) struct SessionTables {
    /// Counters, the ring's positions, the number of records in use.
    pub(crate) header: &'static SessionHeader,
    /// Arenas with their wanted tiers.
    pub(crate) arenas: &'static [ArenaRecord],
    /// Owner of each chunk of the pool.
    pub(crate) owners: &'static [AtomicU32],
    /// Mappings with their wanted tiers.
    pub(crate) mappings: &'static [MappingRecord],
    /// The ring of trapped accesses.
    pub(crate) touches: &'static [TouchRecord],
    /// The ring of requests to move pages; empty where no tier is emulated.
    pub(crate) page_requests: &'static [PageRequest],
}

/// One set of tables. Every method is lock-free, allocates nothing and needs no thread-local
/// storage, so a thread that the C library does not know may call it.
#[derive(Clone, Copy)]
pub(crate) struct Tables {
    base: *mut u8,
    offsets: [u64; 15],
    layout: SessionLayout,
}

// SAFETY: the memory behind `base` stays mapped for the life of the process, and all shared data in it are
// atomics, or records written before their index is published.
unsafe impl Send for Tables {}
// SAFETY: as for `Send`.
unsafe impl Sync for Tables {}

impl Tables {
    /// Tables of this layout at `base`.
    ///
    /// # Safety
    /// The memory is as long as the layout says, readable, writable, page-aligned, stays mapped,
    /// and holds zeroes or such tables.
    pub(crate) unsafe fn at(base: usize, layout: SessionLayout) -> Self {
        Self {
            base: core::ptr::with_exposed_provenance_mut(base),
            offsets: layout.offsets(),
            layout,
        }
    }

    /// The number of records of each part.
    pub(crate) fn layout(&self) -> &SessionLayout {
        &self.layout
    }

    /// Offset of a part from the start.
    pub(crate) fn offset(&self, part: usize) -> u64 {
        self.offsets[part]
    }

    /// Record `index` of a part.
    fn record<T>(&self, part: usize, index: usize) -> *mut T {
        let offset = self.offsets[part] as usize + index * size_of::<T>();
        debug_assert!(offset <= self.offsets[part::END] as usize);
        // SAFETY: callers keep the index within the part (they check against the layout), so the
        // record is within the tables.
        unsafe { self.base.add(offset).cast() }
    }

    /// The header. Its plain fields are written before the tables are published.
    pub(crate) fn header(&self) -> &SessionHeader {
        // SAFETY: the tables begin with a header and stay mapped.
        unsafe { &*self.base.cast() }
    }

    /// The header, to be filled.
    pub(crate) fn header_mut(&self) -> *mut SessionHeader {
        self.base.cast()
    }

    /// One counter.
    pub(crate) fn counter(&self, counter: SessionCounter) -> &AtomicU64 {
        &self.header().counters[counter as usize]
    }

    /// One module, to be filled.
    pub(crate) fn module(&self, index: u32) -> *mut ModuleRecord {
        self.record(part::MODULES, index as usize)
    }

    /// One site. Fields that are not atomic are written before its `hash`.
    pub(crate) fn site(&self, index: u32) -> &SiteRecord {
        // SAFETY: the record is within the tables; zeroes are a valid record.
        unsafe { &*self.record(part::SITES, index as usize) }
    }

    /// One site, to be filled.
    pub(crate) fn site_mut(&self, index: u32) -> *mut SiteRecord {
        self.record(part::SITES, index as usize)
    }

    /// One arena.
    pub(crate) fn arena(&self, index: u32) -> &ArenaRecord {
        // SAFETY: as for `site`; all fields are atomics.
        unsafe { &*self.record(part::ARENAS, index as usize) }
    }

    /// The owner of one chunk of the pool.
    pub(crate) fn chunk(&self, index: usize) -> &AtomicU32 {
        // SAFETY: as for `site`.
        unsafe { &*self.record(part::CHUNKS, index) }
    }

    /// One large mapping of the program.
    pub(crate) fn mapping(&self, index: u32) -> &MappingRecord {
        // SAFETY: as for `site`; all fields are atomics.
        unsafe { &*self.record(part::MAPPINGS, index as usize) }
    }

    /// One record of the ring of large allocations.
    pub(crate) fn object(&self, slot: u64) -> &ObjectRecord {
        // SAFETY: as for `site`; `reserved` is never written.
        unsafe { &*self.record(part::OBJECTS, slot as usize) }
    }

    /// What an optimization did to a data object; the observer writes the records in use.
    pub(crate) fn outcome(&self, index: u64) -> &OutcomeRecord {
        // SAFETY: as for `site`; all fields are atomics.
        unsafe { &*self.record(part::OUTCOMES, index as usize) }
    }

    /// The text area.
    pub(crate) fn text(&self) -> *mut u8 {
        self.record(part::TEXT, 0)
    }

    /// The region of one slot of the access counts.
    pub(crate) fn region(&self, slot: u64) -> &AtomicU64 {
        // SAFETY: as for `site`.
        unsafe { &*self.record(part::REGIONS, slot as usize) }
    }

    /// One access count; `index` counts pages through all slots.
    pub(crate) fn access_count(&self, index: u64) -> &AtomicU64 {
        // SAFETY: as for `site`.
        unsafe { &*self.record(part::ACCESS_COUNTS, index as usize) }
    }

    /// The published tiers of the pool's pages; empty where no tier is emulated.
    pub(crate) fn page_tiers(&self) -> &'static [AtomicU8] {
        // SAFETY: as for `tables`.
        unsafe {
            slice(
                self.record(part::PAGE_TIERS, 0),
                self.layout.page_slots as usize,
            )
        }
    }

    /// The published tiers of the pages of static data; empty where no tier is emulated.
    pub(crate) fn static_tiers(&self) -> &'static [AtomicU8] {
        // SAFETY: as for `tables`.
        unsafe {
            slice(
                self.record(part::STATIC_TIERS, 0),
                self.layout.static_page_slots as usize,
            )
        }
    }

    /// The tables that the emulations work on.
    pub(crate) fn tables(&self) -> SessionTables {
        let layout = &self.layout;
        // SAFETY: the parts are as long as the layout says, stay mapped, and hold atomics; the
        // tables outlive every use, because they are never unmapped while they are current.
        unsafe {
            SessionTables {
                header: &*self.base.cast(),
                arenas: slice(self.record(part::ARENAS, 0), layout.arena_slots as usize),
                owners: slice(self.record(part::CHUNKS, 0), layout.chunk_slots as usize),
                mappings: slice(
                    self.record(part::MAPPINGS, 0),
                    layout.mapping_slots as usize,
                ),
                touches: slice(self.record(part::TOUCHES, 0), layout.touch_slots as usize),
                page_requests: slice(
                    self.record(part::PAGE_REQUESTS, 0),
                    layout.request_slots() as usize,
                ),
            }
        }
    }

    /// Takes the pages of a range at once: a page fault for each costs several times as much. Kernels before
    /// Linux 5.14 cannot, and take them one by one as they are written; so does a program that filters its system calls.
    pub(crate) fn touch(&self, offset: u64, bytes: u64) {
        if sandbox::is_filtered() {
            return;
        }
        debug_assert!(offset + bytes <= self.offsets[part::END]);
        let address = self.base as usize + offset as usize;
        // SAFETY: the range lies within the tables, and populating it changes no contents.
        let _ = unsafe { memory::advise(address, bytes as usize, libc::MADV_POPULATE_WRITE) };
    }

    /// One byte of any part.
    pub(crate) fn byte(&self, offset: u64) -> &AtomicU8 {
        debug_assert!(offset < self.offsets[part::END]);
        // SAFETY: the offset is within the tables.
        unsafe { &*self.base.add(offset as usize).cast() }
    }
}

/// No chunk from this one on was ever handed out.
static CHUNKS_EVER_USED: AtomicUsize = AtomicUsize::new(0);

/// Chunks from the first to the last that was ever handed out.
pub(crate) fn chunks_ever_used() -> usize {
    CHUNKS_EVER_USED.load(Ordering::Acquire)
}

/// Notes that the chunks below `end` are handed out, or were.
pub(crate) fn note_chunks_used(end: usize) {
    CHUNKS_EVER_USED.fetch_max(end, Ordering::Release);
}

/// A table of a part.
///
/// # Safety
/// `first` points to `count` records, which stay there.
unsafe fn slice<T>(first: *mut T, count: usize) -> &'static [T] {
    // SAFETY: the caller's promise.
    unsafe { core::slice::from_raw_parts(first, count) }
}

static PRIVATE: OnceLock<Tables> = OnceLock::new();

/// The tables that the runtime trusts; `None` in pass-through mode.
#[inline]
pub(crate) fn private() -> Option<&'static Tables> {
    PRIVATE.get()
}

/// Makes the private tables. Called once, at start.
///
/// # Errors
/// The kernel has no address space for them.
pub(crate) fn create_private(layout: SessionLayout) -> Result<&'static Tables, Errno> {
    let base = memory::fresh(layout.offsets()[part::END] as usize)?;
    // SAFETY: the memory is fresh, zeroed and as long as the layout says.
    Ok(PRIVATE.get_or_init(|| unsafe { Tables::at(base, layout) }))
}
