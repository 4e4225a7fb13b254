//! [`Header::check`] checks the header of a session file once, when the file is opened, and keeps the place and the capacity of each table
//! ([`Table`]), so that later reads stay within the file. [`Header::progress`] takes a snapshot of the part of the header that the runtime
//! keeps changing ([`Progress`]), with counts of records within their tables; those of the two rings grow beyond.

use std::sync::atomic::{AtomicU32, AtomicU64};

use isotherm_abi::accesses::{PERIOD_MAX, REGION_PAGES};
use isotherm_abi::interface::OutcomeRecord;
use isotherm_abi::page_tiers::PageRequest;
use isotherm_abi::session::{
    ArenaRecord, COUNTERS, MAGIC, MappingRecord, ModuleRecord, ObjectRecord, SessionHeader,
    SiteRecord, TouchRecord,
};
use isotherm_abi::{CHUNK_BYTES, CHUNK_SHIFT, MAX_DEPTH, VERSION};

use crate::error::SessionError;

/// Bytes of the header.
const HEADER_BYTES: usize = size_of::<SessionHeader>();

/// The name of a table's records, and their greatest number: a few times what the runtime creates. A sparse file may
/// claim any size, and the records are kept in memory.
mod at_most {
    pub(crate) const MODULES: u64 = 1 << 16;
    pub(crate) const SITES: u64 = 1 << 22;
    pub(crate) const ARENAS: u64 = 1 << 16;
    /// A pool of 32 TiB.
    pub(crate) const CHUNKS: u64 = 1 << 24;
    pub(crate) const MAPPINGS: u64 = 1 << 20;
    pub(crate) const TOUCHES: u64 = 1 << 20;
    pub(crate) const TEXT: u64 = 1 << 28;
    /// Counts of 256 GiB of memory, which are 512 MiB.
    pub(crate) const REGIONS: u64 = 1 << 14;
    /// A pool of 1 TiB, the runtime's own; they are read as a whole.
    pub(crate) const PAGES: u64 = 1 << 28;
    /// The runtime's own limit.
    pub(crate) const STATIC_PAGES: u64 = isotherm_abi::page_tiers::STATIC_PAGES;
    pub(crate) const PAGE_REQUESTS: u64 = 1 << 20;
    pub(crate) const OBJECTS: u64 = 1 << 20;
    pub(crate) const OUTCOMES: u64 = 1 << 16;
}

/// A table of the file: its offset and its capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Offset from the start of the file, in bytes.
    pub offset: u64,
    /// Capacity, in records.
    pub slots: u64,
    /// Bytes of a record. `offset + slots * record_bytes` was within the file when the header was
    /// checked.
    pub record_bytes: usize,
}

/// The part of the header that never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Process id.
    pub pid: u32,
    /// The process it was forked from; its own pid after exec.
    pub parent_pid: u32,
    /// Callers in a calling context, at most [`MAX_DEPTH`].
    pub depth: u32,
    /// `CLOCK_MONOTONIC` in nanoseconds when the image started.
    pub start_ns: u64,
    /// First address of the pool.
    pub pool_base: u64,
    /// See [`ModuleRecord`].
    pub modules: Table,
    /// See [`SiteRecord`].
    pub sites: Table,
    /// See [`ArenaRecord`].
    pub arenas: Table,
    /// The owner of each chunk of the pool.
    pub chunks: Table,
    /// See [`MappingRecord`].
    pub mappings: Table,
    /// See [`TouchRecord`]; a power of two, or no slots.
    pub touches: Table,
    /// Paths of modules, and Python functions.
    pub text: Table,
    /// Regions with access counts.
    pub regions: Table,
    /// Access counts, [`REGION_PAGES`] for each region.
    pub access_counts: Table,
    /// Accesses for which one count stands; 0 without access counts.
    pub access_period: u64,
    /// The tables of pages; without slots where no tier is emulated.
    pub pages: PageTierTables,
    /// See [`ObjectRecord`]; a power of two, or no slots.
    pub objects: Table,
    /// See [`OutcomeRecord`].
    pub outcomes: Table,
}

/// The tables of an emulated machine's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTierTables {
    /// The tier of each page of the pool.
    pub tiers: Table,
    /// The tier of each page of static data.
    pub statics: Table,
    /// The ring of requests to move pages, [`PageRequest`]s.
    pub requests: Table,
}

/// The part of the header that the runtime keeps changing; a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// A `SessionState` number.
    pub state: u32,
    /// An `OffReason` number.
    pub off_reason: u32,
    /// Modules in use, at most the capacity of the table; likewise the numbers of sites, arenas, mappings and bytes of text.
    pub modules: u64,
    /// Sites in use.
    pub sites: u64,
    /// Arenas in use.
    pub arenas: u64,
    /// Mappings in use.
    pub mappings: u64,
    /// Bytes of text in use.
    pub text: u64,
    /// Touch records written so far; grows beyond the slots.
    pub touches_written: u64,
    /// Object records written so far; grows beyond the slots.
    pub objects_written: u64,
    /// Offset from an address to the content of a trapped page; 0 without trapped pages.
    pub shadow_offset: u64,
    /// Counters of the runtime, indexed by `SessionCounter`.
    pub counters: [u64; COUNTERS],
}

/// Checks the tables of a file of this size.
struct TableCheck {
    file_bytes: u64,
}

impl TableCheck {
    /// A table of these records.
    fn table<T>(
        &self,
        name: &str,
        offset: u64,
        slots: impl Into<u64>,
        at_most: u64,
    ) -> Result<Table, SessionError> {
        let (slots, record_bytes) = (slots.into(), size_of::<T>());
        let end = slots
            .checked_mul(record_bytes as u64)
            .and_then(|bytes| bytes.checked_add(offset));
        match end {
            Some(_) if slots > at_most => Err(SessionError::Wrong(format!(
                "its table of {name} has {slots} records, more than {at_most}"
            ))),
            Some(end) if end <= self.file_bytes && offset >= HEADER_BYTES as u64 => Ok(Table {
                offset,
                slots,
                record_bytes,
            }),
            _ => Err(SessionError::Wrong(format!(
                "its table of {name} ({slots} records at {offset}) does not lie within its \
                 {} bytes",
                self.file_bytes
            ))),
        }
    }

    /// A ring of these records: a power of two of them, or none.
    fn ring<T>(
        &self,
        name: &str,
        offset: u64,
        slots: u64,
        at_most: u64,
    ) -> Result<Table, SessionError> {
        if slots != 0 && !slots.is_power_of_two() {
            return Err(SessionError::Wrong(format!(
                "its ring of {name} has {slots} slots, not a power of two"
            )));
        }
        self.table::<T>(name, offset, slots, at_most)
    }

    /// The tables of an emulated machine's pages.
    fn page_tiers(&self, of: &SessionHeader) -> Result<PageTierTables, SessionError> {
        let (pool, statics) = (&of.pages, &of.statics);
        Ok(PageTierTables {
            tiers: self.table::<u8>("page tiers", pool.tiers_offset, pool.slots, at_most::PAGES)?,
            statics: self.table::<u8>(
                "static page tiers",
                statics.tiers_offset,
                statics.slots,
                at_most::STATIC_PAGES,
            )?,
            requests: self.table::<PageRequest>(
                "page requests",
                pool.requests_offset,
                pool.request_slots,
                at_most::PAGE_REQUESTS,
            )?,
        })
    }
}

/// The counts of a region.
type RegionCounts = [u64; REGION_PAGES as usize];

impl Header {
    /// Checks the header of a file of this size.
    ///
    /// # Errors
    /// [`SessionError::NotYet`] while the header is all zero (the runtime is still creating it);
    /// else the fault of the header.
    pub fn check(of: &SessionHeader, file_bytes: u64) -> Result<Self, SessionError> {
        check_version(of)?;
        check_pool(of)?;
        let file = TableCheck { file_bytes };
        let (counts, objects) = (&of.accesses, &of.objects);
        let regions = (counts.slots, at_most::REGIONS);
        let chunks = of.pool_bytes >> CHUNK_SHIFT;
        Ok(Self {
            pid: of.pid,
            parent_pid: of.parent_pid,
            depth: of.depth.min(MAX_DEPTH as u32),
            start_ns: of.start_ns,
            pool_base: of.pool_base,
            modules: file.table::<ModuleRecord>(
                "modules",
                of.modules_offset,
                of.module_slots,
                at_most::MODULES,
            )?,
            sites: file.table::<SiteRecord>(
                "sites",
                of.sites_offset,
                of.site_slots,
                at_most::SITES,
            )?,
            arenas: file.table::<ArenaRecord>(
                "arenas",
                of.arenas_offset,
                of.arena_slots,
                at_most::ARENAS,
            )?,
            chunks: file.table::<u32>("chunks", of.chunks_offset, chunks, at_most::CHUNKS)?,
            mappings: file.table::<MappingRecord>(
                "mappings",
                of.mappings_offset,
                of.mapping_slots,
                at_most::MAPPINGS,
            )?,
            touches: file.ring::<TouchRecord>(
                "touches",
                of.touches_offset,
                of.touches.slots,
                at_most::TOUCHES,
            )?,
            text: file.table::<u8>("text", of.text_offset, of.text_slots, at_most::TEXT)?,
            regions: file.table::<u64>("regions", counts.regions_offset, regions.0, regions.1)?,
            access_counts: file.table::<RegionCounts>(
                "access counts",
                counts.counts_offset,
                regions.0,
                regions.1,
            )?,
            access_period: counts.period.min(PERIOD_MAX),
            pages: file.page_tiers(of)?,
            objects: file.ring::<ObjectRecord>(
                "objects",
                objects.offset,
                objects.slots,
                at_most::OBJECTS,
            )?,
            outcomes: file.table::<OutcomeRecord>(
                "outcomes",
                of.outcomes.offset,
                of.outcomes.slots,
                at_most::OUTCOMES,
            )?,
        })
    }

    /// The changing part of the current header. Counts are limited to the capacity of their
    /// tables.
    #[must_use]
    pub fn progress(&self, of: SessionHeader) -> Progress {
        let count =
            |number: AtomicU32, table: Table| u64::from(number.into_inner()).min(table.slots);
        Progress {
            state: of.state.into_inner(),
            off_reason: of.off_reason.into_inner(),
            modules: count(of.module_count, self.modules),
            sites: count(of.site_count, self.sites),
            arenas: count(of.arena_count, self.arenas),
            mappings: count(of.mapping_count, self.mappings),
            text: count(of.text_bytes, self.text),
            touches_written: of.touches.written.into_inner(),
            objects_written: of.objects.written.into_inner(),
            shadow_offset: of.shadow_offset.into_inner(),
            counters: of.counters.map(AtomicU64::into_inner),
        }
    }
}

/// Checks the magic bytes and the version of the format.
fn check_version(of: &SessionHeader) -> Result<(), SessionError> {
    if of.magic == [0; 8] {
        return Err(SessionError::NotYet);
    }
    if of.magic != MAGIC {
        return Err(SessionError::Wrong(
            "it does not begin with ISOTHERM".into(),
        ));
    }
    let version = of.version;
    if version != VERSION {
        return Err(SessionError::Wrong(format!(
            "it is of version {version}, this program reads version {VERSION}; use the \
             libisotherm.so that came with it"
        )));
    }
    if (of.header_bytes as usize) < HEADER_BYTES {
        return Err(SessionError::Wrong("its header is too short".into()));
    }
    Ok(())
}

fn check_pool(of: &SessionHeader) -> Result<(), SessionError> {
    let (base, bytes) = (of.pool_base, of.pool_bytes);
    if base.checked_add(bytes).is_none() || !base.is_multiple_of(CHUNK_BYTES) {
        return Err(SessionError::Wrong(format!(
            "its pool of {bytes} bytes at {base:#x} cannot be"
        )));
    }
    Ok(())
}
