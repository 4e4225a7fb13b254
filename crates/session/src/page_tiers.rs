//! Reads the tiers of a process's pages on an emulated machine, and writes requests to move pages ([`isotherm_abi::page_tiers`]).

use std::os::unix::fs::FileExt;
use std::sync::atomic::AtomicU64;

use isotherm_abi::page_tiers::{PAGE_BYTES, PageRequest, STATIC_RANGES, StaticRange};
use isotherm_model::movement::AddressRange;
use isotherm_model::units::Bytes;
use zerocopy::IntoBytes;

use crate::error::SessionError;
use crate::file::{SessionFile, at};

/// The tiers of a process's pages at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageTiers {
    /// Address of the first page.
    pub start: u64,
    /// A byte of [`isotherm_abi::page_tiers`] for each page of 4 KiB; others stand for pages without data.
    pub tiers: Vec<u8>,
    /// Bytes that the fast tier has room for.
    pub fast_capacity: Bytes,
}

/// The tiers of the pages of a range of static data at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticTiers {
    /// Address of the first page; the last one ends within the address space.
    pub start: u64,
    /// A byte for each page, as in [`PageTiers::tiers`].
    pub tiers: Vec<u8>,
}

impl SessionFile {
    /// True where the process runs on an emulated machine whose pages can be moved.
    #[must_use]
    pub const fn has_page_tiers(&self) -> bool {
        self.header.pages.tiers.slots > 0 && self.header.pages.requests.slots > 0
    }

    /// The tiers of the process's pages now. Pages that changed meanwhile may have either tier.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn page_tiers(&self) -> Result<PageTiers, SessionError> {
        let table = self.header.pages.tiers;
        let used = self.read::<u64>(at!(pages.used))?.min(table.slots);
        let mut tiers = vec![0; usize::try_from(used).unwrap_or(usize::MAX)];
        self.file.read_exact_at(&mut tiers, table.offset)?;
        Ok(PageTiers {
            start: self.header.pool_base,
            tiers,
            fast_capacity: Bytes(self.read(at!(pages.fast_bytes))?),
        })
    }

    /// The tiers of the process's static data now, where it has tiers. Ranges that cannot be are left out.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn static_tiers(&self) -> Result<Vec<StaticTiers>, SessionError> {
        let table = self.header.pages.statics;
        let count: u64 = self.read(at!(statics.count))?;
        let ranges: [StaticRange; STATIC_RANGES] = self.read(at!(statics.ranges))?;
        let mut left = table.slots;
        let mut found = Vec::new();
        for (_, range) in (0..count).zip(ranges) {
            let StaticRange {
                start,
                pages,
                first,
            } = range;
            let [start, pages, first] = [start, pages, first].map(AtomicU64::into_inner);
            let end = pages.checked_mul(PAGE_BYTES);
            let end = end.and_then(|bytes| start.checked_add(bytes));
            let is_within = first
                .checked_add(pages)
                .is_some_and(|last| last <= table.slots);
            // Ranges do not overlap in the table, so that all of them together have no more pages than it has.
            let is_possible = (1..=left).contains(&pages) && start.is_multiple_of(PAGE_BYTES);
            if end.is_none() || !is_within || !is_possible {
                continue;
            }
            left -= pages;
            let mut tiers = vec![0; usize::try_from(pages).unwrap_or(usize::MAX)];
            self.file.read_exact_at(&mut tiers, table.offset + first)?;
            found.push(StaticTiers { start, tiers });
        }
        Ok(found)
    }

    /// Requests that a range of whole pages moves to a tier, an index into the configuration's tiers. The runtime obeys requests in their
    /// order. False where too many wait already.
    ///
    /// # Errors
    /// The file was cut short, or cannot be written.
    pub fn request_pages(&self, range: AddressRange, tier: u32) -> Result<bool, SessionError> {
        let table = self.header.pages.requests;
        let requested: u64 = self.read(at!(pages.requested))?;
        let waiting = requested.wrapping_sub(self.read(at!(pages.obeyed))?);
        if table.slots == 0 || waiting >= table.slots {
            return Ok(false);
        }
        let pages = range.bytes.0 / PAGE_BYTES;
        let mut record = PageRequest {
            start: range.start.into(),
            pages: u32::try_from(pages).unwrap_or(u32::MAX).into(),
            tier: tier.into(),
        };
        let slot = requested % table.slots * size_of::<PageRequest>() as u64;
        self.file
            .write_all_at(record.as_mut_bytes(), table.offset + slot)?;
        let requested = requested.wrapping_add(1);
        self.write(at!(pages.requested), &requested)?;
        Ok(true)
    }

    /// Requests to move pages that the runtime has not obeyed yet.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn page_requests_waiting(&self) -> Result<u64, SessionError> {
        let requested: u64 = self.read(at!(pages.requested))?;
        Ok(requested.wrapping_sub(self.read(at!(pages.obeyed))?))
    }
}
