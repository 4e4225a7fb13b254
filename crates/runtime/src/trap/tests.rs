//! The trap against the kernel: contents, system calls, fork, counts. Each test has a pool and a
//! service thread of its own. Where the kernel lacks userfaultfd or `UFFDIO_MOVE`, they say so and
//! pass.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::io::{Read, Seek, Write};
use std::ops::Range;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use isotherm_abi::config::{Emulation, Mode, NODE_WORDS, TierKind, TierRecord, Trapping};
use isotherm_abi::session::{
    ArenaRecord, Counter, Layout, MappingRecord, NO_TIER, OffReason, SessionHeader, TouchRecord,
};
use rustix::mm::{MprotectFlags, ProtFlags};

use super::table::PAGE_BYTES;
use super::{Board, Settings, Trap};

const CHUNK: usize = isotherm_abi::CHUNK_BYTES as usize;
const FAST: u32 = 0;
const SLOW: u32 = 1;

/// A fork makes the pages of every test's pool shared, and shared pages cannot be moved, so a test
/// that forks runs alone.
static FORKS: RwLock<()> = RwLock::new(());

fn no_forks() -> RwLockReadGuard<'static, ()> {
    FORKS
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn alone() -> RwLockWriteGuard<'static, ()> {
    FORKS
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A reservation as the runtime makes it, of which `open` bytes were handed out.
fn pool(bytes: usize, open: usize) -> Range<usize> {
    let start = super::map_zeroes(bytes + CHUNK).expect("reserve");
    let start = start.next_multiple_of(CHUNK);
    protect(start..start + bytes, MprotectFlags::empty());
    protect(
        start..start + open,
        MprotectFlags::READ | MprotectFlags::WRITE,
    );
    start..start + bytes
}

fn protect(range: Range<usize>, flags: MprotectFlags) {
    // SAFETY: the range is the test's own.
    unsafe { rustix::mm::mprotect(range.start as *mut _, range.len(), flags) }.expect("mprotect");
}

fn emulation(period_us: u64, access_us: u64) -> Emulation {
    Emulation {
        period_ns: period_us * 1000,
        access_ns: access_us * 1000,
        hot_ns: 0,
        migrate_ns: 1000,
    }
}

fn tiers(capacity_bytes: u64) -> [TierRecord; 2] {
    let tier = |kind: TierKind, capacity_bytes| TierRecord {
        kind: kind as u32,
        policy: 1,
        capacity_bytes,
        nodes: [0; NODE_WORDS],
    };
    [
        tier(TierKind::EmulatedFast, capacity_bytes),
        tier(TierKind::EmulatedSlow, u64::MAX),
    ]
}

/// A session in plain memory.
fn board(chunks: usize) -> Board {
    fn leak<T>(count: usize, make: impl Fn() -> T) -> &'static [T] {
        Box::leak((0..count).map(|_| make()).collect::<Box<[T]>>())
    }
    let header: &'static SessionHeader =
        Box::leak(Box::new(Layout::for_pool(1 << 30).header(Mode::Online, 4)));
    Board {
        header,
        arenas: leak(4, || ArenaRecord {
            site: AtomicU32::new(0),
            tier: AtomicU32::new(FAST),
            wanted_tier: AtomicU32::new(NO_TIER),
            reserved: 0,
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
    }
}

/// Starts a trap with a session of its own, or says why the test is skipped.
fn start(
    pool: &Range<usize>,
    emulation: Emulation,
    trapping: Trapping,
    capacity_bytes: u64,
) -> Option<(&'static Trap, Board)> {
    let board = board(pool.len() / CHUNK);
    let settings = Settings {
        emulation,
        trapping,
        tiers: &tiers(capacity_bytes),
        online: true,
    };
    match Trap::start(pool.clone(), &settings, Some(board)) {
        Ok(trap) => trap.map(|trap| (trap, board)),
        Err(reason @ (OffReason::NoUserfaultfd | OffReason::NoUffdMove)) => {
            println!("skipped: {reason:?}");
            None
        }
        Err(reason) => panic!("the service did not start: {reason:?}"),
    }
}

fn write(address: usize, value: u64) {
    // SAFETY: an aligned word of the test's own pool, which one thread at a time writes.
    unsafe { (address as *mut u64).write_volatile(value) }
}

fn read(address: usize) -> u64 {
    // SAFETY: as for `write`.
    unsafe { (address as *const u64).read_volatile() }
}

/// Works until `done`, because periods pass only while the program works. A service that never
/// gets there fails the test after a long time.
fn wait_until(what: &str, done: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !done() {
        assert!(start.elapsed().as_secs() < 60, "waited 60 s until {what}");
        work(1);
    }
}

/// Keeps a processor busy for this many milliseconds.
fn work(milliseconds: u128) {
    let start = std::time::Instant::now();
    while start.elapsed().as_millis() < milliseconds {
        core::hint::spin_loop();
    }
}

impl Trap {
    /// A counter's value, from the session.
    fn counter(&self, counter: Counter) -> u64 {
        // SAFETY: `account` changes only while no service thread runs, and is copied here.
        unsafe { (*self.keeper.get()).account }.get(counter)
    }
}

fn in_shadow(trap: &Trap) -> usize {
    (0..trap.table.pages() as u32)
        .filter(|&page| trap.table.state(page).in_shadow())
        .count()
}

/// Each of four threads writes a sequence number to every word of its pages and finds the one it
/// wrote the round before, while pages are taken away a thousand times a second.
#[test]
fn no_write_is_lost_while_four_threads_work_in_the_slow_tier() {
    let _forks = no_forks();
    const PAGES: usize = 256;
    const WORDS: usize = PAGE_BYTES / 8;
    let pool = pool(16 * CHUNK, 4 * CHUNK);
    let Some((trap, _)) = start(&pool, emulation(1000, 2), Trapping::default(), u64::MAX) else {
        return;
    };
    trap.label(pool.start, 4 * CHUNK, SLOW);
    let checked: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4_usize)
            .map(|thread| {
                let base = pool.start + thread * CHUNK;
                scope.spawn(move || {
                    let mut checked = 0;
                    for round in 0..20_u64 {
                        for word in 0..PAGES * WORDS {
                            let address = base + word * 8;
                            let before = if round == 0 {
                                0
                            } else {
                                round << 32 | word as u64
                            };
                            assert_eq!(read(address), before, "thread {thread} word {word}");
                            write(address, (round + 1) << 32 | word as u64);
                            checked += 1;
                        }
                    }
                    checked
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("thread"))
            .sum()
    });
    assert!(checked >= 10_000_000, "{checked} words checked");
    assert!(trap.counter(Counter::SlowAccesses) > 0);
    assert!(trap.counter(Counter::DelayNanos) >= 2000 * trap.counter(Counter::SlowAccesses) / 2);
}

#[test]
fn system_calls_on_trapped_buffers_wait_and_never_fail() {
    let _forks = no_forks();
    let pool = pool(4 * CHUNK, CHUNK);
    let Some((trap, _)) = start(&pool, emulation(1000, 5), Trapping::default(), u64::MAX) else {
        return;
    };
    trap.label(pool.start, CHUNK, SLOW);
    // SAFETY: the chunk is readable and writable, and only this thread uses it.
    let buffer = unsafe { core::slice::from_raw_parts_mut(pool.start as *mut u8, CHUNK) };
    let mut file = tempfile();
    let (mut here, mut there) = std::os::unix::net::UnixStream::pair().expect("socket pair");
    for round in 0..20_u8 {
        buffer.fill(round);
        work(3);
        file.rewind().expect("rewind");
        file.write_all(buffer).expect("write from trapped pages");
        file.rewind().expect("rewind");
        work(3);
        file.read_exact(buffer).expect("read into trapped pages");
        assert!(buffer.iter().all(|&byte| byte == round));
        work(3);
        here.write_all(&[round ^ 0xff; 6 * PAGE_BYTES])
            .expect("send");
        there
            .read_exact(&mut buffer[100..100 + 6 * PAGE_BYTES])
            .expect("recv into trapped pages");
        assert_eq!(buffer[100 + 3 * PAGE_BYTES], round ^ 0xff);
    }
    assert!(trap.counter(Counter::SlowAccesses) > 0);
}

fn tempfile() -> std::fs::File {
    let path = std::env::temp_dir().join(format!("isotherm-trap-{}", std::process::id()));
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .expect("temporary file");
    std::fs::remove_file(&path).expect("unlink");
    file
}

/// Forks while a thread writes, and checks every page in the child, which then works on under a
/// service of its own. `prepare` runs before the fork and `finish` after it in the parent.
fn fork_and_check(prepare: impl Fn(&Trap), finish: impl Fn(&Trap)) {
    const PAGES: usize = 300;
    let pool = pool(4 * CHUNK, CHUNK);
    let Some((trap, _)) = start(&pool, emulation(1000, 1), Trapping::default(), u64::MAX) else {
        return;
    };
    trap.label(pool.start, CHUNK, SLOW);
    let at = |page: usize| pool.start + page * PAGE_BYTES;
    for page in 0..PAGES {
        write(at(page), page as u64 + 1);
    }
    for round in 0..10_u64 {
        wait_until("pages are away", || in_shadow(trap) > 0 || round > 0);
        prepare(trap);
        // SAFETY: the child only reads and writes memory, makes a bare thread, and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            trap.start_over(None);
            let mut wrong = 0;
            for turn in 0..3 {
                for page in 0..PAGES {
                    let value = page as u64 + 1 + turn;
                    wrong += i32::from(read(at(page)) != value);
                    write(at(page), value + 1);
                }
                work(4);
            }
            // SAFETY: leaving without running the parent's exit handlers.
            unsafe { libc::_exit(i32::from(wrong != 0)) };
        }
        finish(trap);
        for page in 0..PAGES {
            assert_eq!(read(at(page)), page as u64 + 1, "the parent's page {page}");
        }
        let mut status = 0;
        // SAFETY: waits for the child made above.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child found a wrong value in round {round}");
    }
}

#[test]
fn parent_and_child_keep_their_contents_over_a_fork() {
    let _forks = alone();
    fork_and_check(Trap::hold, Trap::release);
}

#[test]
fn a_child_made_without_a_hold_still_finds_its_contents() {
    let _forks = alone();
    fork_and_check(|_| {}, |_| {});
}

#[test]
fn a_request_in_a_child_without_a_service_returns() {
    let _forks = alone();
    let pool = pool(4 * CHUNK, CHUNK);
    let Some((trap, _)) = start(&pool, emulation(1000, 1), Trapping::default(), u64::MAX) else {
        return;
    };
    trap.label(pool.start, CHUNK, SLOW);
    write(pool.start, 1);
    // SAFETY: the child asks and leaves.
    let child = unsafe { libc::fork() };
    if child == 0 {
        trap.discard(pool.start, CHUNK);
        trap.hold();
        // SAFETY: as in `fork_and_check`.
        unsafe { libc::_exit(i32::from(read(pool.start) != 0)) };
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
}

#[test]
fn discarded_pages_read_as_zeroes_and_count_no_more() {
    let _forks = no_forks();
    let pool = pool(4 * CHUNK, CHUNK);
    let Some((trap, _)) = start(&pool, emulation(1000, 1), Trapping::default(), u64::MAX) else {
        return;
    };
    trap.label(pool.start, CHUNK, SLOW);
    for round in 0..5_u64 {
        for page in 0..64 {
            write(pool.start + page * PAGE_BYTES, round + 1);
        }
        wait_until("the pages are away", || in_shadow(trap) == 64);
        trap.discard(pool.start + 8 * PAGE_BYTES, 16 * PAGE_BYTES);
        assert_eq!(
            trap.counter(Counter::SlowBytes),
            (64 - 16) * PAGE_BYTES as u64
        );
        for page in 0..64 {
            let expected = if (8..24).contains(&page) {
                0
            } else {
                round + 1
            };
            assert_eq!(
                read(pool.start + page * PAGE_BYTES),
                expected,
                "page {page}"
            );
        }
    }
    trap.unlabel(pool.start, CHUNK);
    assert_eq!(trap.counter(Counter::SlowBytes), 0);
    assert_eq!(read(pool.start), 0);
}

#[test]
fn the_fast_tier_takes_exactly_its_capacity_and_the_rest_spills() {
    let _forks = no_forks();
    let pool = pool(8 * CHUNK, 4 * CHUNK);
    let capacity = 700;
    let Some((trap, _)) = start(
        &pool,
        emulation(1_000_000, 1),
        Trapping::default(),
        capacity * PAGE_BYTES as u64,
    ) else {
        return;
    };
    trap.label(pool.start, 4 * CHUNK, FAST);
    for page in 0..1000 {
        write(pool.start + page * PAGE_BYTES, 1);
    }
    trap.hold();
    trap.release();
    assert_eq!(
        trap.counter(Counter::FastBytes),
        capacity * PAGE_BYTES as u64
    );
    assert_eq!(trap.counter(Counter::SlowBytes), 300 * PAGE_BYTES as u64);
    assert_eq!(trap.counter(Counter::Spilled), 300);
    trap.discard(pool.start, 100 * PAGE_BYTES);
    write(pool.start + 1500 * PAGE_BYTES, 1);
    trap.hold();
    trap.release();
    assert_eq!(
        trap.counter(Counter::Spilled),
        300,
        "there is room again, and it is taken"
    );
}

#[test]
fn every_access_to_a_page_that_is_away_is_delayed_and_counted_once() {
    let _forks = no_forks();
    let pool = pool(4 * CHUNK, CHUNK);
    let costs = Emulation {
        hot_ns: 400_000,
        ..emulation(50_000, 200)
    };
    let Some((trap, _)) = start(&pool, costs, Trapping::default(), u64::MAX) else {
        return;
    };
    trap.label(pool.start, CHUNK, SLOW);
    for page in 0..32 {
        write(pool.start + page * PAGE_BYTES, 1);
    }
    wait_until("the pages are away", || in_shadow(trap) == 32);
    let before = trap.counter(Counter::DelayNanos);
    let start = std::time::Instant::now();
    for _ in 0..3 {
        for page in 0..32 {
            read(pool.start + page * PAGE_BYTES);
        }
    }
    let took = start.elapsed().as_nanos() as u64;
    let accesses = trap.counter(Counter::SlowAccesses);
    assert!(accesses >= 32, "{accesses}");
    let delay = trap.counter(Counter::DelayNanos) - before;
    assert!(delay >= accesses * 200_000, "{delay} ns for {accesses}");
    assert!(
        took >= delay,
        "the program waited {took} ns, {delay} counted"
    );
}

#[test]
fn sampling_catches_the_page_that_is_used_and_not_the_idle_ones() {
    let _forks = no_forks();
    let pool = pool(4 * CHUNK, CHUNK);
    let trapping = Trapping {
        pages: 16,
        period_ns: 2_000_000,
        seed: 1,
    };
    let Some((trap, board)) = start(&pool, Emulation::default(), trapping, u64::MAX) else {
        return;
    };
    trap.label(pool.start, CHUNK, FAST);
    for page in 0..64 {
        write(pool.start + page * PAGE_BYTES, page as u64);
    }
    let hot = pool.start + 17 * PAGE_BYTES;
    let written = || board.header.touches.written.load(Ordering::Acquire);
    // Until here any page may have been caught: some are made before they are first written.
    let from = written();
    wait_until("the hot page was caught 20 times", || {
        for _ in 0..1000 {
            read(hot);
        }
        written() >= from + 20
    });
    for record in &board.touches[from as usize..written() as usize] {
        assert_eq!(record.address.load(Ordering::Relaxed) as usize, hot);
    }
    for page in 0..64 {
        assert_eq!(read(pool.start + page * PAGE_BYTES), page as u64);
    }
    assert_eq!(trap.counter(Counter::SlowAccesses), 0);
}

#[test]
fn wishes_move_an_arena_down_and_a_mapping_up_while_a_thread_uses_both() {
    let _forks = no_forks();
    const PAGES: usize = 200;
    let pool = pool(4 * CHUNK, 2 * CHUNK);
    let capacity = (PAGES + 50) * PAGE_BYTES;
    let Some((trap, board)) = start(
        &pool,
        emulation(5000, 1),
        Trapping::default(),
        capacity as u64,
    ) else {
        return;
    };
    let (arena, mapping) = (pool.start, pool.start + CHUNK);
    trap.label(arena, CHUNK, FAST);
    trap.label(mapping, CHUNK, SLOW);
    board.owners[0].store(2, Ordering::Relaxed);
    board.header.arena_count.store(2, Ordering::Release);
    let record = &board.mappings[0];
    record.address.store(mapping as u64, Ordering::Relaxed);
    record.bytes.store(CHUNK as u64, Ordering::Relaxed);
    record.tier.store(SLOW, Ordering::Relaxed);
    board.header.mapping_count.store(1, Ordering::Release);
    for page in 0..PAGES {
        write(arena + page * PAGE_BYTES, page as u64);
        write(mapping + page * PAGE_BYTES, page as u64);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let user = {
        let stop = Arc::clone(&stop);
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for page in 0..PAGES {
                    assert_eq!(read(arena + page * PAGE_BYTES), page as u64);
                    assert_eq!(read(mapping + page * PAGE_BYTES), page as u64);
                }
            }
        })
    };
    board.arenas[1].wanted_tier.store(SLOW, Ordering::Release);
    record.wanted_tier.store(FAST, Ordering::Release);
    wait_until("both have moved", || {
        trap.counter(Counter::PagesPromoted) >= PAGES as u64 * 9 / 10
            && trap.counter(Counter::PagesDemoted) >= PAGES as u64
    });
    stop.store(true, Ordering::Relaxed);
    user.join().expect("every value was right");
    assert_eq!(board.arenas[1].tier.load(Ordering::Relaxed), SLOW);
    assert_eq!(record.tier.load(Ordering::Relaxed), FAST);
    assert!(trap.counter(Counter::FastBytes) <= capacity as u64);
}

#[test]
fn settled_pages_stay_until_they_are_labelled_again() {
    let _forks = no_forks();
    let pool = pool(4 * CHUNK, CHUNK);
    let Some((trap, _)) = start(&pool, emulation(1000, 1), Trapping::default(), u64::MAX) else {
        return;
    };
    trap.label(pool.start, CHUNK, SLOW);
    for page in 0..64 {
        write(pool.start + page * PAGE_BYTES, 5);
    }
    wait_until("the pages are away", || in_shadow(trap) == 64);
    trap.settle(pool.start + 3 * PAGE_BYTES, PAGE_BYTES);
    assert_eq!(in_shadow(trap), 0);
    let chunk = pool.start..pool.start + CHUNK;
    protect(chunk.clone(), MprotectFlags::READ);
    for _ in 0..50 {
        work(1);
        assert_eq!(in_shadow(trap), 0);
    }
    assert_eq!(read(pool.start), 5);
    protect(chunk, MprotectFlags::READ | MprotectFlags::WRITE);
    trap.label(pool.start, CHUNK, SLOW);
    wait_until("the pages are away again", || in_shadow(trap) == 64);
}

/// The program made its memory read-only while pages were away, without a word to us.
#[test]
fn a_page_whose_home_was_protected_meanwhile_comes_back_by_copy() {
    let _forks = no_forks();
    let pool = pool(4 * CHUNK, CHUNK);
    let Some((trap, _)) = start(&pool, emulation(1000, 1), Trapping::default(), u64::MAX) else {
        return;
    };
    trap.label(pool.start, CHUNK, SLOW);
    for page in 0..64 {
        write(pool.start + page * PAGE_BYTES, page as u64);
    }
    wait_until("the pages are away", || in_shadow(trap) == 64);
    protect(pool.start..pool.start + CHUNK, MprotectFlags::READ);
    for page in 0..64 {
        assert_eq!(read(pool.start + page * PAGE_BYTES), page as u64);
    }
    // The reader is woken before the service has written down that the page is home.
    wait_until("all are home", || in_shadow(trap) == 0);
}

#[test]
fn a_chunk_whose_mapping_was_replaced_is_trapped_again_after_its_label() {
    let _forks = no_forks();
    let pool = pool(4 * CHUNK, CHUNK);
    let Some((trap, _)) = start(&pool, emulation(1000, 1), Trapping::default(), u64::MAX) else {
        return;
    };
    for round in 0..3 {
        trap.label(pool.start, CHUNK, SLOW);
        for page in 0..16 {
            assert_eq!(read(pool.start + page * PAGE_BYTES), 0, "round {round}");
            write(pool.start + page * PAGE_BYTES, 7);
        }
        wait_until("the pages are away", || in_shadow(trap) == 16);
        trap.unlabel(pool.start, CHUNK);
        assert_eq!(in_shadow(trap), 0);
        // SAFETY: the chunk is the test's own and holds nothing any more.
        unsafe {
            rustix::mm::mmap_anonymous(
                pool.start as *mut _,
                CHUNK,
                ProtFlags::READ | ProtFlags::WRITE,
                rustix::mm::MapFlags::PRIVATE
                    | rustix::mm::MapFlags::NORESERVE
                    | rustix::mm::MapFlags::FIXED,
            )
        }
        .expect("mmap over the chunk");
    }
}

/// The service's own thread must not be held up by whoever faults while it waits for the service.
#[test]
fn many_threads_ask_at_the_same_time_and_all_are_served() {
    let _forks = no_forks();
    let pool = pool(64 * CHUNK, 64 * CHUNK);
    let Some((trap, _)) = start(&pool, emulation(1000, 1), Trapping::default(), u64::MAX) else {
        return;
    };
    std::thread::scope(|scope| {
        for thread in 0..48 {
            let base = pool.start + thread * CHUNK;
            scope.spawn(move || {
                for round in 0..20 {
                    trap.label(base, CHUNK, SLOW);
                    for page in 0..8 {
                        assert_eq!(read(base + page * PAGE_BYTES), 0, "round {round}");
                        write(base + page * PAGE_BYTES, 1);
                    }
                    trap.unlabel(base, CHUNK);
                }
            });
        }
    });
    assert_eq!(trap.counter(Counter::SlowBytes), 0);
}
