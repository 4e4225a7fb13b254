//! Describes the counts of accesses by page ([`AccessTable`], in the session file) of a program that `isotherm-cc --profile` compiled. Also
//! the names, versions and limits on which the inserted code and the runtime agree, and [`LineFilter`], the header of each thread's cache
//! filter: only accesses that miss it are sampled.
//!
//! The code that the compiler pass inserted passes one access in [`AccessTable::period`] to the runtime
//! (`isotherm_note_accesses_2`), which counts it in the session file:
//!
//! ```text
//! regions_offset   AtomicU64 ...   number of the region that owns slot i, plus 1; 0 while it is free
//! counts_offset    AtomicU64 ...   REGION_PAGES counts for each slot, in the order of the pages
//! ```
//!
//! Counts only grow, and a slot never changes its region, so the observer takes differences without any lock:
//! no count is lost however rarely it reads.

use core::sync::atomic::AtomicU64;

use zerocopy::{FromBytes, IntoBytes};

/// Version of the functions that the inserted code calls; the number at the end of their names.
pub const VERSION: u32 = 2;

/// The section that marks a program with inserted code. Holds [`VERSION`].
pub const SECTION: &str = "isotherm_accesses";

/// The result of `isotherm_note_accesses_2` where it is not known yet whether this process counts accesses.
pub const TOO_EARLY: u64 = u64::MAX;

/// The header of a thread's cache filter, before its lines. The inserted code searches the filter itself and
/// calls the runtime for samples only; `llvm/sites/isotherm_accesses.h` describes it and the functions.
#[derive(Debug)]
#[repr(C)]
pub struct LineFilter {
    /// Misses to skip until the next sample.
    pub left: AtomicU64,
    /// State of the random numbers that draw the skip; 0 before the first.
    pub random: AtomicU64,
    /// Lines, a power of two, minus 1.
    pub mask: AtomicU64,
    /// Zero; the lines begin at a cache line.
    pub unused: [AtomicU64; 5],
}

const _: () = assert!(size_of::<LineFilter>() == 64);

/// Period where none was requested. One access in 1,024 costs little and is plenty: a second of a busy
/// processor yields about a million samples.
pub const DEFAULT_PERIOD: u64 = 1024;

/// Longest period.
pub const PERIOD_MAX: u64 = 1 << 30;

/// Bytes of a line of the cache filter ([`crate::config::ConfigHeader::access_filter_lines`]).
pub const FILTER_LINE_BYTES: u64 = 64;

/// Most lines of the cache filter: 1 MiB.
pub const FILTER_LINES_MAX: u32 = 1 << 14;

/// log2 of the bytes of a page here, whatever the machine's: no range that has an owner begins
/// within one.
pub const PAGE_SHIFT: u32 = 12;

/// Pages of a region: 16 MiB of address space, whose counts are 32 KiB.
pub const REGION_PAGES: u64 = 1 << 12;

/// log2 of the bytes of a region.
pub const REGION_SHIFT: u32 = PAGE_SHIFT + REGION_PAGES.ilog2();

/// Bytes of the counts of a region.
pub const REGION_COUNT_BYTES: u64 = REGION_PAGES * size_of::<u64>() as u64;

/// Regions that the runtime has room for: 128 GiB of memory. The file is sparse, so a slot costs nothing until
/// its region is accessed.
pub const REGION_SLOTS: u32 = 1 << 13;

/// Place and size of the counts.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct AccessTable {
    /// Accesses that one count represents; 0 where nothing is counted.
    pub period: u64,
    /// Slots, a power of two; 0 where nothing is counted.
    pub slots: u64,
    /// Start of the regions, in bytes from the start of the file.
    pub regions_offset: u64,
    /// Start of the counts, in bytes from the start of the file.
    pub counts_offset: u64,
}

const _: () = assert!(size_of::<AccessTable>() == 32);
