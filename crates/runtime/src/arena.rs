//! Numbers the arenas, heap regions with one placement each, stores the site and the tier of each, and places the existing chunks of an
//! arena again when its tier has changed.
//!
//! Arena numbers are ours, the same in the chunk table and in the session file. The first ones are whole jemalloc
//! instances. In profile and online mode number 0 is shared by all small and rare sites, the other instances are spares
//! for signal handlers ([`crate::reentrancy`]), and the arenas behind them belong to one site each. In guided mode number
//! k holds the data of tier k, and the arenas of the leading records follow.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use isotherm_abi::session::{NO_TIER, SessionCounter};

use crate::emulation;
use crate::lock::Lock;
use crate::placement;
use crate::pool;
use crate::session;
use crate::tables::{self, Tables, part};

/// jemalloc encodes an arena in 12 bits and keeps some for itself.
pub(crate) const ARENAS_MAX: u32 = 4_000;

pub(crate) static LOCK: Lock = Lock::new();
/// jemalloc's number of each of our arenas.
static JEMALLOC_NUMBERS: [AtomicU32; ARENAS_MAX as usize] =
    [const { AtomicU32::new(0) }; ARENAS_MAX as usize];
/// Tier on which each arena's chunks were placed last.
static PLACED: [AtomicU32; ARENAS_MAX as usize] =
    [const { AtomicU32::new(NO_TIER) }; ARENAS_MAX as usize];
static EXHAUSTED: AtomicBool = AtomicBool::new(false);

/// jemalloc's number of an arena that is not an instance.
#[inline]
pub(crate) fn jemalloc_number(number: u32) -> u32 {
    JEMALLOC_NUMBERS[number as usize % JEMALLOC_NUMBERS.len()].load(Ordering::Relaxed)
}

/// Number of arenas made.
pub(crate) fn count() -> u32 {
    tables::private().map_or(1, |private| {
        private.header().arena_count.load(Ordering::Relaxed)
    })
}

/// Tier that new memory of the arena gets; [`NO_TIER`] where no placement is requested.
///
/// The emulator's service obeys the observer's requests in the session's records, so those come first.
pub(crate) fn tier(number: u32) -> u32 {
    session::current()
        .or_else(tables::private)
        .map_or(NO_TIER, |tables| {
            tables.arena(number).tier.load(Ordering::Relaxed)
        })
}

/// Gives the existing chunks of an arena the tier of its next chunks, if the tier changed: pages that the
/// program first touches in them from now on belong there too. The observer, which changes the tier on real
/// nodes, moves only resident pages. This replaces a policy that the program set for a part itself, as the move
/// of its pages does.
pub(crate) fn follow_tier(number: u32) {
    let tier = tier(number);
    let placed = &PLACED[number as usize % PLACED.len()];
    if tier == NO_TIER || placed.load(Ordering::Relaxed) == tier || emulation::runs() {
        return;
    }
    if placed.swap(tier, Ordering::Relaxed) != tier {
        pool::for_each_run(number + 1, |chunks| {
            placement::place(chunks.start, chunks.len(), tier);
        });
    }
}

/// Copies the current tiers of the session's records, for a child's own session.
pub(crate) fn remember_tiers() {
    let (Some(private), Some(session)) = (tables::private(), session::current()) else {
        return;
    };
    for number in 0..private.header().arena_count.load(Ordering::Relaxed) {
        let tier = session.arena(number).tier.load(Ordering::Relaxed);
        private.arena(number).tier.store(tier, Ordering::Relaxed);
    }
}

/// Writes the record of the next arena and publishes it. The caller holds the lock or is alone.
fn register(private: &Tables, number: u32, site: u32, tier: u32) {
    PLACED[number as usize % PLACED.len()].store(tier, Ordering::Relaxed);
    for tables in session::both(private, part::ARENAS, number) {
        let record = tables.arena(number);
        record.site.store(site, Ordering::Relaxed);
        record.tier.store(tier, Ordering::Relaxed);
        record.wanted_tier.store(NO_TIER, Ordering::Relaxed);
        let count = &tables.header().arena_count;
        count.store(number + 1, Ordering::Release);
    }
}

/// Registers an arena that is a whole instance. Called at start only, in order.
pub(crate) fn register_instance(number: u32, tier: u32) {
    if let Some(private) = tables::private() {
        register(private, number, 0, tier);
    }
}

/// Adds an arena for a site (its index + 1, or 0 for none), of which `make` makes jemalloc's part and
/// answers its number. `None` if this thread is making one already, or none is left.
pub(crate) fn add(site: u32, tier: u32, make: impl FnOnce(u32) -> Option<u32>) -> Option<u32> {
    if EXHAUSTED.load(Ordering::Relaxed) {
        session::count(SessionCounter::ArenasLost, 1);
        return None;
    }
    let _guard = LOCK.lock()?;
    let private = tables::private()?;
    let number = private.header().arena_count.load(Ordering::Relaxed);
    let index = (number < ARENAS_MAX).then(|| make(number)).flatten();
    let Some(index) = index else {
        EXHAUSTED.store(true, Ordering::Relaxed);
        session::count(SessionCounter::ArenasLost, 1);
        return None;
    };
    JEMALLOC_NUMBERS[number as usize].store(index, Ordering::Release);
    register(private, number, site, tier);
    Some(number)
}
