//! Describes the session file ([`SessionHeader`]), by which the runtime inside one process image (a process from one exec to the next)
//! reports its modules, sites, arenas, mappings, large allocations and accesses, and requests and hints of the program, to the observer
//! (the Isotherm process outside), and by which the observer requests that memory is placed or moved, and answers the program.
//! [`SessionLayout`] computes where each table begins.
//!
//! One sparse file per process image, named `<pid>.<n>` in the session directory (n counts the images of a
//! process, by exec). The runtime maps it shared, so its content survives any death of the program. There is
//! one writer, the process; the observer reads concurrently and must expect any value to change. The exceptions, which the
//! observer writes and the runtime reads, are [`TouchRing::read`], the first half of [`MoveRequest`], the second half of
//! [`InterfaceRequest`], the outcomes of objects ([`OutcomeTable::count`] and the records), and the requests:
//! [`ArenaRecord::wanted_tier`], on real nodes [`ArenaRecord::tier`], both words in [`MappingRecord`] too, and the ring of
//! [`PageRequest`]s with [`PageTable::requested`].
//!
//! Publication: a record is filled first, then the count in the header (or the record's own
//! `hash`) is stored with release order. A reader loads it with acquire order.

use core::sync::atomic::{AtomicU32, AtomicU64};

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, TryFromBytes};

use crate::accesses::{AccessTable, REGION_COUNT_BYTES, REGION_SLOTS};
use crate::interface::{
    HINT_SLOTS, HintRecord, InterfaceRequest, OUTCOME_SLOTS, OutcomeRecord, OutcomeTable,
};
use crate::page_tiers::{
    PAGE_BYTES, PageRequest, PageTable, REQUEST_SLOTS, STATIC_PAGES, StaticPageTable,
};
use crate::{MAX_DEPTH, VERSION};

/// First eight bytes of a session file.
pub const MAGIC: [u8; 8] = *b"ISOTHERM";

/// Owner number in the chunk table: no owner.
pub const CHUNK_FREE: u32 = 0;

/// Owner number in the chunk table: a large mapping of the program, described by a
/// [`MappingRecord`].
pub const CHUNK_MAPPING: u32 = u32::MAX;

/// Arena number of memory shared by small and rare sites. The chunk table holds arena + 1.
pub const SHARED_ARENA: u32 = 0;

/// A tier number that means "no request" in [`ArenaRecord::wanted_tier`].
pub const NO_TIER: u32 = u32::MAX;

/// A module number that means "code outside every module" (just-in-time code).
pub const NO_MODULE: u32 = u32::MAX;

/// A module number that means "a Python function" ([`crate::python_code`]).
pub const PYTHON_FRAME: u32 = u32::MAX - 1;

/// State of the process image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SessionState {
    /// The runtime works.
    Running = 1,
    /// The program left through exit.
    Exited = 2,
    /// The runtime turned itself off; [`SessionHeader::off_reason`] has the reason.
    Off = 3,
}

/// Why the runtime turned itself or a part of it off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes)]
#[repr(u32)]
pub enum OffReason {
    /// It is not off.
    None = 0,
    /// The pool's address space could not be reserved.
    NoAddressSpace = 1,
    /// The configuration file is cut short, unsound or of another version.
    BadConfig = 2,
    /// The session file could not be made (disk full, file size limit).
    NoSession = 3,
    /// userfaultfd is missing or not allowed to serve the kernel's own accesses.
    NoUserfaultfd = 4,
    /// The kernel lacks `UFFDIO_MOVE` (Linux 6.8).
    NoUffdMove = 5,
    /// The service thread could not be started.
    NoThread = 6,
    /// `mbind` refused the tier's nodes.
    NoPlacement = 7,
    /// The configuration file or the session directory is another user's, or others may write it.
    Foreign = 8,
    /// The kernel refuses a thread a timer of its own (`perf_event_open`).
    NoTimer = 9,
}

/// Counters of the runtime, an index into [`SessionHeader::counters`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum SessionCounter {
    /// Allocations counted.
    Allocations = 0,
    /// Contexts that had to be unwound.
    ContextMisses = 1,
    /// Cache hits that were unwound again as a check.
    ContextChecks = 2,
    /// Checks that found another context than the cache.
    ContextMismatches = 3,
    /// Sites without a free record.
    SitesLost = 4,
    /// Sites that needed their own arena when none was left.
    ArenasLost = 5,
    /// Accesses to the emulated slow tier that were delayed; by time, samples of such accesses.
    SlowAccesses = 6,
    /// Delayed accesses to hot pages (by page trap).
    HotSlowAccesses = 7,
    /// Nanoseconds of delay the emulation added.
    DelayNanos = 8,
    /// Pages moved from slow to fast.
    PagesPromoted = 9,
    /// Pages moved from fast to slow.
    PagesDemoted = 10,
    /// Bytes of the fast tier in use.
    FastBytes = 11,
    /// Pages that were to be in a tier that was full: at their first touch in an emulated pair, at their placement on real nodes.
    Spilled = 12,
    /// Touch records overwritten before they were read.
    TouchesLost = 13,
    /// Nanoseconds the service thread and its helpers ran.
    ServiceNanos = 14,
    /// Bytes of the slow tier in use.
    SlowBytes = 15,
    /// First touches served by the emulation: by page trap all, by time those of the slow tier.
    FirstTouches = 16,
    /// Pages that the emulation could not slow (shared after a fork, pinned by the kernel).
    Unslowed = 17,
    /// Large mappings of the program without a free record.
    MappingsLost = 18,
    /// Bytes of whole chunks that staged copy moved between nodes.
    StagedBytes = 19,
    /// Sampled accesses that were not counted for lack of room ([`crate::accesses`]).
    AccessesLost = 20,
    /// 1 once the program has measured the resident pages of all its sites at its end.
    MeasuredAtEnd = 21,
    /// Bytes of the emulated slow tier that threads accessed beyond the caches, by estimate (emulation by time).
    SlowTrafficBytes = 22,
    /// As `SlowTrafficBytes`, for the emulated fast tier and memory that has no tier: stacks, files, small mappings.
    FastTrafficBytes = 23,
}

/// Number of counter slots; unused ones are zero.
pub const COUNTERS: usize = 32;

/// Start of a session file.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct SessionHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// Size of this header in bytes.
    pub header_bytes: u32,
    /// The process.
    pub pid: u32,
    /// The process it was forked from; its own pid after exec.
    pub parent_pid: u32,
    /// A [`crate::config::RuntimeMode`].
    pub mode: u32,
    /// Callers in a calling context.
    pub depth: u32,
    /// A [`SessionState`].
    pub state: AtomicU32,
    /// An [`OffReason`].
    pub off_reason: AtomicU32,
    /// `CLOCK_MONOTONIC` when the image started, in nanoseconds.
    pub start_ns: u64,
    /// First address of the pool.
    pub pool_base: u64,
    /// Bytes of the pool.
    pub pool_bytes: u64,
    /// Offset from a page's address to its shadow, where its content is while the emulation has trapped it
    /// away; 0 where nothing is moved away. An observer that counts resident pages of an extent counts those of
    /// the shifted range too.
    pub shadow_offset: AtomicU64,
    /// Records in use in each table; grows only.
    pub module_count: AtomicU32,
    /// See `module_count`.
    pub site_count: AtomicU32,
    /// See `module_count`.
    pub arena_count: AtomicU32,
    /// See `module_count`.
    pub mapping_count: AtomicU32,
    /// Bytes of text in use.
    pub text_bytes: AtomicU32,
    /// Most records of each table.
    pub module_slots: u32,
    /// See `module_slots`.
    pub site_slots: u32,
    /// See `module_slots`.
    pub arena_slots: u32,
    /// See `module_slots`.
    pub mapping_slots: u32,
    /// Most bytes of text.
    pub text_slots: u32,
    /// Start of each table, in bytes from the start of the file.
    pub modules_offset: u64,
    /// See `modules_offset`.
    pub sites_offset: u64,
    /// See `modules_offset`.
    pub arenas_offset: u64,
    /// Owner of each chunk of the pool: `AtomicU32`, arena number + 1.
    pub chunks_offset: u64,
    /// See `modules_offset`.
    pub mappings_offset: u64,
    /// See `modules_offset`.
    pub touches_offset: u64,
    /// See `modules_offset`.
    pub text_offset: u64,
    /// Ring of trapped accesses.
    pub touches: TouchRing,
    /// By [`SessionCounter`].
    pub counters: [AtomicU64; COUNTERS],
    /// The observer's request to move memory by staged copy.
    pub moving: MoveRequest,
    /// Tiers of pages, and requests to move them.
    pub pages: PageTable,
    /// Tiers of static data.
    pub statics: StaticPageTable,
    /// Ring of large allocations.
    pub objects: ObjectRing,
    /// The program's requests to the observer.
    pub interface: InterfaceRequest,
    /// The outcomes of the last optimization.
    pub outcomes: OutcomeTable,
    /// The program's hints.
    pub hints: [HintRecord; HINT_SLOTS],
    /// Access counts. They stay last: `bench/truth/cache_plugin.c` finds them at the end of the header.
    pub accesses: AccessTable,
}

const _: () = assert!(
    core::mem::offset_of!(SessionHeader, accesses) + size_of::<AccessTable>()
        == size_of::<SessionHeader>()
);

/// Whether the runtime moves memory itself ([`MoveRequest`]), and why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum MoverState {
    /// Off: not requested, or this is a forked child, which has no mover.
    Absent = 0,
    /// On.
    Running = 1,
    /// userfaultfd is missing or not allowed to serve the kernel's own accesses.
    NoUserfaultfd = 2,
    /// The kernel lacks `UFFDIO_MOVE` (Linux 6.8) or `PAGEMAP_SCAN` (Linux 6.7).
    OldKernel = 3,
    /// `/proc/self/pagemap` cannot be read.
    NoPagemap = 4,
    /// No thread, no address space, or pages are not of 4 KiB.
    NoResources = 5,
    /// Accesses are trapped, and only one mechanism can take a page away.
    Trapping = 6,
}

/// A range of the pool that the observer wants on a node, and the answer. One at a time: the next is written
/// when the last was answered.
#[derive(Debug, Default, FromBytes, IntoBytes)]
#[repr(C)]
pub struct MoveRequest {
    /// Number of the newest request, written last (observer).
    pub asked: AtomicU32,
    /// The target node.
    pub node: AtomicU32,
    /// First address, a multiple of [`crate::CHUNK_BYTES`].
    pub start: AtomicU64,
    /// Chunks, at most [`MOVE_CHUNKS`]. Those that belong to no arena are left alone.
    pub chunks: AtomicU32,
    /// 1: also move pages that are on the node already, for tests and measurements on machines of one node.
    pub even_if_there: AtomicU32,
    /// Number of the newest request that was carried out, written last (runtime).
    pub answered: AtomicU32,
    /// A [`MoverState`].
    pub state: AtomicU32,
    /// Bit n: chunk n of the range was moved.
    pub moved: AtomicU64,
}

/// Most chunks of a request.
pub const MOVE_CHUNKS: u32 = u64::BITS;

/// Positions in the ring of [`TouchRecord`]s. Record i is in slot `i % slots`.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct TouchRing {
    /// Records written so far (runtime).
    pub written: AtomicU64,
    /// Records read so far (observer); informative, the writer never waits.
    pub read: AtomicU64,
    /// Slots, a power of two; 0 where nothing is trapped.
    pub slots: u64,
}

/// One trapped access.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct TouchRecord {
    /// Address of the access, rounded down to its page.
    pub address: AtomicU64,
    /// `CLOCK_MONOTONIC` in nanoseconds.
    pub time_ns: AtomicU64,
}

/// Smallest allocation that is published as an object of its own.
pub const OBJECT_BYTES: u64 = 64 << 10;

/// Slots of the ring of [`ObjectRecord`]s: what a program may allocate in an epoch before the oldest are lost.
pub const OBJECT_SLOTS: u64 = 1 << 16;

/// Positions in the ring of [`ObjectRecord`]s. Record i is in slot `i % slots`.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct ObjectRing {
    /// Records written so far (runtime).
    pub written: AtomicU64,
    /// Slots, a power of two; 0 where no sites are recorded.
    pub slots: u64,
    /// Start of the ring.
    pub offset: u64,
}

/// One allocation of at least [`OBJECT_BYTES`], of a site with an arena of its own. Its end is not recorded: what is allocated at its
/// addresses later takes its place.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct ObjectRecord {
    /// Number of the record + 1, stored last; 0 while it is being written.
    pub number: AtomicU64,
    /// First address.
    pub address: AtomicU64,
    /// Bytes that the program may use.
    pub bytes: AtomicU64,
    /// Index of the site.
    pub site: AtomicU32,
    /// Zero.
    pub reserved: u32,
}

/// A loaded module (executable or shared object).
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct ModuleRecord {
    /// Load bias: run-time address = bias + ELF virtual address.
    pub bias: u64,
    /// First address past the module's last segment.
    pub end: u64,
    /// Bytes that name the module: its GNU build-id, else its file name cut to 32 bytes.
    pub build_id: [u8; 32],
    /// Bytes in use of `build_id`.
    pub build_id_bytes: u32,
    /// 1 where `build_id` is a real build-id.
    pub has_build_id: u32,
    /// Offset of the path in the text area.
    pub path_offset: u32,
    /// Bytes of the path.
    pub path_bytes: u32,
}

/// One caller: a module and the ELF virtual address of the return address in it, or a Python function and the line in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct FrameRecord {
    /// Index into the module table, [`NO_MODULE`] or [`PYTHON_FRAME`].
    pub module: u32,
    /// For [`PYTHON_FRAME`] the place of the function in the text area, or [`crate::python_code::NO_TEXT`]; else zero.
    pub text: u32,
    /// Return address minus the module's bias; the plain address for [`NO_MODULE`]; for [`PYTHON_FRAME`] the line in the function
    /// ([`crate::python_code`]).
    pub offset: u64,
}

/// One allocation site.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct SiteRecord {
    /// The site's name ([`crate::hash`]); stored last, so 0 means "not yet".
    pub hash: AtomicU64,
    /// A [`crate::hash::SiteHashKind`].
    pub kind: u32,
    /// Frames in use.
    pub depth: u32,
    /// Callers, innermost first. Of a named site the text ([`crate::named_data::frames_of_name`]).
    pub frames: [FrameRecord; MAX_DEPTH],
    /// The arena that holds the site's data; [`SHARED_ARENA`] until it has grown.
    pub arena: AtomicU32,
    /// Peak of the resident 4 KiB pages of the site's data, as measured by the runtime; 0 where it did not
    /// measure.
    pub peak_resident_pages: AtomicU32,
    /// Allocations so far.
    pub allocations: AtomicU64,
    /// Bytes requested so far.
    pub requested_bytes: AtomicU64,
    /// Bytes requested and not yet freed; 0 while the site shares an arena (a free there does not know its
    /// site).
    pub live_bytes: AtomicU64,
    /// Highest value of `live_bytes`.
    pub peak_bytes: AtomicU64,
}

/// One arena.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct ArenaRecord {
    /// Site index + 1, or 0 for the shared arena.
    pub site: AtomicU32,
    /// Tier that new memory of the arena gets; an index into the configuration's tiers, or
    /// [`NO_TIER`]. On real nodes the observer may write it.
    pub tier: AtomicU32,
    /// On the emulated pair, the tier that the observer requests. The runtime's service thread accepts the
    /// request and stores [`NO_TIER`] in its place. A request for the arena's present tier has an effect too:
    /// it brings back pages that spilled for lack of room.
    pub wanted_tier: AtomicU32,
    /// As [`SiteRecord::peak_resident_pages`], for the shared arena; 0 for others.
    pub peak_resident_pages: AtomicU32,
    /// Bytes of pool chunks that the arena holds.
    pub mapped_bytes: AtomicU64,
}

/// One large anonymous mapping made by the program.
///
/// The slot is being rewritten while `sequence` is odd; a reader that sees two different values
/// around its copy tries again.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct MappingRecord {
    /// Even: stable. Odd: being written.
    pub sequence: AtomicU32,
    /// Index of the site.
    pub site: AtomicU32,
    /// First address.
    pub address: AtomicU64,
    /// Bytes; 0 once unmapped.
    pub bytes: AtomicU64,
    /// Tier requested by the observer, as in [`ArenaRecord::wanted_tier`].
    pub wanted_tier: AtomicU32,
    /// Its tier. On real nodes the observer may write it.
    pub tier: AtomicU32,
}

/// Offsets and sizes of a session file for a pool of a given size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLayout {
    /// Most modules.
    pub module_slots: u32,
    /// Most sites.
    pub site_slots: u32,
    /// Most arenas.
    pub arena_slots: u32,
    /// Most mappings.
    pub mapping_slots: u32,
    /// Most touch records.
    pub touch_slots: u64,
    /// Most bytes of module paths and Python functions.
    pub text_slots: u32,
    /// Chunks of the pool.
    pub chunk_slots: u64,
    /// Most regions with access counts, a power of two; 0 where none are counted.
    pub region_slots: u32,
    /// Pages whose tier is published; 0 where no tier is emulated.
    pub page_slots: u64,
    /// Pages of static data whose tier is published.
    pub static_page_slots: u64,
    /// Most outcomes of data objects.
    pub outcome_slots: u64,
    /// Most object records.
    pub object_slots: u64,
}

impl SessionLayout {
    /// The layout the runtime uses. The file is sparse: only what is used takes memory.
    ///
    /// The bounds and their reasons: 4,096 arenas because jemalloc encodes an arena in 12 bits; a million
    /// sites, because the largest program in the KERNEL measurements had 98 thousand at four callers; 65,536
    /// mappings, about the kernel's own `vm.max_map_count`.
    #[must_use]
    pub const fn for_pool(pool_bytes: u64) -> Self {
        Self {
            module_slots: 1 << 14,
            site_slots: 1 << 20,
            arena_slots: 1 << 12,
            mapping_slots: 1 << 16,
            touch_slots: 1 << 16,
            text_slots: 4 << 20,
            chunk_slots: pool_bytes >> crate::CHUNK_SHIFT,
            region_slots: 0,
            page_slots: 0,
            static_page_slots: 0,
            outcome_slots: 0,
            object_slots: OBJECT_SLOTS,
        }
    }

    /// With room for the tier of each page of the pool and of static data.
    #[must_use]
    pub const fn publishing_page_tiers(self) -> Self {
        Self {
            page_slots: (self.chunk_slots << crate::CHUNK_SHIFT) / PAGE_BYTES,
            static_page_slots: STATIC_PAGES,
            ..self
        }
    }

    /// With room for the outcomes of data objects.
    #[must_use]
    pub const fn keeping_outcomes(self) -> Self {
        Self {
            outcome_slots: OUTCOME_SLOTS,
            ..self
        }
    }

    /// Slots of the ring of requests to move pages.
    #[must_use]
    pub const fn request_slots(&self) -> u64 {
        if self.page_slots > 0 {
            REQUEST_SLOTS
        } else {
            0
        }
    }

    /// With room for access counts.
    #[must_use]
    pub const fn counting_accesses(self) -> Self {
        Self {
            region_slots: REGION_SLOTS,
            ..self
        }
    }

    /// Start of each table, and the size of the file: modules, sites, arenas, chunks, mappings, touches, text, objects, regions,
    /// access counts, tiers of pages, tiers of static data, outcomes, requests to move pages, end. Each is a multiple of 4,096.
    #[must_use]
    pub fn offsets(&self) -> [u64; 15] {
        let tables = [
            (1, size_of::<SessionHeader>()),
            (self.module_slots.into(), size_of::<ModuleRecord>()),
            (self.site_slots.into(), size_of::<SiteRecord>()),
            (self.arena_slots.into(), size_of::<ArenaRecord>()),
            (self.chunk_slots, size_of::<AtomicU32>()),
            (self.mapping_slots.into(), size_of::<MappingRecord>()),
            (self.touch_slots, size_of::<TouchRecord>()),
            (self.text_slots.into(), 1),
            (self.object_slots, size_of::<ObjectRecord>()),
            (self.region_slots.into(), size_of::<AtomicU64>()),
            (self.region_slots.into(), REGION_COUNT_BYTES as usize),
            (self.page_slots, 1),
            (self.static_page_slots, 1),
            (self.outcome_slots, size_of::<OutcomeRecord>()),
            (self.request_slots(), size_of::<PageRequest>()),
        ];
        let mut end = 0;
        tables.map(|(slots, bytes): (u64, usize)| {
            end = (end + slots * bytes as u64).next_multiple_of(4096);
            end
        })
    }

    /// The tables of pages, with the offsets of the tiers and of the requests.
    fn page_table(&self, tiers_offset: u64, requests_offset: u64) -> PageTable {
        PageTable {
            slots: self.page_slots,
            tiers_offset,
            request_slots: self.request_slots(),
            requests_offset,
            ..PageTable::new_zeroed()
        }
    }

    /// A header for this layout, with no records yet.
    #[must_use]
    pub fn header(&self, mode: crate::config::RuntimeMode, depth: u32) -> SessionHeader {
        let [
            modules,
            sites,
            arenas,
            chunks,
            mappings,
            touches,
            text,
            objects,
            regions,
            counts,
            pages,
            statics,
            outcomes,
            requests,
            _,
        ] = self.offsets();
        SessionHeader {
            magic: MAGIC,
            version: VERSION,
            header_bytes: size_of::<SessionHeader>() as u32,
            mode: mode as u32,
            depth,
            state: AtomicU32::new(SessionState::Running as u32),
            pool_bytes: self.chunk_slots << crate::CHUNK_SHIFT,
            module_slots: self.module_slots,
            site_slots: self.site_slots,
            arena_slots: self.arena_slots,
            mapping_slots: self.mapping_slots,
            text_slots: self.text_slots,
            modules_offset: modules,
            sites_offset: sites,
            arenas_offset: arenas,
            chunks_offset: chunks,
            mappings_offset: mappings,
            touches_offset: touches,
            text_offset: text,
            touches: TouchRing {
                slots: self.touch_slots,
                ..TouchRing::new_zeroed()
            },
            pages: self.page_table(pages, requests),
            statics: StaticPageTable {
                slots: self.static_page_slots,
                tiers_offset: statics,
                ..StaticPageTable::new_zeroed()
            },
            objects: ObjectRing {
                slots: self.object_slots,
                offset: objects,
                ..ObjectRing::new_zeroed()
            },
            outcomes: OutcomeTable {
                slots: self.outcome_slots,
                offset: outcomes,
                ..OutcomeTable::new_zeroed()
            },
            accesses: AccessTable {
                slots: self.region_slots.into(),
                regions_offset: regions,
                counts_offset: counts,
                ..AccessTable::new_zeroed()
            },
            ..SessionHeader::new_zeroed()
        }
    }
}

const _: () = assert!(size_of::<SessionHeader>() == 5976);
const _: () = assert!(size_of::<MoveRequest>() == 40);
const _: () = assert!(size_of::<ModuleRecord>() == 64);
const _: () = assert!(size_of::<FrameRecord>() == 16);
const _: () = assert!(size_of::<SiteRecord>() == 184);
const _: () = assert!(size_of::<ArenaRecord>() == 24);
const _: () = assert!(size_of::<MappingRecord>() == 32);
const _: () = assert!(size_of::<TouchRecord>() == 16);
const _: () = assert!(size_of::<ObjectRecord>() == 32);

#[cfg(test)]
mod tests {
    use super::SessionLayout;

    #[test]
    fn tables_follow_one_another_on_page_boundaries() {
        let offsets = SessionLayout::for_pool(1 << 40)
            .counting_accesses()
            .publishing_page_tiers()
            .keeping_outcomes()
            .offsets();
        assert!(offsets.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(offsets.iter().all(|offset| offset % 4096 == 0));
    }
}
