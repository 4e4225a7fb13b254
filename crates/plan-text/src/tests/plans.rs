//! Generates any plan that can be written, for the property tests.

use proptest::prelude::*;

use isotherm_model::colour::{Colour, ColourDevices};
use isotherm_model::count_unit::CountUnit;
use isotherm_model::emulation::{Emulation, Factor, PageTrapCosts, TimeCosts};
use isotherm_model::loaded_latency::LoadPoint;
use isotherm_model::plan::{
    Assignment, Caller, ExpectedTimes, LeadingBytes, PlacedPart, Plan, PlanBounds, Value, Weight,
};
use isotherm_model::shared_bandwidth::{BytesPerSecond, SharedBandwidth};
use isotherm_model::site::{CallerId, Frame, SiteId};
use isotherm_model::tier::{Placement, Tier, TierIndex, TierKind, Tiers};
use isotherm_model::units::{Bytes, Nanos};

fn tiers() -> impl Strategy<Value = Tiers> {
    let cost = 0..=Emulation::COST_AT_MOST.0;
    let period = 1..=PageTrapCosts::PERIOD_AT_MOST.0;
    let costs = (period, cost.clone(), cost.clone(), cost);
    let pair = (1_u64.., any::<u64>(), costs, ".{0,12}").prop_map(|(fast, slow, c, reason)| {
        let emulation = match Factor::from_percent((c.0 % 10_001) as u32) {
            Some(factor) => Emulation::Time(TimeCosts {
                latency: factor,
                bandwidth: Factor::ONE,
                migrate: Nanos(c.3),
                shared: SharedBandwidth::new(
                    BytesPerSecond::new(c.3),
                    BytesPerSecond::new(c.1),
                    (c.2 % 2 == 0).then(|| "lab-2".parse().unwrap()),
                )
                .map(|shared| shared.with_capacity(Bytes(c.0))),
            }),
            None => Emulation::PageTrap(PageTrapCosts {
                period: Nanos(c.0),
                access: Nanos(c.1),
                hot: Nanos(c.2),
                migrate: Nanos(c.3),
            }),
        };
        let pair = Tiers::emulated(Bytes(fast), Bytes(slow), emulation);
        let mut list = pair.all().to_vec();
        list[0].reason = reason;
        Tiers::new(list).unwrap()
    });
    let node = (
        1_u64..,
        any::<bool>(),
        [1_000_000_000, 1_000_000_000_000_000, 1_000_000_000_000_000]
            .map(|most: u64| prop::option::of(0..=most)),
        ".{0,12}",
        0_usize..3,
    );
    let nodes = prop::collection::vec((node, loaded()), 1..4).prop_map(|list| {
        let tier = |(i, ((capacity, bind, facts, text, nodes), loaded)): (usize, _)| {
            let first = i as u32 * 10;
            let [latency, read_bandwidth, write_bandwidth]: [Option<u64>; 3] = facts;
            Tier {
                name: format!("{text}{i}"),
                kind: TierKind::Nodes((first..first + nodes as u32).collect()),
                capacity: Bytes(capacity),
                placement: if bind {
                    Placement::Bind
                } else {
                    Placement::Preferred
                },
                latency: latency.map(Nanos),
                read_bandwidth,
                write_bandwidth,
                loaded,
                reason: text,
            }
        };
        Tiers::new(list.into_iter().enumerate().map(tier).collect()).unwrap()
    });
    prop_oneof![pair, nodes]
}

/// Up to three parts that this number names, side by side and apart.
fn parts(number: u64, tiers: u32) -> Vec<PlacedPart> {
    let mut end = 0;
    (0..number % 4)
        .map(|nth| {
            let start = end + number / 4 % 3 * 4096;
            end = start + (number % 1000 + 1) * 4096;
            PlacedPart {
                start: Bytes(start),
                end: Bytes(end),
                tier: TierIndex((number + nth) as u32 % tiers),
                value: number >> nth,
                weight: Bytes(number >> nth),
            }
        })
        .collect()
}

/// Leading memory of a site without parts.
fn leading(site: u64, number: u64, tiers: u32) -> Option<LeadingBytes> {
    parts(number, tiers).is_empty().then_some(LeadingBytes {
        site: SiteId(site),
        tier: TierIndex((number >> 2) as u32 % tiers),
        bytes: Bytes(number + 1),
        value: number,
    })
}

prop_compose! {
    pub(super) fn plans()(
        tiers in tiers(),
        words in prop::collection::vec(any::<String>(), 0..4),
        policy in any::<String>(),
        numbers in [0..=1_u64 << 62, 0..=1_u64 << 62, 0..=1_u64 << 62, 0..=1_u64 << 62],
        depth in 0..=8_u32,
        sites in prop::collection::btree_map(
            1_u64..,
            (0..=1_u64 << 62, 0..=1_u64 << 57, any::<u32>(), callers(), text(), text()),
            0..8
        ),
        frames in prop::collection::vec(prop::collection::vec(frames(), 1..3), 0..8),
        small in prop::collection::btree_map(2_u64.., callers(), 0..24),
        expected in prop::option::of(expected()),
    ) -> Plan {
        let count = tiers.all().len() as u32;
        let mut assignments: Vec<Assignment> = sites
            .into_iter()
            .map(|(id, (value, weight, tier, caller, label, reason))| Assignment {
                site: SiteId(id),
                tier: TierIndex(tier % count),
                value,
                weight: Bytes(weight),
                parts: if id > 1 { parts(weight, count) } else { Vec::new() },
                leading: leading(id, weight, count).filter(|_| id > 1),
                caller,
                reason,
                label,
            })
            .collect();
        assignments.sort_by(Assignment::hotter_first);
        let frames = assignments
            .iter()
            .zip(frames)
            .map(|(assignment, frames)| (assignment.site, frames))
            .collect();
        let is_planned = |site: &SiteId| assignments.iter().any(|a| a.site == *site);
        let small = small
            .into_iter()
            .map(|(site, caller)| (SiteId(site), without_others(caller)))
            .filter(|(site, _)| !is_planned(site))
            .collect();
        let [planned, first_touch, bound, total] = numbers;
        Plan {
            policy,
            value: Value::Bandwidth,
            counted: [CountUnit::Accesses, CountUnit::Time][depth as usize % 2],
            weight: Weight::PeakRequested,
            command: words,
            depth,
            default_tier: TierIndex(depth % count),
            small,
            tiers,
            standing: PlanBounds { planned, first_touch, bound, total },
            colours: colours(count, depth),
            expected,
            assignments,
            frames,
        }
    }
}

/// Two colours, where there are tiers for them.
fn colours(tiers: u32, devices: u32) -> Vec<ColourDevices> {
    let devices_of = |(colour, tier)| ColourDevices {
        colour,
        tier: TierIndex(tier),
        devices,
        device: Bytes(u64::from(devices) << 30),
    };
    let all = [(Colour::Hot, 0), (Colour::Cold, tiers - 1)].map(devices_of);
    all.into_iter().take(tiers.min(2) as usize).collect()
}

/// Points of a curve of latency by load, which the reader takes in any order.
fn loaded() -> impl Strategy<Value = Vec<LoadPoint>> {
    let point = (0_u64..=1_000_000_000_000_000, 0_u64..=1_000_000_000);
    let point = point.prop_map(|(bandwidth, nanos)| LoadPoint {
        bandwidth,
        latency: Nanos(nanos),
    });
    prop::collection::vec(point, 0..5)
}

/// Times are written in thousandths.
fn expected() -> impl Strategy<Value = ExpectedTimes> {
    let thousandths = prop::array::uniform4(1..=1_000_000_u32);
    thousandths.prop_map(|times| {
        let [all_slow, first_touch, planned, bound] = times.map(|time| f64::from(time) / 1e3);
        ExpectedTimes {
            all_slow,
            first_touch,
            planned,
            bound,
        }
    })
}

prop_compose! {
    fn frames()(
        module in any::<String>(),
        words in any::<[Option<String>; 4]>(),
        offset in any::<u64>(),
        numbers in any::<[Option<u32>; 3]>(),
    ) -> Frame {
        let [build_id, function, file, variable] = words;
        let [line, column, function_line] = numbers;
        let (module, build_id) = (module.into(), build_id.map(Into::into));
        Frame { module, build_id, offset, function, file, line, column, function_line, variable }
    }
}

fn callers() -> impl Strategy<Value = Caller> {
    let direct = |(id, has_others)| Caller::Direct {
        id: CallerId(id),
        has_others,
    };
    prop_oneof![
        Just(Caller::Unknown),
        Just(Caller::None),
        any::<(u64, bool)>().prop_map(direct)
    ]
}

/// The caller as small sites have it: which other contexts a caller has is said only of sites with a tier.
fn without_others(caller: Caller) -> Caller {
    match caller {
        Caller::Direct { id, .. } => Caller::Direct {
            id,
            has_others: false,
        },
        other => other,
    }
}

/// Texts that comments find hard: dashes, hashes, quotes, backslashes, blanks at the ends.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[-# \"\\\\u{}x\t\n]{0,10}",
        Just("operator-- (x.cc:1) -- y".to_owned())
    ]
}
