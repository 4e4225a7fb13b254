//! [`SizeThreshold`] is the site policy that puts sites up to a size, or from a size on, into the fast tier, regardless of their hotness;
//! without a given size, by the one that fills the tier best.
//!
//! Two rules of thumb: small objects are accessed often, so they go fast; or large arrays cause
//! most of the bandwidth, so they do (memkind's autohbw selects allocations by size). Neither needs
//! a count.
//!
//! Without a given threshold the policy uses the one that fills the tier best and still fits: for
//! *smaller* the largest size such that all sites up to it fit together, for *larger* the smallest
//! size such that all sites from it on do. Sites of one size are on the same side, because a
//! threshold cannot separate them. A given threshold is used unchanged: its sites may exceed the
//! tier, and the rest spills.

use isotherm_model::plan::Item;
use isotherm_model::port::{Choice, SitePolicy};
use isotherm_model::units::Bytes;

/// Which sites go fast.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FastSide {
    /// Sites that are no larger than the threshold.
    #[default]
    Smaller,
    /// Sites that are no smaller than the threshold.
    Larger,
}

/// Sites on one side of a size.
#[derive(Clone, Copy, Debug, Default)]
pub struct SizeThreshold {
    /// The side that goes fast.
    pub side: FastSide,
    /// The size; with `None` the size that fills the tier best and fits.
    pub threshold: Option<Bytes>,
}

impl FastSide {
    fn holds(self, weight: Bytes, threshold: Bytes) -> bool {
        match self {
            Self::Smaller => weight <= threshold,
            Self::Larger => weight >= threshold,
        }
    }
}

impl SizeThreshold {
    /// The last size, from the side that goes fast, at which all sites so far still fit; `None` if
    /// not even the first does.
    fn fitting(&self, items: &[Item], capacity: Bytes) -> Option<Bytes> {
        let mut sizes: Vec<u64> = items.iter().map(|item| item.weight.0).collect();
        sizes.sort_unstable();
        if self.side == FastSide::Larger {
            sizes.reverse();
        }
        let mut used = 0_u128;
        let mut fits = None;
        for equal in sizes.chunk_by(|a, b| a == b) {
            used += u128::from(equal[0]) * equal.len() as u128;
            if used > u128::from(capacity.0) {
                break;
            }
            fits = Some(Bytes(equal[0]));
        }
        fits
    }
}

impl SitePolicy for SizeThreshold {
    fn name(&self) -> &'static str {
        match self.side {
            FastSide::Smaller => "size-threshold",
            FastSide::Larger => "size-threshold-larger",
        }
    }

    fn choose(&self, items: &[Item], capacity: Bytes) -> Vec<Choice> {
        let threshold = self.threshold.or_else(|| self.fitting(items, capacity));
        let bound = match self.side {
            FastSide::Smaller => "at most",
            FastSide::Larger => "at least",
        };
        let choice = |item: usize| {
            let weight = items[item].weight;
            let taken = threshold.is_some_and(|threshold| self.side.holds(weight, threshold));
            let reason = match (threshold, taken) {
                (Some(threshold), true) => format!("taken: its {weight} are {bound} {threshold}"),
                (Some(threshold), false) => {
                    format!("left out: its {weight} are not {bound} {threshold}")
                }
                (None, _) => format!("left out: no threshold lets anything fit into {capacity}"),
            };
            Choice::new(item, taken, reason)
        };
        (0..items.len()).map(choice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{FastSide, SizeThreshold};
    use crate::properties::{items, taken};
    use isotherm_model::units::Bytes;

    const SMALLER: SizeThreshold = SizeThreshold {
        side: FastSide::Smaller,
        threshold: None,
    };
    const LARGER: SizeThreshold = SizeThreshold {
        side: FastSide::Larger,
        threshold: None,
    };

    #[test]
    fn the_default_threshold_is_the_last_that_fits_and_sites_of_one_size_stay_together() {
        let sites = items(&[(9, 8), (1, 1), (1, 3), (1, 3), (1, 5)]);
        assert_eq!(taken(&SMALLER, &sites, Bytes(6)), [1]);
        assert_eq!(taken(&SMALLER, &sites, Bytes(7)), [1, 2, 3]);
        assert_eq!(taken(&SMALLER, &sites, Bytes(12)), [1, 2, 3, 4]);
        assert_eq!(taken(&LARGER, &sites, Bytes(7)), [0_usize; 0]);
        assert_eq!(taken(&LARGER, &sites, Bytes(18)), [0, 4]);
        assert_eq!(taken(&LARGER, &sites, Bytes(19)), [0, 2, 3, 4]);
    }

    #[test]
    fn a_given_threshold_is_taken_at_its_word_whatever_the_capacity() {
        let sites = items(&[(1, 8), (1, 1), (1, 3)]);
        let given = |side| SizeThreshold {
            side,
            threshold: Some(Bytes(3)),
        };
        assert_eq!(taken(&given(FastSide::Smaller), &sites, Bytes(0)), [1, 2]);
        assert_eq!(taken(&given(FastSide::Larger), &sites, Bytes(0)), [0, 2]);
    }
}
