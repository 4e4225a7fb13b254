//! Finds the owner (a site, or the shared arena) and the tier of each range of a process's memory that has one, from the chunk table, the
//! arenas and the mappings of its session file. Also reads the peak of the resident bytes of the shared arena.
//!
//! ```text
//! chunk table   0 0 5 5 5 0 M M 1 1 5     (0 free, M mapping, else arena + 1)
//! extents           |-4-|   |-|   |0| |4|  one for each run of an arena; mappings have records
//! ```

use std::sync::atomic::Ordering;

use isotherm_abi::session::{ArenaRecord, CHUNK_FREE, CHUNK_MAPPING, MappingRecord, NO_TIER};
use isotherm_abi::{CHUNK_BYTES, CHUNK_SHIFT};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::error::SessionError;
use crate::file::SessionFile;
use crate::header::Progress;
use crate::tables::pages;

/// The owner of some memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// The arena shared by small and rare sites.
    Shared,
    /// The site with this number in the site table.
    Site(u32),
}

/// A range of memory and its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owned {
    /// First address.
    pub address: u64,
    /// Bytes, not zero; `address + bytes` does not overflow.
    pub bytes: u64,
    /// The owner of the range.
    pub owner: Owner,
    /// The tier that the runtime places it on, if any.
    pub tier: Option<u32>,
    /// True for a mapping or a variable, which is a data object; false for a run of chunks of an arena.
    pub is_object: bool,
}

/// Most ranges of one process. More would mean that every second chunk of a pool has another owner.
const RANGES_AT_MOST: usize = 1 << 20;

/// Most times that mappings are read again because the runtime is rewriting them.
const ATTEMPTS: usize = 4;

impl SessionFile {
    /// All memory with an owner, by address.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_owned(&self, progress: &Progress) -> Result<Vec<Owned>, SessionError> {
        let mut arenas = Vec::with_capacity(progress.arenas as usize);
        self.read_records(self.header.arenas, 0, progress.arenas, |_, record| {
            arenas.push(arena(record))
        })?;
        let mut owned = Vec::new();
        let mut run = Run::default();
        let base = self.header.pool_base;
        let mut next = 0;
        // Nearly all of the table is a hole in the file: reading it would cost half a millisecond
        // for each process ten times a second.
        while let Some(data) = self.chunk_data(next) {
            if data.start > next {
                run.change(next, CHUNK_FREE, base, &arenas, &mut owned);
            }
            self.read_records(
                self.header.chunks,
                data.start,
                data.end,
                |number, owner: u32| run.change(number, owner, base, &arenas, &mut owned),
            )?;
            next = data.end;
        }
        run.change(next, CHUNK_FREE, base, &arenas, &mut owned);
        self.read_mappings(progress, &mut owned)?;
        owned.sort_unstable_by_key(|range| range.address);
        Ok(owned)
    }

    /// Most bytes of the sites without an own arena that the runtime measured as resident at one time;
    /// 0 where it did not measure.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn shared_peak_resident(&self, progress: &Progress) -> Result<u64, SessionError> {
        let mut peak = 0;
        let first = progress.arenas.min(1);
        self.read_records(self.header.arenas, 0, first, |_, record: ArenaRecord| {
            peak = pages(record.peak_resident_pages.into_inner());
        })?;
        Ok(peak)
    }

    /// The next chunks, from this one on, outside the holes of the file. Where the file system does
    /// not report holes, that is all of them.
    fn chunk_data(&self, from: u64) -> Option<std::ops::Range<u64>> {
        let table = self.header.chunks;
        if from >= table.slots {
            return None;
        }
        let position = table.offset + 4 * from;
        let data = match seek(&self.file, SeekFrom::Data(position)) {
            Ok(data) => data.max(position),
            // Only a hole up to the end.
            Err(Errno::NXIO) => return None,
            Err(_) => return Some(from..table.slots),
        };
        let hole = seek(&self.file, SeekFrom::Hole(data)).unwrap_or(u64::MAX);
        let start = (data - table.offset) / 4;
        let end = (hole.saturating_sub(table.offset).div_ceil(4)).min(table.slots);
        (start < end).then_some(start..end)
    }

    /// Adds the mappings. A record is being rewritten while its sequence is odd, or changes between
    /// two reads; it is then read again, a few times.
    fn read_mappings(
        &self,
        progress: &Progress,
        owned: &mut Vec<Owned>,
    ) -> Result<(), SessionError> {
        let read = || {
            let mut records = Vec::with_capacity(progress.mappings as usize);
            let table = self.header.mappings;
            self.read_records(table, 0, progress.mappings, |_, record: MappingRecord| {
                let sequence = record.sequence.load(Ordering::Relaxed);
                records.push((sequence, mapping(record)));
            })?;
            Ok::<_, SessionError>(records)
        };
        let mut before = read()?;
        for _ in 0..ATTEMPTS {
            let after = read()?;
            let stable = before
                .iter()
                .zip(&after)
                .all(|(old, new)| old == new && old.0.is_multiple_of(2));
            before = after;
            if stable {
                break;
            }
        }
        owned.extend(
            before
                .into_iter()
                .filter(|(sequence, _)| sequence.is_multiple_of(2))
                .filter_map(|(_, mapping)| mapping),
        );
        Ok(())
    }
}

/// Owner and tier of an arena's memory.
fn arena(record: ArenaRecord) -> (Owner, Option<u32>) {
    let owner = match record.site.into_inner() {
        0 => Owner::Shared,
        site => Owner::Site(site - 1),
    };
    (owner, tier(record.tier.into_inner()))
}

fn mapping(record: MappingRecord) -> Option<Owned> {
    let (address, bytes) = (record.address.into_inner(), record.bytes.into_inner());
    address.checked_add(bytes).filter(|_| bytes > 0)?;
    Some(Owned {
        address,
        bytes,
        owner: Owner::Site(record.site.into_inner()),
        tier: tier(record.tier.into_inner()),
        is_object: true,
    })
}

const fn tier(number: u32) -> Option<u32> {
    match number {
        NO_TIER => None,
        number => Some(number),
    }
}

/// A run of chunks with the same owner.
#[derive(Default)]
struct Run {
    owner: u32,
    from: u64,
}

impl Run {
    /// Chunk `number` has this owner: the run continues, or ends before it and another begins. An
    /// unknown arena counts as the shared one: the table and the count of arenas are not read at
    /// one instant.
    fn change(
        &mut self,
        number: u64,
        owner: u32,
        base: u64,
        arenas: &[(Owner, Option<u32>)],
        owned: &mut Vec<Owned>,
    ) {
        if owner != self.owner {
            self.close(number, base, arenas, owned);
            *self = Self {
                owner,
                from: number,
            };
        }
    }

    /// Ends the run before chunk `to`.
    fn close(&self, to: u64, base: u64, arenas: &[(Owner, Option<u32>)], owned: &mut Vec<Owned>) {
        let empty = matches!(self.owner, CHUNK_FREE | CHUNK_MAPPING) || self.from == to;
        if empty || owned.len() >= RANGES_AT_MOST {
            return;
        }
        let arena = arenas.get((self.owner - 1) as usize);
        let (owner, tier) = arena.copied().unwrap_or((Owner::Shared, None));
        owned.push(Owned {
            is_object: false,
            address: base + (self.from << CHUNK_SHIFT),
            bytes: (to - self.from) * CHUNK_BYTES,
            owner,
            tier,
        });
    }
}
