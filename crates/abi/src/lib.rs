//! Describes the records that the runtime (`libisotherm.so`), a Java virtual machine and compiled programs share with the tools: the
//! *session file* (the runtime's reports, the observer's requests), the *configuration file* (the command line's settings for the runtime),
//! the *capacity file* ([`capacity`]) and *machine file* ([`machine`]), in which processes share limited tiers and bandwidths, files of a
//! Java virtual machine, and sections of compiled programs; also how sites are named ([`hash`]), and the environment variables.
//!
//! Assumptions: both sides run on the same machine, so integers are in its byte order; 64-bit only. Each of the first four
//! begins with a magic number and [`VERSION`]; a reader refuses another version. Their tables are found by the offsets in
//! the header, so a table may grow without a new version. Nothing here does I/O or is unsafe: the caller maps the bytes.
//!
//! ```text
//! session file (sparse)                          configuration file
//! +--------------------+ 0                       +------------------+ 0
//! | SessionHeader      |                         | ConfigHeader     |
//! +--------------------+ modules_offset          +------------------+ tiers_offset
//! | ModuleRecord ...   |                         | TierRecord ...   |
//! +--------------------+ sites_offset            +------------------+ entries_offset
//! | SiteRecord ...     |                         | PlanEntry ...    |  sites, open addressing
//! +--------------------+ arenas_offset           +------------------+ callers_offset
//! | ArenaRecord ...    |                         | PlanEntry ...    |  direct callers
//! +--------------------+ chunks_offset           +------------------+ statics_offset
//! | AtomicU32 ...      |  owner of each chunk    | StaticRecord ... |
//! +--------------------+ mappings_offset         +------------------+ splits_offset
//! | MappingRecord ...  |                         | SplitRecord ...  |
//! +--------------------+ touches_offset          +------------------+ parts_offset
//! | TouchRecord ...    |  ring                   | PartRecord ...   |
//! +--------------------+ text_offset             +------------------+ leading_offset
//! | module paths ...   |  and Python functions   | LeadingRecord .. |
//! +--------------------+ objects.offset          +------------------+
//! | ObjectRecord ...   |  ring
//! +--------------------+ accesses.regions_offset
//! | AtomicU64 ...      |  regions of which accesses are counted, then the counts by page
//! +--------------------+ pages.tiers_offset
//! | AtomicU8 ...       |  tier of each page of the pool, then of each page of static data
//! +--------------------+ outcomes.offset
//! | OutcomeRecord ...  |  what the last optimization did to each data object
//! +--------------------+ pages.requests_offset
//! | PageRequest ...    |  ring
//! +--------------------+
//! ```
#![no_std]
#![forbid(unsafe_code)]

use zerocopy::{IntoBytes, TryFromBytes};

pub mod accesses;
pub mod capacity;
pub mod config;
pub mod contexts;
pub mod env;
pub mod hash;
pub mod interface;
pub mod java;
pub mod java_heap;
pub mod machine;
pub mod named_data;
pub mod page_tiers;
pub mod python_code;
pub mod session;
pub mod site;

/// Version of the session, configuration, capacity and machine files. A reader that finds another number refuses the file.
pub const VERSION: u32 = 13;

/// The pool is handed out in chunks of this many bytes (one x86-64 huge page).
pub const CHUNK_BYTES: u64 = 1 << CHUNK_SHIFT;

/// log2 of [`CHUNK_BYTES`].
pub const CHUNK_SHIFT: u32 = 21;

/// Most callers that a calling context may hold.
///
/// MemBrain uses 4; eight leaves room for wrappers and keeps a [`session::SiteRecord`] at three
/// cache lines.
pub const MAX_DEPTH: usize = 8;

/// The start of a file: its magic number and [`VERSION`]. The other bytes are zero.
const fn start_of_file<const BYTES: usize>(magic: [u8; 8]) -> [u8; BYTES] {
    let mut bytes = [0; BYTES];
    let (start, rest) = bytes.split_at_mut(magic.len());
    start.copy_from_slice(&magic);
    let (version, _) = rest.split_at_mut(size_of_val(&VERSION));
    version.copy_from_slice(&VERSION.to_ne_bytes());
    bytes
}

/// The value with this number, of an enumeration of 32-bit numbers, if there is one.
#[must_use]
pub fn from_number<T: TryFromBytes>(number: u32) -> Option<T> {
    T::try_read_from_bytes(number.as_bytes()).ok()
}
