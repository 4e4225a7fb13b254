//! The header of a session file, checked once when the file is opened, so that later reads can rely
//! on it.

use std::mem::{offset_of, size_of};

use isotherm_abi::accesses::{AccessTable, PERIOD_MAX, REGION_COUNT_BYTES};
use isotherm_abi::interface::{OutcomeRecord, OutcomeTable};
use isotherm_abi::page_tiers::{PageRequest, PageTable, StaticPageTable};
use isotherm_abi::session::{
    ArenaRecord, COUNTERS, MAGIC, MappingRecord, ModuleRecord, ObjectRecord, ObjectRing,
    SessionHeader, SiteRecord, TouchRecord, TouchRing,
};
use isotherm_abi::{CHUNK_BYTES, CHUNK_SHIFT, MAX_DEPTH, VERSION};

use crate::error::SessionError;

/// Bytes of the header.
pub const HEADER_BYTES: usize = size_of::<SessionHeader>();

/// Limits on the records of each table, a few times what the runtime creates. A sparse file may
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
    /// Access counts, [`REGION_COUNT_BYTES`] for each region.
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
    /// Modules in use, at most the capacity of the table; likewise the next four.
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

macro_rules! field {
    ($bytes:expr, $kind:ty, $field:ident) => {
        <$kind>::from_ne_bytes(at($bytes, offset_of!(SessionHeader, $field)))
    };
}

/// The bytes at a constant offset in the header.
fn at<const N: usize>(bytes: &[u8; HEADER_BYTES], offset: usize) -> [u8; N] {
    bytes[offset..].first_chunk().copied().unwrap_or([0; N])
}

impl Header {
    /// Checks the header of a file of this size.
    ///
    /// # Errors
    /// [`SessionError::NotYet`] while the header is all zero (the runtime is still creating it);
    /// else the fault of the header.
    pub fn check(bytes: &[u8; HEADER_BYTES], file_bytes: u64) -> Result<Self, SessionError> {
        check_version(bytes)?;
        let (pool_base, pool_bytes) = pool(bytes)?;
        let (regions, access_counts) = access_tables(bytes, file_bytes)?;
        let table = |name, offset, slots, record, most| {
            checked(name, offset, slots, record, most, file_bytes)
        };
        Ok(Self {
            pid: field!(bytes, u32, pid),
            parent_pid: field!(bytes, u32, parent_pid),
            depth: field!(bytes, u32, depth).min(MAX_DEPTH as u32),
            start_ns: field!(bytes, u64, start_ns),
            pool_base,
            modules: table(
                "modules",
                field!(bytes, u64, modules_offset),
                field!(bytes, u32, module_slots).into(),
                size_of::<ModuleRecord>(),
                at_most::MODULES,
            )?,
            sites: table(
                "sites",
                field!(bytes, u64, sites_offset),
                field!(bytes, u32, site_slots).into(),
                size_of::<SiteRecord>(),
                at_most::SITES,
            )?,
            arenas: table(
                "arenas",
                field!(bytes, u64, arenas_offset),
                field!(bytes, u32, arena_slots).into(),
                size_of::<ArenaRecord>(),
                at_most::ARENAS,
            )?,
            chunks: table(
                "chunks",
                field!(bytes, u64, chunks_offset),
                pool_bytes >> CHUNK_SHIFT,
                size_of::<u32>(),
                at_most::CHUNKS,
            )?,
            mappings: table(
                "mappings",
                field!(bytes, u64, mappings_offset),
                field!(bytes, u32, mapping_slots).into(),
                size_of::<MappingRecord>(),
                at_most::MAPPINGS,
            )?,
            touches: table(
                "touches",
                field!(bytes, u64, touches_offset),
                touch_slots(bytes)?,
                size_of::<TouchRecord>(),
                at_most::TOUCHES,
            )?,
            text: table(
                "text",
                field!(bytes, u64, text_offset),
                field!(bytes, u32, text_slots).into(),
                1,
                at_most::TEXT,
            )?,
            regions,
            access_counts,
            access_period: access_field(bytes, offset_of!(AccessTable, period)).min(PERIOD_MAX),
            pages: page_tables(bytes, file_bytes)?,
            objects: object_ring(bytes, file_bytes)?,
            outcomes: outcome_table(bytes, file_bytes)?,
        })
    }

    /// Reads the changing part of the current header. Counts are limited to the capacity of their
    /// tables.
    #[must_use]
    pub fn progress(&self, bytes: &[u8; HEADER_BYTES]) -> Progress {
        let count = |number: u32, table: Table| u64::from(number).min(table.slots);
        let ring = offset_of!(SessionHeader, touches) + offset_of!(TouchRing, written);
        let counters = offset_of!(SessionHeader, counters);
        Progress {
            state: field!(bytes, u32, state),
            off_reason: field!(bytes, u32, off_reason),
            modules: count(field!(bytes, u32, module_count), self.modules),
            sites: count(field!(bytes, u32, site_count), self.sites),
            arenas: count(field!(bytes, u32, arena_count), self.arenas),
            mappings: count(field!(bytes, u32, mapping_count), self.mappings),
            text: count(field!(bytes, u32, text_bytes), self.text),
            touches_written: u64::from_ne_bytes(at(bytes, ring)),
            objects_written: object_field(bytes, offset_of!(ObjectRing, written)),
            shadow_offset: field!(bytes, u64, shadow_offset),
            counters: std::array::from_fn(|i| u64::from_ne_bytes(at(bytes, counters + 8 * i))),
        }
    }
}

/// Checks the magic bytes and the version of the format.
fn check_version(bytes: &[u8; HEADER_BYTES]) -> Result<(), SessionError> {
    let magic: [u8; 8] = at(bytes, offset_of!(SessionHeader, magic));
    if magic == [0; 8] {
        return Err(SessionError::NotYet);
    }
    if magic != MAGIC {
        return Err(SessionError::Wrong(
            "it does not begin with ISOTHERM".into(),
        ));
    }
    let version = field!(bytes, u32, version);
    if version != VERSION {
        return Err(SessionError::Wrong(format!(
            "it is of version {version}, this program reads version {VERSION}; use the \
             libisotherm.so that came with it"
        )));
    }
    if (field!(bytes, u32, header_bytes) as usize) < HEADER_BYTES {
        return Err(SessionError::Wrong("its header is too short".into()));
    }
    Ok(())
}

/// Slots of the ring of touches, a power of two or 0.
fn touch_slots(bytes: &[u8; HEADER_BYTES]) -> Result<u64, SessionError> {
    let ring = offset_of!(SessionHeader, touches) + offset_of!(TouchRing, slots);
    ring_slots("touches", u64::from_ne_bytes(at(bytes, ring)))
}

/// The ring of large allocations.
fn object_ring(bytes: &[u8; HEADER_BYTES], file_bytes: u64) -> Result<Table, SessionError> {
    let offset = object_field(bytes, offset_of!(ObjectRing, offset));
    let slots = object_field(bytes, offset_of!(ObjectRing, slots));
    let slots = ring_slots("objects", slots)?;
    let record = size_of::<ObjectRecord>();
    checked(
        "objects",
        offset,
        slots,
        record,
        at_most::OBJECTS,
        file_bytes,
    )
}

/// The table of the outcomes of data objects.
fn outcome_table(bytes: &[u8; HEADER_BYTES], file_bytes: u64) -> Result<Table, SessionError> {
    let word = |field| {
        let table = offset_of!(SessionHeader, outcomes);
        u64::from_ne_bytes(at(bytes, table + field))
    };
    checked(
        "outcomes",
        word(offset_of!(OutcomeTable, offset)),
        word(offset_of!(OutcomeTable, slots)),
        size_of::<OutcomeRecord>(),
        at_most::OUTCOMES,
        file_bytes,
    )
}

fn ring_slots(name: &str, slots: u64) -> Result<u64, SessionError> {
    if slots != 0 && !slots.is_power_of_two() {
        return Err(SessionError::Wrong(format!(
            "its ring of {name} has {slots} slots, not a power of two"
        )));
    }
    Ok(slots)
}

/// A word in the description of the ring of objects.
fn object_field(bytes: &[u8; HEADER_BYTES], offset: usize) -> u64 {
    u64::from_ne_bytes(at(bytes, offset_of!(SessionHeader, objects) + offset))
}

/// The tables of regions and of their access counts.
fn access_tables(
    bytes: &[u8; HEADER_BYTES],
    file_bytes: u64,
) -> Result<(Table, Table), SessionError> {
    let slots = access_field(bytes, offset_of!(AccessTable, slots));
    let table = |name, field, record| {
        let offset = access_field(bytes, field);
        checked(name, offset, slots, record, at_most::REGIONS, file_bytes)
    };
    let regions = offset_of!(AccessTable, regions_offset);
    let counts = offset_of!(AccessTable, counts_offset);
    Ok((
        table("regions", regions, size_of::<u64>())?,
        table("access counts", counts, REGION_COUNT_BYTES as usize)?,
    ))
}

/// A word in the description of the access counts.
fn access_field(bytes: &[u8; HEADER_BYTES], offset: usize) -> u64 {
    u64::from_ne_bytes(at(bytes, offset_of!(SessionHeader, accesses) + offset))
}

/// The tables of the pages' tiers and of the requests to move pages.
fn page_tables(
    bytes: &[u8; HEADER_BYTES],
    file_bytes: u64,
) -> Result<PageTierTables, SessionError> {
    let table = |name, (offset, slots), record, most| {
        let word = |at_offset| u64::from_ne_bytes(at(bytes, at_offset));
        checked(name, word(offset), word(slots), record, most, file_bytes)
    };
    let of_pages = |field| offset_of!(SessionHeader, pages) + field;
    let of_statics = |field| offset_of!(SessionHeader, statics) + field;
    let tiers = (
        of_pages(offset_of!(PageTable, tiers_offset)),
        of_pages(offset_of!(PageTable, slots)),
    );
    let statics = (
        of_statics(offset_of!(StaticPageTable, tiers_offset)),
        of_statics(offset_of!(StaticPageTable, slots)),
    );
    let requests = (
        of_pages(offset_of!(PageTable, requests_offset)),
        of_pages(offset_of!(PageTable, request_slots)),
    );
    let request = size_of::<PageRequest>();
    Ok(PageTierTables {
        tiers: table("page tiers", tiers, 1, at_most::PAGES)?,
        statics: table("static page tiers", statics, 1, at_most::STATIC_PAGES)?,
        requests: table("page requests", requests, request, at_most::PAGE_REQUESTS)?,
    })
}

/// First address and bytes of the pool.
fn pool(bytes: &[u8; HEADER_BYTES]) -> Result<(u64, u64), SessionError> {
    let pool_base = field!(bytes, u64, pool_base);
    let pool_bytes = field!(bytes, u64, pool_bytes);
    if pool_base.checked_add(pool_bytes).is_none() || !pool_base.is_multiple_of(CHUNK_BYTES) {
        return Err(SessionError::Wrong(format!(
            "its pool of {pool_bytes} bytes at {pool_base:#x} cannot be"
        )));
    }
    Ok((pool_base, pool_bytes))
}

fn checked(
    name: &str,
    offset: u64,
    slots: u64,
    record_bytes: usize,
    at_most: u64,
    file_bytes: u64,
) -> Result<Table, SessionError> {
    let end = slots
        .checked_mul(record_bytes as u64)
        .and_then(|bytes| bytes.checked_add(offset));
    match end {
        Some(_) if slots > at_most => Err(SessionError::Wrong(format!(
            "its table of {name} has {slots} records, more than {at_most}"
        ))),
        Some(end) if end <= file_bytes && offset >= HEADER_BYTES as u64 => Ok(Table {
            offset,
            slots,
            record_bytes,
        }),
        _ => Err(SessionError::Wrong(format!(
            "its table of {name} ({slots} records at {offset}) does not lie within its \
             {file_bytes} bytes"
        ))),
    }
}
