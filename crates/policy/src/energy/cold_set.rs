//! [`cold_set`] finds the cold sites (Cross-Layer, section 7.1.1): those with the most total bytes whose accesses together stay within a
//! share of all accesses ([`AccessShare`]), so that the most devices sleep. [`ColdSetPolicy`] is the site policy `cold-set`.
//!
//! It is a 0/1 knapsack with the roles exchanged: bytes are the value and accesses the weight. The
//! same exact search as for the fast tier solves it (`minknap`); the paper approximates.
//!
//! ```text
//!     bytes    |=============== cold ===============|=== hot ===|     as many as possible
//!     accesses |= 5 % =|================ hot ===================|     the share, at most
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use isotherm_model::hotness::hotter_first;
use isotherm_model::plan::Item;
use isotherm_model::port::{Choice, SitePolicy};
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;

use crate::minknap::{Effort, pack_values};
use crate::plan::canonical;

/// Weights are kept below this, so that no product in the search overflows.
const HEAVIEST: u128 = 1 << 52;

/// A share of all accesses, from 0 to 100 %, in hundredths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AccessShare(u32);

impl AccessShare {
    /// The shares of the paper (section 8.2): 1, 2, 5, 10 and 20 %.
    pub const PAPER: [Self; 5] = [Self(100), Self(200), Self(500), Self(1_000), Self(2_000)];

    /// The given number of hundredths of a percent; `None` above 10,000.
    #[must_use]
    pub fn hundredths_of_percent(hundredths: u32) -> Option<Self> {
        (hundredths <= 10_000).then_some(Self(hundredths))
    }

    /// This share of the given accesses, rounded down.
    fn of(self, accesses: u128) -> u128 {
        // At most 2^32 sites of 2^64 accesses each, so the product fits.
        accesses * u128::from(self.0) / 10_000
    }
}

impl fmt::Display for AccessShare {
    /// `5%`, `0.25%`: as [`FromStr`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 100, self.0 % 100);
        let digits = format!("{whole}.{rest:02}");
        write!(f, "{}%", digits.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// The error for a text that is not a share of the accesses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no share of the accesses; use 0% to 100%, such as 5% or 0.25%")]
pub struct AccessShareError(String);

impl FromStr for AccessShare {
    type Err = AccessShareError;

    fn from_str(text: &str) -> Result<Self, AccessShareError> {
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let read = || {
            let number = text.trim().strip_suffix('%')?.trim_end();
            let (whole, part) = number.split_once('.').unwrap_or((number, "0"));
            if !digits(whole) || !digits(part) || part.is_empty() || part.len() > 2 {
                return None;
            }
            let hundredths: u32 = format!("{part:0<2}").parse().ok()?;
            let whole: u32 = whole.parse().ok()?;
            Self::hundredths_of_percent(whole.checked_mul(100)?.checked_add(hundredths)?)
        };
        read().ok_or_else(|| AccessShareError(text.to_owned()))
    }
}

/// The cold set as a site policy: hot sites are taken, cold ones left to slower tiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ColdSetPolicy {
    /// Accesses that the cold sites may have together.
    pub share: AccessShare,
}

impl ColdSetPolicy {
    /// The middle one of the paper's shares, 5 %.
    pub const DEFAULT: Self = Self {
        share: AccessShare::PAPER[2],
    };
}

impl SitePolicy for ColdSetPolicy {
    fn name(&self) -> &'static str {
        "cold-set"
    }

    fn overfills(&self) -> Option<&'static str> {
        Some("cold-set takes every site that is not cold")
    }

    fn adds_devices(&self) -> bool {
        true
    }

    fn choose(&self, items: &[Item], _capacity: Bytes) -> Vec<Choice> {
        let set = cold_set(items, self.share);
        let cold: BTreeSet<SiteId> = set.cold.iter().copied().collect();
        let doubt = set.missing.map_or_else(String::new, |missing| {
            format!(" (not proved: the search met its limit; at most {missing} more were possible)")
        });
        let reason = |item: &Item, is_cold: bool| match (is_cold, item.value) {
            (true, 0) => "left out: cold, never accessed".to_owned(),
            (true, _) => format!(
                "left out: cold, with the most bytes that have at most {} of the accesses together{doubt}",
                self.share
            ),
            (false, _) if item.weight == Bytes::ZERO => {
                "taken: hot, because it has no bytes that could sleep".to_owned()
            }
            (false, _) => format!(
                "taken: hot, no cold set with it has more bytes at {} of the accesses{doubt}",
                self.share
            ),
        };
        let choice = |(number, item): (usize, &Item)| {
            let is_cold = cold.contains(&item.site);
            Choice::new(number, !is_cold, reason(item, is_cold))
        };
        items.iter().enumerate().map(choice).collect()
    }
}

/// The cold and the hot sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdSet {
    /// The cold sites, by id.
    pub cold: Vec<SiteId>,
    /// Bytes that a better set could have in addition, at most, if the search reached its limit;
    /// `None` if the set is proved best.
    pub missing: Option<Bytes>,
}

/// Chooses the cold set. The value of an item is its accesses, its weight its bytes. An item that
/// occurs twice counts as one with both; memory of no site cannot be placed and is left out.
///
/// Sites that are never accessed are cold for every share. Sites without bytes are hot, because
/// calling them cold saves nothing.
#[must_use]
pub fn cold_set(items: &[Item], share: AccessShare) -> ColdSet {
    let items = canonical(items);
    let total: u128 = items.iter().map(|item| u128::from(item.value)).sum();
    let allowed = share.of(total);
    // Accesses are counted in units of 2^shift, the allowance rounded down and each site's up, so
    // that the chosen set also stays within the share when accesses are counted one by one.
    let shift = (0..128)
        .find(|shift| allowed >> shift < HEAVIEST)
        .unwrap_or(0);
    let weight = |item: &Item| u128::from(item.value).div_ceil(1_u128 << shift);
    let capacity = allowed >> shift;
    let mut is_cold: Vec<bool> = items
        .iter()
        .map(|item| item.value == 0 && item.weight > Bytes::ZERO)
        .collect();
    let mut candidates: Vec<usize> = (0..items.len())
        .filter(|&i| items[i].value > 0 && items[i].weight > Bytes::ZERO)
        .filter(|&i| weight(&items[i]) <= capacity)
        .collect();
    candidates.sort_unstable_by(|&a, &b| {
        let key = |i: usize| {
            (
                items[i].weight.0,
                Bytes(weight(&items[i]) as u64),
                items[i].site,
            )
        };
        hotter_first(key(a), key(b))
    });
    let weights: Vec<i64> = candidates
        .iter()
        .map(|&i| weight(&items[i]) as i64)
        .collect();
    let bytes: Vec<u64> = candidates.iter().map(|&i| items[i].weight.0).collect();
    let (taken, missing) = pack_values(&bytes, &weights, capacity as i64, Effort::DEFAULT);
    for (index, taken) in candidates.into_iter().zip(taken) {
        is_cold[index] = taken;
    }
    let sites = items.iter().zip(is_cold).filter(|(_, is_cold)| *is_cold);
    ColdSet {
        cold: sites.map(|(item, _)| item.site).collect(),
        missing: missing.map(|bytes| Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))),
    }
}

#[cfg(test)]
mod tests {
    use super::{AccessShare, ColdSetPolicy, cold_set};
    use crate::properties::{items, taken};
    use isotherm_model::plan::Item;
    use isotherm_model::port::SitePolicy;
    use isotherm_model::units::Bytes;
    use proptest::prelude::*;

    fn share(hundredths: u32) -> AccessShare {
        AccessShare::hundredths_of_percent(hundredths).unwrap()
    }

    /// Cold sites by their position.
    fn cold(items: &[Item], share: AccessShare) -> Vec<u64> {
        cold_set(items, share)
            .cold
            .iter()
            .map(|site| site.0 - 2)
            .collect()
    }

    #[test]
    fn the_cold_set_grows_with_the_shares_of_the_paper() {
        // (accesses, bytes): 1000 accesses in all, so 10, 20, 50, 100 and 200 are allowed.
        let sites = items(&[
            (600, 10),
            (250, 900),
            (90, 500),
            (45, 400),
            (15, 300),
            (0, 7),
        ]);
        let cold = AccessShare::PAPER.map(|share| cold(&sites, share));
        assert_eq!(cold[0], [5]);
        assert_eq!(cold[1], [4, 5]);
        // 45 or 15, not both: 60 is more than 50, and the larger of the two counts.
        assert_eq!(cold[2], [3, 5]);
        // 90 alone has 500 bytes, 45 and 15 together 700.
        assert_eq!(cold[3], [3, 4, 5]);
        assert_eq!(cold[4], [2, 3, 4, 5]);
    }

    #[test]
    fn a_large_site_with_many_accesses_may_be_cold_where_small_ones_with_few_are_not() {
        // The densest by bytes per access would be taken first, and would block the others.
        let sites = items(&[(60, 660), (50, 500), (50, 490), (840, 1)]);
        assert_eq!(cold(&sites, share(1_000)), [1, 2]);
    }

    #[test]
    fn no_accesses_make_everything_with_bytes_cold_and_no_share_nothing_that_is_used() {
        let unused = items(&[(0, 5), (0, 0), (0, 9)]);
        assert_eq!(cold(&unused, share(0)), [0, 2]);
        let used = items(&[(1, 5), (2, 9)]);
        assert!(cold(&used, share(0)).is_empty());
        assert_eq!(cold(&used, share(10_000)), [0, 1]);
        assert!(cold_set(&[], share(500)).cold.is_empty());
        assert_eq!(AccessShare::hundredths_of_percent(10_001), None);
    }

    #[test]
    fn a_share_is_read_as_it_is_written_and_nothing_else_is() {
        for text in ["0%", "1%", "5%", "20%", "0.25%", "0.5%", "99.99%", "100%"] {
            assert_eq!(text.parse::<AccessShare>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "5",
            "%",
            "101%",
            "-5%",
            "0.125%",
            "5.%",
            "+5%",
            "4294967296%",
            "5 %%",
        ] {
            let error = text.parse::<AccessShare>().unwrap_err().to_string();
            assert!(error.contains("such as 5% or 0.25%"), "{text}: {error}");
        }
    }

    #[test]
    fn as_a_site_policy_it_takes_the_hot_sites_whatever_the_capacity() {
        let sites = items(&[(600, 10), (380, 90), (15, 300), (5, 0), (0, 7)]);
        let policy = ColdSetPolicy { share: share(200) };
        for capacity in [0, 50, 1_000] {
            assert_eq!(taken(&policy, &sites, Bytes(capacity)), [0, 1, 3]);
        }
        let reasons = policy.choose(&sites, Bytes(50));
        assert!(
            reasons[2].reason.contains("at most 2% of the accesses"),
            "{reasons:?}"
        );
        assert!(reasons[4].reason.contains("never accessed"), "{reasons:?}");
    }

    /// The most bytes within the allowance, by trying every set.
    fn best(items: &[Item], allowed: u64) -> u64 {
        let sets = 0..1_u32 << items.len();
        let sum = |set: u32, of: fn(&Item) -> u64| -> u64 {
            let chosen = items
                .iter()
                .enumerate()
                .filter(|(i, _)| (set >> i) & 1 == 1);
            chosen.map(|(_, item)| of(item)).sum()
        };
        sets.filter(|&set| sum(set, |item| item.value) <= allowed)
            .map(|set| sum(set, |item| item.weight.0))
            .max()
            .unwrap_or(0)
    }

    fn bytes_of(sites: &[Item], cold: &[isotherm_model::site::SiteId]) -> Bytes {
        let cold = sites.iter().filter(|item| cold.contains(&item.site));
        cold.map(|item| item.weight).sum()
    }

    proptest! {
        #[test]
        fn no_set_within_the_share_has_more_bytes_and_the_order_of_sites_does_not_matter(
            list in prop::collection::vec((0_u64..50, 0_u64..50), 0..10),
            hundredths in 0_u32..=10_000
        ) {
            let sites = items(&list);
            let set = cold_set(&sites, share(hundredths));
            let total: u64 = list.iter().map(|(accesses, _)| accesses).sum();
            let allowed = total * u64::from(hundredths) / 10_000;
            let cold = || sites.iter().filter(|item| set.cold.contains(&item.site));
            prop_assert!(cold().map(|item| item.value).sum::<u64>() <= allowed);
            prop_assert_eq!(bytes_of(&sites, &set.cold), Bytes(best(&sites, allowed)));
            prop_assert_eq!(cold().count(), set.cold.len());
            prop_assert_eq!(set.missing, None);
            let mut turned = sites;
            turned.reverse();
            prop_assert_eq!(set, cold_set(&turned, share(hundredths)));
        }

        #[test]
        fn a_larger_share_never_makes_fewer_bytes_cold(
            list in prop::collection::vec((0_u64..50, 0_u64..50), 0..14),
            hundredths in 0_u32..=10_000, more in 0_u32..=10_000
        ) {
            let sites = items(&list);
            let bytes = |hundredths: u32| {
                bytes_of(&sites, &cold_set(&sites, share(hundredths.min(10_000))).cold)
            };
            prop_assert!(bytes(hundredths) <= bytes(hundredths + more));
        }

        #[test]
        fn huge_counts_and_sizes_stay_within_the_share_and_never_panic(
            list in prop::collection::vec((any::<u64>(), any::<u64>()), 0..20),
            hundredths in 0_u32..=10_000
        ) {
            let set = cold_set(&items(&list), share(hundredths));
            let cold = |id: &isotherm_model::site::SiteId| u128::from(list[id.0 as usize - 2].0);
            let accesses: u128 = set.cold.iter().map(cold).sum();
            let total: u128 = list.iter().map(|(accesses, _)| u128::from(*accesses)).sum();
            prop_assert!(accesses <= total * u128::from(hundredths) / 10_000);
        }
    }
}
