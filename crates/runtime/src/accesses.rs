//! Counts, page by page in the session file, the sampled accesses of code that `isotherm-cc --profile` compiled
//! ([`isotherm_abi::accesses`]), and gives each thread its cache filter, if there is one: accesses that hit in it are not sampled.
//!
//! The inserted code (`llvm/sites/accesses.c`) passes the addresses from any context: signal handlers, constructors, threads that have
//! just started. So nothing here allocates, and the only lock is the one that makes the session file of a forked child.

use core::sync::atomic::{AtomicU64, Ordering};

use isotherm_abi::accesses::{LineFilter, PAGE_SHIFT, REGION_COUNT_BYTES, REGION_PAGES, TOO_EARLY};
use isotherm_abi::session::SessionCounter;

use crate::config;
use crate::errno;
use crate::fast_path::HOT;
use crate::line_filter;
use crate::session::{self, Session};
use crate::start;
use crate::state;
use crate::tables::part;

/// Slots that are searched for one region. At half the slots in use, a search that is longer than this is less
/// likely than one in a million.
const PROBES: u64 = 64;

/// Counts accesses and returns the mean number of accesses between two samples; 0 where this process counts
/// none, now or later, [`TOO_EARLY`] where that is not known yet. Skips addresses of 0. Keeps `errno`.
///
/// # Safety
/// `addresses` points to `count` addresses.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_note_accesses_2"))]
unsafe extern "C" fn note(addresses: *const usize, count: usize) -> u64 {
    let before = errno::errno();
    let addresses = match count {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { core::slice::from_raw_parts(addresses, count) },
    };
    let period = count_all(addresses);
    errno::set_errno(before);
    period
}

/// The calling thread's cache filter, which belongs to the thread while it lives; null where accesses are not
/// filtered.
#[cfg_attr(not(test), unsafe(export_name = "isotherm_line_filter_2"))]
extern "C" fn line_filter() -> *const LineFilter {
    let filter = config::current().and_then(|config| line_filter::of_thread(config.access_period));
    filter.map_or(core::ptr::null(), core::ptr::from_ref)
}

fn count_all(addresses: &[usize]) -> u64 {
    if HOT.state.get() == state::UNDECIDED && !start::decide() {
        return TOO_EARLY;
    }
    let period = config::current().map_or(0, |config| config.access_period);
    if period == 0 || !session::is_wanted() {
        return 0;
    }
    session::ensure();
    if let Some(session) = session::current() {
        let addresses = addresses.iter().map(|&address| address as u64);
        for address in addresses.filter(|address| *address != 0) {
            count_one(session, address);
        }
    }
    // Behind a filter a call counts one miss, and the thread itself skips the next ones.
    if !addresses.is_empty()
        && let Some(filter) = line_filter::of_thread(period)
    {
        line_filter::draw(filter, period);
    }
    period
}

fn count_one(session: &Session, address: u64) {
    let page = address >> PAGE_SHIFT;
    let room = |slot| {
        let offset = session.offset(part::ACCESS_COUNTS) + slot * REGION_COUNT_BYTES;
        session::writable(offset, REGION_COUNT_BYTES).is_some()
    };
    let slots = u64::from(session.layout().region_slots);
    let region = |slot| session.region(slot);
    match slot_of(page / REGION_PAGES, slots, region, room) {
        Some(slot) => {
            let index = slot * REGION_PAGES + page % REGION_PAGES;
            session.access_count(index).fetch_add(1, Ordering::Relaxed);
        }
        None => session::count(SessionCounter::AccessesLost, 1),
    }
}

/// The slot of a region; reserves one if the region has none; `None` if there is no room.
fn slot_of<'a>(
    number: u64,
    slots: u64,
    region: impl Fn(u64) -> &'a AtomicU64,
    room: impl Fn(u64) -> bool,
) -> Option<u64> {
    let name = number + 1;
    // Fibonacci hashing (Knuth, volume 3, section 6.4) spreads neighbours over the table.
    let first = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    for probe in 0..PROBES.min(slots) {
        let slot = (first + probe) & (slots - 1);
        let owner = region(slot).load(Ordering::Acquire);
        if owner == name {
            return Some(slot);
        }
        if owner != 0 {
            continue;
        }
        // The room comes first: a thread that finds the region stores at once.
        if !room(slot) {
            return None;
        }
        match region(slot).compare_exchange(0, name, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(slot),
            Err(other) if other == name => return Some(slot),
            Err(_) => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::slot_of;
    use core::sync::atomic::{AtomicU64, Ordering};

    const SLOTS: usize = 256;

    fn empty() -> Vec<AtomicU64> {
        (0..SLOTS).map(|_| AtomicU64::new(0)).collect()
    }

    fn find(table: &[AtomicU64], number: u64, room: bool) -> Option<u64> {
        slot_of(
            number,
            table.len() as u64,
            |slot| &table[slot as usize],
            |_| room,
        )
    }

    #[test]
    fn every_region_keeps_a_slot_of_its_own_until_the_table_is_full() {
        let table = empty();
        // From the lowest to beyond the highest address of a program.
        let regions: Vec<u64> = (0..128)
            .map(|i| i * 0x1234_5678 % (1 << 40))
            .chain([(1 << 40) - 1])
            .collect();
        let slots: Vec<u64> = regions
            .iter()
            .map(|&region| find(&table, region, true).expect("half full"))
            .collect();
        let again: Vec<_> = regions
            .iter()
            .filter_map(|&region| find(&table, region, false))
            .collect();
        assert_eq!(slots, again);
        let apart: std::collections::BTreeSet<_> = slots.iter().collect();
        assert_eq!(apart.len(), regions.len());
    }

    #[test]
    fn a_region_without_room_gets_no_slot_and_leaves_the_table_alone() {
        let table = empty();
        assert_eq!(find(&table, 7, false), None);
        assert!(table.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        let full: Vec<_> = (1..=SLOTS as u64)
            .map(|i| AtomicU64::new(i << 50))
            .collect();
        assert_eq!(find(&full, 7, true), None);
        assert_eq!(find(&[], 7, true), None);
    }

    #[test]
    fn threads_that_meet_at_one_region_agree_on_its_slot() {
        let table = empty();
        let answers: Vec<Vec<Option<u64>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .map(|_| scope.spawn(|| (0..100).map(|i| find(&table, i, true)).collect()))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().expect("no panic"))
                .collect()
        });
        assert!(answers.iter().all(|answer| answer == &answers[0]));
        assert!(answers[0].iter().all(Option::is_some));
    }
}
