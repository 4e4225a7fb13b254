//! Describes the capacity file, by which processes keep the limit of a tier together: [`CapacityHeader`] sums the bytes that they have
//! placed in each limited tier, and a [`CapacitySlot`] has the share of one process. The processes of a run share the file for tiers of
//! nodes, those of all runs on an emulated machine with a name for its fast tier; a machine without a name has no such file.
//!
//! The command line makes it before the program starts, in the directory of the session files, where the limit of a
//! tier is less than its nodes hold. Each process maps it shared. A process has a slot with its share, so that the
//! share of a process that was killed can be given back by any other process that needs room.
//!
//! For an emulated machine with a name the limit is in the file, too.
//!
//! ```text
//! +------------------+ 0
//! | CapacityHeader   |   sums by tier
//! +------------------+ SLOTS_OFFSET
//! | CapacitySlot ... |   one a process
//! +------------------+ FILE_BYTES
//! ```
//!
//! A sum is raised before the share, and lowered after it. A process that dies in between leaves its last range counted: too
//! little is placed in the tier then, and never too much.

use core::sync::atomic::AtomicU64;

/// Name of the file in the session directory.
pub const FILE_NAME: &str = "capacity";

/// First eight bytes of a capacity file.
pub const MAGIC: [u8; 8] = *b"ISOCAPA\0";

/// Tiers whose capacity can be limited: the first ones of the configuration.
pub const LIMITED_TIERS: usize = 6;

/// Processes that can have a share at a time. One without a slot places nothing in a limited tier.
pub const SLOTS: usize = 2048;

/// Start of the slots, in bytes from the start of the file.
pub const SLOTS_OFFSET: usize = 4096;

/// Size of the file.
pub const FILE_BYTES: usize = SLOTS_OFFSET + SLOTS * size_of::<CapacitySlot>();

/// In [`CapacitySlot::process`]: another process gives the share back.
pub const CLOSING: u64 = u64::MAX;

/// Start of a capacity file.
#[derive(Debug)]
#[repr(C)]
pub struct CapacityHeader {
    /// [`MAGIC`].
    pub magic: [u8; 8],
    /// [`crate::VERSION`].
    pub version: u32,
    /// Zero.
    pub reserved: u32,
    /// Bytes that all processes have placed in each tier.
    pub placed: [AtomicU64; LIMITED_TIERS],
    /// Bytes that all processes may place in the first tier, of an emulated machine with a name; 0 where each configuration has the
    /// limits.
    pub fast_limit: AtomicU64,
}

/// Start of [`CapacityHeader::fast_limit`], in bytes from the start of the file.
pub const FAST_LIMIT_OFFSET: usize = core::mem::offset_of!(CapacityHeader, fast_limit);

/// Size of the fields up to [`CapacityHeader::fast_limit`].
pub const FIRST_BYTES: usize = FAST_LIMIT_OFFSET + size_of::<u64>();

/// The limit of the fast tier in the first bytes of a file; `None` where it is no capacity file of this version.
#[must_use]
pub fn fast_limit_in(bytes: &[u8; FIRST_BYTES]) -> Option<u64> {
    let limit = bytes.last_chunk().copied().map(u64::from_ne_bytes);
    limit.filter(|_| bytes.starts_with(&first_bytes()))
}

/// The share of a process. All zero where no process has the slot.
#[derive(Debug)]
#[repr(C)]
pub struct CapacitySlot {
    /// The process: its pid in the upper half, in the lower the inode of the pid namespace in which that has a meaning.
    /// 0 where the slot is free, [`CLOSING`] while its share is given back.
    pub process: AtomicU64,
    /// Zero.
    pub reserved: u64,
    /// Bytes that the process has placed in each tier.
    pub placed: [AtomicU64; LIMITED_TIERS],
}

/// The first bytes of a new file; the others are zero.
#[must_use]
pub const fn first_bytes() -> [u8; 12] {
    crate::start_of_file(MAGIC)
}

const _: () = assert!(size_of::<CapacityHeader>() <= SLOTS_OFFSET);
const _: () = assert!(size_of::<CapacitySlot>() == 64);
