//! [`expected_times`] predicts the run times of a plan and of its bounds, relative to all data fast: from how long the recorded program
//! waited for the data of each site, the bandwidths of sites and tiers where they are known, and the time to find calling contexts.

use std::collections::BTreeMap;
use std::ops::Range;

use isotherm_model::count_unit::CountUnit;
use isotherm_model::plan::{Assignment, Caller, ExpectedTimes, Item, Plan, Value};
use isotherm_model::profile::{Profile, WaitingShare};
use isotherm_model::site::{Site, SiteId};
use isotherm_model::tier::{SlowFactors, TierIndex, Tiers};
use isotherm_model::units::{Bytes, Nanos};

use crate::parts::{SitePart, SiteParts};
use crate::sampled_bandwidths::sampled_bandwidths;
use crate::site_bandwidths::site_bandwidths;

/// Parts of the run's time with all data fast, for values in whole numbers.
const PARTS: f64 = 1e12;

/// The expected times of the placements, over the time with all data fast. The rule is that of [`isotherm_model::plan::PlanBounds`], where
/// the value of a site is the time that its data adds when it is slow. If the bandwidths of sites and tiers are known, or estimated for a
/// plan by estimates, a placement takes at least as long as the bytes of each tier take at its bandwidth. `None` where the profile does not
/// say how long the program waited, or the tiers do not say how much slower they are.
#[must_use]
pub fn expected_times(profile: &Profile, plan: &Plan, parts: &SiteParts) -> Option<ExpectedTimes> {
    let factors = plan.tiers.slow_factors()?;
    let waiting = profile.waiting_by_site()?;
    let added = |share: WaitingShare| (added_share(share, factors) * PARTS) as u64;
    let planned: BTreeMap<SiteId, &Assignment> = plan
        .assignments
        .iter()
        .map(|site| (site.site, site))
        .collect();
    let bandwidths = match plan.value {
        Value::SampledBandwidth => sampled_bandwidths(profile).unwrap_or_default(),
        Value::Accesses | Value::Bandwidth | Value::Latency => site_bandwidths(profile),
    };
    let (mut items, mut taken) = (Vec::new(), Vec::new());
    let mut traffic = Traffic::default();
    for item in super::items(profile, Value::Accesses, plan.weight) {
        let waits = waiting.get(&item.site).copied().unwrap_or_default();
        let assignment = planned.get(&item.site);
        for piece in pieces(&item, waits, parts.get(&item.site)) {
            for (share, is_fast) in piece.shares(assignment) {
                let timed = Item {
                    value: (added(piece.waits) as f64 * share) as u64,
                    weight: Bytes((piece.weight.0 as f64 * share) as u64),
                    ..item
                };
                items.push(timed);
                taken.extend(is_fast.then_some(timed));
                let bandwidth = bandwidths.get(&item.site).copied().unwrap_or_default();
                let moved = bandwidth as f64 * piece.share_of(&item, waits) * share;
                traffic.add(timed, moved as u64, is_fast);
            }
        }
    }
    let capacity = plan.tiers.all()[0].capacity;
    let bounds = isotherm_policy::standing(&items, &taken, capacity);
    let waited = |served: u64| 1.0 + bounds.total.saturating_sub(served) as f64 / PARTS;
    let moved = isotherm_policy::standing(&traffic.items, &traffic.taken, capacity);
    let bandwidths = TierBandwidths::of(&plan.tiers);
    let all_fast = bandwidths.time(moved.total, 0).max(1.0);
    let time = |served, fast: u64| {
        let slow = moved.total.saturating_sub(fast);
        waited(served).max(bandwidths.time(fast, slow)) / all_fast
    };
    Some(ExpectedTimes {
        all_slow: time(0, 0),
        first_touch: time(bounds.first_touch, moved.first_touch),
        planned: time(bounds.planned, moved.planned) + naming_share(profile, plan),
        bound: waited(bounds.bound).max(bandwidths.least_time(moved.total)) / all_fast,
    })
}

/// The bytes a second of the pieces, in the same order as their times.
#[derive(Default)]
struct Traffic {
    items: Vec<Item>,
    taken: Vec<Item>,
}

impl Traffic {
    fn add(&mut self, piece: Item, bytes_per_second: u64, is_fast: bool) {
        let moved = Item {
            value: bytes_per_second,
            ..piece
        };
        self.items.push(moved);
        self.taken.extend(is_fast.then_some(moved));
    }
}

/// Bytes a second that the fastest and the slowest tier serve at most; `None` where that is not known.
#[derive(Clone, Copy)]
struct TierBandwidths {
    fast: Option<u64>,
    slow: Option<u64>,
}

impl TierBandwidths {
    fn of(tiers: &Tiers) -> Self {
        Self {
            fast: tiers.bandwidth(TierIndex::FASTEST),
            slow: tiers.bandwidth(tiers.slowest()),
        }
    }

    /// The time in which both tiers, which serve at the same time, serve the bytes that the recorded run asked for in a second, in seconds.
    fn time(self, fast: u64, slow: u64) -> f64 {
        let time = |bytes: u64, bandwidth: Option<u64>| {
            bandwidth.map_or(0.0, |bandwidth| bytes as f64 / bandwidth as f64)
        };
        time(fast, self.fast).max(time(slow, self.slow))
    }

    /// The shortest time in which the tiers serve these bytes, divided between them in any way, in seconds.
    fn least_time(self, bytes: u64) -> f64 {
        let both = self.fast.zip(self.slow);
        both.map_or(0.0, |(fast, slow)| {
            bytes as f64 / (fast as f64 + slow as f64)
        })
    }
}

/// The time that data adds when it is slow, as a share of the time with all data fast.
pub(crate) fn added_share(waits: WaitingShare, factors: SlowFactors) -> f64 {
    waits.latency * (factors.latency - 1.0) + waits.bandwidth * (factors.bandwidth - 1.0)
}

/// The recorded processor time, of all threads; zero where no timer sampled at a known interval.
pub(crate) fn processor_time(profile: &Profile) -> Nanos {
    let timers = profile.sources.iter();
    let timers = timers.filter(|source| source.unit(false) == Some(CountUnit::Time));
    let samples = timers.fold(0, |sum: u64, timer| sum.saturating_add(timer.taken));
    let interval = profile.meta.sample_interval.unwrap_or_default();
    Nanos(samples.saturating_mul(interval.0))
}

/// How much longer an allocation takes in a guided run if its calling context decides its tier and not its direct caller, in nanoseconds:
/// measured on EPYC and Xeon, 17 for the context and the rest for the cache lines that it displaces.
const NAMING_NS: f64 = 25.0;

/// The time that a guided run takes to find calling contexts, as a share of the recorded processor time.
fn naming_share(profile: &Profile, plan: &Plan) -> f64 {
    if plan.assignments.is_empty() {
        return 0.0;
    }
    let planned = plan.assignments.iter().map(|site| (site.site, site.caller));
    let small = plan.small.iter().map(|(site, caller)| (*site, *caller));
    let callers: BTreeMap<SiteId, Caller> = planned.chain(small).collect();
    let tiers = plan.tiers_by_caller();
    let is_named = |site: &&Site| match callers.get(&site.id) {
        Some(Caller::Direct { id, .. }) => {
            let known = tiers.as_ref().map(|tiers| tiers.get(id));
            !matches!(known, Some(None | Some(Some(_))))
        }
        Some(Caller::Unknown) => true,
        Some(Caller::None) | None => false,
    };
    let named = profile.sites.iter().filter(is_named);
    let allocations: f64 = named.map(|site| site.allocations as f64).sum();
    allocations * NAMING_NS / (processor_time(profile).0 as f64).max(1.0)
}

/// A site or a part of it.
pub(crate) struct Piece {
    /// Its place in the objects; `None` for a whole site.
    pub(crate) place: Option<Range<Bytes>>,
    /// Its share of the site's bytes.
    pub(crate) weight: Bytes,
    /// Its share of the time that the program waited for the site.
    pub(crate) waits: WaitingShare,
}

impl Piece {
    /// Its share of the site's bandwidth: its share of the time waited, or of the bytes where nothing waited.
    fn share_of(&self, site: &Item, waits: WaitingShare) -> f64 {
        let of_all = waits.latency + waits.bandwidth;
        if of_all > 0.0 {
            (self.waits.latency + self.waits.bandwidth) / of_all
        } else {
            self.weight.0 as f64 / (site.weight.0 as f64).max(1.0)
        }
    }

    /// The shares of this piece that are in the fastest tier by the plan, and elsewhere, in the order of their places.
    fn shares(&self, site: Option<&&Assignment>) -> Vec<(f64, bool)> {
        let Some(site) = site else {
            return vec![(1.0, false)];
        };
        let rest_is_fast = site.tier == TierIndex::FASTEST;
        let Some(place) = &self.place else {
            return order_shares(site);
        };
        let length = place.end.saturating_sub(place.start).0.max(1) as f64;
        let mut shares = Vec::new();
        let mut next = place.start;
        for part in &site.parts {
            let (start, end) = (part.start.max(next), part.end.min(place.end));
            if start < end {
                shares.push(((start.0 - next.0) as f64 / length, rest_is_fast));
                shares.push((
                    (end.0 - start.0) as f64 / length,
                    part.tier == TierIndex::FASTEST,
                ));
                next = end;
            }
        }
        shares.push((
            place.end.saturating_sub(next).0 as f64 / length,
            rest_is_fast,
        ));
        shares.retain(|(share, _)| *share > 0.0);
        shares
    }
}

/// The shares of a site that are in the fastest tier by the plan, and elsewhere, in the order of allocation; its heat counts as even.
fn order_shares(site: &Assignment) -> Vec<(f64, bool)> {
    let rest = |share| (share, site.tier == TierIndex::FASTEST);
    let Some(first) = site.leading else {
        return vec![rest(1.0)];
    };
    let share = (first.bytes.0 as f64 / site.weight.0.max(1) as f64).min(1.0);
    vec![(share, first.tier == TierIndex::FASTEST), rest(1.0 - share)]
}

/// The parts of a site, or the whole site if it has none, each with its share of the site's bytes and of the time that the program waited
/// for it.
pub(crate) fn pieces(
    item: &Item,
    waits: WaitingShare,
    parts: Option<&Vec<SitePart>>,
) -> Vec<Piece> {
    let parts = parts.map_or(&[][..], Vec::as_slice);
    let sum =
        |of: fn(&SitePart) -> u64| parts.iter().map(of).fold(0, u64::saturating_add).max(1) as f64;
    let (bytes, streamed) = (sum(|part| part.bytes), sum(|part| part.streamed.0));
    let latency = |part: &SitePart| part.accesses.0.saturating_sub(part.streamed.0);
    let others = parts
        .iter()
        .map(latency)
        .fold(0, u64::saturating_add)
        .max(1) as f64;
    let pieces = parts.iter().map(|part| Piece {
        place: Some(part.start..part.end),
        weight: Bytes((item.weight.0 as f64 * (part.bytes as f64 / bytes)) as u64),
        waits: WaitingShare {
            latency: waits.latency * (latency(part) as f64 / others),
            bandwidth: waits.bandwidth * (part.streamed.0 as f64 / streamed),
        },
    });
    let whole = Piece {
        place: None,
        weight: item.weight,
        waits,
    };
    match parts.is_empty() {
        true => vec![whole],
        false => pieces.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{expected_times, order_shares};
    use crate::parts::SiteParts;
    use crate::waiting_profile::waiting_profile;
    use isotherm_model::emulation::{Emulation, Factor, TimeCosts};
    use isotherm_model::isolation_runs::{
        BandwidthCounter, IsolatedData, IsolationRun, IsolationRuns,
    };
    use isotherm_model::plan::{Assignment, Caller, LeadingBytes, Value, Weight};
    use isotherm_model::profile::Profile;
    use isotherm_model::sensitivity_runs::TierPair;
    use isotherm_model::shared_bandwidth::{BytesPerSecond, SharedBandwidth};
    use isotherm_model::site::{CallerId, SiteId};
    use isotherm_model::tier::{Placement, Tier, TierIndex, TierKind, Tiers};
    use isotherm_model::units::{Bytes, Nanos};
    use isotherm_policy::{PlanRequest, policy_from_text};

    fn tier(name: &str, kind: TierKind) -> Tier {
        Tier {
            name: name.to_owned(),
            kind,
            capacity: Bytes(1 << 20),
            placement: Placement::Preferred,
            latency: None,
            read_bandwidth: None,
            write_bandwidth: None,
            loaded: Vec::new(),
            reason: String::new(),
        }
    }

    fn expected(tiers: [Tier; 2]) -> Option<[f64; 4]> {
        expected_of(&waiting_profile(), tiers)
    }

    fn expected_of(profile: &Profile, tiers: [Tier; 2]) -> Option<[f64; 4]> {
        let tiers = Tiers::new(tiers.into()).expect("a pair");
        let items = crate::items(profile, Value::Accesses, Weight::PeakRss);
        let policy = policy_from_text("thermos").expect("a policy");
        let plan = isotherm_policy::plan(&PlanRequest::new(&*policy, &items, &tiers));
        let expected = expected_times(profile, &plan, &SiteParts::new())?;
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
    fn of_what_a_site_allocates_first_its_share_of_the_bytes_is_fast() {
        let site = |bytes: Option<u64>| Assignment {
            site: SiteId(5),
            tier: TierIndex(1),
            value: 9,
            weight: Bytes(8 << 20),
            parts: Vec::new(),
            leading: bytes.map(|bytes| LeadingBytes {
                site: SiteId(5),
                tier: TierIndex::FASTEST,
                bytes: Bytes(bytes),
                value: 1,
            }),
            caller: Caller::None,
            reason: String::new(),
            label: String::new(),
        };
        assert_eq!(order_shares(&site(None)), [(1.0, false)]);
        let quarter = order_shares(&site(Some(2 << 20)));
        assert_eq!(quarter, [(0.25, true), (0.75, false)]);
        // A plan edited by hand may name more bytes than the site had.
        let all = order_shares(&site(Some(16 << 20)));
        assert_eq!(all, [(1.0, true), (0.0, false)]);
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

    /// The tiers serve 10 and 5 GB/s, and an access to slow memory takes no longer.
    #[test]
    fn a_placement_takes_as_long_as_the_bytes_of_each_tier_take_at_its_bandwidth() {
        let limit = |gigabytes: u64| BytesPerSecond::new(gigabytes * 1_000_000_000);
        let costs = TimeCosts {
            latency: Factor::ONE,
            bandwidth: Factor::ONE,
            shared: SharedBandwidth::new(limit(10), limit(5), None),
            ..TimeCosts::CXL
        };
        let slow = TierKind::EmulatedSlow(Emulation::Time(costs));
        let pair = [tier("fast", TierKind::EmulatedFast), tier("slow", slow)];
        assert_times(expected(pair.clone()), [1.0; 4]);
        let mut profile = waiting_profile();
        let mut runs = IsolationRuns {
            tiers: TierPair::from_text(String::new()),
            counter: BandwidthCounter::EmulatedAccount,
            runs: Vec::new(),
        };
        for (site, gigabytes) in [(11, 8), (12, 4)] {
            runs.add(IsolationRun {
                isolated: IsolatedData::Site(SiteId(site)),
                bytes: Bytes(gigabytes * 1_000_000_000),
                time: Nanos(1_000_000_000),
            });
        }
        profile.isolation = Some(runs);
        // The 12 GB/s take 1.2 s all fast and 2.4 s all slow. First touch has the site of 8 GB/s in fast memory, the plan that of 4: then
        // the other one takes 1.6 s in slow memory.
        let found = expected_of(&profile, pair);
        assert_times(found, [2.0, 1.0 / 1.2, 1.6 / 1.2, 1.0 / 1.2]);
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

    /// A plan of the profile above with two sites of one caller in two tiers; each allocated ten thousand times a sample.
    #[test]
    fn telling_contexts_apart_is_part_of_the_expected_time() {
        let mut profile = waiting_profile();
        for site in &mut profile.sites {
            site.allocations = 5_000_000;
        }
        let tiers = Tiers::new(vec![
            tier("fast", TierKind::EmulatedFast),
            tier(
                "slow",
                TierKind::EmulatedSlow(Emulation::Time(TimeCosts::CXL)),
            ),
        ])
        .unwrap();
        let by_caller = |ids: [u64; 2]| {
            let items = crate::items(&profile, Value::Accesses, Weight::PeakRss);
            let direct = |id| Caller::Direct {
                id: CallerId(id),
                has_others: false,
            };
            let callers = [(SiteId(11), direct(ids[0])), (SiteId(12), direct(ids[1]))].into();
            let policy = policy_from_text("thermos").unwrap();
            let plan = isotherm_policy::plan(&PlanRequest {
                callers: Some(&callers),
                ..PlanRequest::new(&*policy, &items, &tiers)
            });
            super::naming_share(&profile, &plan)
        };
        assert_eq!(by_caller([7, 8]), 0.0, "the direct caller decides");
        // 10,000,000 allocations of 25 ns in a second.
        assert!(
            (by_caller([7, 7]) - 0.25).abs() < 1e-9,
            "{}",
            by_caller([7, 7])
        );
    }
}
