//! [`Watch`] computes the rank of each page in an epoch, by which the replayed epoch policies decide, from simulated accessed bits and
//! trace samples (TMP, sections III-B and IV), or from exact counts. [`Monitor`] says which of these sources, and at what resolution.
//!
//! The rank of a page is the sum of its accessed-bit hits (the page table walks of an epoch that found its bit set) and its trace samples
//! (one access in a fixed period). Each source can be used alone, which is the paper's piecemeal comparison (section VI-C); or a policy
//! gets the exact counts.
//!
//! ```text
//! accesses    a b a c | a a b a      two walks an epoch, one sample in three accesses
//! walks             ^         ^      a: 2   b: 2   c: 1
//! samples         ^     ^            a: 2 (third and sixth access)
//! rank                               a: 4   b: 2   c: 1
//! ```
//!
//! That sum adds numbers of the same magnitude only if there are about as many samples as pages. *Balanced* is the rank of our daemon
//! (`crates/pipeline/src/unit_step/rank.rs`): a sample represents the accesses between two samples, and the accessed bits represent in
//! total the same number of accesses as the samples.

isotherm_model::variant_words! {
    /// The sources that the rank sums.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum MonitorSource {
        /// Every access counts: no real source observes all of them.
        #[default]
        Exact = "exact",
        /// Accessed bits alone.
        AccessedBits = "accessed-bits",
        /// Trace samples alone.
        TraceSamples = "trace-samples",
        /// TMP: the sum of both.
        Both = "both",
        /// The daemon: both, converted to the accesses that they represent.
        Balanced = "balanced",
    }
}

use isotherm_model::units::portion;

/// The sources and their resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// The sources that the rank sums.
    pub source: MonitorSource,
    /// Page table walks in an epoch, evenly spaced over its accesses; 0 counts as 1. TMP walks once
    /// a second, which is the length of its epoch.
    pub walks: u32,
    /// Accesses from one sample to the next; 0 counts as 1.
    pub period: u32,
}

impl Default for Monitor {
    /// Exact; otherwise one walk an epoch and one sample in 61 accesses. 61 is a prime: loops over
    /// powers of two would show a sampler of such a period the same few pages every time.
    fn default() -> Self {
        Self {
            source: MonitorSource::Exact,
            walks: 1,
            period: 61,
        }
    }
}

impl Monitor {
    /// Rank that one hit adds.
    pub(crate) fn hit(self) -> u64 {
        match self.source {
            MonitorSource::Balanced => u64::from(self.period.max(1)),
            _ => 1,
        }
    }
}

/// The state of a monitor: the sampler's phase continues from epoch to epoch.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    monitor: Monitor,
    accesses_to_sample: u32,
    walk: u32,
    /// The walk that last found each page's bit set, from 1.
    found: Vec<u32>,
    /// Samples of each page in this epoch, if they are counted separately.
    samples: Vec<u64>,
}

impl Watch {
    pub(crate) fn new(monitor: Monitor, pages: usize) -> Self {
        Self {
            monitor,
            accesses_to_sample: monitor.period.max(1),
            walk: 0,
            found: vec![0; pages],
            samples: Vec::new(),
        }
    }

    /// Writes the rank that one epoch's accesses give each page; `pages` are in order of access.
    pub(crate) fn rank(&mut self, pages: impl ExactSizeIterator<Item = usize>, ranks: &mut [u64]) {
        ranks.fill(0);
        let (bits, samples) = match self.monitor.source {
            MonitorSource::Exact => {
                pages.for_each(|page| ranks[page] += 1);
                return;
            }
            MonitorSource::AccessedBits => (true, false),
            MonitorSource::TraceSamples => (false, true),
            MonitorSource::Both | MonitorSource::Balanced => (true, true),
        };
        let balanced = self.monitor.source == MonitorSource::Balanced;
        self.samples.clear();
        self.samples.resize(ranks.len(), 0);
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
                self.samples[page] += u64::from(samples);
            }
        }
        if balanced {
            balance(ranks, &self.samples, u64::from(self.monitor.period.max(1)));
        } else {
            let both = ranks.iter_mut().zip(&self.samples);
            both.for_each(|(rank, samples)| *rank += samples);
        }
    }

    fn next_walk(&mut self) {
        self.walk = self.walk.checked_add(1).unwrap_or_else(|| {
            self.found.fill(0);
            1
        });
    }
}

/// Converts the accessed-bit hits in `ranks` and the samples into the accesses that they represent,
/// as the daemon does: each sample represents `worth`, the bits in total as many as the samples.
/// Without samples the bits are unchanged, because only their order matters then.
fn balance(ranks: &mut [u64], samples: &[u64], worth: u64) {
    let sum = |hits: &[u64]| hits.iter().fold(0_u64, |sum, one| sum.saturating_add(*one));
    let (bits, all) = (sum(ranks), sum(samples).saturating_mul(worth));
    if all == 0 {
        return;
    }
    for (rank, samples) in ranks.iter_mut().zip(samples) {
        // A hit never becomes zero.
        let share = portion(*rank, all, bits).max(u64::from(*rank > 0));
        *rank = share.saturating_add(samples.saturating_mul(worth));
    }
}

#[cfg(test)]
mod tests {
    use super::{Monitor, MonitorSource, Watch};

    const ACCESSES: [usize; 8] = [0, 1, 0, 2, 0, 0, 1, 0];

    fn ranks(source: MonitorSource) -> [u64; 3] {
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
        assert_eq!(ranks(MonitorSource::Exact), [5, 2, 1]);
        assert_eq!(ranks(MonitorSource::AccessedBits), [2, 2, 1]);
        assert_eq!(ranks(MonitorSource::TraceSamples), [2, 0, 0]);
        assert_eq!(ranks(MonitorSource::Both), [4, 2, 1]);
        // Two samples represent six accesses, and so do the five bits together.
        assert_eq!(ranks(MonitorSource::Balanced), [6 + 2, 2, 1]);
    }

    #[test]
    fn sampling_runs_on_over_the_turn_of_an_epoch() {
        let monitor = Monitor {
            source: MonitorSource::TraceSamples,
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
            source: MonitorSource::Both,
            walks: 0,
            period: 0,
        };
        let mut ranks = [0; 3];
        Watch::new(monitor, 3).rank(ACCESSES.into_iter(), &mut ranks);
        assert_eq!(ranks, [6, 3, 2]);
    }

    #[test]
    fn every_source_is_found_by_its_word() {
        for source in MonitorSource::ALL {
            assert_eq!(MonitorSource::from_word(source.word()), Some(source));
        }
    }
}
