//! [`Thermos`] is the site policy that takes sites by hotness descending, as hotset, except that a site that would overflow the tier by o
//! bytes is taken only if its value exceeds that of the bytes it could displace: the hottest o bytes already taken (MemBrain, section
//! III-A), or o bytes of their average density ([`Displaced`]).
//!
//! The hottest bytes are whole sites by hotness, the last one in part. The average density is that of another published implementation.
//! After a refusal the walk continues down the list.
//!
//! ```text
//! capacity        |----------------|
//! taken so far    [ A hot ][ B    ]|
//! the next site            [ C    =|=o=]     C is worth more than the hottest o bytes, a part of A?
//! ```

use isotherm_model::plan::Item;
use isotherm_model::port::{Choice, SitePolicy};
use isotherm_model::units::Bytes;

use crate::standing::by_hotness;

/// The value with which an overflowing site is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Displaced {
    /// The value of the hottest taken bytes, as many as overflow: the paper's definition.
    #[default]
    Hottest,
    /// The average density of the taken sites, times the bytes that overflow.
    Average,
}

/// Hotset that refuses sites whose value is less than that of the displaced bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thermos {
    /// The value with which an overflowing site is compared.
    pub displaced: Displaced,
}

/// The sites taken so far, hottest first, as running sums so that a query is a binary search.
#[derive(Default)]
struct Taken {
    bytes: Vec<u128>,
    value: Vec<u128>,
}

impl Taken {
    fn add(&mut self, item: &Item) {
        let (bytes, value) = self.sums();
        self.bytes.push(bytes + u128::from(item.weight.0));
        self.value.push(value + u128::from(item.value));
    }

    fn sums(&self) -> (u128, u128) {
        let last = |sums: &[u128]| sums.last().copied().unwrap_or(0);
        (last(&self.bytes), last(&self.value))
    }

    /// Value of the hottest `bytes` taken, rounded down; the whole value if fewer are taken.
    /// Rounding changes no decision: a whole number exceeds a fraction if it exceeds its whole
    /// part.
    fn hottest(&self, bytes: u128) -> u128 {
        let whole = self.bytes.partition_point(|&sum| sum <= bytes);
        let before = |sums: &[u128]| whole.checked_sub(1).map_or(0, |i| sums[i]);
        let (bytes_before, value_before) = (before(&self.bytes), before(&self.value));
        if whole == self.bytes.len() {
            return value_before;
        }
        // One site's value and weight are 64 bits each, so the product fits; its weight is not
        // zero because its running sum passes `bytes` and the one before does not.
        let value = self.value[whole] - value_before;
        let weight = self.bytes[whole] - bytes_before;
        value_before + value * (bytes - bytes_before) / weight
    }

    /// The value of `bytes` at the average density of the taken sites, rounded down; at most all of
    /// it.
    fn average(&self, bytes: u128) -> u128 {
        let (taken, value) = self.sums();
        if bytes >= taken {
            return value;
        }
        // Beyond 128 bits (sums above 2^64 on both sides) the density is rounded first.
        value
            .checked_mul(bytes)
            .map_or_else(|| value / taken * bytes, |product| product / taken)
    }
}

impl Thermos {
    fn displaced(self, taken: &Taken, over: u128) -> u128 {
        match self.displaced {
            Displaced::Hottest => taken.hottest(over),
            Displaced::Average => taken.average(over),
        }
    }
}

impl SitePolicy for Thermos {
    fn name(&self) -> &'static str {
        match self.displaced {
            Displaced::Hottest => "thermos",
            Displaced::Average => "thermos-density",
        }
    }

    fn overfills(&self) -> Option<&'static str> {
        Some(
            "thermos takes a site that crosses the capacity if it is worth more than the bytes it displaces",
        )
    }

    fn fills(&self) -> bool {
        true
    }

    fn choose(&self, items: &[Item], capacity: Bytes) -> Vec<Choice> {
        let limit = u128::from(capacity.0);
        let mut taken = Taken::default();
        by_hotness(items)
            .into_iter()
            .enumerate()
            .map(|(rank, index)| {
                let item = &items[index];
                let over = (taken.sums().0 + u128::from(item.weight.0)).saturating_sub(limit);
                let (take, reason) = if over == 0 || item.weight == Bytes::ZERO {
                    let rank = rank + 1;
                    (true, format!("taken: rank {rank} by hotness, and it fits"))
                } else {
                    let displaced = self.displaced(&taken, over);
                    let take = u128::from(item.value) > displaced;
                    let bytes = Bytes(u64::try_from(over).unwrap_or(u64::MAX));
                    (take, overflow_reason(take, item.value, displaced, bytes))
                };
                if take {
                    taken.add(item);
                }
                Choice::new(index, take, reason)
            })
            .collect()
    }
}

fn overflow_reason(take: bool, value: u64, displaced: u128, over: Bytes) -> String {
    if take {
        format!(
            "taken: it goes past the capacity, but its value {value} beats the {displaced} of the \
             {over} it could displace"
        )
    } else {
        format!(
            "refused: its value {value} does not beat the {displaced} of the {over} it would \
             displace"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::{Displaced, Taken, Thermos};
    use crate::properties::{items, taken};
    use isotherm_model::port::SitePolicy as _;
    use isotherm_model::units::Bytes;

    const THERMOS: Thermos = Thermos {
        displaced: Displaced::Hottest,
    };

    #[test]
    fn an_overflowing_site_is_refused_when_the_hottest_bytes_are_worth_as_much() {
        // The second would displace the hottest 4 of 8 bytes, half of 800: 400 against 400, 401.
        let refused = items(&[(800, 8), (400, 6)]);
        assert_eq!(taken(&THERMOS, &refused, Bytes(10)), [0]);
        let accepted = items(&[(800, 8), (401, 6)]);
        assert_eq!(taken(&THERMOS, &accepted, Bytes(10)), [0, 1]);
    }

    #[test]
    fn a_refusal_does_not_end_the_walk() {
        let sites = items(&[(800, 8), (90, 6), (10, 2)]);
        assert_eq!(taken(&THERMOS, &sites, Bytes(10)), [0, 2]);
        let reason = &THERMOS.choose(&sites, Bytes(10))[1].reason;
        assert_eq!(
            reason,
            "refused: its value 90 does not beat the 400 of the 4 B it would displace"
        );
    }

    #[test]
    fn a_site_larger_than_an_empty_tier_displaces_nothing_and_is_taken() {
        assert_eq!(taken(&THERMOS, &items(&[(1, 100)]), Bytes(10)), [0]);
        assert!(taken(&THERMOS, &items(&[(0, 100)]), Bytes(10)).is_empty());
    }

    #[test]
    fn the_average_variant_takes_what_the_hottest_refuses() {
        // Over by 6: the hottest 6 bytes are worth 105, the average 6 bytes 65.
        let sites = items(&[(100, 5), (30, 7), (80, 20)]);
        let density = Thermos {
            displaced: Displaced::Average,
        };
        assert_eq!(taken(&THERMOS, &sites, Bytes(26)), [0, 1]);
        assert_eq!(taken(&density, &sites, Bytes(26)), [0, 1, 2]);
    }

    #[test]
    fn the_hottest_bytes_are_whole_sites_and_a_part_of_the_last() {
        let mut sums = Taken::default();
        for item in items(&[(100, 5), (30, 7)]) {
            sums.add(&item);
        }
        let worth = |bytes| sums.hottest(bytes);
        assert_eq!((worth(0), worth(1), worth(5)), (0, 20, 100));
        assert_eq!((worth(6), worth(12), worth(99)), (104, 130, 130));
    }
}
