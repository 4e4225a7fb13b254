//! [`Header::check`] checks the header of a session file once, when the file is opened, and keeps the place and the capacity of each table
//! ([`Table`]), so that later reads stay within the file. [`Header::progress`] takes a snapshot of the part of the header that the runtime
//! keeps changing ([`Progress`]), with counts of records within their tables; those of the two rings grow beyond.

use std::sync::atomic::{AtomicU32, AtomicU64};

use isotherm_abi::accesses::{PERIOD_MAX, REGION_PAGES};
use isotherm_abi::interface::OutcomeRecord;
use isotherm_abi::page_tiers::{PageRequest, STATIC_PAGES};
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
type Limit = (&'static str, u64);

const MODULES: Limit = ("modules", 1 << 16);
const SITES: Limit = ("sites", 1 << 22);
const ARENAS: Limit = ("arenas", 1 << 16);
/// The chunks of a pool of 32 TiB.
const CHUNKS: Limit = ("chunks", 1 << 24);
const MAPPINGS: Limit = ("mappings", 1 << 20);
const TOUCHES: Limit = ("touches", 1 << 20);
const TEXT: Limit = ("text", 1 << 28);
/// The regions of 256 GiB of memory, with 512 MiB of counts.
const REGIONS: Limit = ("regions", 1 << 14);
const ACCESS_COUNTS: Limit = ("access counts", REGIONS.1);
/// The pages of a pool of 1 TiB, as the runtime's; they are read as a whole.
const PAGES: Limit = ("page tiers", 1 << 28);
/// The runtime's own limit.
const STATICS: Limit = ("static page tiers", STATIC_PAGES);
const PAGE_REQUESTS: Limit = ("page requests", 1 << 20);
const OBJECTS: Limit = ("objects", 1 << 20);
const OUTCOMES: Limit = ("outcomes", 1 << 16);

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
        (name, at_most): Limit,
        offset: u64,
        slots: impl Into<u64>,
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
    fn ring<T>(&self, limit: Limit, offset: u64, slots: u64) -> Result<Table, SessionError> {
        if slots != 0 && !slots.is_power_of_two() {
            return Err(SessionError::Wrong(format!(
                "its ring of {} has {slots} slots, not a power of two",
                limit.0
            )));
        }
        self.table::<T>(limit, offset, slots)
    }

    /// The tables of an emulated machine's pages.
    fn page_tiers(&self, of: &SessionHeader) -> Result<PageTierTables, SessionError> {
        let (pool, statics) = (&of.pages, &of.statics);
        let requests = (pool.requests_offset, pool.request_slots);
        Ok(PageTierTables {
            tiers: self.table::<u8>(PAGES, pool.tiers_offset, pool.slots)?,
            statics: self.table::<u8>(STATICS, statics.tiers_offset, statics.slots)?,
            requests: self.table::<PageRequest>(PAGE_REQUESTS, requests.0, requests.1)?,
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
        let (counts, objects, outcomes) = (&of.accesses, &of.objects, &of.outcomes);
        let chunks = of.pool_bytes >> CHUNK_SHIFT;
        Ok(Self {
            pid: of.pid,
            parent_pid: of.parent_pid,
            depth: of.depth.min(MAX_DEPTH as u32),
            start_ns: of.start_ns,
            pool_base: of.pool_base,
            modules: file.table::<ModuleRecord>(MODULES, of.modules_offset, of.module_slots)?,
            sites: file.table::<SiteRecord>(SITES, of.sites_offset, of.site_slots)?,
            arenas: file.table::<ArenaRecord>(ARENAS, of.arenas_offset, of.arena_slots)?,
            chunks: file.table::<u32>(CHUNKS, of.chunks_offset, chunks)?,
            mappings: file.table::<MappingRecord>(
                MAPPINGS,
                of.mappings_offset,
                of.mapping_slots,
            )?,
            touches: file.ring::<TouchRecord>(TOUCHES, of.touches_offset, of.touches.slots)?,
            text: file.table::<u8>(TEXT, of.text_offset, of.text_slots)?,
            regions: file.table::<u64>(REGIONS, counts.regions_offset, counts.slots)?,
            access_counts: file.table::<RegionCounts>(
                ACCESS_COUNTS,
                counts.counts_offset,
                counts.slots,
            )?,
            access_period: counts.period.min(PERIOD_MAX),
            pages: file.page_tiers(of)?,
            objects: file.ring::<ObjectRecord>(OBJECTS, objects.offset, objects.slots)?,
            outcomes: file.table::<OutcomeRecord>(OUTCOMES, outcomes.offset, outcomes.slots)?,
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
