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

use isotherm_abi::session::{CHUNK_MAPPING, NO_TIER, SessionCounter};
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
    pub(crate) fn set(&self, slot: u32, mapping: Mapping) {
        let count = self.count().max(slot + 1);
        for tables in session::both(self.tables, part::MAPPINGS, slot) {
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

    /// Whether this number of records can be added. Counts a lost mapping where not.
    pub(crate) fn has_room(&self, records: u32) -> bool {
        let behind = self.tables.layout().mapping_slots - self.count();
        let is_unused = |slot: &u32| self.get(*slot).bytes == 0;
        let missing = records.saturating_sub(behind) as usize;
        let has_room = (0..self.count()).filter(is_unused).take(missing).count() == missing;
        if !has_room {
            session::count(SessionCounter::MappingsLost, 1);
        }
        has_room
    }

    /// Adds a record. False if the table is full. A mapping of the pool without a record loses its chunks while the program uses them, so
    /// its caller asks [`Self::has_room`] before.
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
        // One record for the range, one for what is behind it of the mapping that holds it.
        if !self.has_room(2) {
            return None;
        }
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

    /// Removes a range from all records. A mapping that would be cut in two keeps its whole record where the table is full: the chunks of the
    /// hole stay taken until the program unmaps all of it at once.
    fn cut(&self, range: &Range<usize>) {
        // A mapping that is cut in two adds a record, which needs no cut.
        for slot in self.touching(range.clone()) {
            let old = self.get(slot);
            let head = range.start.saturating_sub(old.address);
            let tail = old.end().saturating_sub(range.end);
            let rest = Mapping {
                address: old.end() - tail,
                bytes: tail,
                ..old
            };
            if head == 0 {
                self.set(slot, rest);
            } else if tail == 0 || self.add(rest) {
                self.set(slot, Mapping { bytes: head, ..old });
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

#[cfg(test)]
mod tests {
    use super::{LOCK, Mapping, Mappings, NO_TIER};
    use crate::tables::{self, Tables};
    use isotherm_abi::session::SessionLayout;
    use isotherm_sys::memory;

    fn mapping(address: usize, bytes: usize) -> Mapping {
        Mapping {
            address,
            bytes,
            site: 7,
            tier: NO_TIER,
        }
    }

    #[test]
    fn no_byte_of_a_mapping_loses_its_record_where_the_table_is_full() {
        let layout = SessionLayout {
            mapping_slots: 3,
            ..SessionLayout::for_pool(1 << 30)
        };
        let base = memory::fresh(tables::bytes(&layout) as usize).unwrap();
        // SAFETY: the memory is fresh, zeroed and as long as the layout says.
        let tables = Box::leak(Box::new(unsafe { Tables::at(base, layout) }));
        let mappings = Mappings {
            tables,
            _guard: LOCK.lock().unwrap(),
        };
        assert!(mappings.has_room(3) && !mappings.has_room(4));
        for address in [0x1000, 0x11000, 0x21000] {
            assert!(mappings.add(mapping(address, 0x9000)));
        }
        assert!(!mappings.has_room(1));
        assert!(!mappings.add(mapping(0x31000, 0x9000)));

        // The middle of a mapping: the tail stays recorded, and with it the whole.
        mappings.cut(&(0x3000..0x4000));
        let whole = Some((0, mapping(0x1000, 0x9000)));
        assert_eq!((mappings.at(0x1000), mappings.at(0x9000)), (whole, whole));
        // The head of a mapping needs no record of its own.
        mappings.cut(&(0x1000..0x4000));
        assert_eq!(mappings.at(0x9000), Some((0, mapping(0x4000, 0x6000))));
        // No site takes a part of a mapping whose rest would have no record.
        let part = Mapping {
            site: 8,
            ..mapping(0x11000, 0x1000)
        };
        assert_eq!(mappings.rename(part), None);
        assert_eq!(mappings.at(0x11000), Some((1, mapping(0x11000, 0x9000))));

        mappings.cut(&(0x21000..0x2a000));
        assert!(mappings.has_room(1));
        mappings.cut(&(0x5000..0x6000));
        assert_eq!(mappings.at(0x9000), Some((2, mapping(0x6000, 0x4000))));
    }
}
