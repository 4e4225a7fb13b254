//! Tests that no content is lost, torn or refused, whatever happens to a page that is away.

use super::*;

/// Each of four threads writes a sequence number to every word of its pages and finds the one it
/// wrote the round before, while pages are taken away a thousand times a second.
#[test]
fn no_write_is_lost_while_four_threads_work_in_the_slow_tier() {
    let _forks = no_forks();
    const PAGES: usize = 256;
    const WORDS: usize = PAGE_BYTES / 8;
    let setup = Setup {
        open_chunks: 4,
        emulation: emulation(1000, 2),
        ..Setup::default()
    };
    let Some(Started { emulator, open, .. }) = setup.start_in(SLOW) else {
        return;
    };
    let checked: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4_usize)
            .map(|thread| {
                let base = open.start + thread * CHUNK;
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
    assert!(emulator.counter(SessionCounter::SlowAccesses) > 0);
    assert!(
        emulator.counter(SessionCounter::DelayNanos)
            >= 2000 * emulator.counter(SessionCounter::SlowAccesses) / 2
    );
}

#[test]
fn system_calls_on_trapped_buffers_wait_and_never_fail() {
    let _forks = no_forks();
    let setup = Setup {
        emulation: emulation(1000, 5),
        ..Setup::default()
    };
    let Some(Started { emulator, open, .. }) = setup.start_in(SLOW) else {
        return;
    };
    // SAFETY: the chunk is readable and writable, and only this thread uses it.
    let buffer = unsafe { core::slice::from_raw_parts_mut(open.start as *mut u8, CHUNK) };
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
    assert!(emulator.counter(SessionCounter::SlowAccesses) > 0);
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

/// Forks while pages may be away, and checks every page in the child, which then continues under its own service.
/// `prepare` runs before the fork and `finish` after it in the parent.
fn fork_and_check(prepare: impl Fn(&SlowTierEmulator), finish: impl Fn(&SlowTierEmulator)) {
    const PAGES: usize = 300;
    let Some(started) = Setup::default().start_in(SLOW) else {
        return;
    };
    let emulator = started.emulator;
    started.fill(0..PAGES, |page| page as u64 + 1);
    for round in 0..10_u64 {
        wait_until("pages are away", || in_shadow(emulator) > 0 || round > 0);
        prepare(emulator);
        // SAFETY: the child only reads and writes memory, makes a bare thread, and leaves.
        let child = unsafe { libc::fork() };
        if child == 0 {
            emulator.start_over(None);
            let mut wrong = 0;
            for turn in 0..3 {
                for page in 0..PAGES {
                    let value = page as u64 + 1 + turn;
                    wrong += i32::from(read(started.page(page)) != value);
                    write(started.page(page), value + 1);
                }
                work(4);
            }
            // SAFETY: leaving without running the parent's exit handlers.
            unsafe { libc::_exit(i32::from(wrong != 0)) };
        }
        finish(emulator);
        started.assert_filled(0..PAGES, |page| page as u64 + 1);
        let status = status_of(child);
        assert_eq!(status, 0, "the child found a wrong value in round {round}");
    }
}

/// Waits for a child, and returns its exit status.
fn status_of(child: libc::pid_t) -> i32 {
    let mut status = 0;
    // SAFETY: waits for a child of this test.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    status
}

#[test]
fn parent_and_child_keep_their_contents_over_a_fork() {
    let _forks = alone();
    fork_and_check(SlowTierEmulator::hold, SlowTierEmulator::release);
}

#[test]
fn a_child_made_without_a_hold_still_finds_its_contents() {
    let _forks = alone();
    fork_and_check(|_| {}, |_| {});
}

#[test]
fn a_request_in_a_child_without_a_service_returns() {
    let _forks = alone();
    let Some(started) = Setup::default().start_in(SLOW) else {
        return;
    };
    let emulator = started.emulator;
    started.fill(0..1, |_| 1);
    // SAFETY: the child sends a request and exits.
    let child = unsafe { libc::fork() };
    if child == 0 {
        emulator.discard(started.open.start, CHUNK);
        emulator.hold();
        // SAFETY: as in `fork_and_check`.
        unsafe { libc::_exit(i32::from(read(started.page(0)) != 0)) };
    }
    assert_eq!(status_of(child), 0);
}

#[test]
fn settled_pages_stay_until_they_are_labelled_again() {
    let _forks = no_forks();
    let Some(started) = Setup::default().start_in(SLOW) else {
        return;
    };
    let emulator = started.emulator;
    started.fill(0..64, |_| 5);
    started.wait_until_away(64);
    emulator.settle(started.page(3), PAGE_BYTES);
    assert_eq!(in_shadow(emulator), 0);
    protect(started.open.clone(), MprotectFlags::READ);
    for _ in 0..50 {
        work(1);
        assert_eq!(in_shadow(emulator), 0);
    }
    started.assert_filled(0..1, |_| 5);
    protect(
        started.open.clone(),
        MprotectFlags::READ | MprotectFlags::WRITE,
    );
    started.label(SLOW);
    started.wait_until_away(64);
}

/// The program made its memory read-only while pages were away, without a call to our hooks.
#[test]
fn a_page_whose_home_was_protected_meanwhile_comes_back_by_copy() {
    let _forks = no_forks();
    let Some(started) = Setup::default().start_in(SLOW) else {
        return;
    };
    let emulator = started.emulator;
    started.fill(0..64, |page| page as u64);
    started.wait_until_away(64);
    protect(started.open.clone(), MprotectFlags::READ);
    started.assert_filled(0..64, |page| page as u64);
    // The reader is woken before the service has recorded that the page is home.
    wait_until("all are home", || in_shadow(emulator) == 0);
}

#[test]
fn a_chunk_whose_mapping_was_replaced_is_trapped_again_after_its_label() {
    let _forks = no_forks();
    let Some(started) = Setup::default().start() else {
        return;
    };
    let emulator = started.emulator;
    for round in 0..3 {
        started.label(SLOW);
        for page in (0..16).map(|number| started.page(number)) {
            assert_eq!(read(page), 0, "round {round}");
            write(page, 7);
        }
        started.wait_until_away(16);
        emulator.unlabel(started.open.start, CHUNK);
        assert_eq!(in_shadow(emulator), 0);
        // SAFETY: the chunk is the test's own and holds nothing any more.
        unsafe {
            rustix::mm::mmap_anonymous(
                started.open.start as *mut _,
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

/// The service thread must not wait for a thread that faults while that thread waits for the service.
#[test]
fn many_threads_ask_at_the_same_time_and_all_are_served() {
    let _forks = no_forks();
    let setup = Setup {
        open_chunks: 64,
        ..Setup::default()
    };
    let Some(Started { emulator, open, .. }) = setup.start() else {
        return;
    };
    std::thread::scope(|scope| {
        for thread in 0..48 {
            let base = open.start + thread * CHUNK;
            scope.spawn(move || {
                for round in 0..20 {
                    emulator.label(base, CHUNK, SLOW);
                    for page in 0..8 {
                        assert_eq!(read(base + page * PAGE_BYTES), 0, "round {round}");
                        write(base + page * PAGE_BYTES, 1);
                    }
                    emulator.unlabel(base, CHUNK);
                }
            });
        }
    });
    assert_eq!(emulator.counter(SessionCounter::SlowBytes), 0);
}

/// A program splits the kernel's mapping (`mprotect` of a guard page, a thread's stack), and both a walk that
/// makes many pages at once and a period's end reach the split.
#[test]
fn a_mapping_that_the_program_has_split_is_made_and_taken_away_across_the_split() {
    const GUARD: usize = 13;
    const PAGES: usize = 64;
    let _forks = no_forks();
    for tier in [FAST, SLOW] {
        let Some(started) = Setup::default().start_in(tier) else {
            return;
        };
        let (emulator, start) = (started.emulator, started.open.start);
        let page = move |number| start + number * PAGE_BYTES;
        protect(page(GUARD)..page(GUARD + 1), MprotectFlags::READ);
        let walk = std::thread::spawn(move || {
            for number in (0..PAGES).filter(|&number| number != GUARD) {
                write(page(number), number as u64);
            }
        });
        wait_until("the walk has come over the split", || walk.is_finished());
        if tier == SLOW {
            wait_until("the pages are away", || in_shadow(emulator) >= PAGES - 1);
            assert_eq!(emulator.counter(SessionCounter::Unslowed), 0);
        }
        for number in (0..PAGES).filter(|&number| number != GUARD) {
            assert_eq!(read(page(number)), number as u64);
        }
    }
}

#[test]
fn the_service_ends_for_a_moment_and_serves_again() {
    let _forks = no_forks();
    let Some(started) = Setup::default().start_in(SLOW) else {
        return;
    };
    let Started {
        emulator, tables, ..
    } = started;
    started.fill(0..64, |page| page as u64);
    started.wait_until_away(64);
    let sum = emulator.pause_for(Some(tables), || {
        assert_eq!(in_shadow(emulator), 0, "everything is at home");
        (0..64).map(|page| read(started.page(page))).sum::<u64>()
    });
    assert_eq!(sum, 63 * 64 / 2);
    started.wait_until_away(64);
    started.assert_filled(0..64, |page| page as u64);
}
