//! Registers memory of the program under a name (a mapping, a static array, memory of another allocator), and unregisters it: for
//! `isotherm_register` and `isotherm_unregister` ([`crate::interface`]). A guided run whose plan names the memory places it, unless
//! userfaultfd takes pages of the pool away ([`crate::emulation`]).
//!
//! The memory is published as a mapping of the name's site, as variables are ([`crate::statics`]). Where it was a part of a mapping
//! or a variable with a site of its own, that site gets it back when the program unregisters it. The table has the lock of the
//! mappings.

use core::ops::Range;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use isotherm_abi::interface::InterfaceStatus;
use isotherm_abi::named_data::site_of_name;
use isotherm_abi::session::{CHUNK_FREE, CHUNK_MAPPING, NO_TIER};

use crate::config::{self, Config};
use crate::delay;
use crate::emulation;
use crate::fast_path::HOT;
use crate::mapping::{self, Mapping};
use crate::memory_kind::{self, MemoryKind};
use crate::placement;
use crate::pool::{self, CHUNK};
use crate::site::{self, NO_SITE};
use crate::split;
use crate::state;

/// Most objects that are registered at a time.
const SLOTS: usize = 4096;

/// One registered object.
struct Slot {
    address: AtomicUsize,
    /// 0 where the slot is free.
    bytes: AtomicUsize,
    site: AtomicU32,
    /// The site that had the memory before, or [`NO_SITE`].
    former: AtomicU32,
}

impl Slot {
    fn range(&self) -> Range<usize> {
        let address = self.address.load(Ordering::Relaxed);
        address..address + self.bytes.load(Ordering::Relaxed)
    }
}

static TABLE: [Slot; SLOTS] = [const {
    Slot {
        address: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        site: AtomicU32::new(0),
        former: AtomicU32::new(0),
    }
}; SLOTS];

/// Slots below this one were used.
static USED: AtomicUsize = AtomicUsize::new(0);

fn slots() -> &'static [Slot] {
    &TABLE[..USED.load(Ordering::Relaxed).min(SLOTS)]
}

/// Registers a range, not empty, under a name.
pub(crate) fn add(name: &[u8], range: &Range<usize>) -> Result<(), InterfaceStatus> {
    let config = config::current().ok_or(InterfaceStatus::Absent)?;
    match memory_kind::of(range) {
        MemoryKind::Own => {}
        MemoryKind::Fixed => return Err(InterfaceStatus::NotMovable),
        MemoryKind::Unmapped => return Err(InterfaceStatus::Invalid),
    }
    if !has_tiers(range) {
        return Err(InterfaceStatus::NotMovable);
    }
    if is_of_heap(range) {
        return Err(InterfaceStatus::Overlap);
    }
    // Before the lock of the mappings, because a new site looks up modules, which may wait for the loader.
    let site = site::of_name(name);
    if site == NO_SITE {
        return Err(InterfaceStatus::NoRoom);
    }
    insert(site, range)?;
    site::add_mapping(site, range.len() as u64);
    place(config, name, range);
    Ok(())
}

/// Enters the object into the table and among the mappings.
fn insert(site: u32, range: &Range<usize>) -> Result<(), InterfaceStatus> {
    let mappings = mapping::lock().ok_or(InterfaceStatus::Busy)?;
    let overlaps = |slot: &&Slot| {
        let other = slot.range();
        !other.is_empty() && other.start < range.end && range.start < other.end
    };
    if slots().iter().any(|slot| overlaps(&slot)) {
        return Err(InterfaceStatus::Overlap);
    }
    let free = slots().iter().position(|slot| slot.range().is_empty());
    let number = free.unwrap_or(slots().len());
    let slot = TABLE.get(number).ok_or(InterfaceStatus::NoRoom)?;
    let renamed = mappings.rename(Mapping {
        address: range.start,
        bytes: range.len(),
        site,
        tier: NO_TIER,
    });
    let former = renamed.ok_or(InterfaceStatus::NoRoom)?;
    USED.fetch_max(number + 1, Ordering::Relaxed);
    slot.address.store(range.start, Ordering::Relaxed);
    slot.site.store(site, Ordering::Relaxed);
    slot.former
        .store(former.unwrap_or(NO_SITE), Ordering::Relaxed);
    slot.bytes.store(range.len(), Ordering::Relaxed);
    Ok(())
}

/// Unregisters the object that begins at this address.
pub(crate) fn remove(address: usize) -> Result<(), InterfaceStatus> {
    let mappings = mapping::lock().ok_or(InterfaceStatus::Busy)?;
    let begins_here = |slot: &&Slot| {
        let range = slot.range();
        !range.is_empty() && range.start == address
    };
    let slot = slots().iter().find(begins_here);
    let slot = slot.ok_or(InterfaceStatus::Unknown)?;
    let former = slot.former.load(Ordering::Relaxed);
    let former = (former != NO_SITE).then_some(former);
    mappings.rename_back(&slot.range(), slot.site.load(Ordering::Relaxed), former);
    slot.bytes.store(0, Ordering::Relaxed);
    Ok(())
}

/// Registered objects, and their bytes.
pub(crate) fn living() -> (u64, u64) {
    let _guard = mapping::lock();
    let lengths = slots().iter().map(|slot| slot.range().len() as u64);
    let living = lengths.filter(|bytes| *bytes > 0);
    living.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes))
}

/// Whether the memory can be placed or moved: on an emulated machine the pool can, and by time static data too.
fn has_tiers(range: &Range<usize>) -> bool {
    let is_in_pool = pool::overlap(range.start, range.len()) == *range;
    let is_emulated = emulation::runs() || delay::runs();
    !is_emulated || is_in_pool || delay::has_pages(range)
}

/// Whether a part of the range is memory that `malloc` gives out, which has sites.
fn is_of_heap(range: &Range<usize>) -> bool {
    let inside = pool::overlap(range.start, range.len());
    (inside.start / CHUNK * CHUNK..inside.end)
        .step_by(CHUNK)
        .any(|chunk| !matches!(pool::owner(chunk), CHUNK_FREE | CHUNK_MAPPING))
}

/// Places an object where a plan names it.
fn place(config: &Config, name: &[u8], range: &Range<usize>) {
    let planned = config.entries.target_of(site_of_name(name));
    let Some(target) = planned.filter(|_| HOT.state.get() == state::GUIDED) else {
        return;
    };
    if emulation::runs() {
        return;
    }
    match split::of_target(config, target) {
        Some(split) => split::place_static(&split, range),
        None => placement::place_static(range.clone(), config.tier_of(target)),
    }
}
