//! The cache filter of code that counts its accesses: what a thread touched a moment ago is left out.
//!
//! A direct-mapped cache of line numbers, one a thread. Line n has place n mod LINES; an access that finds its
//! line there is left out, any other takes the place and goes on to be sampled:
//!
//! ```text
//! thread 0   | state | line 64 | line 1 | none | ... |      THREADS of these, mapped at the start and
//! thread 1   | state | none    | ...                        taken page by page as they are touched
//! ```
//!
//! A thread learns its number at its first access and keeps it; more threads than there are tables share, which only makes
//! their counts those of a shared cache. Nothing here allocates or waits, as signal handlers come here as well.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use isotherm_abi::accesses::FILTER_LINE_BYTES;
use isotherm_sys::memory;

use crate::tls;

/// Threads with a table of their own. With the largest filter that is 128 MiB of address space.
const THREADS: u64 = 1024;

/// Words of a thread before its lines, a cache line: misses to pass over until the next sample, and the random numbers by
/// which that is drawn (0 before the first).
const STATE_WORDS: u64 = 8;
const LEFT: usize = 0;
const RANDOM: usize = 1;

static FILTER: OnceLock<LineFilter> = OnceLock::new();
static THREADS_SEEN: AtomicU64 = AtomicU64::new(0);

/// All tables.
pub(crate) struct LineFilter {
    words: &'static [AtomicU64],
    words_each: u64,
}

/// Makes the tables. Called once, at start; `lines` is a power of two. `None` where there is no address space.
pub(crate) fn start(lines: u64) -> Option<()> {
    let words_each = STATE_WORDS + lines;
    let count = usize::try_from(THREADS * words_each).ok()?;
    let base = memory::fresh(count * size_of::<AtomicU64>()).ok()?;
    // SAFETY: the mapping is this long, zeroed and never unmapped, and used as atomics only.
    let words =
        unsafe { core::slice::from_raw_parts(core::ptr::with_exposed_provenance(base), count) };
    FILTER.set(LineFilter { words, words_each }).ok()
}

/// The tables, where there is a filter.
pub(crate) fn current() -> Option<&'static LineFilter> {
    FILTER.get()
}

impl LineFilter {
    /// True where this thread's access misses the filter and is the one in `period` misses that is sampled.
    pub(crate) fn samples(&self, address: u64, period: u64) -> bool {
        let number = number();
        let first = (number % THREADS * self.words_each) as usize;
        let words = &self.words[first..first + self.words_each as usize];
        let (state, places) = words.split_at(STATE_WORDS as usize);
        misses(places, address / FILTER_LINE_BYTES) && is_due(state, number, period)
    }
}

/// This thread's number, from 0.
fn number() -> u64 {
    let word = tls::filter();
    let known = word.load(Ordering::Relaxed);
    if known != 0 {
        return known - 1;
    }
    // A signal handler in between takes a number of its own, which is lost.
    let number = THREADS_SEEN.fetch_add(1, Ordering::Relaxed);
    word.store(number + 1, Ordering::Relaxed);
    number
}

/// True where the line was not in its place; it is now. There are a power of two of places.
fn misses(places: &[AtomicU64], line: u64) -> bool {
    let place = &places[line as usize & (places.len() - 1)];
    if place.load(Ordering::Relaxed) == line {
        return false;
    }
    place.store(line, Ordering::Relaxed);
    true
}

/// Counts a miss down; true where it is to be sampled. As llvm/sites/accesses.c does it for accesses: gaps even from 1 to
/// 2N-1, and a first one by which the first miss is sampled as often as any other.
fn is_due(state: &[AtomicU64], number: u64, period: u64) -> bool {
    if period == 1 {
        return true;
    }
    let mut random = Random(state[RANDOM].load(Ordering::Relaxed));
    let left = match random.0 {
        0 => {
            random = Random::of_thread(number);
            let (one, other) = (random.below(2 * period), random.below(2 * period - 1));
            one.min(other + u64::from(other >= one))
        }
        _ => state[LEFT].load(Ordering::Relaxed),
    };
    let next = match left {
        0 => random.below(2 * period - 1),
        _ => left - 1,
    };
    state[LEFT].store(next, Ordering::Relaxed);
    state[RANDOM].store(random.0, Ordering::Relaxed);
    left == 0
}

/// Random numbers: xorshift (Marsaglia 2003), seeded by the finaliser of SplitMix64.
struct Random(u64);

impl Random {
    fn of_thread(number: u64) -> Self {
        let mut seed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        seed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        seed = (seed ^ (seed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((seed ^ (seed >> 31)).max(1))
    }

    /// From 0 to `bound` - 1; `bound` is below 2^32.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) * bound) >> 32
    }
}

#[cfg(test)]
mod tests {
    use super::{STATE_WORDS, is_due, misses};
    use core::sync::atomic::AtomicU64;

    fn words(count: usize) -> Vec<AtomicU64> {
        (0..count).map(|_| AtomicU64::new(0)).collect()
    }

    fn missed(places: &[AtomicU64], lines: impl IntoIterator<Item = u64>) -> u64 {
        lines
            .into_iter()
            .map(|line| u64::from(misses(places, line)))
            .sum()
    }

    #[test]
    fn a_line_counts_once_and_a_stream_once_a_line() {
        let places = words(64);
        assert_eq!(missed(&places, std::iter::repeat_n(700, 1000)), 1);
        assert_eq!(missed(&places, 1000..3000), 2000);
    }

    #[test]
    fn what_fits_counts_once_and_what_is_larger_each_time() {
        let rounds = |lines: u64| missed(&words(64), (0..10).flat_map(|_| 1024..1024 + lines));
        assert_eq!(rounds(64), 64);
        // Lines that share a place drive each other out.
        assert_eq!(rounds(128), 10 * 128);
    }

    #[test]
    fn one_miss_in_so_many_is_sampled_on_the_mean_and_the_first_as_often_as_any() {
        let rounds = 4000_u64;
        let (mut first, mut all) = (0, 0);
        for thread in 0..rounds {
            let state = words(STATE_WORDS as usize);
            for miss in 0..64 {
                let due = u64::from(is_due(&state, thread, 16));
                all += due;
                first += u64::from(miss == 0) * due;
            }
        }
        // 4,000 x 64 / 16 = 16,000, of deviation below 100; 4,000 / 16 = 250, of deviation 16.
        assert!((15_500..16_500).contains(&all), "{all}");
        assert!((170..330).contains(&first), "{first}");
        let state = words(STATE_WORDS as usize);
        assert!((0..100).all(|_| is_due(&state, 7, 1)));
    }
}
