//! `Evidence` adds up the hits and the ranks of the pages, and averages the latencies of both tiers and the demand of the programs, over
//! the newest epochs that have enough hits together, for a decision of `LoadBalance`.
//!
//! A program that waits for the bandwidth is hardly sampled, so an epoch of an overloaded machine may have few hits. A decision drops the
//! epochs, because the moves that follow change the next ones. An epoch counts among the last [`EPOCHS`] only, so that old hits do not long
//! outlive a change of the program.
//!
//! ```text
//! epoch     1   2   3   4              20 hits are enough
//! hits      4   9   3  11              at the end of epoch 4: 11 + 3 + 9, without the first
//! hits      4   9   3  30              that of epoch 4 alone
//! ```

use std::collections::VecDeque;

use isotherm_model::page::{EpochView, PageIndex};
use isotherm_model::tier_loads::TierLoads;

/// Fewest hits that prove which share of the hits is fast.
pub(super) const FEWEST_HITS: f64 = 20.0;

/// Most epochs that are added up: as many as a unit counts as warm in the daemon's step after its last access.
pub(super) const EPOCHS: usize = 8;

/// The epochs since the last decision.
#[derive(Clone, Debug, Default)]
pub(super) struct Evidence {
    /// Oldest first, at most [`EPOCHS`].
    epochs: VecDeque<Epoch>,
    /// Kept to reuse its memory.
    sum: EpochSum,
}

/// The observations of one epoch.
#[derive(Clone, Debug, Default)]
struct Epoch {
    /// The pages with a rank; few if there are few hits.
    ranks: Vec<(PageIndex, u64)>,
    /// The rank that one hit adds, at least 1; 0 without a hit.
    hit: u64,
    loads: Option<TierLoads>,
}

/// The sums of some epochs.
#[derive(Clone, Debug, Default)]
pub(super) struct EpochSum {
    /// The rank of each page.
    pub ranks: Vec<u64>,
    /// Number of hits.
    pub hits: f64,
    /// The rank that one hit added, the mean of all; at least 1.
    pub hit: f64,
    /// Latencies and demand in the epochs where these are known.
    pub loads: Option<TierLoads>,
}

impl Evidence {
    /// Adds the epoch that ended.
    pub(super) fn add(&mut self, view: &EpochView<'_>) {
        let ranks = (0..)
            .map(PageIndex)
            .zip(view.previous_ranks.iter().copied());
        self.push(Epoch {
            ranks: ranks.filter(|(_, rank)| *rank > 0).collect(),
            hit: view.hit.max(1),
            loads: view.loads,
        });
    }

    /// Adds an epoch without a hit.
    pub(super) fn add_without_hits(&mut self, loads: Option<TierLoads>) {
        self.push(Epoch {
            loads,
            ..Epoch::default()
        });
    }

    fn push(&mut self, epoch: Epoch) {
        self.epochs.push_back(epoch);
        let excess = self.epochs.len().saturating_sub(EPOCHS);
        self.epochs.drain(..excess);
    }

    /// Drops the hits of these pages, which are in ascending order.
    pub(super) fn forget(&mut self, pages: &[PageIndex]) {
        for epoch in &mut self.epochs {
            epoch
                .ranks
                .retain(|(page, _)| pages.binary_search(page).is_err());
        }
    }

    /// Drops all epochs.
    pub(super) fn clear(&mut self) {
        self.epochs.clear();
    }

    /// The newest epochs that have enough hits together, of a program with this number of pages; all epochs if they have not enough.
    pub(super) fn sum(&mut self, pages: usize) -> &EpochSum {
        let sum = &mut self.sum;
        sum.ranks.clear();
        sum.ranks.resize(pages, 0);
        let (mut heat, mut loads) = (0.0, HarmonicMean::default());
        sum.hits = 0.0;
        for epoch in self.epochs.iter().rev() {
            if sum.hits >= FEWEST_HITS {
                break;
            }
            for (page, rank) in &epoch.ranks {
                if let Some(all) = sum.ranks.get_mut(page.at()) {
                    *all = all.saturating_add(*rank);
                }
            }
            heat += epoch.heat();
            sum.hits += epoch.hits();
            loads.add(epoch.loads);
        }
        sum.hit = if sum.hits > 0.0 { heat / sum.hits } else { 1.0 };
        sum.loads = loads.mean();
        sum
    }
}

impl Epoch {
    fn heat(&self) -> f64 {
        self.ranks.iter().map(|(_, rank)| *rank as f64).sum()
    }

    fn hits(&self) -> f64 {
        self.heat() / self.hit.max(1) as f64
    }
}

impl EpochSum {
    /// True where there are enough hits to prove which share of them is fast.
    pub(super) fn is_enough(&self) -> bool {
        self.hits >= FEWEST_HITS
    }
}

/// The harmonic mean of the loads of several epochs. The demand of an epoch is the bytes served divided by the share of its time in which
/// programs worked, so an epoch of hardly any work has a very high demand, which would outweigh all others in an arithmetic mean.
#[derive(Clone, Copy, Debug, Default)]
struct HarmonicMean {
    epochs: f64,
    /// Reciprocals of both latencies and of the demand, summed.
    reciprocals: [f64; 3],
}

impl HarmonicMean {
    fn add(&mut self, loads: Option<TierLoads>) {
        if let Some(loads) = loads {
            let [fast, slow] = loads.latencies_ns;
            self.epochs += 1.0;
            for (sum, value) in self
                .reciprocals
                .iter_mut()
                .zip([fast, slow, loads.demand as f64])
            {
                *sum += 1.0 / value;
            }
        }
    }

    /// `None` where no epoch was added. A value that was zero once has a mean of zero.
    fn mean(self) -> Option<TierLoads> {
        let [fast, slow, demand] = self.reciprocals.map(|sum| self.epochs / sum);
        (self.epochs > 0.0).then(|| TierLoads {
            latencies_ns: [fast, slow],
            // The cast saturates.
            demand: demand.round() as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{EPOCHS, Evidence, FEWEST_HITS};
    use isotherm_model::page::{EpochView, PageIndex};
    use isotherm_model::tier_loads::TierLoads;
    use proptest::prelude::*;

    const PAGES: usize = 6;

    fn loads(fast: f64, demand: u64) -> Option<TierLoads> {
        Some(TierLoads {
            latencies_ns: [fast, 100.0],
            demand,
        })
    }

    fn view(ranks: &[u64], hit: u64, loads: Option<TierLoads>) -> EpochView<'_> {
        EpochView {
            previous_ranks: ranks,
            next_ranks: None,
            fast: &[],
            capacity: 0,
            hit,
            loads,
        }
    }

    fn after(epochs: &[[u64; PAGES]]) -> Evidence {
        let mut evidence = Evidence::default();
        for ranks in epochs {
            evidence.add(&view(ranks, 1, None));
        }
        evidence
    }

    #[test]
    fn the_newest_epochs_with_enough_hits_are_added_up() {
        let first = [4, 0, 0, 0, 0, 0];
        let mut evidence = after(&[first, [0, 9, 0, 0, 0, 0], [1, 0, 2, 0, 0, 0]]);
        assert!(!evidence.sum(PAGES).is_enough());
        assert_eq!(evidence.sum(PAGES).ranks, [5, 9, 2, 0, 0, 0]);
        evidence.add(&view(&[0, 1, 0, 10, 0, 0], 1, None));
        let sum = evidence.sum(PAGES);
        assert!(sum.is_enough());
        assert_eq!(sum.ranks, [1, 10, 2, 10, 0, 0], "without the first");
        evidence.add(&view(&[0, 0, 0, 0, 0, 30], 1, None));
        assert_eq!(evidence.sum(PAGES).ranks, [0, 0, 0, 0, 0, 30]);
    }

    #[test]
    fn an_epoch_without_hits_ages_those_before_it() {
        let mut evidence = after(&[[19, 0, 0, 0, 0, 0]]);
        for _ in 1..EPOCHS {
            evidence.add_without_hits(None);
            assert_eq!(evidence.sum(PAGES).ranks[0], 19);
        }
        evidence.add_without_hits(None);
        assert_eq!(evidence.sum(PAGES).ranks, [0; PAGES]);
    }

    #[test]
    fn pages_that_are_gone_and_epochs_before_a_decision_do_not_count() {
        let mut evidence = after(&[[5, 0, 7, 0, 0, 0], [0, 0, 6, 1, 0, 0]]);
        evidence.forget(&[PageIndex(2), PageIndex(3)]);
        let sum = evidence.sum(PAGES);
        assert_eq!((sum.ranks[0], sum.hits), (5, 5.0));
        assert_eq!(sum.ranks[1..], [0; 5]);
        evidence.clear();
        assert_eq!(evidence.sum(PAGES).hits, 0.0);
    }

    #[test]
    fn hits_of_two_worths_are_as_many_as_they_are() {
        let mut evidence = after(&[[4, 0, 0, 0, 0, 0]]);
        evidence.add(&view(&[0, 30, 0, 0, 0, 0], 10, None));
        let sum = evidence.sum(PAGES);
        assert_eq!(sum.hits, 7.0);
        assert!((sum.hit - 34.0 / 7.0).abs() < 1e-9, "{}", sum.hit);
    }

    #[test]
    fn an_epoch_of_hardly_any_work_does_not_outweigh_the_others() {
        let mut evidence = Evidence::default();
        assert_eq!(evidence.sum(0).loads, None);
        for (fast, demand) in [(300.0, 3_000), (300.0, 3_000), (30_000.0, 300_000)] {
            evidence.add(&view(&[], 1, loads(fast, demand)));
        }
        evidence.add_without_hits(None);
        let found = evidence.sum(0).loads.expect("loads");
        assert!((440.0..460.0).contains(&found.latencies_ns[0]), "{found:?}");
        assert_eq!(found.latencies_ns[1], 100.0);
        assert!((4_400..4_600).contains(&found.demand), "{found:?}");
    }

    proptest! {
        /// The sum is that of the fewest of the last epochs that have enough hits, as a search from one epoch upwards finds them.
        #[test]
        fn the_sum_is_that_of_the_fewest_epochs(
            epochs in prop::collection::vec(prop::collection::vec(0_u64..6, PAGES), 1..20)
        ) {
            let mut evidence = Evidence::default();
            for end in 1..=epochs.len() {
                evidence.add(&view(&epochs[end - 1], 1, None));
                let hits = |count: usize| epochs[end - count..end].iter().flatten().sum::<u64>();
                let most = EPOCHS.min(end);
                let count = (1..most).find(|count| hits(*count) as f64 >= FEWEST_HITS).unwrap_or(most);
                let mut ranks = [0_u64; PAGES];
                for epoch in &epochs[end - count..end] {
                    ranks.iter_mut().zip(epoch).for_each(|(all, one)| *all += one);
                }
                let sum = evidence.sum(PAGES);
                prop_assert_eq!(&sum.ranks, &ranks);
                prop_assert_eq!(sum.is_enough(), hits(count) as f64 >= FEWEST_HITS);
            }
        }
    }
}
