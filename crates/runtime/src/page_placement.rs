//! Places single pages of the pool in a tier, or in the next one where it is full, for objects that are placed in parts ([`crate::split`]).
//! On real nodes a table says where each was placed last, so that a range that is in its tier already needs no system call, and borders
//! between tiers, each a mapping more for the kernel, stay few. Gives back the room of pages that hold nothing, and forgets unmapped pages.
//!
//! The chunks of such objects are placed in the slowest tier, which has no limit; pages of another tier are placed on top of that.
//!
//! Each change of the tier from one page to the next is a border between two mappings of the kernel, which gives a process 65,530
//! of them. Parts take a quarter of these at most; what comes later stays in the tier that its pages have.

use core::ops::Range;
use core::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::OnceLock;

use isotherm_abi::config::TierRecordKind;
use isotherm_abi::session::OffReason;
use isotherm_sys::memory::PAGE_BYTES;

use crate::capacity::pages;
use crate::config::{self, Config};
use crate::delay;
use crate::emulation::Sparse;
use crate::placement;
use crate::pool;

/// The tier of each page of the pool + 1; 0 for the tier of its chunk. Only where the tiers are nodes.
static PLACED: OnceLock<Sparse<AtomicU16>> = OnceLock::new();

/// Pages of the pool whose tier differs from that of the page before, as the table says.
static BORDERS: AtomicUsize = AtomicUsize::new(0);
/// Limit of [`BORDERS`].
const BORDERS_MAX: usize = 16_000;

/// Maps the table, if the tiers are nodes. Called once, at start.
///
/// # Errors
/// [`OffReason::NoAddressSpace`].
pub(crate) fn start(config: &Config, pool_bytes: usize) -> Result<(), OffReason> {
    let is_node = |kind| kind == TierRecordKind::Nodes as u32;
    if !config.tiers.iter().any(|tier| is_node(tier.kind)) {
        return Ok(());
    }
    let table = Sparse::map(pool_bytes / PAGE_BYTES).map_err(|_| OffReason::NoAddressSpace)?;
    // Called once.
    let _ = PLACED.set(table);
    Ok(())
}

/// Places whole pages of the pool that hold nothing of use, or what was moved there from pages of the same tier: in their tier as
/// far as that has room, the rest in the next one.
pub(crate) fn place(range: Range<usize>, tier: u32) {
    let Some(config) = config::current() else {
        return;
    };
    delay::place_pages(&range, tier);
    pages::give_back(&range);
    let mut rest = range;
    for tier in tier..=config.slowest() {
        let taken = pages::take(&rest, tier, placement::place_in_slowest);
        let now = rest.start..rest.start + taken;
        if !bind(config, &now, tier) {
            pages::give_back(&now);
        }
        rest.start += taken;
        if rest.is_empty() {
            return;
        }
    }
}

/// Gives back what pages that hold nothing any more took of a limited tier. The pages stay in their tier.
pub(crate) fn give_back(range: &Range<usize>) {
    pages::give_back(range);
}

/// Forgets the tiers of pages that are unmapped.
pub(crate) fn forget(range: &Range<usize>) {
    give_back(range);
    if placed(range)
        .iter()
        .any(|page| page.load(Ordering::Relaxed) != 0)
    {
        set(range, 0);
    }
}

/// Requests the nodes of a tier, unless all pages of the range were placed there before. Returns whether they are there.
fn bind(config: &Config, range: &Range<usize>, tier: u32) -> bool {
    let entries = placed(range);
    let word = match tier == config.slowest() {
        true => 0,
        // There are at most 256 tiers.
        false => tier as u16 + 1,
    };
    if entries
        .iter()
        .all(|page| page.load(Ordering::Relaxed) == word)
    {
        return true;
    }
    let (before, after) = borders(range, word);
    let all = BORDERS.load(Ordering::Relaxed) + after;
    if all.saturating_sub(before) > BORDERS_MAX || !placement::move_part_to(range, tier) {
        return false;
    }
    set(range, word);
    true
}

/// Stores the tier of the pages of a range.
fn set(range: &Range<usize>, word: u16) {
    let (before, after) = borders(range, word);
    for page in placed(range) {
        // Most pages have no place of their own, and their words stay untouched.
        if page.load(Ordering::Relaxed) != word {
            page.store(word, Ordering::Relaxed);
        }
    }
    let moved = |all: usize| Some((all + after).saturating_sub(before));
    // The function always answers a number.
    let _ = BORDERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, moved);
}

/// Borders within a range and at its ends: now, and once all of its pages have this word. Those that another thread changes beside
/// it meanwhile may be miscounted.
fn borders(range: &Range<usize>, word: u16) -> (usize, usize) {
    let around = range.start.saturating_sub(PAGE_BYTES)..range.end + PAGE_BYTES;
    let pages = placed(&around);
    let tiers = |at: usize| pages[at].load(Ordering::Relaxed);
    let differs = |at: &usize| tiers(at - 1) != tiers(*at);
    let before = (1..pages.len()).filter(differs).count();
    let ends = [0, pages.len().saturating_sub(1)];
    let is_border = |at: &usize| pages.get(*at).is_some_and(|_| tiers(*at) != word);
    (before, ends.iter().filter(|at| is_border(at)).count())
}

/// The entries of the pages of a range; empty where there is no table, and outside the pool.
fn placed(range: &Range<usize>) -> &'static [AtomicU16] {
    let Some(table) = PLACED.get() else {
        return &[];
    };
    let first = range.start.wrapping_sub(pool::range().start) / PAGE_BYTES;
    let end = first.saturating_add(range.len() / PAGE_BYTES);
    table.items().get(first..end).unwrap_or_default()
}
