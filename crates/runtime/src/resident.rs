//! Measures the resident bytes of each site inside the program (`mincore`), before memory is given back to the kernel, before the program
//! filters its system calls and at exit, where the observer, the `isotherm` process outside, would come too late. Guided runs are not
//! measured.
//!
//! The observer measures at intervals, limited by its share of the time: it misses pages that a short program
//! touches after its last measurement, and pages that come and go between two. Before a small piece is
//! given back nothing is measured. Only the highest figure of each site is kept.
//!
//! ```text
//! a mapping goes            its own pages, always, and everything, if the last time is long enough ago
//! jemalloc purges           everything, if the last time is long enough ago
//! exit                      everything
//! ```
//!
//! A program that locks itself into a sandbox is not measured any more: filters may kill for a system call that
//! the program has no use for, and `mincore` is one.
//!
//! A page counts where `mincore` finds it at its place or, while the emulation has it away, in the shadow.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use isotherm_abi::session::{CHUNK_FREE, CHUNK_MAPPING, SessionCounter};
use isotherm_sys::memory::{self, PAGE_BYTES};

use crate::arena::ARENAS_MAX;
use crate::clock::now_ns;
use crate::fast_path::HOT;
use crate::pool::{self, CHUNK};
use crate::sandbox;
use crate::session;
use crate::state;
use crate::tables::{self, Tables, part};

/// A loss of fewer bytes than this is not measured: jemalloc purges small pieces often.
const LARGE_BYTES: usize = 1 << 20;

/// Measurement may take one part in this many of the time.
const SHARE: u64 = 50;

/// Mappings that are measured; each is compared with all others.
const MAPPINGS_MAX: u32 = 1 << 10;

/// Pages queried in one call, a byte each on the stack.
const PAGES: usize = 2048;

static BUSY: AtomicBool = AtomicBool::new(false);
/// Time in nanoseconds before which no deferrable measurement is made.
static NEXT_NS: AtomicU64 = AtomicU64::new(0);
/// Resident pages of each arena, during a count.
static PAGES_OF_ARENA: [AtomicU32; ARENAS_MAX as usize] =
    [const { AtomicU32::new(0) }; ARENAS_MAX as usize];

/// Measures for the last time, before the program filters its system calls.
pub(crate) fn before_sandbox() {
    measure();
    sandbox::begin();
}

/// The tables, if sites are distinguished, an observer reads the measurement, and the measurement is harmless.
fn wanted() -> Option<&'static Tables> {
    let wanted =
        HOT.state.get() == state::PROFILE && session::is_wanted() && !sandbox::is_filtered();
    tables::private().filter(|_| wanted)
}

/// Measures before contents of the pool are released, unless it was done lately.
pub(crate) fn before_loss(bytes: usize) {
    if bytes >= LARGE_BYTES && wanted().is_some() && now_ns() >= NEXT_NS.load(Ordering::Relaxed) {
        measure();
    }
}

/// Measures a mapping of a site before it is unmapped.
pub(crate) fn before_unmap(site: u32, range: &Range<usize>) {
    if let Some(private) = wanted().filter(|_| range.len() >= LARGE_BYTES) {
        note_site(private, site, resident_pages(private, range));
        before_loss(range.len());
    }
}

/// Measures everything at the end of the program. If no memory was left out the session says so: a site without a figure then
/// has no resident page.
pub(crate) fn measure_at_end() {
    if measure() {
        session::count(SessionCounter::MeasuredAtEnd, 1);
    }
}

/// Measures everything. A second thread at the same time returns at once. True if no memory was left out.
fn measure() -> bool {
    let Some(private) = wanted() else {
        return false;
    };
    if BUSY.swap(true, Ordering::Acquire) {
        return false;
    }
    let begin = now_ns();
    measure_arenas(private);
    let mappings = measure_mappings(private);
    let now = now_ns();
    NEXT_NS.store(now + now.saturating_sub(begin) * SHARE, Ordering::Relaxed);
    BUSY.store(false, Ordering::Release);
    mappings <= MAPPINGS_MAX
}

fn measure_arenas(private: &Tables) {
    let arenas = private.header().arena_count.load(Ordering::Acquire);
    let arenas = &PAGES_OF_ARENA[..(arenas as usize).min(PAGES_OF_ARENA.len())];
    for pages in arenas {
        pages.store(0, Ordering::Relaxed);
    }
    let base = pool::range().start;
    for index in 0..tables::chunks_ever_used() {
        let owner = private.chunk(index).load(Ordering::Relaxed);
        if matches!(owner, CHUNK_FREE | CHUNK_MAPPING) {
            continue;
        }
        if let Some(pages) = arenas.get(owner as usize - 1) {
            let start = base + index * CHUNK;
            pages.fetch_add(
                resident_pages(private, &(start..start + CHUNK)),
                Ordering::Relaxed,
            );
        }
    }
    let mut shared = 0_u32;
    for (number, pages) in (0..).zip(arenas) {
        let pages = pages.load(Ordering::Relaxed);
        match private.arena(number).site.load(Ordering::Relaxed) {
            0 => shared = shared.saturating_add(pages),
            site => note_site(private, site - 1, pages),
        }
    }
    note_shared(private, shared);
}

/// Measures the first [`MAPPINGS_MAX`] mappings; returns how many there are.
fn measure_mappings(private: &Tables) -> u32 {
    let count = private.header().mapping_count.load(Ordering::Acquire);
    let of = |slot: u32| {
        let record = private.mapping(slot);
        let bytes = record.bytes.load(Ordering::Relaxed) as usize;
        let start = record.address.load(Ordering::Relaxed) as usize;
        (bytes > 0).then(|| (record.site.load(Ordering::Relaxed), start..start + bytes))
    };
    let slots = || (0..count.min(MAPPINGS_MAX)).filter_map(|slot| Some((slot, of(slot)?)));
    for (slot, (site, _)) in slots() {
        let is_first = !slots().any(|(other, (of, _))| of == site && other < slot);
        if is_first {
            let own = slots().filter(|(_, (of, _))| *of == site);
            let pages = own.map(|(_, (_, range))| resident_pages(private, &range));
            note_site(private, site, pages.fold(0, u32::saturating_add));
        }
    }
    count
}

/// Keeps the highest figure of a site, here and in the session.
fn note_site(private: &Tables, site: u32, pages: u32) {
    let sites = private.header().site_count.load(Ordering::Acquire);
    if pages == 0 || site >= sites {
        return;
    }
    let peak = &private.site(site).peak_resident_pages;
    let peak = peak.fetch_max(pages, Ordering::Relaxed).max(pages);
    if let Some(session) = session::with_record(part::SITES, site) {
        let told = &session.site(site).peak_resident_pages;
        told.store(peak, Ordering::Relaxed);
    }
}

/// As [`note_site`], for the shared arena of the sites without an arena of their own; kept with the first
/// arena.
fn note_shared(private: &Tables, pages: u32) {
    let peak = &private.arena(0).peak_resident_pages;
    let peak = peak.fetch_max(pages, Ordering::Relaxed).max(pages);
    if let Some(session) = session::with_record(part::ARENAS, 0_u32) {
        let told = &session.arena(0).peak_resident_pages;
        told.store(peak, Ordering::Relaxed);
    }
}

/// Resident pages of a range.
fn resident_pages(private: &Tables, range: &Range<usize>) -> u32 {
    let shadow = session::current().unwrap_or(private).header();
    let shadow = shadow.shadow_offset.load(Ordering::Relaxed) as usize;
    let mut pages = 0;
    for start in range.clone().step_by(PAGES * PAGE_BYTES) {
        let count = (range.end - start).div_ceil(PAGE_BYTES).min(PAGES);
        let (mut here, mut there) = ([0; PAGES], [0; PAGES]);
        memory::residency(start, &mut here[..count]);
        if shadow != 0 {
            memory::residency(start.wrapping_add(shadow), &mut there[..count]);
        }
        let is_resident = |(here, there): (&u8, &u8)| (here | there) & 1;
        let found = here[..count].iter().zip(&there[..count]).map(is_resident);
        pages += found.map(u32::from).sum::<u32>();
    }
    pages
}
