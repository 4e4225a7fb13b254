//! Tests that pages are in the right tier, wait for the right delay, and are counted.

use super::*;

#[test]
fn discarded_pages_read_as_zeroes_and_count_no_more() {
    let _forks = no_forks();
    let Some(started) = Setup::default().start_in(SLOW) else {
        return;
    };
    let emulator = started.emulator;
    for round in 0..5_u64 {
        started.fill(0..64, |_| round + 1);
        started.wait_until_away(64);
        emulator.discard(started.page(8), 16 * PAGE_BYTES);
        assert_eq!(
            emulator.counter(SessionCounter::SlowBytes),
            (64 - 16) * PAGE_BYTES as u64
        );
        started.assert_filled(0..64, |page| match page {
            8..24 => 0,
            _ => round + 1,
        });
    }
    emulator.unlabel(started.open.start, CHUNK);
    assert_eq!(emulator.counter(SessionCounter::SlowBytes), 0);
    started.assert_filled(0..1, |_| 0);
}

#[test]
fn the_fast_tier_takes_exactly_its_capacity_and_the_rest_spills() {
    let _forks = no_forks();
    let capacity = 700;
    let setup = Setup {
        open_chunks: 4,
        emulation: emulation(1_000_000, 1),
        fast_bytes: capacity * PAGE_BYTES as u64,
        ..Setup::default()
    };
    let Some(started) = setup.start_in(FAST) else {
        return;
    };
    let emulator = started.emulator;
    started.fill(0..1000, |_| 1);
    emulator.hold();
    emulator.release();
    assert_eq!(
        emulator.counter(SessionCounter::FastBytes),
        capacity * PAGE_BYTES as u64
    );
    assert_eq!(
        emulator.counter(SessionCounter::SlowBytes),
        300 * PAGE_BYTES as u64
    );
    assert_eq!(emulator.counter(SessionCounter::Spilled), 300);
    emulator.discard(started.page(0), 100 * PAGE_BYTES);
    write(started.page(1500), 1);
    emulator.hold();
    emulator.release();
    assert_eq!(
        emulator.counter(SessionCounter::Spilled),
        300,
        "there is room again, and it is taken"
    );
}

#[test]
fn every_access_to_a_page_that_is_away_is_delayed_and_counted_once() {
    let _forks = no_forks();
    let costs = EmulationConfig {
        hot_ns: 400_000,
        ..emulation(50_000, 200)
    };
    let setup = Setup {
        emulation: costs,
        ..Setup::default()
    };
    let Some(started) = setup.start_in(SLOW) else {
        return;
    };
    let emulator = started.emulator;
    started.fill(0..32, |_| 1);
    started.wait_until_away(32);
    let before = emulator.counter(SessionCounter::DelayNanos);
    let start = std::time::Instant::now();
    for _ in 0..3 {
        for page in 0..32 {
            read(started.page(page));
        }
    }
    let took = start.elapsed().as_nanos() as u64;
    // The service counts a delay after it has let the access go.
    emulator.hold();
    emulator.release();
    let accesses = emulator.counter(SessionCounter::SlowAccesses);
    assert!(accesses >= 32, "{accesses}");
    let delay = emulator.counter(SessionCounter::DelayNanos) - before;
    assert!(delay >= accesses * 200_000, "{delay} ns for {accesses}");
    assert!(
        took >= delay,
        "the program waited {took} ns, {delay} counted"
    );
}

#[test]
fn sampling_catches_the_page_that_is_used_and_not_the_idle_ones() {
    let _forks = no_forks();
    let trapping = PageTrapConfig {
        pages: 16,
        period_ns: 2_000_000,
        seed: 1,
    };
    let setup = Setup {
        emulation: EmulationConfig::default(),
        trapping,
        ..Setup::default()
    };
    let Some(started) = setup.start_in(FAST) else {
        return;
    };
    let Started {
        emulator, tables, ..
    } = started;
    started.fill(0..64, |page| page as u64);
    let hot = started.page(17);
    let written = || tables.header.touches.written.load(Ordering::Acquire);
    // Until here any page may have been caught: some are made before they are first written.
    let from = written();
    wait_until("the hot page was caught 20 times", || {
        for _ in 0..1000 {
            read(hot);
        }
        written() >= from + 20
    });
    for record in &tables.touches[from as usize..written() as usize] {
        assert_eq!(record.address.load(Ordering::Relaxed) as usize, hot);
    }
    started.assert_filled(0..64, |page| page as u64);
    assert_eq!(emulator.counter(SessionCounter::SlowAccesses), 0);
}

#[test]
fn requests_move_an_arena_down_and_a_mapping_up_while_a_thread_uses_both() {
    let _forks = no_forks();
    const PAGES: usize = 200;
    let capacity = (PAGES + 50) * PAGE_BYTES;
    let setup = Setup {
        open_chunks: 2,
        emulation: emulation(5000, 1),
        fast_bytes: capacity as u64,
        ..Setup::default()
    };
    let Some(Started {
        emulator,
        tables,
        open,
    }) = setup.start()
    else {
        return;
    };
    let (arena, mapping) = (open.start, open.start + CHUNK);
    emulator.label(arena, CHUNK, FAST);
    emulator.label(mapping, CHUNK, SLOW);
    tables.owners[0].store(2, Ordering::Relaxed);
    tables.header.arena_count.store(2, Ordering::Release);
    let record = &tables.mappings[0];
    record.address.store(mapping as u64, Ordering::Relaxed);
    record.bytes.store(CHUNK as u64, Ordering::Relaxed);
    record.tier.store(SLOW, Ordering::Relaxed);
    tables.header.mapping_count.store(1, Ordering::Release);
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
    tables.arenas[1].wanted_tier.store(SLOW, Ordering::Release);
    record.wanted_tier.store(FAST, Ordering::Release);
    wait_until("both have moved", || {
        emulator.counter(SessionCounter::PagesPromoted) >= PAGES as u64 * 9 / 10
            && emulator.counter(SessionCounter::PagesDemoted) >= PAGES as u64
    });
    stop.store(true, Ordering::Relaxed);
    user.join().expect("every value was right");
    assert_eq!(tables.arenas[1].tier.load(Ordering::Relaxed), SLOW);
    assert_eq!(record.tier.load(Ordering::Relaxed), FAST);
    assert!(emulator.counter(SessionCounter::FastBytes) <= capacity as u64);
}

#[test]
fn requested_pages_move_in_order_and_keep_what_they_hold() {
    const PAGES: usize = 64;
    let _forks = no_forks();
    let setup = Setup {
        emulation: emulation(5000, 1),
        fast_bytes: (PAGES * PAGE_BYTES) as u64,
        ..Setup::default()
    };
    let Some(Started {
        emulator,
        tables,
        open,
    }) = setup.start()
    else {
        return;
    };
    emulator.label(open.start, CHUNK, FAST);
    for page in 0..2 * PAGES {
        write(open.start + page * PAGE_BYTES, page as u64);
    }
    emulator.hold();
    emulator.release();
    let all = (PAGES * PAGE_BYTES) as u64;
    assert_eq!(emulator.counter(SessionCounter::FastBytes), all);
    // The first pages make room for the last ones; between them is a request that makes no sense.
    let requests = [
        (open.start, PAGES / 2, SLOW),
        (open.start + 1, 1, FAST),
        (open.start + 3 * PAGES / 2 * PAGE_BYTES, PAGES / 2, FAST),
    ];
    for (record, (start, pages, tier)) in tables.page_requests.iter().zip(requests) {
        record.start.store(start as u64, Ordering::Relaxed);
        record.pages.store(pages as u32, Ordering::Relaxed);
        record.tier.store(tier, Ordering::Relaxed);
    }
    tables.header.pages.requested.store(3, Ordering::Release);
    wait_until("all have moved", || {
        emulator.counter(SessionCounter::PagesDemoted) >= PAGES as u64 / 2
            && emulator.counter(SessionCounter::PagesPromoted) >= PAGES as u64 / 2
    });
    assert_eq!(tables.header.pages.obeyed.load(Ordering::Relaxed), 3);
    for page in 0..2 * PAGES {
        assert_eq!(read(open.start + page * PAGE_BYTES), page as u64);
    }
    emulator.hold();
    emulator.release();
    assert_eq!(emulator.counter(SessionCounter::FastBytes), all);
}
