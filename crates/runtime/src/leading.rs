//! Places the chunks of an arena as it grows: in the arena's tier, or, where a guided run's plan has a leading record for its site
//! ([`LeadingRecord`]), the first bytes that the arena gets in one tier and all later ones in another.
//!
//! ```text
//! chunks of the arena, as it grows   | first tier | first tier | later tier | later tier | ...
//!                                    <---- bytes of the record ----->
//! ```
//!
//! The allocator keeps the chunks of an arena and serves from the lowest that has room, so the first ones stay in use. A chunk keeps
//! its tier, as any chunk of a guided run, so nothing is given back. A forked child goes on counting from where its parent was.
//! Chunks that the allocator wants at the boundary of a huge page hold its own structures, of which each of its arenas begins with
//! one: they do not count, and are in the later tier.

use core::sync::atomic::{AtomicU64, Ordering};

use isotherm_abi::config::{LEADING_MAX, LeadingRecord};

use crate::arena;
use crate::config;
use crate::placement;
use crate::plan::Target;
use crate::pool::CHUNK;

/// Bytes of its first tier that each record's arena was given.
static GIVEN: [AtomicU64; LEADING_MAX as usize] =
    [const { AtomicU64::new(0) }; LEADING_MAX as usize];

/// Places the chunks that were just opened for `bytes` of an arena, which wanted them at this alignment.
pub(crate) fn place(number: u32, address: usize, bytes: usize, alignment: usize) {
    let chunks = bytes.next_multiple_of(CHUNK);
    let is_data = alignment < CHUNK;
    let Some((index, record)) = record_of(number).filter(|_| is_data) else {
        placement::place(address, chunks, arena::tier(number));
        return;
    };
    let given = &GIVEN[index as usize % GIVEN.len()];
    let first = take(given, record.bytes, bytes);
    if first > 0 {
        placement::place(address, first, record.first_tier);
    }
    if first < chunks {
        placement::place(address + first, chunks - first, record.later_tier);
    }
}

/// The leading record of an arena, with its index.
fn record_of(number: u32) -> Option<(u32, LeadingRecord)> {
    let config = config::current()?;
    let Target::Leading(index) = config.target_of_arena(number) else {
        return None;
    };
    config.leading.get(index).map(|record| (index, record))
}

/// Takes whole chunks for `bytes`, as far as the rest of the limit has room for them. Returns the bytes of the chunks. The unused end of
/// the last chunk does not count against the limit.
fn take(given: &AtomicU64, limit: u64, bytes: usize) -> usize {
    let part = |given: u64| {
        let left = limit.saturating_sub(given) / CHUNK as u64 * CHUNK as u64;
        left.min(bytes.next_multiple_of(CHUNK) as u64)
    };
    let add = |given: u64| Some(given + part(given).min(bytes as u64));
    let before = given.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    before.map_or(0, part) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_chunks_are_taken_until_the_limit() {
        let given = AtomicU64::new(0);
        let limit = 5 * CHUNK as u64 + 4096;
        let taken = || take(&given, limit, 2 * CHUNK) / CHUNK;
        assert_eq!([taken(), taken(), taken(), taken()], [2, 2, 1, 0]);
        let given = AtomicU64::new(0);
        let taken = || take(&given, limit, CHUNK + CHUNK / 2) / CHUNK;
        assert_eq!([taken(), taken(), taken(), taken()], [2, 2, 2, 0]);
    }
}
