//! Takes and gives back room in a limited tier for single pages of the pool: for objects that are placed in parts.

use core::ops::Range;
use core::sync::atomic::{AtomicU8, Ordering};

use isotherm_abi::capacity::LIMITED_TIERS;
use isotherm_sys::memory::PAGE_BYTES;

use super::{OWN, count_spilled, joined, limits_tier, publish, take_room};
use crate::pool::{self, CHUNK};

/// The charges of the pages of a range; empty where pages are not counted, and outside the pool.
fn charges(range: &Range<usize>) -> &'static [AtomicU8] {
    let pool = pool::range();
    let inside = pool.start <= range.start && range.start <= range.end && range.end <= pool.end;
    let Some(own) = OWN.get().filter(|_| inside) else {
        return &[];
    };
    // Behind those of the chunks.
    let first = pool.len() / CHUNK + (range.start - pool.start) / PAGE_BYTES;
    let pages = range.len() / PAGE_BYTES;
    own.charges.get(first..first + pages).unwrap_or_default()
}

/// Takes room in a tier for the first pages of a range of the pool that has none yet. Returns the bytes of these pages.
/// `make_slow` is called as in [`super::take`].
pub(crate) fn take(range: &Range<usize>, tier: u32, make_slow: impl Fn(Range<usize>)) -> usize {
    if !limits_tier(tier) {
        return range.len();
    }
    let charges = charges(range);
    let Some(joined) = joined().filter(|_| !charges.is_empty()) else {
        return 0;
    };
    let taken = take_room(joined, tier, range.len(), PAGE_BYTES, make_slow);
    for charge in &charges[..taken / PAGE_BYTES] {
        charge.store(tier as u8 + 1, Ordering::Release);
    }
    publish(joined.0, joined.1);
    count_spilled(range.len() - taken);
    taken
}

/// Gives back the room of the pages of a range.
pub(crate) fn give_back(range: &Range<usize>) {
    let mut pages = [0; LIMITED_TIERS];
    for charge in charges(range) {
        // Most pages have none, and their bytes stay untouched.
        if charge.load(Ordering::Relaxed) == 0 {
            continue;
        }
        let tier = charge.swap(0, Ordering::AcqRel).checked_sub(1);
        if let Some(count) = tier.and_then(|tier| pages.get_mut(usize::from(tier))) {
            *count += 1;
        }
    }
    if pages == [0; LIMITED_TIERS] {
        return;
    }
    let Some((own, slot)) = joined() else {
        return;
    };
    for (tier, count) in (0..).zip(pages) {
        own.ledger.give_back(slot, tier, count * PAGE_BYTES as u64);
    }
    publish(own, slot);
}
