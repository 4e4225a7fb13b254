//! Writes and reads the areas in the writer and reader threads of the proof, and checks every word.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::area::Area;
use crate::page::{Count, check, check_and_write};

/// The counts of all threads so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// Words checked by the writer that wrote the next value.
    pub written: AtomicU64,
    /// Words checked by readers.
    pub read: AtomicU64,
    /// Wrong words that any thread found.
    pub wrong: AtomicU64,
}

/// Pages that a writer or reader visits between two reads of the clock.
const VISITS: usize = 64;

/// Writes pages of its own at random until `stop`: page `p` belongs to writer `p % writers`.
pub fn write(
    areas: &[Area],
    tally: &Tally,
    stop: &AtomicBool,
    writer: usize,
    writers: usize,
    seed: u64,
) {
    let mut random = fastrand::Rng::with_seed(seed);
    while !stop.load(Ordering::Relaxed) {
        let area = &areas[random.usize(..areas.len())];
        let mut count = Count::default();
        for _ in 0..VISITS {
            let page = random.usize(..area.pages() / writers) * writers + writer;
            let visit =
                || check_and_write(area.words(page), area.number(page), area.progress(page));
            count.add(area.visit(visit).unwrap_or_default());
        }
        tally.written.fetch_add(count.words, Ordering::Relaxed);
        tally.wrong.fetch_add(count.wrong, Ordering::Relaxed);
    }
}

/// Reads pages at random until `stop`.
pub fn read(areas: &[Area], tally: &Tally, stop: &AtomicBool, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    while !stop.load(Ordering::Relaxed) {
        let area = &areas[random.usize(..areas.len())];
        let mut count = Count::default();
        for _ in 0..VISITS {
            let page = random.usize(..area.pages());
            let visit = || check(area.words(page), area.number(page), area.progress(page));
            count.add(area.visit(visit).unwrap_or_default());
        }
        tally.read.fetch_add(count.words, Ordering::Relaxed);
        tally.wrong.fetch_add(count.wrong, Ordering::Relaxed);
    }
}

/// Checks every page once more, when no thread writes.
pub fn check_all(areas: &[Area]) -> Count {
    let mut count = Count::default();
    for area in areas {
        for page in 0..area.pages() {
            count.add(check(
                area.words(page),
                area.number(page),
                area.progress(page),
            ));
        }
    }
    count
}
