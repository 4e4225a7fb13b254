//! Describes the configuration file, which the command line writes for the runtime before the program starts: [`ConfigHeader`] with the
//! mode of the runtime, its thresholds, the mover, the sampling of accesses and the costs of an emulation, then the tables of the tiers, of
//! the sites of the plan and their direct callers, of static data, of sites that are placed in parts, and of sites whose first memory goes
//! to another tier than the rest.
//!
//! The runtime reads it once into its own memory and checks all of it. A file that another user may have
//! written, or that fails a check, turns the runtime to pass-through, with one message. A missing file does so
//! silently: the recorder of the program has ended.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, TryFromBytes};

use crate::VERSION;

/// First eight bytes of a configuration file.
pub const MAGIC: [u8; 8] = *b"ISOCONF\0";

/// The runtime's action on each allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, TryFromBytes)]
#[repr(u32)]
pub enum RuntimeMode {
    /// Serve every allocation from one plain jemalloc; record nothing.
    PassThrough = 0,
    /// Distinguish sites, give grown sites their own arenas, publish all of it.
    #[default]
    Profile = 1,
    /// Place each allocation by the plan's table; one allocator instance per tier.
    Guided = 2,
    /// As [`RuntimeMode::Profile`], and obey the wanted tier of each arena while the program runs.
    Online = 3,
}

/// Header of a configuration file.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct ConfigHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`VERSION`].
    pub version: u32,
    /// A [`RuntimeMode`].
    pub mode: u32,
    /// Size of the whole file in bytes.
    pub file_bytes: u64,
    /// Callers in a calling context, 1 to [`crate::MAX_DEPTH`].
    pub depth: u32,
    /// Tier of data that no entry names; an index into the tier table.
    pub default_tier: u32,
    /// A site gets its own arena once it has requested this many bytes.
    pub own_arena_bytes: u64,
    /// An anonymous `mmap` of at least this many bytes is a site.
    pub mapping_bytes: u64,
    /// Address space to reserve for the pool, a multiple of [`crate::CHUNK_BYTES`].
    pub pool_bytes: u64,
    /// Number of [`TierRecord`]s, fastest first; 0 means that no placement is wanted.
    pub tier_count: u32,
    /// Number of [`PlanEntry`] slots, a power of two or 0.
    pub entry_slots: u32,
    /// Start of the tier table, in bytes from the start of the file; a multiple of 8.
    pub tiers_offset: u64,
    /// Start of the plan's entries; a multiple of 8.
    pub entries_offset: u64,
    /// Number of [`PlanEntry`] slots for direct callers, a power of two; 0 where the plan does not know the
    /// callers of its sites, so that every context must be distinguished.
    pub caller_slots: u32,
    /// A [`Mover`].
    pub mover: u32,
    /// Start of the entries for direct callers; a multiple of 8.
    pub callers_offset: u64,
    /// Costs of the emulated slow tier; all zero where the tiers are real.
    pub emulation: EmulationConfig,
    /// Which pages are trapped to detect their accesses; all zero where none are.
    pub trapping: PageTrapConfig,
    /// Mean accesses from one sample of instrumented programs to the next ([`crate::accesses`]), at most
    /// [`crate::accesses::PERIOD_MAX`]; 0 to sample none.
    pub access_period: u32,
    /// Lines of the cache filter of each thread, a power of two of at most
    /// [`crate::accesses::FILTER_LINES_MAX`]: only accesses that miss it are sampled; 0 for no filter.
    pub access_filter_lines: u32,
    /// Number of [`StaticRecord`]s.
    pub static_count: u32,
    /// Tier of all static data; [`STATIC_BY_PLAN`] where the plan's entries place each object, and an object that they do not name
    /// stays where it is.
    pub static_tier: u32,
    /// Start of the static data; a multiple of 8.
    pub statics_offset: u64,
    /// Number of [`SplitRecord`]s.
    pub split_count: u32,
    /// Number of [`PartRecord`]s.
    pub part_count: u32,
    /// Start of the splits; a multiple of 8.
    pub splits_offset: u64,
    /// Start of the parts; a multiple of 8.
    pub parts_offset: u64,
    /// Start of the [`LeadingRecord`]s; a multiple of 8.
    pub leading_offset: u64,
    /// Number of [`LeadingRecord`]s.
    pub leading_count: u32,
    /// Zero.
    pub reserved: u32,
}

/// In [`ConfigHeader::static_tier`]: no tier is that of all static data.
pub const STATIC_BY_PLAN: u32 = u32::MAX;

/// A range of static data (`.data`, `.bss`) of a module, as the tools read it from the module's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct StaticRecord {
    /// Bytes that name the module, as in [`crate::session::ModuleRecord::build_id`].
    pub module: [u8; 32],
    /// Bytes in use of `module`.
    pub module_bytes: u32,
    /// Zero.
    pub reserved: u32,
    /// ELF virtual address that names the site ([`crate::hash::SiteHashKind::Static`]): of the variable.
    pub name: u64,
    /// First ELF virtual address of the range, a multiple of 4,096.
    pub offset: u64,
    /// Bytes of the range, a multiple of 4,096.
    pub bytes: u64,
}

/// The mover of resident memory, in online runs on real nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u32)]
pub enum Mover {
    /// The observer, from outside, by the kernel's page migration.
    #[default]
    Kernel = 0,
    /// The runtime, by staged copy, at the observer's request ([`crate::session::MoveRequest`]).
    Staged = 1,
}

/// Costs of the emulated slow tier: by page trap where there is a period (TMP, section VI: protection bits set
/// periodically, the first access in a period pays), by time where there is a latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct EmulationConfig {
    /// Nanoseconds between two protections of the slow tier; 0 turns the page trap off.
    pub period_ns: u64,
    /// Nanoseconds that the first access to a slow page in a period takes.
    pub access_ns: u64,
    /// Nanoseconds more where the page is hot (it was also touched in the period before).
    pub hot_ns: u64,
    /// Nanoseconds that moving one page between the tiers takes.
    pub migrate_ns: u64,
    /// Time of an access to slow memory in percent of one to fast memory, 100 to [`PERCENT_MAX`]; 0 turns the emulation by
    /// time off.
    pub latency_percent: u32,
    /// As `latency_percent`, for accesses of a stream.
    pub bandwidth_percent: u32,
    /// Bytes of the caches that serve a thread.
    pub cache_bytes: u64,
    /// Nanoseconds of a thread's processor time between two of its samples.
    pub sample_ns: u64,
}

/// Most percent of a factor: a hundred times slower.
pub const PERCENT_MAX: u32 = 10_000;

/// Sampling by page faults: `pages` pages at a time are trapped for `period_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct PageTrapConfig {
    /// 4 KiB pages trapped at a time; 0 turns it off.
    pub pages: u64,
    /// Nanoseconds after which another choice is trapped.
    pub period_ns: u64,
    /// Seed of the choice.
    pub seed: u64,
}

/// Words of a node mask: 1,024 nodes, the most that Linux can be built for.
pub const NODE_WORDS: usize = 16;

/// The kind of memory behind a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum TierRecordKind {
    /// The NUMA nodes in the mask, by `mbind`.
    Nodes = 0,
    /// The fast half of the emulated pair: plain memory, bounded by the capacity.
    EmulatedFast = 1,
    /// The slow half of the emulated pair: plain memory that is slowed.
    EmulatedSlow = 2,
}

/// One tier.
#[derive(Clone, Copy, Debug, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct TierRecord {
    /// A [`TierRecordKind`].
    pub kind: u32,
    /// Memory policy for `mbind` (`MPOL_*` of `linux/mempolicy.h`); 1 is `MPOL_PREFERRED`.
    pub policy: u32,
    /// Bytes that all processes of the session may place here; `u64::MAX` where the kernel keeps count. Of nodes, only tiers
    /// before the last have a limit, and of these the first [`crate::capacity::LIMITED_TIERS`].
    pub capacity_bytes: u64,
    /// Nodes of the tier, bit n of word n/64.
    pub nodes: [u64; NODE_WORDS],
}

/// In an entry of a direct caller: its contexts go to different tiers and must be distinguished.
pub const TELL_APART: u32 = u32::MAX;

/// One site of the plan, or one direct caller, in an open-addressed table: slot `hash & (slots - 1)`, then the next, until
/// an empty one (`hash == 0`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct PlanEntry {
    /// The site's name ([`crate::hash`]), or the name that a site of the direct caller alone would have; 0
    /// marks an empty slot.
    pub hash: u64,
    /// Index into the tier table; of a site also [`SPLIT`] and an index into the splits, or [`LEADING`] and an index into the
    /// [`LeadingRecord`]s; of a caller also [`TELL_APART`].
    pub tier: u32,
    /// Zero; room for a later version.
    pub reserved: u32,
}

/// Bit in [`PlanEntry::tier`] of a site: the others are the index of its [`SplitRecord`].
pub const SPLIT: u32 = 1 << 31;

/// Most splits: their numbers must fit beside the tiers where a calling context is cached.
pub const SPLITS_MAX: u32 = 1 << 16;

/// A site whose objects are placed in parts: each allocation of at least [`crate::session::OBJECT_BYTES`], mapping and variable of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct SplitRecord {
    /// Tier of what lies in no part, and of smaller allocations.
    pub tier: u32,
    /// Index of its first part.
    pub first_part: u32,
    /// Number of its parts.
    pub parts: u32,
    /// Zero.
    pub reserved: u32,
}

/// A part of each object of a site: bytes from the object's start on. The parts of a split are in order and have no byte in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct PartRecord {
    /// First byte, a multiple of 4,096.
    pub start: u64,
    /// First byte past it, a multiple of 4,096 above `start`.
    pub end: u64,
    /// Its tier.
    pub tier: u32,
    /// Zero.
    pub reserved: u32,
}

/// Bit in [`PlanEntry::tier`] of a site: the others are the index of its [`LeadingRecord`].
pub const LEADING: u32 = 1 << 30;

/// Most leading records: a plan has one for each tier but the slowest, and more only where it was edited.
pub const LEADING_MAX: u32 = 64;

/// A site (with all names that it has in a rebuilt program) whose heap memory goes to one tier until it has `bytes` of it, and then
/// to another. It has an arena of its own: the arenas of the leading records follow those of the tiers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, Immutable, IntoBytes)]
#[repr(C)]
pub struct LeadingRecord {
    /// Tier of what is allocated first.
    pub first_tier: u32,
    /// Tier of what is allocated later, and of its mappings.
    pub later_tier: u32,
    /// Bytes of the first tier at most, in each process.
    pub bytes: u64,
}

impl ConfigHeader {
    /// A header for this mode with the default thresholds and no tables.
    #[must_use]
    pub fn new(mode: RuntimeMode) -> Self {
        let end = size_of::<Self>() as u64;
        Self {
            magic: MAGIC,
            version: VERSION,
            mode: mode as u32,
            file_bytes: end,
            depth: 4,
            own_arena_bytes: 256 << 10,
            mapping_bytes: 1 << 20,
            pool_bytes: 1 << 40,
            tiers_offset: end,
            entries_offset: end,
            callers_offset: end,
            static_tier: STATIC_BY_PLAN,
            statics_offset: end,
            splits_offset: end,
            parts_offset: end,
            leading_offset: end,
            ..Self::new_zeroed()
        }
    }
}

const _: () = assert!(size_of::<ConfigHeader>() == 240);
const _: () = assert!(size_of::<StaticRecord>() == 64);
const _: () = assert!(size_of::<TierRecord>() == 144);
const _: () = assert!(size_of::<PlanEntry>() == 16);
const _: () = assert!(size_of::<SplitRecord>() == 16);
const _: () = assert!(size_of::<PartRecord>() == 24);
const _: () = assert!(size_of::<LeadingRecord>() == 16);
