//! [`CacheMode`] models fast memory as a direct-mapped cache of slow memory, which the hardware manages with one line of 64 bytes a set: a
//! baseline of MemBrain (figure 8).
//!
//! ```text
//! pages in the order of first touch   0 1 2 3 | 4 5 6 7 | 8
//! place in fast memory                0 1 2 3 | 0 1 2 3 | 0      pages 0, 4 and 8 share their sets
//! ```
//!
//! The order of the accesses within an epoch is assumed to be random, and so is that of the lines within a page. Then the line in a set
//! belongs to a page with the probability that is the page's share of the accesses to all pages that share the set. The first accesses to
//! the lines of a new page miss. A miss looks into fast memory first, because the tags are there, and writes the line there; the line that
//! it replaces is written back with the probability of a write among the accesses to the set.

use std::ops::Range;

use crate::machine::{CacheTraffic, LINE, Traffic};
use isotherm_model::units::{Bytes, portion};

/// Name of cache mode among the policies.
pub const CACHE_MODE: &str = "cache-mode";

/// The state of the cache, which serves epoch after epoch.
pub(crate) struct CacheMode {
    /// Pages of fast memory.
    pages: u32,
    /// Lines of a page, in counts.
    lines: u64,
    /// Pages touched so far.
    known: u32,
    /// Reads and writes of the epoch to the pages that share a place, by place.
    sums: Vec<Traffic>,
}

impl CacheMode {
    /// A cache of `pages` pages of `page` bytes, for counts that represent `accesses_per_count` accesses each.
    pub(crate) fn new(pages: u32, page: Bytes, accesses_per_count: u64) -> Self {
        Self {
            pages,
            lines: (page.0 / LINE.0).div_ceil(accesses_per_count.max(1)),
            known: 0,
            sums: Vec::new(),
        }
    }

    /// Pages of fast memory that hold data, at most.
    pub(crate) fn used(&self) -> usize {
        self.known.min(self.pages) as usize
    }

    /// Hits and misses of an epoch, of which `counts` has the reads and writes of each page in turn. Pages of `new` are touched for the
    /// first time.
    pub(crate) fn serve(&mut self, counts: &[u64], new: &Range<u32>) -> CacheTraffic {
        self.known = self.known.max(new.end);
        let pages = counts.as_chunks::<2>().0;
        let places = (self.pages as usize).min(pages.len());
        self.sums.clear();
        self.sums.resize(places, Traffic::default());
        let place = |page: usize| (places > 0).then(|| page % places);
        for (page, [reads, writes]) in pages.iter().enumerate() {
            if let Some(sum) = place(page).map(|place| &mut self.sums[place]) {
                sum.reads = sum.reads.saturating_add(*reads);
                sum.writes = sum.writes.saturating_add(*writes);
            }
        }
        let mut served = CacheTraffic::default();
        for (page, [reads, writes]) in pages.iter().enumerate() {
            let sum = place(page).map_or(Traffic::default(), |place| self.sums[place]);
            let is_new = new.contains(&(page as u32));
            let cold = if is_new { self.lines } else { 0 };
            let all = Traffic {
                reads: *reads,
                writes: *writes,
            };
            served.add(of_page(all, sum, cold));
        }
        served
    }
}

/// Hits and misses of the accesses `own` to one page: `sum` are the accesses to all pages of its place, `cold` are those of `own` that are
/// the first to their line.
fn of_page(own: Traffic, sum: Traffic, cold: u64) -> CacheTraffic {
    let (count, all) = (own.all(), sum.all());
    if all == 0 {
        return CacheTraffic {
            misses: count,
            ..CacheTraffic::default()
        };
    }
    let hits = portion(count.saturating_sub(cold), count, all);
    let hit = |kind: u64| portion(kind, hits, count);
    let hits = Traffic {
        reads: hit(own.reads),
        writes: hit(own.writes),
    };
    let misses = count.saturating_sub(hits.all());
    CacheTraffic {
        hits,
        misses,
        filled: misses,
        written_back: portion(misses, sum.writes, all),
    }
}

#[cfg(test)]
mod tests {
    use super::CacheMode;
    use crate::machine::{CacheTraffic, Traffic};
    use isotherm_model::units::Bytes;

    const PAGE: Bytes = Bytes(4096);

    fn reads(counts: &[u64]) -> Vec<u64> {
        counts.iter().flat_map(|count| [*count, 0]).collect()
    }

    #[test]
    fn pages_that_share_a_place_evict_each_other_in_proportion() {
        let mut cache = CacheMode::new(2, PAGE, 1);
        // Pages 0 and 2 share a place: 300 of 400, 100 of 400. Page 1 has its own.
        let served = cache.serve(&reads(&[300, 50, 100]), &(3..3));
        assert_eq!(served.hits.reads, 225 + 50 + 25);
        assert_eq!(
            (served.misses, served.filled, served.written_back),
            (150, 150, 0)
        );
    }

    #[test]
    fn the_first_access_to_each_line_of_a_page_misses() {
        let mut cache = CacheMode::new(4, PAGE, 1);
        assert_eq!(cache.serve(&reads(&[100, 10]), &(0..2)).hits.reads, 36);
        assert_eq!(cache.serve(&reads(&[100, 10]), &(2..2)).hits.reads, 110);
        assert_eq!(cache.used(), 2);
        // A count stands for 64 accesses: all lines of the page.
        let mut cache = CacheMode::new(4, PAGE, 64);
        assert_eq!(cache.serve(&reads(&[100]), &(0..1)).hits.reads, 99);
    }

    #[test]
    fn replaced_lines_are_written_back_as_often_as_lines_are_written() {
        let mut cache = CacheMode::new(1, PAGE, 1);
        let served = cache.serve(&[50, 50, 100, 0], &(2..2));
        assert_eq!((served.hits.reads, served.hits.writes), (25 + 50, 25));
        // Of either page 50 misses, a quarter of them; rounded down.
        assert_eq!((served.misses, served.written_back), (100, 24));
    }

    #[test]
    fn without_fast_memory_slow_memory_serves_all() {
        let served = CacheMode::new(0, PAGE, 1).serve(&reads(&[7, 9]), &(2..2));
        let wanted = CacheTraffic {
            misses: 16,
            ..CacheTraffic::default()
        };
        assert_eq!(served, wanted);
        assert_eq!(served.hits, Traffic::default());
    }
}
