//! [`Balance`] is a site policy that balances the load of two tiers. From the hottest on, each site that fits goes to the faster tier if
//! that tier's latency under its load then is at most that of the next tier under the load of all other sites, or if the higher of both
//! latencies falls. Where latencies are unknown, every site that fits goes there.
//!
//! BATMAN (Chou, Jaleel, Qureshi, MEMSYS 2017) divides the accesses as the bandwidths of the tiers; Colloid (Vuppalapati, Agarwal, SOSP
//! 2024) moves data until the loaded latencies are equal, which is the same where both tiers have one latency when they are idle. An
//! overloaded fast tier is slower than the other, so it may be left with free room.
//!
//! Values are bytes a second at the speed of the recorded run, so they are the bandwidth that the program asks for, not what it gets.

use isotherm_model::loaded_latency::LoadedLatency;
use isotherm_model::plan::Item;
use isotherm_model::port::{Choice, FilledTier, SitePolicy};
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Bytes;

use crate::standing::by_hotness;

/// The hottest sites that fit, until fast memory under their load is as slow as the next tier under the load of the others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balance;

/// The latencies of the tier that is filled and of the next one.
struct Latencies {
    here: LoadedLatency,
    next: LoadedLatency,
    /// Bytes a second of all sites.
    total: u64,
}

impl Latencies {
    /// The latency of the tier under this load, and that of the next tier under the rest.
    fn under(&self, load: u64) -> (f64, f64) {
        let others = self.total.saturating_sub(load);
        (self.here.at(load), self.next.at(others))
    }

    /// Whether the load may rise from `before` to `after`: until the latencies are equal, or further if the higher latency falls by it.
    fn admit(&self, before: u64, after: u64) -> bool {
        let (here, next) = self.under(after);
        let (here_before, next_before) = self.under(before);
        here <= next || here < here_before.max(next_before)
    }
}

impl SitePolicy for Balance {
    fn name(&self) -> &'static str {
        "balance"
    }

    fn balances(&self) -> bool {
        true
    }

    /// Without known latencies nothing can be balanced: chooses the hottest sites that fit.
    fn choose(&self, items: &[Item], capacity: Bytes) -> Vec<Choice> {
        choose(items, capacity, None)
    }

    fn choose_for(&self, items: &[Item], tier: &FilledTier<'_>) -> Vec<Choice> {
        let next = TierIndex(tier.index.0 + 1);
        let here = tier.tiers.loaded_latency(tier.index);
        let both = here.zip(tier.tiers.loaded_latency(next));
        let latencies = both.map(|(here, next)| Latencies {
            here,
            next,
            total: items
                .iter()
                .fold(0, |sum, item| sum.saturating_add(item.value)),
        });
        choose(items, tier.capacity, latencies.as_ref())
    }
}

fn choose(items: &[Item], capacity: Bytes, latencies: Option<&Latencies>) -> Vec<Choice> {
    let (mut used, mut load) = (Bytes::ZERO, 0_u64);
    let mut choices = Vec::with_capacity(items.len());
    for (rank, item) in (1..).zip(by_hotness(items)) {
        let Item { value, weight, .. } = items[item];
        let room = capacity.saturating_sub(used);
        let after = load.saturating_add(value);
        let fits = weight <= room;
        let taken = fits && latencies.is_none_or(|it| it.admit(load, after));
        let reason = match (taken, fits) {
            (_, false) => format!("left out: rank {rank} by hotness, and {room} were left"),
            (false, true) => of_latencies(
                latencies,
                after,
                "left out: fast memory would be the slower",
            ),
            (true, true) => of_latencies(
                latencies,
                after,
                "taken: it fits and does not overload fast memory",
            ),
        };
        if taken {
            used += weight;
            load = after;
        }
        choices.push(Choice::new(item, taken, reason));
    }
    choices
}

/// A reason with the latencies of both tiers under a load, where they are known.
fn of_latencies(latencies: Option<&Latencies>, load: u64, reason: &str) -> String {
    latencies.map_or_else(
        || reason.to_owned(),
        |latencies| {
            let (here, next) = latencies.under(load);
            format!("{reason}, {here:.0} ns under load against {next:.0} ns")
        },
    )
}

#[cfg(test)]
mod tests {
    use super::Balance;
    use crate::properties::{items, node_tiers};
    use crate::{PlanRequest, plan};
    use isotherm_model::plan::Plan;
    use isotherm_model::tier::{Tier, TierIndex, Tiers};
    use isotherm_model::units::{Bytes, Nanos};
    use proptest::prelude::*;

    /// Two tiers, each of (bytes, nanoseconds, bytes a second).
    fn pair(tiers: [(u64, u64, u64); 2]) -> Tiers {
        let plain = node_tiers(&tiers.map(|(capacity, ..)| capacity));
        let known = plain.all().iter().zip(tiers).map(|(tier, facts)| Tier {
            latency: Some(Nanos(facts.1)),
            read_bandwidth: Some(facts.2),
            ..tier.clone()
        });
        Tiers::new(known.collect()).unwrap()
    }

    fn planned(list: &[(u64, u64)], tiers: &Tiers) -> Plan {
        plan(&PlanRequest::new(&Balance, &items(list), tiers))
    }

    /// Bytes a second in the fast tier.
    fn load(plan: &Plan) -> u64 {
        let fast = plan.assignments.iter();
        let fast = fast.filter(|site| site.tier == TierIndex::FASTEST);
        fast.map(|site| site.value).sum()
    }

    #[test]
    fn of_tiers_of_one_latency_the_load_is_divided_as_their_bandwidths() {
        // 24 sites of 1 GB/s: 16 and 8 at bandwidths of 10 and 5, as BATMAN divides them, though all would fit.
        let sites = [(1_000_000_000, 4096); 24];
        let tiers = pair([
            (1 << 30, 100, 10_000_000_000),
            (1 << 40, 100, 5_000_000_000),
        ]);
        assert_eq!(load(&planned(&sites, &tiers)), 16_000_000_000);
    }

    #[test]
    fn a_fast_tier_below_its_bandwidth_is_filled() {
        let sites = [(1_000_000_000, 4096); 12];
        let tiers = pair([
            (1 << 30, 100, 40_000_000_000),
            (1 << 40, 250, 5_000_000_000),
        ]);
        assert_eq!(load(&planned(&sites, &tiers)), 12_000_000_000);
        let small = pair([
            (3 * 4096, 100, 40_000_000_000),
            (1 << 40, 250, 5_000_000_000),
        ]);
        assert_eq!(load(&planned(&sites, &small)), 3_000_000_000);
    }

    #[test]
    fn memory_of_a_lower_latency_takes_more_than_its_share_of_the_bandwidth() {
        // With 30 GB/s in all: 100 ns x load / 10 is equal to 200 ns x the rest / 5 at 24 and 6.
        let sites = [(1_000_000_000, 4096); 30];
        let tiers = pair([
            (1 << 30, 100, 10_000_000_000),
            (1 << 40, 200, 5_000_000_000),
        ]);
        assert_eq!(load(&planned(&sites, &tiers)), 24_000_000_000);
    }

    #[test]
    fn each_site_has_the_latencies_as_its_reason() {
        let sites = [(9_000_000_000, 4096), (8_000_000_000, 4096)];
        let tiers = pair([
            (1 << 30, 100, 10_000_000_000),
            (1 << 40, 100, 5_000_000_000),
        ]);
        let plan = planned(&sites, &tiers);
        assert_eq!(
            plan.assignments[0].reason,
            "taken: it fits and does not overload fast memory, 100 ns under load against 160 ns"
        );
        assert_eq!(
            plan.assignments[1].reason,
            "left out: fast memory would be the slower, 170 ns under load against 100 ns"
        );
    }

    proptest! {
        /// The tier of the higher latency has nothing that the other one would serve sooner, as far as whole sites of one size allow.
        #[test]
        fn no_site_of_equal_ones_would_be_served_sooner_in_the_other_tier(
            count in 1_usize..60, value in 1_u64..2_000_000_000, fast in 1_u64..60, slow in 1_u64..60,
            latencies in (50_u64..200, 50_u64..400)
        ) {
            let tiers = pair([
                (1 << 40, latencies.0, fast * 1_000_000_000), (1 << 40, latencies.1, slow * 1_000_000_000)
            ]);
            let sites = vec![(value, 4096); count];
            let (total, load) = (value * count as u64, load(&planned(&sites, &tiers)));
            let [here, next] = [0, 1].map(|tier| tiers.loaded_latency(TierIndex(tier)).unwrap());
            // One more would be past the point where both are equal.
            if load < total {
                prop_assert!(here.at(load + value) > next.at(total - load - value));
            }
            // One fewer would not, or the last one lowered the higher latency.
            if load > 0 {
                let before = load - value;
                let higher = here.at(before).max(next.at(total - before));
                prop_assert!(here.at(load) <= next.at(total - load) || here.at(load) < higher);
            }
        }
    }

    #[test]
    fn tiers_of_unknown_speed_are_filled() {
        let sites = [(9, 4096), (8, 4096)];
        let plan = planned(&sites, &node_tiers(&[4096, 1 << 40]));
        assert_eq!(
            (load(&plan), plan.bytes_in(TierIndex::FASTEST)),
            (9, Bytes(4096))
        );
    }
}
