//! Who owns which memory of a process: the chunk table, the arenas and the mappings.
//!
//! ```text
//! chunk table   0 0 5 5 5 0 M M 1 1 5     (0 free, M mapping, else arena + 1)
//! extents           |-4-|   |-|   |0| |4|  one for each run of an arena; mappings have records
//! ```

use std::mem::{offset_of, size_of};

use isotherm_abi::session::{
    ArenaRecord, CHUNK_FREE, CHUNK_MAPPING, MappingRecord, NO_TIER, SHARED_ARENA,
};
use isotherm_abi::{CHUNK_BYTES, CHUNK_SHIFT};

use super::tables::{long, word};
use super::{Progress, SessionError, SessionFile};

/// Who made some memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The arena that small and rare sites share.
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
    /// Who made it.
    pub owner: Owner,
    /// Tier that it is meant to be in, where the runtime places it.
    pub tier: Option<u32>,
}

/// Most ranges of one process. More would be a pool whose every second chunk is another's.
const RANGES_AT_MOST: usize = 1 << 20;

/// How often mappings that are being rewritten are looked at again.
const ATTEMPTS: usize = 4;

impl SessionFile {
    /// All memory with an owner, by address.
    ///
    /// # Errors
    /// The file was cut short.
    pub fn read_owned(&self, progress: &Progress) -> Result<Vec<Owned>, SessionError> {
        let mut arenas = Vec::with_capacity(progress.arenas as usize);
        self.read_records(
            self.header.arenas,
            size_of::<ArenaRecord>(),
            0,
            progress.arenas,
            |_, record| arenas.push(arena(record)),
        )?;
        let mut owned = Vec::new();
        let mut run = Run::default();
        let base = self.header.pool_base;
        let chunks = self.header.chunks;
        self.read_records(
            chunks,
            size_of::<u32>(),
            0,
            chunks.slots,
            |number, record| {
                let owner = word(record, 0);
                if owner != run.owner {
                    run.close(number, base, &arenas, &mut owned);
                    run = Run {
                        owner,
                        from: number,
                    };
                }
            },
        )?;
        run.close(chunks.slots, base, &arenas, &mut owned);
        self.read_mappings(progress, &mut owned)?;
        owned.sort_unstable_by_key(|range| range.address);
        Ok(owned)
    }

    /// Adds the mappings. A record whose sequence is odd, or changes between two reads, is being
    /// rewritten and is read again, a few times.
    fn read_mappings(
        &self,
        progress: &Progress,
        owned: &mut Vec<Owned>,
    ) -> Result<(), SessionError> {
        let read = || {
            let mut records = Vec::with_capacity(progress.mappings as usize);
            self.read_records(
                self.header.mappings,
                size_of::<MappingRecord>(),
                0,
                progress.mappings,
                |_, record| {
                    let sequence = word(record, offset_of!(MappingRecord, sequence));
                    records.push((sequence, mapping(record)));
                },
            )?;
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
fn arena(record: &[u8]) -> (Owner, Option<u32>) {
    let owner = match word(record, offset_of!(ArenaRecord, site)) {
        0 => Owner::Shared,
        site => Owner::Site(site - 1),
    };
    (owner, tier(word(record, offset_of!(ArenaRecord, tier))))
}

fn mapping(record: &[u8]) -> Option<Owned> {
    let address = long(record, offset_of!(MappingRecord, address));
    let bytes = long(record, offset_of!(MappingRecord, bytes));
    address.checked_add(bytes).filter(|_| bytes > 0)?;
    Some(Owned {
        address,
        bytes,
        owner: Owner::Site(word(record, offset_of!(MappingRecord, site))),
        tier: tier(word(record, offset_of!(MappingRecord, tier))),
    })
}

const fn tier(number: u32) -> Option<u32> {
    match number {
        NO_TIER => None,
        number => Some(number),
    }
}

/// Chunks in a row with the same owner.
#[derive(Default)]
struct Run {
    owner: u32,
    from: u64,
}

impl Run {
    /// Ends before chunk `to`. An owner that is no arena (the table and the count of arenas are
    /// not read at one instant) is taken for the shared one.
    fn close(&self, to: u64, base: u64, arenas: &[(Owner, Option<u32>)], owned: &mut Vec<Owned>) {
        let empty = matches!(self.owner, CHUNK_FREE | CHUNK_MAPPING) || self.from == to;
        if empty || owned.len() >= RANGES_AT_MOST {
            return;
        }
        let (owner, tier) = match self.owner - 1 {
            SHARED_ARENA => arenas.first().copied().unwrap_or((Owner::Shared, None)),
            arena => arenas
                .get(arena as usize)
                .copied()
                .unwrap_or((Owner::Shared, None)),
        };
        owned.push(Owned {
            address: base + (self.from << CHUNK_SHIFT),
            bytes: (to - self.from) * CHUNK_BYTES,
            owner,
            tier,
        });
    }
}
