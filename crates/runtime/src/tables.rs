//! [`Tables`] gives access to the records of the session file ([`isotherm_abi::session`]), and of their private copy, by their index: the
//! header and its counters, modules, sites, arenas, chunks, mappings, large allocations, access counts, pages, text and outcomes.
//! [`SessionTables`] are those of the session file that the emulations read and write.
//!
//! Both have the same layout. The runtime trusts the private memory, of which a forked child, however it was made, has its own copy; the
//! observer reads the session file. A record that is in both is changed in the private memory first.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;

use isotherm_abi::interface::OutcomeRecord;
use isotherm_abi::page_tiers::PageRequest;
use isotherm_abi::session::{
    ArenaRecord, MappingRecord, ModuleRecord, ObjectRecord, OffReason, SessionCounter,
    SessionHeader, SessionLayout, SessionState, SiteRecord, TouchRecord,
};
use isotherm_sys::memory::{self, Errno};

use crate::sandbox;

/// A part of the tables: records of one type, one behind the other.
pub(crate) struct Part<T> {
    /// Its index in [`SessionLayout::offsets`].
    index: usize,
    record: PhantomData<fn() -> T>,
}

impl<T> Part<T> {
    const fn at(index: usize) -> Self {
        Self {
            index,
            record: PhantomData,
        }
    }

    /// Bytes of this many records.
    pub(crate) fn bytes(&self, records: impl Into<u64>) -> u64 {
        records.into() * size_of::<T>() as u64
    }
}

/// The parts in their order.
pub(crate) mod part {
    use super::{
        ArenaRecord, AtomicU8, AtomicU32, AtomicU64, MappingRecord, ModuleRecord, ObjectRecord,
        OutcomeRecord, PageRequest, Part, SiteRecord, TouchRecord,
    };

    pub(crate) const MODULES: Part<ModuleRecord> = Part::at(0);
    pub(crate) const SITES: Part<SiteRecord> = Part::at(1);
    pub(crate) const ARENAS: Part<ArenaRecord> = Part::at(2);
    pub(crate) const CHUNKS: Part<AtomicU32> = Part::at(3);
    pub(crate) const MAPPINGS: Part<MappingRecord> = Part::at(4);
    pub(crate) const TOUCHES: Part<TouchRecord> = Part::at(5);
    pub(crate) const TEXT: Part<u8> = Part::at(6);
    pub(crate) const OBJECTS: Part<ObjectRecord> = Part::at(7);
    pub(crate) const REGIONS: Part<AtomicU64> = Part::at(8);
    pub(crate) const ACCESS_COUNTS: Part<AtomicU64> = Part::at(9);
    pub(crate) const PAGE_TIERS: Part<AtomicU8> = Part::at(10);
    pub(crate) const STATIC_TIERS: Part<AtomicU8> = Part::at(11);
    pub(crate) const OUTCOMES: Part<OutcomeRecord> = Part::at(12);
    pub(crate) const PAGE_REQUESTS: Part<PageRequest> = Part::at(13);
    /// The end of the last part.
    pub(crate) const END: Part<u8> = Part::at(14);
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

impl SessionTables {
    /// Publishes in the session that the runtime or a part of it is off, and why.
    pub(crate) fn publish_off(&self, reason: OffReason) {
        let (header, off) = (self.header, SessionState::Off as u32);
        header.off_reason.store(reason as u32, Ordering::Relaxed);
        header.state.store(off, Ordering::Release);
    }
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
    pub(crate) fn offset<T>(&self, part: Part<T>) -> u64 {
        self.offsets[part.index]
    }

    /// Record `index` of a part.
    fn record<T>(&self, part: Part<T>, index: usize) -> *mut T {
        let offset = self.offset(part) as usize + index * size_of::<T>();
        debug_assert!(offset <= self.offset(part::END) as usize);
        // SAFETY: callers keep the index within the part (they check against the layout), so the
        // record is within the tables.
        unsafe { self.base.add(offset).cast() }
    }

    /// Record `index` of a part, to be read.
    fn shared<T>(&self, part: Part<T>, index: usize) -> &T {
        // SAFETY: the record is within the tables; zeroes are a valid record, and what changes once it is published is atomic.
        unsafe { &*self.record(part, index) }
    }

    /// The first `count` records of a part, which hold atomics.
    fn all<T>(&self, part: Part<T>, count: u64) -> &'static [T] {
        // SAFETY: the part is as long as the layout says and stays mapped; the tables outlive every use, because they are never unmapped
        // while they are current.
        unsafe { core::slice::from_raw_parts(self.record(part, 0), count as usize) }
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
        self.shared(part::SITES, index as usize)
    }

    /// One site, to be filled.
    pub(crate) fn site_mut(&self, index: u32) -> *mut SiteRecord {
        self.record(part::SITES, index as usize)
    }

    /// One arena.
    pub(crate) fn arena(&self, index: u32) -> &ArenaRecord {
        self.shared(part::ARENAS, index as usize)
    }

    /// The owner of one chunk of the pool.
    pub(crate) fn chunk(&self, index: usize) -> &AtomicU32 {
        self.shared(part::CHUNKS, index)
    }

    /// One large mapping of the program.
    pub(crate) fn mapping(&self, index: u32) -> &MappingRecord {
        self.shared(part::MAPPINGS, index as usize)
    }

    /// One record of the ring of large allocations.
    pub(crate) fn object(&self, slot: u64) -> &ObjectRecord {
        self.shared(part::OBJECTS, slot as usize)
    }

    /// What an optimization did to a data object; the observer writes the records in use.
    pub(crate) fn outcome(&self, index: u64) -> &OutcomeRecord {
        self.shared(part::OUTCOMES, index as usize)
    }

    /// The text area.
    pub(crate) fn text(&self) -> *mut u8 {
        self.record(part::TEXT, 0)
    }

    /// The region of one slot of the access counts.
    pub(crate) fn region(&self, slot: u64) -> &AtomicU64 {
        self.shared(part::REGIONS, slot as usize)
    }

    /// One access count; `index` counts pages through all slots.
    pub(crate) fn access_count(&self, index: u64) -> &AtomicU64 {
        self.shared(part::ACCESS_COUNTS, index as usize)
    }

    /// The published tiers of the pool's pages; empty where no tier is emulated.
    pub(crate) fn page_tiers(&self) -> &'static [AtomicU8] {
        self.all(part::PAGE_TIERS, self.layout.page_slots)
    }

    /// The published tiers of the pages of static data; empty where no tier is emulated.
    pub(crate) fn static_tiers(&self) -> &'static [AtomicU8] {
        self.all(part::STATIC_TIERS, self.layout.static_page_slots)
    }

    /// The tables that the emulations work on.
    pub(crate) fn tables(&self) -> SessionTables {
        let layout = &self.layout;
        SessionTables {
            // SAFETY: as in `header`, and the tables outlive every use.
            header: unsafe { &*self.base.cast() },
            arenas: self.all(part::ARENAS, layout.arena_slots.into()),
            owners: self.all(part::CHUNKS, layout.chunk_slots),
            mappings: self.all(part::MAPPINGS, layout.mapping_slots.into()),
            touches: self.all(part::TOUCHES, layout.touch_slots),
            page_requests: self.all(part::PAGE_REQUESTS, layout.request_slots()),
        }
    }

    /// Takes the pages of a range at once: a page fault for each costs several times as much. Kernels before
    /// Linux 5.14 cannot, and take them one by one as they are written; so does a program that filters its system calls.
    pub(crate) fn touch(&self, offset: u64, bytes: u64) {
        if sandbox::is_filtered() {
            return;
        }
        debug_assert!(offset + bytes <= self.offset(part::END));
        let address = self.base as usize + offset as usize;
        // SAFETY: the range lies within the tables, and populating it changes no contents.
        let _ = unsafe { memory::advise(address, bytes as usize, libc::MADV_POPULATE_WRITE) };
    }

    /// One byte of any part.
    pub(crate) fn byte(&self, offset: u64) -> &AtomicU8 {
        debug_assert!(offset < self.offset(part::END));
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

static PRIVATE: OnceLock<Tables> = OnceLock::new();

/// The tables that the runtime trusts; `None` in pass-through mode.
#[inline]
pub(crate) fn private() -> Option<&'static Tables> {
    PRIVATE.get()
}

/// Bytes of tables of this layout.
pub(crate) fn bytes(layout: &SessionLayout) -> u64 {
    layout.offsets()[part::END.index]
}

/// Makes the private tables. Called once, at start.
///
/// # Errors
/// The kernel has no address space for them.
pub(crate) fn create_private(layout: SessionLayout) -> Result<&'static Tables, Errno> {
    let base = memory::fresh(bytes(&layout) as usize)?;
    // SAFETY: the memory is fresh, zeroed and as long as the layout says.
    Ok(PRIVATE.get_or_init(|| unsafe { Tables::at(base, layout) }))
}
