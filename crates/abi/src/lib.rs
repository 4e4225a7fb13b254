//! Records shared by `libisotherm.so` and the tools outside the program: the content of a *session file*
//! (written by the runtime, read by the observer), of a *configuration file* (written by the command line,
//! read once by the runtime), of a *capacity file* ([`capacity`], shared by the processes of a run), and of a *machine
//! file* ([`machine`], shared by the runs on an emulated machine).
//!
//! Assumptions: both sides run on the same machine, so integers are in its byte order; 64-bit only. Every file
//! begins with a magic number and [`VERSION`]; a reader refuses another version. Tables are found by the
//! offsets in the header, never by a constant, so a table may grow without a new version. Nothing here does I/O
//! or is unsafe: the caller maps the bytes, and `zerocopy` makes records of bytes and bytes of records.
//!
//! ```text
//! session file (sparse)                          configuration file
//! +--------------------+ 0                       +------------------+ 0
//! | SessionHeader      |                         | ConfigHeader     |
//! +--------------------+ modules_offset          +------------------+ tiers_offset
//! | ModuleRecord ...   |                         | TierRecord ...   |
//! +--------------------+ sites_offset            +------------------+ entries_offset
//! | SiteRecord ...     |                         | PlanEntry ...    |  open addressing
//! +--------------------+ arenas_offset           +------------------+ statics_offset
//! | ArenaRecord ...    |                         | StaticRecord ... |
//! +--------------------+ chunks_offset           +------------------+
//! | AtomicU32 ...      |  owner of each 2 MiB chunk of the pool
//! +--------------------+ mappings_offset
//! | MappingRecord ...  |
//! +--------------------+ touches_offset
//! | TouchRecord ...    |  ring
//! +--------------------+ text_offset
//! | module paths ...   |  and Python functions
//! +--------------------+ accesses.regions_offset
//! | AtomicU64 ...      |  regions of which accesses are counted
//! +--------------------+ accesses.counts_offset
//! | AtomicU64 ...      |  accesses by page
//! +--------------------+ pages.tiers_offset
//! | AtomicU8 ...       |  tier of each page of the pool
//! +--------------------+ pages.requests_offset
//! | PageRequest ...    |  ring
//! +--------------------+
//! ```
#![no_std]
#![forbid(unsafe_code)]

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

/// Version of every layout in this crate. A reader that finds another number refuses the file.
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
