//! What a policy gets to see of an epoch: the sources of TMP's rank (section III-B, IV).
//!
//! The rank of a page is the sum of its accessed-bit hits (of the walks of an epoch, those that found its
//! bit set) and its trace samples (one access in every so many). Each source can be used alone, which is
//! the paper's piecemeal comparison (section VI-C); or a policy is given the exact counts.
//!
//! ```text
//! accesses    a b a c | a a b a      two walks an epoch, one sample in three accesses
//! walks             ^         ^      a: 2   b: 2   c: 1
//! samples         ^     ^            a: 2 (third and sixth access)
//! rank                               a: 4   b: 2   c: 1
//! ```

/// Which sources the rank sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Source {
    /// Every access counts: no real source sees this much.
    #[default]
    Exact,
    /// Accessed bits alone.
    AccessedBits,
    /// Trace samples alone.
    TraceSamples,
    /// TMP: the sum of both.
    Both,
}

impl Source {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Exact,
        Self::AccessedBits,
        Self::TraceSamples,
        Self::Both,
    ];

    /// The word used on the command line and in reports.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::AccessedBits => "accessed-bits",
            Self::TraceSamples => "trace-samples",
            Self::Both => "both",
        }
    }

    /// The source with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.word() == word)
    }
}

/// The sources and how closely they look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Which sources the rank sums.
    pub source: Source,
    /// Walks of the page table in an epoch, evenly spaced over its accesses; 0 counts as 1. TMP walks
    /// once a second, as long as its epoch.
    pub walks: u32,
    /// One access in so many is sampled; 0 counts as 1.
    pub period: u32,
}

impl Default for Monitor {
    /// Exact; else one walk an epoch and one sample in 64 accesses.
    fn default() -> Self {
        Self {
            source: Source::Exact,
            walks: 1,
            period: 64,
        }
    }
}

/// A monitor at work: the sampler's phase runs on from epoch to epoch.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    monitor: Monitor,
    accesses_to_sample: u32,
    walk: u32,
    /// The walk that last found each page's bit set, from 1.
    found: Vec<u32>,
}

impl Watch {
    pub(crate) fn new(monitor: Monitor, pages: usize) -> Self {
        Self {
            monitor,
            accesses_to_sample: monitor.period.max(1),
            walk: 0,
            found: vec![0; pages],
        }
    }

    /// Writes the rank that one epoch's accesses give each page; `pages` are in order of access.
    pub(crate) fn rank(&mut self, pages: impl ExactSizeIterator<Item = usize>, ranks: &mut [u64]) {
        ranks.fill(0);
        let (bits, samples) = match self.monitor.source {
            Source::Exact => {
                pages.for_each(|page| ranks[page] += 1);
                return;
            }
            Source::AccessedBits => (true, false),
            Source::TraceSamples => (false, true),
            Source::Both => (true, true),
        };
        let every = pages
            .len()
            .div_ceil(self.monitor.walks.max(1) as usize)
            .max(1);
        for (at, page) in pages.enumerate() {
            if at.is_multiple_of(every) {
                self.next_walk();
            }
            if bits && self.found[page] != self.walk {
                self.found[page] = self.walk;
                ranks[page] += 1;
            }
            self.accesses_to_sample -= 1;
            if self.accesses_to_sample == 0 {
                self.accesses_to_sample = self.monitor.period.max(1);
                ranks[page] += u64::from(samples);
            }
        }
    }

    fn next_walk(&mut self) {
        self.walk = self.walk.checked_add(1).unwrap_or_else(|| {
            self.found.fill(0);
            1
        });
    }
}

#[cfg(test)]
mod tests {
    use super::{Monitor, Source, Watch};

    const ACCESSES: [usize; 8] = [0, 1, 0, 2, 0, 0, 1, 0];

    fn ranks(source: Source) -> [u64; 3] {
        let monitor = Monitor {
            source,
            walks: 2,
            period: 3,
        };
        let mut ranks = [7; 3];
        Watch::new(monitor, 3).rank(ACCESSES.into_iter(), &mut ranks);
        ranks
    }

    #[test]
    fn the_rank_is_the_sum_of_the_sources_and_each_is_usable_alone() {
        assert_eq!(ranks(Source::Exact), [5, 2, 1]);
        assert_eq!(ranks(Source::AccessedBits), [2, 2, 1]);
        assert_eq!(ranks(Source::TraceSamples), [2, 0, 0]);
        assert_eq!(ranks(Source::Both), [4, 2, 1]);
    }

    #[test]
    fn sampling_runs_on_over_the_turn_of_an_epoch() {
        let monitor = Monitor {
            source: Source::TraceSamples,
            walks: 1,
            period: 3,
        };
        let mut watch = Watch::new(monitor, 1);
        let mut ranks = [0];
        watch.rank([0, 0].into_iter(), &mut ranks);
        assert_eq!(ranks, [0]);
        watch.rank([0].into_iter(), &mut ranks);
        assert_eq!(ranks, [1]);
    }

    #[test]
    fn a_monitor_of_zeros_looks_at_every_access_and_walks_once() {
        let monitor = Monitor {
            source: Source::Both,
            walks: 0,
            period: 0,
        };
        let mut ranks = [0; 3];
        Watch::new(monitor, 3).rank(ACCESSES.into_iter(), &mut ranks);
        assert_eq!(ranks, [6, 3, 2]);
    }

    #[test]
    fn every_source_is_found_by_its_word() {
        for source in Source::ALL {
            assert_eq!(Source::from_word(source.word()), Some(source));
        }
    }
}
