//! Publishes the tiers of the pages of the pool and of static data ([`isotherm_abi::page_tiers`]) in the session file, a byte a page, for
//! the `isotherm` process that observes an emulated machine. [`Side`] is such a tier, fast or slow.
//!
//! Both emulations store a page's tier here whenever it changes. A store into a hole of the file would raise SIGBUS where
//! memory is full, so only pages for which the session has taken room are published, and a signal handler takes none.
//!
//! The addresses are in a page that the kernel wipes in every child, so that no child writes into its parent's file.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

use isotherm_abi::config::{TierRecord, TierRecordKind};
use isotherm_abi::page_tiers::{PAGE_FAST, PAGE_SLOW};
use isotherm_sys::memory;
use zerocopy::TryFromBytes;

/// A kind of memory of an emulated pair, by its byte in [`isotherm_abi::page_tiers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, TryFromBytes)]
#[repr(u8)]
pub(crate) enum Side {
    /// The fast tier.
    Fast = PAGE_FAST,
    /// The slow tier.
    Slow = PAGE_SLOW,
}

impl Side {
    pub(crate) const fn code(self) -> u8 {
        self as u8
    }

    /// The kind of a tier, by its index; memory of no tier is fast.
    pub(crate) fn of_tier(tiers: &[TierRecord], tier: u32) -> Self {
        let is_slow = |record: &TierRecord| record.kind == TierRecordKind::EmulatedSlow as u32;
        match tiers.get(tier as usize).is_some_and(is_slow) {
            true => Self::Slow,
            false => Self::Fast,
        }
    }

    /// The kind of a byte; `None` of a page without data.
    pub(crate) fn of(code: u8) -> Option<Self> {
        Self::try_read_from_bytes(&[code]).ok()
    }
}

/// Where the tiers are published. Zeroes stand for nowhere.
struct Place {
    /// The first page's tier; null where nothing is published.
    first: AtomicPtr<AtomicU8>,
    /// Pages that there is room for.
    ready: AtomicUsize,
    /// See [`isotherm_abi::page_tiers::PageTable::used`].
    used: AtomicPtr<AtomicU64>,
    /// Pages of the pool: static data has the numbers behind them.
    pool_pages: AtomicUsize,
    /// The first static page's tier.
    first_static: AtomicPtr<AtomicU8>,
    /// Pages of static data that there is room for.
    ready_static: AtomicUsize,
}

static PLACE: AtomicPtr<Place> = AtomicPtr::new(ptr::null_mut());

fn place() -> Option<&'static Place> {
    // SAFETY: null, or memory that is never unmapped; zeroes are a valid value.
    unsafe { PLACE.load(Ordering::Acquire).as_ref() }
}

/// Publishes in these tables from now on, in no page yet. Without memory for their addresses nothing is published.
pub(crate) fn open(tiers: &'static [AtomicU8], used: &'static AtomicU64) {
    if place().is_none() {
        let Ok(page) = memory::fresh(4096) else {
            return;
        };
        // SAFETY: the page was mapped just now. A kernel without the advice has no userfaultfd that could move pages either.
        let wiped = unsafe { memory::advise(page, 4096, libc::MADV_WIPEONFORK) };
        if wiped.is_err() {
            return;
        }
        PLACE.store(ptr::with_exposed_provenance_mut(page), Ordering::Release);
    }
    if let Some(place) = place() {
        place.ready.store(0, Ordering::Relaxed);
        place.ready_static.store(0, Ordering::Relaxed);
        place.pool_pages.store(tiers.len(), Ordering::Relaxed);
        place
            .used
            .store(ptr::from_ref(used).cast_mut(), Ordering::Relaxed);
        place
            .first
            .store(tiers.as_ptr().cast_mut(), Ordering::Release);
    }
}

/// Publishes the tiers of static data in this table too, which has room for all of them.
pub(crate) fn open_statics(tiers: &'static [AtomicU8]) {
    if let Some(place) = place() {
        let first = tiers.as_ptr().cast_mut();
        place.first_static.store(first, Ordering::Relaxed);
        place.ready_static.store(tiers.len(), Ordering::Release);
    }
}

/// Publishes no longer.
pub(crate) fn close() {
    if let Some(place) = place() {
        place.ready_static.store(0, Ordering::Release);
        place.ready.store(0, Ordering::Release);
        place.first.store(ptr::null_mut(), Ordering::Release);
    }
}

/// Whether anything is published.
pub(crate) fn is_open() -> bool {
    place().is_some_and(|place| !place.first.load(Ordering::Acquire).is_null())
}

/// Pages that there is room for.
pub(crate) fn ready() -> usize {
    place().map_or(0, |place| place.ready.load(Ordering::Acquire))
}

/// Notes that the file has room for the tiers of all pages of the pool below this one.
pub(crate) fn have_room_below(page: usize) {
    let Some(place) = place() else { return };
    place.ready.fetch_max(page, Ordering::Release);
    // SAFETY: null, or the address that `open` stored, in tables that stay mapped.
    if let Some(used) = unsafe { place.used.load(Ordering::Relaxed).as_ref() } {
        used.fetch_max(page as u64, Ordering::Release);
    }
}

/// Publishes the tier of a page of the pool, or of static data behind it: a byte of [`isotherm_abi::page_tiers`]. Signal handlers
/// may call it.
pub(crate) fn publish(page: usize, tier: u8) {
    let Some(place) = place() else { return };
    let first = place.first.load(Ordering::Acquire);
    if first.is_null() {
        return;
    }
    let of_static = page.checked_sub(place.pool_pages.load(Ordering::Relaxed));
    let ready = match of_static {
        None => &place.ready,
        Some(_) => &place.ready_static,
    };
    let page = of_static.unwrap_or(page);
    if page < ready.load(Ordering::Acquire) {
        let first = match of_static {
            None => first,
            Some(_) => place.first_static.load(Ordering::Relaxed),
        };
        // SAFETY: the table has a byte for each page that there is room for, and stays mapped.
        unsafe { (*first.add(page)).store(tier, Ordering::Relaxed) };
    }
}

#[cfg(test)]
mod tests {
    use super::{close, have_room_below, is_open, open, open_statics, publish, ready};
    use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

    /// The only test that opens a table: there is one in a process.
    #[test]
    fn only_pages_with_room_are_published_and_none_once_it_is_closed() {
        let tiers: &'static [AtomicU8] = Box::leak(Box::new([const { AtomicU8::new(0) }; 8]));
        let used: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
        open(tiers, used);
        publish(0, 1);
        have_room_below(4);
        publish(3, 2);
        publish(4, 2);
        let seen = || tiers.iter().map(|tier| tier.load(Ordering::Relaxed));
        assert!(seen().eq([0, 0, 0, 2, 0, 0, 0, 0]));
        assert_eq!(used.load(Ordering::Relaxed), 4);
        assert_eq!((is_open(), ready()), (true, 4));
        publish(8, 1);
        let statics: &'static [AtomicU8] = Box::leak(Box::new([const { AtomicU8::new(0) }; 2]));
        open_statics(statics);
        (8..12).for_each(|page| publish(page, 2));
        let of_statics = statics.iter().map(|tier| tier.load(Ordering::Relaxed));
        assert!(of_statics.eq([2, 2]), "behind the pool's pages");
        close();
        assert_eq!((is_open(), ready()), (false, 0));
        publish(1, 1);
        assert_eq!(seen().filter(|tier| *tier != 0).count(), 1);
    }
}
