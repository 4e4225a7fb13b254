//! [`blocks`] divides a row of bins, the places of an object, into blocks of even rate of samples, for parts of sites and of regions:
//! Bayesian blocks (Scargle and others, "Studies in Astronomical Time Series Analysis VI", 2013), for counts in bins.
//!
//! ```text
//! counts of bins   1 0 2 1 9 8 7 9 8 1 0 1 0 2 1
//! blocks          |       |         |           |      as many as the counts prove, and no more
//! ```
//!
//! The number of samples in a bin is Poisson distributed: bins with 1 and 3 samples may well have one rate, so a choice of the fullest bins
//! would choose noise. The blocks are those with the highest likelihood, less a penalty for each change of the rate. Dynamic programming
//! finds them; its cost grows with the square of the number of bins at worst.

use std::ops::Range;

/// A bin: the samples that fell into it, and its bytes, of all objects together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bin {
    pub(crate) samples: f64,
    pub(crate) bytes: f64,
}

/// The blocks, as ranges of bins, in order. Bins without bytes belong to the block before them.
pub(crate) fn blocks(bins: &[Bin], penalty: f64) -> Vec<Range<usize>> {
    let sums = running_sums(bins);
    // For each number of bins from the start: the best likelihood of these bins, and the first bin of the last block.
    let mut best = vec![(0.0, 0); bins.len() + 1];
    let mut starts = vec![0];
    for end in 1..=bins.len() {
        let scored = |start: &usize| best[*start].0 + likelihood(&sums, *start..end);
        let scores: Vec<f64> = starts.iter().map(scored).collect();
        let most = (0..starts.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        let most = most.unwrap_or(0);
        best[end] = (scores[most] - penalty, starts[most]);
        // A start whose score is below the best by the penalty is never the best again (Killick and others, 2012).
        let least = best[end].0;
        let mut kept = scores.iter();
        starts.retain(|_| kept.next().is_some_and(|score| *score >= least));
        starts.push(end);
    }
    let mut found = Vec::new();
    let mut end = bins.len();
    while end > 0 {
        let start = best[end].1;
        found.push(start..end);
        end = start;
    }
    found.reverse();
    found
}

/// The penalty of a change of the rate, for this number of samples: that of the Bayesian information criterion for a place and a rate,
/// doubled because samples of one moment resemble each other.
pub(crate) fn penalty(samples: f64) -> f64 {
    2.0 * samples.max(2.0).ln()
}

/// Sums of the samples and bytes of the first bins: for 0 bins, 1 bin and so on up to all.
fn running_sums(bins: &[Bin]) -> Vec<Bin> {
    let mut sum = Bin {
        samples: 0.0,
        bytes: 0.0,
    };
    let mut sums = vec![sum];
    for bin in bins {
        sum.samples += bin.samples;
        sum.bytes += bin.bytes;
        sums.push(sum);
    }
    sums
}

/// The logarithm of the likelihood of a block, up to a term that all divisions share: n ln (n / bytes).
fn likelihood(sums: &[Bin], block: Range<usize>) -> f64 {
    let samples = sums[block.end].samples - sums[block.start].samples;
    let bytes = sums[block.end].bytes - sums[block.start].bytes;
    if samples <= 0.0 || bytes <= 0.0 {
        return 0.0;
    }
    samples * (samples / bytes).ln()
}

#[cfg(test)]
mod tests {
    use super::{Bin, blocks, penalty};
    use proptest::prelude::*;

    fn bins(samples: &[u32]) -> Vec<Bin> {
        let bin = |samples: &u32| Bin {
            samples: f64::from(*samples),
            bytes: 4096.0,
        };
        samples.iter().map(bin).collect()
    }

    fn found(samples: &[u32]) -> Vec<(usize, usize)> {
        let all: u32 = samples.iter().sum();
        let blocks = blocks(&bins(samples), penalty(f64::from(all)));
        blocks
            .into_iter()
            .map(|block| (block.start, block.end))
            .collect()
    }

    #[test]
    fn a_change_of_the_rate_is_found_where_it_is() {
        let mut samples = vec![2; 60];
        samples[20..30].fill(20);
        assert_eq!(found(&samples), [(0, 20), (20, 30), (30, 60)]);
        samples[59] = 90;
        assert_eq!(found(&samples), [(0, 20), (20, 30), (30, 59), (59, 60)]);
    }

    #[test]
    fn even_and_few_samples_are_one_block() {
        assert_eq!(found(&[7; 40]), [(0, 40)]);
        assert_eq!(found(&[1, 0, 2, 0, 1, 1, 0, 3]), [(0, 8)]);
        assert_eq!(found(&[0; 5]), [(0, 5)]);
        assert_eq!(found(&[]), []);
    }

    /// Poisson counts by Knuth's method.
    fn poisson(mean: f64, mut uniform: impl FnMut() -> f64) -> u32 {
        let (limit, mut product, mut count) = ((-mean).exp(), uniform(), 0);
        while product > limit {
            product *= uniform();
            count += 1;
        }
        count
    }

    proptest! {
        #[test]
        fn counts_of_one_rate_are_hardly_ever_divided(seed in any::<u64>(), mean in 0.5..20.0) {
            let mut state = seed;
            let uniform = || {
                // SplitMix64.
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut z = state;
                z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
            };
            let mut uniform = uniform;
            let samples: Vec<u32> = (0..200).map(|_| poisson(mean, &mut uniform)).collect();
            prop_assert!(found(&samples).len() <= 3, "{samples:?}");
        }

        #[test]
        fn blocks_cover_the_bins_in_order(samples in prop::collection::vec(0_u32..50, 0..80)) {
            let found = found(&samples);
            let mut next = 0;
            for (start, end) in found {
                prop_assert_eq!(start, next);
                prop_assert!(end > start);
                next = end;
            }
            prop_assert_eq!(next, samples.len());
        }

        #[test]
        fn leaving_out_hopeless_starts_changes_nothing(samples in prop::collection::vec(0_u32..50, 1..60)) {
            let bins = bins(&samples);
            let penalty = 5.0;
            let mut best = vec![0.0_f64; bins.len() + 1];
            let sums = super::running_sums(&bins);
            for end in 1..=bins.len() {
                let scores = (0..end).map(|start| best[start] + super::likelihood(&sums, start..end));
                best[end] = scores.fold(f64::NEG_INFINITY, f64::max) - penalty;
            }
            let found = blocks(&bins, penalty);
            let sum: f64 = found.iter().map(|block| super::likelihood(&sums, block.clone()) - penalty).sum();
            prop_assert!((sum - best[bins.len()]).abs() < 1e-6, "{} {}", sum, best[bins.len()]);
        }
    }
}
