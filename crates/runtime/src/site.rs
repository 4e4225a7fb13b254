//! Finds the site of an allocation by its name, a hash that stays the same across runs, or makes it: that of a calling context ([`of`]), of
//! the compiler pass ([`named`]), or of data that the program names ([`of_name`]). Also counts what each site allocates, gives it an arena
//! of its own once it has grown ([`add`]), and looks up its placement in the plan ([`target`]).

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use isotherm_abi::MAX_DEPTH;
use isotherm_abi::hash::{SiteHashKind, SiteHasher};
use isotherm_abi::named_data::{frames_of_name, site_of_name};
use isotherm_abi::session::{FrameRecord, NO_MODULE, SessionCounter, SiteRecord};
use isotherm_sys::memory;
use zerocopy::FromZeros;

use crate::config::Config;
use crate::extent;
use crate::lock::Lock;
use crate::module;
use crate::plan::Target;
use crate::python;
use crate::session;
use crate::tables::{self, Tables, part};
use crate::unwind::Context;

/// Slots of the first index from names to sites. Names are hashes, so that ten thousand of them would touch each page of
/// an index for a million sites, and a page fault for each page: it grows instead.
const FIRST_SLOTS: usize = 1 << 12;
/// Records of sites whose pages are taken at once.
const BATCH_BYTES: u64 = 64 << 10;

/// Marks "no record was free"; such a site stays in the shared arena.
pub(crate) const NO_SITE: u32 = (1 << 20) - 1;

pub(crate) static LOCK: Lock = Lock::new();
/// The index in use: the number of its slots, a power of two, and then the slots. Former ones stay mapped, for threads
/// that look at them: together they take as much as the last.
static INDEX: AtomicPtr<usize> = AtomicPtr::new(core::ptr::null_mut());

/// The slots of an index: site + 1 in the slot that its name leads to, or the next.
#[derive(Clone, Copy)]
struct Index(&'static [AtomicU32]);

impl Index {
    /// An index without sites.
    fn fresh(slots: usize) -> memory::Result<*mut usize> {
        let bytes = size_of::<usize>() + slots * size_of::<AtomicU32>();
        let base = core::ptr::with_exposed_provenance_mut::<usize>(memory::fresh(bytes)?);
        // SAFETY: the memory is fresh, and long enough.
        unsafe { base.write(slots) };
        Ok(base)
    }

    /// The slots of the index at `base`.
    ///
    /// # Safety
    /// [`Index::fresh`] made it.
    unsafe fn at(base: *mut usize) -> Self {
        // SAFETY: as many slots as the first word says follow it and stay mapped; they are atomics.
        Self(unsafe { core::slice::from_raw_parts(base.add(1).cast(), *base) })
    }

    fn current() -> Self {
        // SAFETY: `start` stored an index, before there was a site to look for; others replaced it.
        unsafe { Self::at(INDEX.load(Ordering::Acquire)) }
    }

    /// The site with this name, or the slot where it belongs. Half of the slots at least are free.
    fn find(self, private: &Tables, hash: u64) -> Result<u32, usize> {
        let mask = self.0.len() - 1;
        let mut slot = hash as usize & mask;
        loop {
            let site = self.0[slot].load(Ordering::Acquire);
            if site == 0 {
                return Err(slot);
            }
            if private.site(site - 1).hash.load(Ordering::Relaxed) == hash {
                return Ok(site - 1);
            }
            slot = (slot + 1) & mask;
        }
    }

    /// The index that has room for a further site: twice as large where half of the slots are used. Without memory
    /// for it the present one serves until it is nearly full, with longer searches. The caller holds the lock.
    fn with_room(private: &Tables, sites: u32) -> memory::Result<Self> {
        let now = Self::current();
        let (wanted, slots) = (sites as usize + 1, now.0.len());
        if wanted * 2 <= slots {
            return Ok(now);
        }
        let base = match Self::fresh(slots * 2) {
            Ok(base) => base,
            Err(_) if wanted * 8 <= slots * 7 => return Ok(now),
            Err(error) => return Err(error),
        };
        // SAFETY: it was just made.
        let larger = unsafe { Self::at(base) };
        for site in 0..sites {
            let hash = private.site(site).hash.load(Ordering::Relaxed);
            if let Err(slot) = larger.find(private, hash) {
                larger.0[slot].store(site + 1, Ordering::Relaxed);
            }
        }
        INDEX.store(base, Ordering::Release);
        Ok(larger)
    }
}

/// Makes the index. Called once, at start.
///
/// # Errors
/// The kernel has no address space for it.
pub(crate) fn start() -> memory::Result<()> {
    INDEX.store(Index::fresh(FIRST_SLOTS)?, Ordering::Release);
    Ok(())
}

/// The name of a calling context.
pub(crate) fn name(context: &Context, kind: SiteHashKind) -> u64 {
    let functions = context.python.as_slice().iter();
    let hasher = functions.fold(native(context, kind), |hasher, frame| {
        python::hashed(hasher, *frame)
    });
    hasher.finish()
}

/// The name of a calling context up to its Python functions.
fn native(context: &Context, kind: SiteHashKind) -> SiteHasher {
    let frames = context.frames().iter();
    frames.fold(
        SiteHasher::new(kind),
        |hasher, &address| match module::name(module::of(address)) {
            Some((build_id, bias)) => hasher.frame(build_id, (address as u64).wrapping_sub(bias)),
            None => hasher.frame(b"", address as u64),
        },
    )
}

/// The site of a calling context, made if it is new; [`NO_SITE`] if there is no room, or if this thread is
/// making one already.
pub(crate) fn of(context: &Context, kind: SiteHashKind) -> u32 {
    with_name(context, kind).1
}

/// The name of a calling context and its site, as [`of`] gives it.
pub(crate) fn with_name(context: &Context, kind: SiteHashKind) -> (u64, u32) {
    let mut functions = [FrameRecord::default(); MAX_DEPTH];
    let mut hasher = native(context, kind);
    for (record, frame) in functions.iter_mut().zip(context.python.as_slice()) {
        (hasher, *record) = python::noted(hasher, *frame);
    }
    let name = hasher.finish();
    let site = find_or_insert(name, || describe(context, &functions, kind));
    (name, site)
}

/// The site of this name; the context, which has no Python functions, gives its place.
pub(crate) fn named(hash: u64, context: &Context, kind: SiteHashKind) -> u32 {
    find_or_insert(hash, || describe(context, &[], kind))
}

/// The site of data that the program names itself.
pub(crate) fn of_name(name: &[u8]) -> u32 {
    find_or_insert(site_of_name(name), || SiteRecord {
        frames: frames_of_name(name),
        ..empty_record(SiteHashKind::Named)
    })
}

/// The site with this name; made with this record if it is new, as in [`of`].
fn find_or_insert(hash: u64, describe: impl FnOnce() -> SiteRecord) -> u32 {
    let Some(private) = tables::private() else {
        return NO_SITE;
    };
    if let Ok(site) = Index::current().find(private, hash) {
        return site;
    }
    // Modules are looked up before the lock is taken: the loader's lock is first in the lock order.
    let record = describe();
    session::ensure();
    let Some(_guard) = LOCK.lock() else {
        return NO_SITE;
    };
    // Another thread may have made it meanwhile.
    Index::current()
        .find(private, hash)
        .unwrap_or_else(|_| insert(private, hash, &record))
}

/// A record with the frames of the context, those of its Python functions as given, and no name yet.
fn describe(context: &Context, functions: &[FrameRecord], kind: SiteHashKind) -> SiteRecord {
    let mut record = empty_record(kind);
    record.depth = (context.depth + context.python.as_slice().len()) as u32;
    for (frame, &address) in record.frames.iter_mut().zip(context.frames()) {
        let module = module::of(address);
        let bias = module::name(module).map_or(0, |(_, bias)| bias);
        *frame = FrameRecord {
            module: if bias == 0 && module::name(module).is_none() {
                NO_MODULE
            } else {
                module
            },
            text: 0,
            offset: (address as u64).wrapping_sub(bias),
        };
    }
    let around = record.frames.iter_mut().skip(context.depth);
    for (frame, function) in around.zip(functions) {
        *frame = *function;
    }
    record
}

/// A record without a name, frames or numbers.
fn empty_record(kind: SiteHashKind) -> SiteRecord {
    SiteRecord {
        kind: kind as u32,
        ..SiteRecord::new_zeroed()
    }
}

/// Number of names whose allocations live, and the bytes of these allocations.
pub(crate) fn living_names() -> (u64, u64) {
    let Some(private) = tables::private() else {
        return (0, 0);
    };
    let sites = private.header().site_count.load(Ordering::Acquire);
    let bytes_of = |number| {
        let record = private.site(number);
        (record.kind == SiteHashKind::Named as u32).then(|| {
            let bytes = record.live_bytes.load(Ordering::Relaxed) as i64;
            bytes.max(0) as u64
        })
    };
    let living = (0..sites).filter_map(bytes_of).filter(|bytes| *bytes > 0);
    living.fold((0, 0), |(count, sum), bytes| (count + 1, sum + bytes))
}

/// Appends a site; the caller holds the lock.
fn insert(private: &Tables, hash: u64, record: &SiteRecord) -> u32 {
    let site = private.header().site_count.load(Ordering::Relaxed);
    let has_record = site < private.layout().site_slots.min(NO_SITE);
    let index = Index::with_room(private, site).ok();
    let Some(index) = index.filter(|_| has_record) else {
        session::count(SessionCounter::SitesLost, 1);
        return NO_SITE;
    };
    take_pages(private, site);
    for tables in session::both(private, part::SITES, site) {
        // SAFETY: the place is within the tables and is not published; the record holds only
        // integers, so a bitwise copy is a value.
        unsafe { tables.site_mut(site).copy_from_nonoverlapping(record, 1) };
        tables.site(site).hash.store(hash, Ordering::Release);
        let count = &tables.header().site_count;
        count.store(site + 1, Ordering::Release);
    }
    if let Err(slot) = index.find(private, hash) {
        index.0[slot].store(site + 1, Ordering::Release);
    }
    site
}

/// Takes the pages of a batch of records with the first of them. The session's are taken with their room.
fn take_pages(private: &Tables, site: u32) {
    let start = offset(private, site);
    let before = start.saturating_sub(SITE_BYTES);
    if site == 0 || start / BATCH_BYTES != before / BATCH_BYTES {
        let end = (start + 1)
            .next_multiple_of(BATCH_BYTES)
            .max(start + SITE_BYTES);
        let end = end.min(private.offset(part::ARENAS));
        let page = start & !(memory::PAGE_BYTES as u64 - 1);
        private.touch(page, end - page);
    }
}

/// Bytes of a record.
const SITE_BYTES: u64 = size_of::<SiteRecord>() as u64;

/// Offset of the record in the session file.
fn offset(private: &Tables, site: u32) -> u64 {
    private.offset(part::SITES) + u64::from(site) * SITE_BYTES
}

/// More bytes than any machine has memory: a request for them fails and is no information about its site.
const BELIEVABLE_BYTES: u64 = 1 << 46;

/// Adds allocations to a site, gives it an arena of its own once it has grown, and returns the
/// arena that serves it now.
pub(crate) fn add(config: &Config, site: u32, allocations: u64, bytes: u64) -> u32 {
    let Some(private) = tables::private() else {
        return 0;
    };
    if site == NO_SITE {
        return 0;
    }
    let bytes = if bytes <= BELIEVABLE_BYTES { bytes } else { 0 };
    let requested = count(private, site, allocations, bytes);
    let arena = private.site(site).arena.load(Ordering::Acquire);
    if arena != 0 || requested < config.own_arena_bytes {
        return arena;
    }
    give_arena(config, private, site)
}

/// Adds a mapping to its site.
pub(crate) fn add_mapping(site: u32, bytes: u64) {
    if site == NO_SITE {
        return;
    }
    if let Some(private) = tables::private() {
        count(private, site, 1, bytes);
    }
}

/// Counts allocations of a site, here and in the session, and returns the bytes that it has requested in all.
fn count(private: &Tables, site: u32, allocations: u64, bytes: u64) -> u64 {
    let record = private.site(site);
    let allocations = record.allocations.fetch_add(allocations, Ordering::Relaxed) + allocations;
    let requested = record
        .requested_bytes
        .fetch_add(bytes, Ordering::Relaxed)
        .wrapping_add(bytes);
    if let Some(session) = session::with_record(part::SITES, site) {
        let told = session.site(site);
        told.allocations.store(allocations, Ordering::Relaxed);
        told.requested_bytes.store(requested, Ordering::Relaxed);
    }
    requested
}

/// Gives the site its own arena, if one is left.
fn give_arena(config: &Config, private: &Tables, site: u32) -> u32 {
    let Some(_guard) = LOCK.lock() else { return 0 };
    let record = private.site(site);
    let arena = record.arena.load(Ordering::Acquire);
    if arena != 0 {
        return arena;
    }
    let target = config.target_or_default(record.hash.load(Ordering::Relaxed));
    let tier = config.tier_of(target);
    let Some(arena) = extent::create_arena(site + 1, tier) else {
        return 0;
    };
    record.arena.store(arena, Ordering::Release);
    if let Some(session) = session::with_record(part::SITES, site) {
        session.site(site).arena.store(arena, Ordering::Release);
    }
    arena
}

/// The site of an arena, if it has one.
pub(crate) fn of_arena(private: &Tables, arena: u32) -> Option<u32> {
    private
        .arena(arena)
        .site
        .load(Ordering::Relaxed)
        .checked_sub(1)
}

/// Adds to (or subtracts from) the live bytes of the site that owns an arena.
pub(crate) fn add_live(arena: u32, bytes: i64) {
    let Some(private) = tables::private() else {
        return;
    };
    let Some(site) = of_arena(private, arena) else {
        return;
    };
    let record = private.site(site);
    let before = record.live_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    // Frees that other threads counted first can make the sum negative for a moment.
    let live = (before.wrapping_add(bytes as u64) as i64).max(0) as u64;
    let peak = record
        .peak_bytes
        .fetch_max(live, Ordering::Relaxed)
        .max(live);
    if let Some(session) = session::with_record(part::SITES, site) {
        let told = session.site(site);
        told.live_bytes.store(live, Ordering::Relaxed);
        told.peak_bytes.store(peak, Ordering::Relaxed);
    }
}

/// The placement that the plan gave to a site.
pub(crate) fn target(config: &Config, site: u32) -> Target {
    let Some(private) = tables::private().filter(|_| site != NO_SITE) else {
        return Target::Tier(config.default_tier);
    };
    config.target_or_default(private.site(site).hash.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::{FIRST_SLOTS, Index, start};
    use crate::tables::{self, Tables};
    use core::sync::atomic::Ordering;
    use isotherm_abi::session::SessionLayout;
    use isotherm_sys::memory;

    #[test]
    fn each_site_is_found_however_often_the_index_grew() {
        let layout = SessionLayout::for_pool(1 << 30);
        let base = memory::fresh(tables::bytes(&layout) as usize).unwrap();
        // SAFETY: the memory is fresh, zeroed and as long as the layout says.
        let tables = unsafe { Tables::at(base, layout) };
        let sites = 4 * FIRST_SLOTS as u32;
        let name = |site: u32| u64::from(site + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        start().unwrap();
        for site in 0..sites {
            let index = Index::with_room(&tables, site).unwrap();
            let slot = index.find(&tables, name(site)).unwrap_err();
            tables.site(site).hash.store(name(site), Ordering::Relaxed);
            index.0[slot].store(site + 1, Ordering::Relaxed);
        }
        let index = Index::current();
        assert_eq!(index.0.len(), 8 * FIRST_SLOTS);
        for site in 0..sites {
            assert_eq!(index.find(&tables, name(site)), Ok(site));
        }
        assert!(index.find(&tables, name(sites)).is_err());
    }
}
