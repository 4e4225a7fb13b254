//! [`StaticRatio`] is the site policy that takes sites at random, by a hash of their id, up to a given share of all bytes or, without one,
//! up to the capacity. It is the control of an experiment: the gain of another plan over it is the gain from the profile.
//!
//! The kernel can interleave pages over nodes by weights; that needs no profile. With whole sites the nearest equivalent is to mix them.
//! The hash is independent of size, hotness and age, and each site that still fits into the share is taken.
//!
//! The share is never exceeded, nor is the capacity. A site larger than the rest of the share is
//! skipped and the walk continues, so with a few large sites the share may stay unfilled.

use isotherm_model::plan::Item;
use isotherm_model::port::{Choice, SitePolicy};
use isotherm_model::units::{Bytes, portion};

/// Ratio of bytes in the fast tier to bytes in the slow ones, as in `1:3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Parts for the current tier.
    pub fast: u32,
    /// Parts for the slower tiers.
    pub slow: u32,
}

/// Whole sites in the order of a hash, up to a share of all bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct StaticRatio {
    /// The share; `None` means capacity divided by footprint, the largest share that fits.
    pub ratio: Option<Ratio>,
}

impl Ratio {
    /// This share of the footprint, rounded down. Zero if both parts are zero.
    #[must_use]
    pub fn of(self, footprint: Bytes) -> Bytes {
        let (fast, slow) = (u64::from(self.fast), u64::from(self.slow));
        Bytes(portion(footprint.0, fast, fast + slow))
    }
}

impl SitePolicy for StaticRatio {
    fn name(&self) -> &'static str {
        "static-ratio"
    }

    fn choose(&self, items: &[Item], capacity: Bytes) -> Vec<Choice> {
        let footprint: Bytes = items.iter().map(|item| item.weight).sum();
        let share = self.ratio.map_or(capacity, |ratio| ratio.of(footprint));
        let share = share.min(capacity);
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_unstable_by_key(|&i| (mixed(items[i].site.0), items[i].site));
        let mut room = share;
        order
            .into_iter()
            .map(|item| {
                let weight = items[item].weight;
                let taken = weight <= room;
                let reason = if taken {
                    room = room.saturating_sub(weight);
                    format!("taken: its turn by the hash of its id; {room} of the share are left")
                } else {
                    format!("left out: its {weight} do not fit into the {room} left of the share")
                };
                Choice::new(item, taken, reason)
            })
            .collect()
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): maps neighbouring ids, such as
/// those of tests and the shared arena, far apart.
fn mixed(id: u64) -> u64 {
    let id = (id ^ (id >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let id = (id ^ (id >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    id ^ (id >> 31)
}

#[cfg(test)]
mod tests {
    use super::{Ratio, StaticRatio};
    use crate::properties::{items, taken};
    use isotherm_model::units::Bytes;

    #[test]
    fn a_quarter_of_the_bytes_goes_fast_though_more_would_fit_and_none_of_it_by_hotness() {
        let mut list = vec![(1, 4096); 400];
        list[..100].fill((1000, 4096));
        let sites = items(&list);
        let quarter = StaticRatio {
            ratio: Some(Ratio { fast: 1, slow: 3 }),
        };
        let fast = taken(&quarter, &sites, Bytes(400 * 4096));
        assert_eq!(fast.len(), 100);
        // The hot quarter of the sites gets about a quarter of the places: 25 expected, standard
        // deviation 3.8 for a random draw, and four of those are allowed.
        let hot = fast.iter().filter(|&&i| i < 100).count();
        assert!((10..=40).contains(&hot), "{hot} hot sites of 100 places");
    }

    #[test]
    fn without_a_ratio_the_share_is_what_fits_and_the_capacity_bounds_a_ratio_that_does_not() {
        let sites = items(&[(1, 10); 10]);
        for (ratio, capacity, sites_taken) in [
            (None, 35, 3),
            (Some(Ratio { fast: 1, slow: 1 }), 35, 3),
            (Some(Ratio { fast: 1, slow: 1 }), 100, 5),
            (Some(Ratio { fast: 1, slow: 0 }), 100, 10),
            (Some(Ratio { fast: 0, slow: 0 }), 100, 0),
        ] {
            let fast = taken(&StaticRatio { ratio }, &sites, Bytes(capacity));
            assert_eq!(fast.len(), sites_taken, "{ratio:?} of {capacity}");
        }
    }

    #[test]
    fn a_site_that_is_larger_than_the_share_is_passed_over() {
        let sites = items(&[(1, 1000), (1, 10), (1, 10)]);
        let policy = StaticRatio { ratio: None };
        assert_eq!(taken(&policy, &sites, Bytes(20)), [1, 2]);
    }
}
