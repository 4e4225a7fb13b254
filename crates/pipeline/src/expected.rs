//! The times that a plan predicts, from how long the recorded program waited for each site.

use std::collections::BTreeSet;

use isotherm_model::plan::{ExpectedTimes, Item, Plan, Value};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::tier::TierIndex;

/// Parts of the run's time with all data fast, for values in whole numbers.
const PARTS: f64 = 1e12;

/// The expected times of the placements, over the time with all data fast. The rule is that of
/// [`isotherm_model::plan::PlanBounds`], where the value of a site is the time that its data adds when it is slow. `None` where the
/// profile does not say how long the program waited, or the tiers do not say how much slower they are.
#[must_use]
pub fn expected_times(profile: &Profile, plan: &Plan) -> Option<ExpectedTimes> {
    let factors = plan.tiers.slow_factors()?;
    let waiting = profile.waiting_by_site()?;
    let added = |site: SiteId| {
        let share = waiting.get(&site).copied().unwrap_or_default();
        let longer =
            share.latency * (factors.latency - 1.0) + share.bandwidth * (factors.bandwidth - 1.0);
        (longer * PARTS) as u64
    };
    let items: Vec<Item> = super::items(profile, Value::Accesses, plan.weight)
        .into_iter()
        .map(|item| Item {
            value: added(item.site),
            ..item
        })
        .collect();
    let fast = plan.assignments.iter();
    let fast: BTreeSet<SiteId> = fast
        .filter(|site| site.tier == TierIndex::FASTEST)
        .map(|site| site.site)
        .collect();
    let taken = items.iter().filter(|item| fast.contains(&item.site));
    let taken: Vec<Item> = taken.copied().collect();
    let bounds = isotherm_policy::standing(&items, &taken, plan.tiers.all()[0].capacity);
    let time = |served: u64| 1.0 + bounds.total.saturating_sub(served) as f64 / PARTS;
    Some(ExpectedTimes {
        all_slow: time(0),
        first_touch: time(bounds.first_touch),
        planned: time(bounds.planned),
        bound: time(bounds.bound),
    })
}

#[cfg(test)]
mod tests {
    use super::expected_times;
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::emulation::{Emulation, Factor, TimeCosts};
    use isotherm_model::plan::{Value, Weight};
    use isotherm_model::profile::{Heat, Meta, Profile};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::tier::{Placement, Tier, TierKind, Tiers};
    use isotherm_model::units::{Accesses, Bytes, Nanos};
    use isotherm_policy::{PlanRequest, policy_from_text};

    /// A profile of 1,000 samples: site 1 is made first and waits a tenth in streams, site 2 waits four tenths for the latency.
    fn profile() -> Profile {
        let mut profile = Profile::new(Meta::default());
        let site = |id| Site {
            first_seen: id,
            peak_rss: Bytes(1 << 20),
            ..Site::new(SiteId(id.into()), SiteKind::Heap)
        };
        profile.sites = vec![site(1), site(2)];
        let heat = |site, accesses, streamed| Heat {
            epoch: Epoch(0),
            process: Process::default(),
            site: SiteId(site),
            address: 0,
            object: None,
            accesses: Accesses(accesses),
            streamed: Accesses(streamed),
            served: Accesses(100),
        };
        profile.heat = vec![heat(1, 100, 100), heat(2, 400, 0)];
        profile.sources = vec![SourceReport {
            taken: 1000,
            usable: 700,
            ..SourceReport::new("timer", "")
        }];
        profile
    }

    fn tier(name: &str, kind: TierKind) -> Tier {
        Tier {
            name: name.to_owned(),
            kind,
            capacity: Bytes(1 << 20),
            placement: Placement::Preferred,
            latency: None,
            read_bandwidth: None,
            write_bandwidth: None,
            reason: String::new(),
        }
    }

    fn expected(tiers: [Tier; 2]) -> Option<[f64; 4]> {
        let tiers = Tiers::new(tiers.into()).expect("a pair");
        let profile = profile();
        let items = crate::items(&profile, Value::Accesses, Weight::PeakRss);
        let policy = policy_from_text("thermos").expect("a policy");
        let plan = isotherm_policy::plan(&PlanRequest::new(&*policy, &items, &tiers));
        let expected = expected_times(&profile, &plan)?;
        Some([
            expected.all_slow,
            expected.first_touch,
            expected.planned,
            expected.bound,
        ])
    }

    fn assert_times(found: Option<[f64; 4]>, right: [f64; 4]) {
        for (found, right) in found.expect("both are known").into_iter().zip(right) {
            assert!((found - right).abs() < 1e-9, "{found} instead of {right}");
        }
    }

    #[test]
    fn a_site_adds_its_waiting_times_the_factor_less_one() {
        let factor = |percent| Factor::from_percent(percent).expect("in range");
        let costs = TimeCosts {
            latency: factor(300),
            bandwidth: factor(200),
            migrate: Nanos(0),
            shared: None,
        };
        let slow = TierKind::EmulatedSlow(Emulation::Time(costs));
        let pair = [tier("fast", TierKind::EmulatedFast), tier("slow", slow)];
        assert_times(expected(pair), [1.9, 1.8, 1.1, 1.1]);
    }

    #[test]
    fn real_tiers_tell_their_factors_by_latency_and_bandwidth() {
        let node = |number, latency, read_bandwidth| Tier {
            latency,
            read_bandwidth,
            ..tier(&format!("node{number}"), TierKind::Nodes(vec![number]))
        };
        let (near, far) = (Some(Nanos(100)), Some(Nanos(300)));
        let times = |fast, slow| expected([node(0, near, fast), node(1, far, slow)]);
        assert_times(times(Some(2_000), Some(1_000)), [1.9, 1.8, 1.1, 1.1]);
        assert_times(times(None, None), [2.0, 1.8, 1.2, 1.2]);
        assert_eq!(expected([node(0, near, None), node(1, None, None)]), None);
    }
}
