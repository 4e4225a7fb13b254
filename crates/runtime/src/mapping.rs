//! [`Mappings`] records the ranges of memory that have a site of their own, with their tiers, privately and in the session file: the large
//! mappings of the program in the pool, whose chunks it gives back when the program unmaps them, static data, registered memory.
//!
//! Each mapping begins at a chunk of its own, so a chunk is shared only by the pieces that a
//! partial `munmap` leaves of one mapping:
//!
//! ```text
//! chunk      |        0        |        1        |        2        |
//! mapping    |#################################......|              .: reserved, not the program's
//! after a partial munmap in the middle:
//! pieces     |#######..........|.................######|            two records; chunk 1 stays taken
//! ```

use core::ops::Range;
use core::sync::atomic::Ordering;

use isotherm_abi::session::{CHUNK_MAPPING, MappingRecord, NO_TIER, SessionCounter};
use isotherm_sys::memory;

use crate::lock::{Guard, Lock};
use crate::page_placement;
use crate::placement;
use crate::pool::{self, CHUNK};
use crate::session;
use crate::tables::{self, Tables, part};

pub(crate) static LOCK: Lock = Lock::new();

/// One mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// First address.
    pub(crate) address: usize,
    /// Bytes, whole pages.
    pub(crate) bytes: usize,
    /// Its site.
    pub(crate) site: u32,
    /// Its tier, or [`NO_TIER`].
    pub(crate) tier: u32,
}

impl Mapping {
    fn end(&self) -> usize {
        self.address + self.bytes
    }
}

/// The records, locked.
pub(crate) struct Mappings {
    tables: &'static Tables,
    _guard: Guard<'static>,
}

/// Locks the records; `None` if this thread has them locked already.
pub(crate) fn lock() -> Option<Mappings> {
    let tables = tables::private()?;
    Some(Mappings {
        tables,
        _guard: LOCK.lock()?,
    })
}

/// Whether any chunk of the range holds a mapping of the program.
pub(crate) fn any_in(range: &Range<usize>) -> bool {
    let first = range.start / CHUNK * CHUNK;
    (first..range.end)
        .step_by(CHUNK)
        .any(|address| pool::owner(address) == CHUNK_MAPPING)
}

impl Mappings {
    /// Record `slot` as a value.
    fn get(&self, slot: u32) -> Mapping {
        let record = self.tables.mapping(slot);
        Mapping {
            address: record.address.load(Ordering::Relaxed) as usize,
            bytes: record.bytes.load(Ordering::Relaxed) as usize,
            site: record.site.load(Ordering::Relaxed),
            tier: record.tier.load(Ordering::Relaxed),
        }
    }

    /// Rewrites record `slot`, here and in the session.
    fn set(&self, slot: u32, mapping: Mapping) {
        let bytes = size_of::<MappingRecord>() as u64;
        let offset = self.tables.offset(part::MAPPINGS) + u64::from(slot) * bytes;
        let count = self.count().max(slot + 1);
        for tables in [Some(self.tables), session::writable(offset, bytes)]
            .into_iter()
            .flatten()
        {
            let record = tables.mapping(slot);
            record.sequence.fetch_add(1, Ordering::AcqRel);
            record.site.store(mapping.site, Ordering::Relaxed);
            record
                .address
                .store(mapping.address as u64, Ordering::Relaxed);
            record.bytes.store(mapping.bytes as u64, Ordering::Relaxed);
            record.tier.store(mapping.tier, Ordering::Relaxed);
            record.wanted_tier.store(NO_TIER, Ordering::Relaxed);
            record.sequence.fetch_add(1, Ordering::Release);
            tables
                .header()
                .mapping_count
                .store(count, Ordering::Release);
        }
    }

    fn count(&self) -> u32 {
        self.tables.header().mapping_count.load(Ordering::Relaxed)
    }

    /// Slots whose mapping has a byte in the range.
    fn touching(&self, range: Range<usize>) -> impl Iterator<Item = u32> + '_ {
        (0..self.count()).filter(move |&slot| {
            let mapping = self.get(slot);
            mapping.bytes > 0 && mapping.address < range.end && range.start < mapping.end()
        })
    }

    /// The mapping that holds an address, with its slot.
    pub(crate) fn at(&self, address: usize) -> Option<(u32, Mapping)> {
        self.touching(address..address + 1)
            .next()
            .map(|slot| (slot, self.get(slot)))
    }

    /// Adds a record. False if the table is full: the observer does not see the mapping then.
    pub(crate) fn add(&self, mapping: Mapping) -> bool {
        let unused = (0..self.count()).find(|&slot| self.get(slot).bytes == 0);
        let slot = unused.unwrap_or_else(|| self.count());
        if slot >= self.tables.layout().mapping_slots {
            session::count(SessionCounter::MappingsLost, 1);
            return false;
        }
        self.set(slot, mapping);
        true
    }

    /// Gives a range to another site, and answers the former one if one mapping held the whole range. `None` if the table
    /// is full.
    pub(crate) fn rename(&self, mapping: Mapping) -> Option<Option<u32>> {
        let range = mapping.address..mapping.end();
        let holder = self.at(range.start).map(|(_, holder)| holder);
        let former = holder.filter(|holder| holder.end() >= range.end);
        self.cut(&range);
        let tier = former.map_or(mapping.tier, |former| former.tier);
        let added = self.add(Mapping { tier, ..mapping });
        added.then_some(former.map(|former| former.site))
    }

    /// Undoes [`Self::rename`] where the range is still the site's.
    pub(crate) fn rename_back(&self, range: &Range<usize>, site: u32, former: Option<u32>) {
        for slot in 0..self.count() {
            let held = self.get(slot);
            if held.site != site || held.address < range.start || held.end() > range.end {
                continue;
            }
            let bytes = if former.is_some() { held.bytes } else { 0 };
            let site = former.unwrap_or(site);
            self.set(
                slot,
                Mapping {
                    bytes,
                    site,
                    ..held
                },
            );
        }
    }

    /// Changes address and size of a mapping.
    pub(crate) fn change(&self, slot: u32, mapping: Mapping) {
        self.set(slot, mapping);
    }

    /// Removes a range from all records.
    fn cut(&self, range: &Range<usize>) {
        // A mapping that is cut in two adds a record, which needs no cut.
        for slot in 0..self.count() {
            let old = self.get(slot);
            if old.bytes == 0 || old.address >= range.end || range.start >= old.end() {
                continue;
            }
            let head = range.start.saturating_sub(old.address);
            let tail = old.end().saturating_sub(range.end);
            let rest = Mapping {
                address: old.end() - tail,
                bytes: tail,
                ..old
            };
            if head > 0 {
                self.set(slot, Mapping { bytes: head, ..old });
                if tail > 0 {
                    self.add(rest);
                }
            } else {
                self.set(slot, rest);
            }
        }
    }

    /// Gives a range of the pool back; `emptied` closes it while no other thread can get it.
    ///
    /// # Errors
    /// The error of `emptied`; the chunks then stay taken.
    pub(crate) fn release(
        &self,
        range: &Range<usize>,
        emptied: impl FnOnce() -> memory::Result<()>,
    ) -> memory::Result<()> {
        self.cut(range);
        placement::settle(range.start, range.len());
        page_placement::forget(range);
        let outer = range.start / CHUNK * CHUNK..range.end.next_multiple_of(CHUNK);
        self.for_each_unused(&outer, |chunks| {
            placement::forget(chunks.start, chunks.len())
        });
        emptied()?;
        self.for_each_unused(&outer, |chunks| pool::release(chunks.start, chunks.len()));
        Ok(())
    }

    /// Calls `visit` with each chunk of a range that is a mapping's and has no record.
    fn for_each_unused(&self, range: &Range<usize>, mut visit: impl FnMut(Range<usize>)) {
        for chunk in range.clone().step_by(CHUNK) {
            if pool::owner(chunk) == CHUNK_MAPPING
                && self.touching(chunk..chunk + CHUNK).next().is_none()
            {
                visit(chunk..chunk + CHUNK);
            }
        }
    }
}
