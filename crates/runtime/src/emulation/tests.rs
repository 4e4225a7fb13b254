//! Tests the emulator on the running kernel: contents, system calls, fork, counts. Each test has its own pool and
//! service thread. Where the kernel lacks userfaultfd or `UFFDIO_MOVE`, the tests report it and pass.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use isotherm_abi::config::{
    EmulationConfig, NODE_WORDS, PageTrapConfig, RuntimeMode, TierRecord, TierRecordKind,
};
use isotherm_abi::page_tiers::PageRequest;
use isotherm_abi::session::{
    ArenaRecord, MappingRecord, NO_TIER, OffReason, SessionCounter, SessionHeader, SessionLayout,
    TouchRecord,
};
use rustix::mm::{MprotectFlags, ProtFlags};

use super::table::PAGE_BYTES;
use super::{SessionTables, Settings, SlowTierEmulator, service};

mod safety;
mod tiers;

const CHUNK: usize = isotherm_abi::CHUNK_BYTES as usize;
const FAST: u32 = 0;
const SLOW: u32 = 1;

/// A fork makes the pages of every test's pool shared, and shared pages cannot be moved, so a test that forks
/// runs alone.
static FORKS: RwLock<()> = RwLock::new(());

pub(super) fn no_forks() -> RwLockReadGuard<'static, ()> {
    FORKS
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub(super) fn alone() -> RwLockWriteGuard<'static, ()> {
    FORKS
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A reservation as the runtime makes it, of which `open` bytes were handed out.
pub(super) fn pool(bytes: usize, open: usize) -> Range<usize> {
    let start = isotherm_sys::memory::fresh(bytes + CHUNK).expect("reserve");
    let start = start.next_multiple_of(CHUNK);
    protect(start..start + bytes, MprotectFlags::empty());
    protect(
        start..start + open,
        MprotectFlags::READ | MprotectFlags::WRITE,
    );
    start..start + bytes
}

pub(super) fn protect(range: Range<usize>, flags: MprotectFlags) {
    // SAFETY: the range is the test's own.
    unsafe { rustix::mm::mprotect(range.start as *mut _, range.len(), flags) }.expect("mprotect");
}

pub(super) fn emulation(period_us: u64, access_us: u64) -> EmulationConfig {
    EmulationConfig {
        period_ns: period_us * 1000,
        access_ns: access_us * 1000,
        hot_ns: 0,
        migrate_ns: 1000,
        ..EmulationConfig::default()
    }
}

pub(super) fn tiers(capacity_bytes: u64) -> [TierRecord; 2] {
    let tier = |kind: TierRecordKind, capacity_bytes| TierRecord {
        kind: kind as u32,
        policy: 1,
        capacity_bytes,
        nodes: [0; NODE_WORDS],
    };
    [
        tier(TierRecordKind::EmulatedFast, capacity_bytes),
        tier(TierRecordKind::EmulatedSlow, u64::MAX),
    ]
}

/// A session in plain memory.
pub(super) fn session_tables(chunks: usize) -> SessionTables {
    fn leak<T>(count: usize, make: impl Fn() -> T) -> &'static [T] {
        Box::leak((0..count).map(|_| make()).collect::<Box<[T]>>())
    }
    let header: &'static SessionHeader = Box::leak(Box::new(
        SessionLayout::for_pool(1 << 30).header(RuntimeMode::Online, 4),
    ));
    SessionTables {
        header,
        arenas: leak(4, || ArenaRecord {
            site: AtomicU32::new(0),
            tier: AtomicU32::new(FAST),
            wanted_tier: AtomicU32::new(NO_TIER),
            peak_resident_pages: 0.into(),
            mapped_bytes: AtomicU64::new(0),
        }),
        owners: leak(chunks, || AtomicU32::new(0)),
        mappings: leak(4, || MappingRecord {
            sequence: AtomicU32::new(0),
            site: AtomicU32::new(0),
            address: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            wanted_tier: AtomicU32::new(NO_TIER),
            tier: AtomicU32::new(FAST),
        }),
        touches: leak(1 << 12, || TouchRecord {
            address: AtomicU64::new(0),
            time_ns: AtomicU64::new(0),
        }),
        page_requests: leak(1 << 4, || PageRequest {
            start: AtomicU64::new(0),
            pages: AtomicU32::new(0),
            tier: AtomicU32::new(0),
        }),
    }
}

/// Settings of a test: by default one open chunk, a period of 1 ms, a delay of 1 us, room for everything.
pub(super) struct Setup {
    pub(super) open_chunks: usize,
    pub(super) emulation: EmulationConfig,
    pub(super) trapping: PageTrapConfig,
    pub(super) fast_bytes: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            open_chunks: 1,
            emulation: emulation(1000, 1),
            trapping: PageTrapConfig::default(),
            fast_bytes: u64::MAX,
        }
    }
}

impl Setup {
    /// Starts an emulator with its own pool and session, or reports why the test is skipped.
    pub(super) fn start(self) -> Option<Started> {
        let open = self.open_chunks * CHUNK;
        let pool = pool(4 * open, open);
        let tables = session_tables(pool.len() / CHUNK);
        let settings = Settings {
            emulation: self.emulation,
            trapping: self.trapping,
            tiers: Box::leak(Box::new(tiers(self.fast_bytes))),
            online: true,
        };
        match SlowTierEmulator::start(pool.clone(), &settings, Some(tables), service::run) {
            Ok(emulator) => emulator.map(|emulator| Started {
                emulator,
                tables,
                open: pool.start..pool.start + open,
            }),
            Err(reason @ (OffReason::NoUserfaultfd | OffReason::NoUffdMove)) => {
                isotherm_skip::skip!("{reason:?}");
                None
            }
            Err(reason) => panic!("the service did not start: {reason:?}"),
        }
    }

    /// As [`Self::start`], with every open chunk in a tier.
    pub(super) fn start_in(self, tier: u32) -> Option<Started> {
        let started = self.start()?;
        started.label(tier);
        Some(started)
    }
}

/// An emulator, its session, and the open range of its pool.
pub(super) struct Started {
    pub(super) emulator: &'static SlowTierEmulator,
    pub(super) tables: SessionTables,
    pub(super) open: Range<usize>,
}

impl Started {
    /// Labels the open range.
    pub(super) fn label(&self, tier: u32) {
        self.emulator.label(self.open.start, self.open.len(), tier);
    }

    /// The address of a page.
    pub(super) fn page(&self, number: usize) -> usize {
        self.open.start + number * PAGE_BYTES
    }

    /// Writes each page's value into its first word.
    pub(super) fn fill(&self, pages: Range<usize>, value: impl Fn(usize) -> u64) {
        for page in pages {
            write(self.page(page), value(page));
        }
    }

    /// Every page has its value.
    pub(super) fn assert_filled(&self, pages: Range<usize>, value: impl Fn(usize) -> u64) {
        for page in pages {
            assert_eq!(read(self.page(page)), value(page), "page {page}");
        }
    }

    pub(super) fn wait_until_away(&self, pages: usize) {
        wait_until("the pages are away", || in_shadow(self.emulator) == pages);
    }
}

pub(super) fn write(address: usize, value: u64) {
    // SAFETY: an aligned word of the test's own pool, which one thread at a time writes.
    unsafe { (address as *mut u64).write_volatile(value) }
}

pub(super) fn read(address: usize) -> u64 {
    // SAFETY: as for `write`.
    unsafe { (address as *const u64).read_volatile() }
}

/// Works until `done`, because periods pass only while the program works. A service that never gets there fails
/// the test after a long time.
pub(super) fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !done() {
        assert!(start.elapsed().as_secs() < 60, "waited 60 s until {what}");
        work(1);
    }
}

/// Keeps a processor busy for this many milliseconds.
pub(super) fn work(milliseconds: u128) {
    let start = std::time::Instant::now();
    while start.elapsed().as_millis() < milliseconds {
        core::hint::spin_loop();
    }
}

impl SlowTierEmulator {
    /// A counter's value, from the session.
    pub(super) fn counter(&self, counter: SessionCounter) -> u64 {
        // SAFETY: `account` changes only while no service thread runs, and is copied here.
        unsafe { (*self.handler.get()).account }.get(counter)
    }
}

pub(super) fn in_shadow(emulator: &SlowTierEmulator) -> usize {
    (0..emulator.table.pages() as u32)
        .filter(|&page| emulator.table.state(page).in_shadow())
        .count()
}
