//! Tests of the staged copy on real memory of this process: contents, holes, huge pages, refusals, writers.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::pool::Shortage;
use super::unit_pages::{PAGE_BYTES, PAGES, Reader};
use super::{Exclusion, PageKind, StagedCopy, StagedSettings, UNIT_BYTES, UNIT_PIECES, UnitFate};
use crate::memory;

const UNITS: usize = 6;

/// One test at a time: a fork or a lock of memory in one would affect the others.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// No thread forks while a unit moves.
struct NoForks;

impl Exclusion for NoForks {
    fn enter(&self) {}

    fn leave(&self) {}
}

/// Some units of memory, filled with words that hold their own position.
struct Field {
    start: usize,
    map: usize,
}

impl Field {
    fn new(kind: PageKind) -> Self {
        let map = memory::fresh((UNITS + 1) * UNIT_BYTES).expect("memory");
        let start = map.next_multiple_of(UNIT_BYTES);
        let advice = match kind {
            PageKind::Small => libc::MADV_NOHUGEPAGE,
            PageKind::Huge => libc::MADV_HUGEPAGE,
        };
        // SAFETY: the range was mapped here.
        let _ = unsafe { memory::advise(start, UNITS * UNIT_BYTES, advice) };
        let field = Self { start, map };
        for word in 0..UNITS * UNIT_BYTES / 8 {
            field
                .word(word)
                .store(field.expected(word), Ordering::Relaxed);
        }
        field
    }

    fn word(&self, word: usize) -> &AtomicU64 {
        let address = core::ptr::with_exposed_provenance::<AtomicU64>(self.start + word * 8);
        // SAFETY: in bounds of the mapping by the callers' ranges, aligned; atomics may be shared.
        unsafe { &*address }
    }

    fn expected(&self, word: usize) -> u64 {
        (self.start + word * 8) as u64 ^ 0x5eed
    }

    fn wrong_words(&self) -> usize {
        let words = 0..UNITS * UNIT_BYTES / 8;
        words
            .filter(|word| self.word(*word).load(Ordering::Relaxed) != self.expected(*word))
            .count()
    }

    /// Moves all units. Other programs may hold the free huge pages for a while: then it is tried again.
    fn move_all(&self, mover: &mut StagedCopy) -> Vec<UnitFate> {
        let range = self.start..self.start + UNITS * UNIT_BYTES;
        let mut fates = Vec::new();
        for _ in 0..100 {
            fates.clear();
            // SAFETY: the field is touched through atomics alone, and no code unmaps it meanwhile.
            unsafe { mover.move_range(range.clone(), 0, &NoForks, |_, fate| fates.push(fate)) };
            if !fates.contains(&Shortage::HugePage.into()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        fates
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and the test is over.
        let _ = unsafe { memory::unmap(self.map, (UNITS + 1) * UNIT_BYTES) };
    }
}

/// A mover, or the reason why the test is skipped.
fn mover() -> Option<StagedCopy> {
    let settings = StagedSettings {
        even_if_there: true,
        ..StagedSettings::DEFAULT
    };
    StagedCopy::open(settings)
        .map_err(|error| isotherm_skip::skip!("{error}"))
        .ok()
}

fn move_one(mover: &mut StagedCopy, unit: usize) -> UnitFate {
    let mut fate = UnitFate::AlreadyThere;
    // SAFETY: callers pass their own memory that no other code touches.
    unsafe { mover.move_range(unit..unit + UNIT_BYTES, 0, &NoForks, |_, f| fate = f) };
    fate
}

fn moved(fates: &[UnitFate]) -> usize {
    let moved = |fate: &&UnitFate| matches!(fate, UnitFate::Moved(_));
    fates.iter().filter(moved).count()
}

#[test]
fn contents_and_page_sizes_are_the_same_after_a_move() {
    let _turn = alone();
    let reader = Reader::open().expect("pagemap");
    let Some(mut mover) = mover() else { return };
    for kind in [PageKind::Small, PageKind::Huge] {
        let field = Field::new(kind);
        let huge = |_: ()| (0..UNITS).map(|u| reader.view(field.start + u * UNIT_BYTES));
        let before: Vec<_> = huge(()).map(|view| view.expect("view").huge).collect();
        for _ in 0..3 {
            let fates = field.move_all(&mut mover);
            assert_eq!(moved(&fates), UNITS, "{kind:?} {fates:?}");
            assert_eq!(field.wrong_words(), 0, "{kind:?}");
        }
        let after: Vec<_> = huge(()).map(|view| view.expect("view").huge).collect();
        assert_eq!(before, after, "{kind:?}");
    }
}

#[test]
fn pages_that_were_never_touched_stay_holes_and_read_as_zero() {
    let _turn = alone();
    let Some(mut mover) = mover() else { return };
    // A move before, so that the pool's pages hold other content than zeroes.
    assert_eq!(
        moved(&Field::new(PageKind::Small).move_all(&mut mover)),
        UNITS
    );
    let map = memory::fresh(2 * UNIT_BYTES).expect("memory");
    let unit = map.next_multiple_of(UNIT_BYTES);
    // SAFETY: the ranges were mapped here; the pages are in bounds.
    unsafe {
        let _ = memory::advise(unit, UNIT_BYTES, libc::MADV_NOHUGEPAGE);
        ((unit + 5 * PAGE_BYTES) as *mut u64).write(55);
        ((unit + 400 * PAGE_BYTES) as *mut u64).write(400);
        let fate = move_one(&mut mover, unit);
        let UnitFate::Moved(work) = fate else {
            panic!("{fate:?}");
        };
        assert_eq!(work.pages, 2);
        for page in 0..PAGES {
            let expected = match page {
                5 => 55,
                400 => 400,
                _ => 0,
            };
            assert_eq!(((unit + page * PAGE_BYTES) as *const u64).read(), expected);
        }
        memory::unmap(map, 2 * UNIT_BYTES).expect("unmap");
    }
}

#[test]
fn a_writer_loses_no_word_while_its_memory_moves_to_and_fro() {
    let _turn = alone();
    let Some(mut mover) = mover() else { return };
    for kind in [PageKind::Small, PageKind::Huge] {
        let field = Field::new(kind);
        let stop = AtomicBool::new(false);
        let words = UNITS * UNIT_BYTES / 8;
        let mut last = 0;
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut value, mut at) = (0_u64, 0);
                while !stop.load(Ordering::Relaxed) {
                    // A step that is prime to the number of words visits all of them.
                    at = (at + 40_507) % words;
                    value = field.word(at).load(Ordering::Relaxed) + 1;
                    field.word(at).store(value, Ordering::Relaxed);
                    last = value.max(last);
                }
                value
            });
            for _ in 0..6 {
                let fates = field.move_all(&mut mover);
                assert!(moved(&fates) > 0, "{fates:?}");
            }
            stop.store(true, Ordering::Relaxed);
            writer.join().expect("writer");
        });
        // Each word was counted up once a round: two values differ by one round at most.
        let steps = |word: usize| field.word(word).load(Ordering::Relaxed) - field.expected(word);
        let (low, high) = (0..words)
            .map(steps)
            .fold((u64::MAX, 0), |(low, high), n| (low.min(n), high.max(n)));
        assert!(high - low <= 1, "{kind:?}: {low} to {high} writes");
    }
}

/// The threads of this process that copy for a mover.
fn helpers_there() -> usize {
    let named = |task: std::io::Result<std::fs::DirEntry>| {
        let name = std::fs::read(task.ok()?.path().join("comm")).ok()?;
        (name == b"isotherm-copy\n").then_some(())
    };
    let tasks = std::fs::read_dir("/proc/self/task").expect("proc");
    tasks.filter_map(named).count()
}

/// Helpers give themselves their name when they first run.
fn wait_for_helpers(helpers: usize) {
    for _ in 0..10_000 {
        if helpers_there() == helpers {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{} helpers instead of {helpers}", helpers_there());
}

#[test]
fn threads_that_copy_come_and_go_and_no_word_is_lost() {
    let _turn = alone();
    let Some(mut mover) = mover() else { return };
    assert_eq!(mover.threads(), 2);
    assert_eq!(mover.set_threads(1), 1);
    assert_eq!(helpers_there(), 0);
    let field = Field::new(PageKind::Small);
    for round in 0..8 {
        for threads in [3, 1, UNIT_PIECES, 2, 1] {
            assert_eq!(mover.set_threads(threads), threads);
            if threads == 1 {
                assert_eq!(helpers_there(), 0, "those that end are gone");
            } else if round == 0 {
                wait_for_helpers(threads - 1);
            }
            let fates = field.move_all(&mut mover);
            assert_eq!(moved(&fates), UNITS, "{threads} threads: {fates:?}");
            assert_eq!(field.wrong_words(), 0, "{threads} threads");
        }
    }
    assert!(mover.helpers_ns() > 0);
    assert_eq!(mover.set_threads(0), 1);
    assert_eq!(mover.set_threads(100), UNIT_PIECES);
    drop(mover);
    assert_eq!(helpers_there(), 0, "helpers end with their mover");
}

#[test]
fn files_shared_memory_and_locked_memory_are_denied_and_keep_their_contents() {
    let _turn = alone();
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let Some(mut mover) = mover() else { return };
    // SAFETY: fresh mappings of our own.
    unsafe {
        let shared = memory::map(0, 2 * UNIT_BYTES, access, flags, -1, 0).expect("map");
        let unit = shared.next_multiple_of(UNIT_BYTES);
        (unit as *mut u64).write(7);
        let fate = move_one(&mut mover, unit);
        assert!(matches!(fate, UnitFate::Denied(_)), "{fate:?}");
        assert_eq!((unit as *const u64).read(), 7);
        memory::unmap(shared, 2 * UNIT_BYTES).expect("unmap");

        let field = Field::new(PageKind::Small);
        if libc::mlock(field.start as *const _, UNIT_BYTES) != 0 {
            isotherm_skip::skip!("this process may not lock 2 MiB");
            return;
        }
        let fate = move_one(&mut mover, field.start);
        assert!(matches!(fate, UnitFate::Denied(_)), "{fate:?}");
        assert_eq!(field.wrong_words(), 0);
        libc::munlock(field.start as *const _, UNIT_BYTES);
    }
}

#[test]
fn memory_shared_with_a_child_is_busy_or_copied_and_right_for_both() {
    let _turn = alone();
    let Some(mut mover) = mover() else { return };
    let field = Field::new(PageKind::Small);
    let (mut to_child, mut from_child) = ([0; 2], [0; 2]);
    // SAFETY: the child makes plain system calls, reads memory and leaves by _exit.
    let child = unsafe {
        assert_eq!(libc::pipe(to_child.as_mut_ptr()), 0);
        assert_eq!(libc::pipe(from_child.as_mut_ptr()), 0);
        let child = libc::fork();
        if child == 0 {
            let mut byte = 0_u8;
            libc::read(to_child[0], (&raw mut byte).cast(), 1);
            libc::_exit(i32::from(field.wrong_words() != 0));
        }
        child
    };
    let fates = field.move_all(&mut mover);
    let fine = |fate: &UnitFate| matches!(fate, UnitFate::Moved(_) | UnitFate::Busy(_));
    assert!(fates.iter().all(fine), "{fates:?}");
    assert_eq!(field.wrong_words(), 0);
    // SAFETY: the pipe and the child are ours.
    unsafe {
        libc::write(to_child[1], [1_u8].as_ptr().cast(), 1);
        let mut status = -1;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        assert_eq!(status, 0, "the child's words");
        for end in to_child.into_iter().chain(from_child) {
            libc::close(end);
        }
    }
    assert_eq!(moved(&field.move_all(&mut mover)), UNITS);
}

/// [`StagedCopy::move_range`] forbids this, but some program may do it: the mover must
/// neither hang nor lose a word.
#[test]
fn a_unit_that_is_locked_or_protected_while_it_moves_keeps_its_words() {
    let _turn = alone();
    let Some(mut mover) = mover() else { return };
    let (read, write) = (libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE);
    let field = Field::new(PageKind::Small);
    let (stop, changes) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut page = 0;
            while !stop.load(Ordering::Relaxed) {
                page = (page + 77) % (UNITS * PAGES);
                let address = field.start + page * PAGE_BYTES;
                // SAFETY: no thread writes to the field while this thread runs.
                unsafe {
                    libc::mlock(address as *const _, PAGE_BYTES);
                    memory::protect(address, PAGE_BYTES, read).expect("protect");
                    memory::protect(address, PAGE_BYTES, write).expect("protect");
                    libc::munlock(address as *const _, PAGE_BYTES);
                }
                changes.fetch_add(1, Ordering::Relaxed);
            }
        });
        let mut tries = 0;
        while tries < 200 || changes.load(Ordering::Relaxed) < 200 {
            field.move_all(&mut mover);
            assert_eq!(field.wrong_words(), 0);
            tries += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(moved(&field.move_all(&mut mover)), UNITS);
    assert_eq!(field.wrong_words(), 0);
}
