//! Keeps each limited tier on real nodes within its capacity: counts the memory that was placed in it, in a ledger that all processes of
//! the run share, and lets the rest go to the next tier.
//!
//! The kernel keeps no such count: a node is full when it is full, and `--fast` may be less. What is counted is placed
//! memory, in whole chunks, whether the program has touched it or not, because the policy of a chunk is set before.
//!
//! ```text
//! placement --take--> chunk charges (this process)   --> ledger (shared by the session)
//!           <-------- bytes taken; the rest goes to the next tier
//! ```
//!
//! - A chunk gives its room back when it leaves the pool. One whose contents the allocator discarded keeps its tier
//!   for its next data, unless room is short: then it becomes slow, if no page of it is resident. The same holds for chunks
//!   that the allocator took beyond its need, because it rounds sizes up by as much as a fifth.
//! - Of objects that are placed in parts ([`crate::split`]) single pages are counted, in chunks that are not. A page gives its
//!   room back when its object is freed, though the allocator keeps the memory for some seconds.
//! - A forked child begins with a share of nothing. The chunks that it inherits stay the parent's: as long as neither writes, the
//!   pages are the same. Copies that writes make are in the tier of the chunk and are not counted. The kernel wipes our
//!   charges in every child (`MADV_WIPEONFORK`), however it was made.
//! - The share of a process that was killed is given back by the next one that is short of room and can tell that it
//!   ended.
//!
//! Without a limit nothing is mapped, and [`is_limited`] is one load. The fast tier of an emulated machine with a name has a ledger
//! of the same form, but counts pages that hold data ([`crate::shared_room`]).

pub(crate) mod pages;

use core::ffi::CStr;
use core::ops::Range;
use core::sync::atomic::{AtomicU8, Ordering};
use std::sync::OnceLock;

use isotherm_abi::capacity::{FILE_BYTES, FILE_NAME, LIMITED_TIERS};
use isotherm_abi::config::{TierRecord, TierRecordKind};
use isotherm_abi::session::{OffReason, SessionCounter};
use isotherm_sys::memory;

use crate::ledger::Ledger;
use crate::ledger::own_slot::OwnShare;
use crate::pool::{self, CHUNK};
use crate::sandbox;
use crate::session;
use crate::shared_file;
use crate::tables;

/// In a charge: the room may be taken away while no page of the chunk is resident.
const SPARE: u8 = 0x80;

const PAGES: usize = CHUNK / memory::PAGE_BYTES;

/// The ledger of the session, with a charge for each chunk, tier + 1 or 0, and then the same for each page, if pages are counted.
static OWN: OnceLock<OwnShare> = OnceLock::new();

/// Gives this process's share back at its exit, because others see it as alive until its parent waits for it. Nothing is placed
/// in a limited tier from then on.
pub(crate) fn finish() {
    if let Some(own) = OWN.get() {
        own.leave();
    }
}

/// Maps the ledger of the session, if the capacity of a tier is limited. `chunks` is the number of chunks in the pool.
///
/// # Errors
/// [`OffReason::NoSession`] where the file cannot be used, [`OffReason::NoAddressSpace`].
pub(crate) fn start(
    tiers: &[TierRecord],
    directory: Option<&CStr>,
    chunks: usize,
    counts_pages: bool,
) -> Result<(), OffReason> {
    let Some(limits) = limits(tiers) else {
        return Ok(());
    };
    let base = shared_file::map(directory, FILE_NAME, FILE_BYTES)?.ok_or(OffReason::NoSession)?;
    // SAFETY: the file is as long as that, only this user writes it, and it is never unmapped.
    let ledger = unsafe { Ledger::at(base, limits) }.ok_or(OffReason::BadConfig)?;
    let pages = if counts_pages { chunks * PAGES } else { 0 };
    let own = OwnShare::map(ledger, chunks + pages).map_err(|_| OffReason::NoAddressSpace)?;
    // Called once.
    let _ = OWN.set(own);
    joined().map(|_| ()).ok_or(OffReason::NoSession)
}

/// The limit of each tier; `None` where there is none. The slowest tier has none: no other could take the rest.
fn limits(tiers: &[TierRecord]) -> Option<[u64; LIMITED_TIERS]> {
    let mut limits = [u64::MAX; LIMITED_TIERS];
    let (_, faster) = tiers.split_last()?;
    for (limit, tier) in limits.iter_mut().zip(faster) {
        if tier.kind == TierRecordKind::Nodes as u32 {
            *limit = tier.capacity_bytes;
        }
    }
    limits
        .iter()
        .any(|limit| *limit != u64::MAX)
        .then_some(limits)
}

/// Whether the capacity of this tier is limited.
fn limits_tier(tier: u32) -> bool {
    OWN.get().is_some_and(|own| own.ledger.is_limited(tier))
}

/// Whether the capacity of any tier is limited.
#[inline]
pub(crate) fn is_limited() -> bool {
    OWN.get().is_some()
}

/// The share of this process and its slot in the ledger. `None` without a limit, where all slots are taken, and while another thread
/// of a new child joins.
fn joined() -> Option<(&'static OwnShare, usize)> {
    let own = OWN.get()?;
    Some((own, own.slot()?))
}

/// The charge of a chunk.
fn charge(chunk: usize) -> Option<&'static AtomicU8> {
    let is_inside = chunk < pool::range().len() / CHUNK;
    OWN.get()?.charges.get(chunk).filter(|_| is_inside)
}

/// The chunks of a range of the pool, by number.
fn chunks(range: &Range<usize>) -> Range<usize> {
    let base = pool::range().start;
    (range.start - base) / CHUNK..(range.end - base).div_ceil(CHUNK)
}

/// Takes room in a tier for the first part of a range of whole chunks. Returns the bytes of that part. Where room is short,
/// `make_slow` is called with chunks that hold nothing, to give them the slowest tier.
pub(crate) fn take(range: &Range<usize>, tier: u32, make_slow: impl Fn(Range<usize>)) -> usize {
    if !limits_tier(tier) {
        return range.len();
    }
    let Some((own, slot)) = joined() else {
        return 0;
    };
    let taken = take_room((own, slot), tier, range.len(), CHUNK, make_slow);
    for chunk in chunks(&(range.start..range.start + taken)) {
        if let Some(charge) = charge(chunk) {
            charge.store(tier as u8 + 1, Ordering::Release);
        }
    }
    publish(own, slot);
    count_spilled(range.len() - taken);
    taken
}

/// Takes room in a tier for at most `bytes`, in whole units; where room is short, makes some first. Returns the bytes taken.
fn take_room(
    (own, slot): (&OwnShare, usize),
    tier: u32,
    bytes: usize,
    unit: usize,
    make_slow: impl Fn(Range<usize>),
) -> usize {
    let (bytes, unit) = (bytes as u64, unit as u64);
    let mut taken = own.ledger.take(slot, tier, bytes, unit);
    if taken < bytes {
        make_room(own, tier, make_slow);
        taken += own.ledger.take(slot, tier, bytes - taken, unit);
    }
    taken as usize
}

/// Counts bytes that go to another tier than wanted.
fn count_spilled(bytes: usize) {
    session::count(SessionCounter::Spilled, (bytes / memory::PAGE_BYTES) as u64);
}

/// Takes room in a tier for the first part of a range outside the pool, in pages. It stays taken. Returns the bytes of that part.
pub(crate) fn take_for_good(range: &Range<usize>, tier: u32) -> usize {
    if !limits_tier(tier) {
        return range.len();
    }
    let Some((own, slot)) = joined() else {
        return 0;
    };
    let (bytes, page) = (range.len() as u64, memory::PAGE_BYTES as u64);
    let taken = own.ledger.take(slot, tier, bytes, page);
    publish(own, slot);
    count_spilled(range.len() - taken as usize);
    taken as usize
}

/// Gives back the room of the chunks of a range.
pub(crate) fn give_back(range: &Range<usize>) {
    if !is_limited() {
        return;
    }
    for chunk in chunks(range) {
        uncharge(chunk);
    }
}

fn uncharge(chunk: usize) {
    let Some(charge) = charge(chunk) else { return };
    let tier = charge.swap(0, Ordering::AcqRel) & !SPARE;
    if let Some(tier) = tier.checked_sub(1)
        && let Some((own, slot)) = joined()
    {
        let tier = u32::from(tier);
        own.ledger.give_back(slot, tier, CHUNK as u64);
        publish(own, slot);
    }
}

/// The last part of a range that the allocator took may be beyond its need. jemalloc has four sizes to a doubling.
pub(crate) fn note_rounded_up(address: usize, bytes: usize) {
    note_spare(address + bytes - bytes / 5, bytes / 5);
}

/// A range of the pool holds nothing that its owner needs now.
pub(crate) fn note_spare(address: usize, bytes: usize) {
    if !is_limited() {
        return;
    }
    let first = address.next_multiple_of(CHUNK);
    let end = (address + bytes) / CHUNK * CHUNK;
    if first >= end {
        return;
    }
    for chunk in chunks(&(first..end)) {
        if let Some(charge) = charge(chunk)
            && charge.load(Ordering::Relaxed) != 0
        {
            charge.fetch_or(SPARE, Ordering::Relaxed);
        }
    }
}

/// Finds room in a tier: the shares of processes that ended, and chunks of this process that hold nothing.
fn make_room(own: &OwnShare, tier: u32, make_slow: impl Fn(Range<usize>)) {
    own.reap();
    if sandbox::is_filtered() {
        return;
    }
    let base = pool::range().start;
    let spare = (tier as u8 + 1) | SPARE;
    for chunk in 0..tables::chunks_ever_used() {
        let address = base + chunk * CHUNK;
        let is_spare = charge(chunk).is_some_and(|charge| charge.load(Ordering::Relaxed) == spare);
        if is_spare && is_empty(address) {
            // Data that another thread writes at this moment is not counted.
            make_slow(address..address + CHUNK);
            uncharge(chunk);
        }
    }
}

/// Whether no page of a chunk is resident.
fn is_empty(address: usize) -> bool {
    let mut resident = [1; PAGES];
    memory::residency(address, &mut resident);
    resident.iter().all(|page| page & 1 == 0)
}

/// Publishes the share of this process in the fast tier.
fn publish(own: &OwnShare, slot: usize) {
    if let Some(session) = session::current() {
        let share = own.ledger.share(slot, 0);
        session
            .counter(SessionCounter::FastBytes)
            .store(share, Ordering::Relaxed);
    }
}
