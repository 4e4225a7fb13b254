//! Describes the tables of pages in the session file of an online run on the emulated pair: a byte for each page of the pool
//! ([`PageTable`]) and of static data ([`StaticPageTable`]), in which the runtime publishes the page's tier, and a ring of
//! [`PageRequest`]s, in which the observer (the Isotherm process outside the program) requests moves of pages.
//!
//! Other session files have no slots of either. The observer counts its requests in [`PageTable::requested`]; the runtime obeys them in
//! their order, so that demotions make room for the promotions behind them, and counts them in [`PageTable::obeyed`].
//!
//! ```text
//! pages.tiers_offset      | 1 | 1 | 2 | 0 | ...          a byte for each page of 4 KiB, from the pool's first on
//! statics.tiers_offset    | 2 | 0 | 0 | 1 | ...          likewise for each page of static data, range by range
//! pages.requests_offset   | start, pages, tier | ...     request n is in slot n % request_slots
//! ```

use core::sync::atomic::{AtomicU32, AtomicU64};

use zerocopy::{FromBytes, IntoBytes};

/// Bytes of a page that has a tier.
pub const PAGE_BYTES: u64 = 4096;

/// Pages of a chunk of the pool.
pub const CHUNK_PAGES: u64 = crate::CHUNK_BYTES / PAGE_BYTES;

/// Slots of the ring: with units of 4 KiB enough for 128 MiB of moves in an epoch, none of them neighbours. Further moves wait
/// for the next epoch.
pub const REQUEST_SLOTS: u64 = 1 << 15;

/// A page in a tier's table that holds no data, as far as is known.
pub const PAGE_EMPTY: u8 = 0;
/// A page in the fast tier.
pub const PAGE_FAST: u8 = 1;
/// A page in the slow tier.
pub const PAGE_SLOW: u8 = 2;

/// The tables of the pages.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct PageTable {
    /// Pages of the pool that have a byte; 0 where nothing is emulated.
    pub slots: u64,
    /// Start of the bytes.
    pub tiers_offset: u64,
    /// Pages below this one may have a tier; grows only (runtime).
    pub used: AtomicU64,
    /// Bytes of the emulated fast tier that these pages can have: of the whole tier less those of static data (runtime).
    pub fast_bytes: AtomicU64,
    /// Slots of the ring of requests, a power of two, or 0.
    pub request_slots: u64,
    /// Start of the ring.
    pub requests_offset: u64,
    /// Requests written so far (observer).
    pub requested: AtomicU64,
    /// Requests obeyed so far (runtime).
    pub obeyed: AtomicU64,
}

/// Most ranges of static data that have tiers: parts of writable segments of modules.
pub const STATIC_RANGES: usize = 128;

/// Most pages of static data that have a tier, of all ranges together: 64 GiB.
pub const STATIC_PAGES: u64 = 1 << 24;

/// The tiers of static data, on a machine that is emulated by time.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct StaticPageTable {
    /// Pages that have a byte; 0 where nothing is emulated.
    pub slots: u64,
    /// Start of the bytes.
    pub tiers_offset: u64,
    /// Ranges in use, stored last (runtime).
    pub count: AtomicU64,
    /// The ranges.
    pub ranges: [StaticRange; STATIC_RANGES],
}

/// A range of static data by whole pages.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct StaticRange {
    /// First address, a multiple of [`PAGE_BYTES`].
    pub start: AtomicU64,
    /// Number of pages.
    pub pages: AtomicU64,
    /// Number of the first page's byte in the table.
    pub first: AtomicU64,
}

/// A request: pages that are to be in a tier.
#[derive(Debug, FromBytes, IntoBytes)]
#[repr(C)]
pub struct PageRequest {
    /// First address, a multiple of [`PAGE_BYTES`].
    pub start: AtomicU64,
    /// Number of pages.
    pub pages: AtomicU32,
    /// An index into the configuration's tiers.
    pub tier: AtomicU32,
}

const _: () = assert!(size_of::<PageTable>() == 64);
const _: () = assert!(size_of::<PageRequest>() == 16);
const _: () = assert!(size_of::<StaticPageTable>() == 24 + STATIC_RANGES * 24);
