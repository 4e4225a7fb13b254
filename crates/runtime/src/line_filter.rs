//! Makes the cache filters of profile builds, whose code counts its own accesses: a filter is a direct-mapped cache of line numbers, one
//! per thread ([`LineFilter`]), by which the code leaves out lines that the thread touched a moment ago. Also draws which of the misses are
//! sampled.
//!
//! The code that the compiler inserted searches the filter of its thread at every access:
//!
//! ```text
//! thread 0   | head | line 64 | line 1 | none | ... |       THREADS of these, mapped at the start and
//! thread 1   | head | none    | ...                         taken page by page as they are touched
//! ```
//!
//! A thread gets its number at its first access and keeps it; more threads than tables share tables, and their counts
//! are then those of a shared cache. Nothing here allocates or waits, because signal handlers call it as well.

use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

use isotherm_abi::accesses::LineFilter;
use isotherm_sys::memory;

use crate::tls;

/// Threads with a table of their own. With the largest filter that is 128 MiB of address space.
const THREADS: u64 = 1024;

static TABLES: OnceLock<Tables> = OnceLock::new();
static THREADS_SEEN: AtomicU64 = AtomicU64::new(0);

/// All tables.
struct Tables {
    base: usize,
    lines: u64,
}

/// Makes the tables. Called once, at start; `lines` is a power of two. `None` where there is no address space.
pub(crate) fn start(lines: u64) -> Option<()> {
    let bytes = THREADS.checked_mul(bytes_each(lines))?;
    let base = memory::fresh(usize::try_from(bytes).ok()?).ok()?;
    TABLES.set(Tables { base, lines }).ok()
}

/// Bytes of one thread's head and lines.
const fn bytes_each(lines: u64) -> u64 {
    size_of::<LineFilter>() as u64 + lines * size_of::<u64>() as u64
}

/// This thread's filter, ready for its first miss; `None` where accesses are not filtered.
pub(crate) fn of_thread(period: u64) -> Option<&'static LineFilter> {
    let tables = TABLES.get()?;
    let number = number();
    let place = tables.base + (number % THREADS * bytes_each(tables.lines)) as usize;
    // SAFETY: the table is in the mapping that `start` made, which is zeroed, never unmapped, aligned to
    // pages, and used as atomics only.
    let filter: &LineFilter = unsafe { &*core::ptr::with_exposed_provenance(place) };
    if filter.random.load(Ordering::Relaxed) == 0 {
        begin(filter, number, tables.lines, period);
    }
    Some(filter)
}

/// This thread's number, from 0.
fn number() -> u64 {
    let word = tls::filter();
    let known = word.load(Ordering::Relaxed);
    if known != 0 {
        return known - 1;
    }
    // A signal handler that interrupts here takes a number of its own, which is lost.
    let number = THREADS_SEEN.fetch_add(1, Ordering::Relaxed);
    word.store(number + 1, Ordering::Relaxed);
    number
}

/// Draws the first gap so that the first miss is sampled as often as any other.
fn begin(filter: &LineFilter, number: u64, lines: u64, period: u64) {
    let mut random = Random::of_thread(number);
    let (one, other) = (random.below(2 * period), random.below(2 * period - 1));
    let first = one.min(other + u64::from(other >= one));
    filter.mask.store(lines - 1, Ordering::Relaxed);
    // With every miss counted, no draw is needed.
    let left = if period == 1 { 0 } else { first };
    filter.left.store(left, Ordering::Relaxed);
    filter.random.store(random.0, Ordering::Relaxed);
}

/// Draws the number of misses to skip until the next sample, as llvm/sites/accesses.c does for accesses: gaps
/// even from 1 to 2N-1.
pub(crate) fn draw(filter: &LineFilter, period: u64) {
    let mut random = Random(filter.random.load(Ordering::Relaxed));
    let left = random.below(2 * period - 1);
    filter.left.store(left, Ordering::Relaxed);
    filter.random.store(random.0, Ordering::Relaxed);
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
    use super::{begin, draw};
    use core::sync::atomic::{AtomicU64, Ordering};
    use isotherm_abi::accesses::LineFilter;

    fn begun(thread: u64, period: u64) -> LineFilter {
        let zero = || AtomicU64::new(0);
        let filter = LineFilter {
            left: zero(),
            random: zero(),
            mask: zero(),
            unused: [const { AtomicU64::new(0) }; 5],
        };
        begin(&filter, thread, 512, period);
        filter
    }

    /// The inserted code's action on a miss: true where it is sampled.
    fn is_due(filter: &LineFilter, period: u64) -> bool {
        let left = filter.left.load(Ordering::Relaxed);
        match left {
            0 => draw(filter, period),
            _ => filter.left.store(left - 1, Ordering::Relaxed),
        }
        left == 0
    }

    #[test]
    fn one_miss_in_so_many_is_sampled_on_the_mean_and_the_first_as_often_as_any() {
        let (mut first, mut all) = (0, 0);
        for thread in 0..4000 {
            let filter = begun(thread, 16);
            assert_eq!(filter.mask.load(Ordering::Relaxed), 511);
            for miss in 0..64 {
                let due = u64::from(is_due(&filter, 16));
                all += due;
                first += u64::from(miss == 0) * due;
            }
        }
        // 4,000 x 64 / 16 = 16,000, of deviation below 100; 4,000 / 16 = 250, of deviation 16.
        assert!((15_500..16_500).contains(&all), "{all}");
        assert!((170..330).contains(&first), "{first}");
        let filter = begun(7, 1);
        assert!((0..100).all(|_| is_due(&filter, 1)));
    }
}
