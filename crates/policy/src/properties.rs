//! Tests properties of every site policy, and compares hotset, thermos and knapsack on examples. Its helpers construct sites and tiers for
//! other tests.

use isotherm_model::plan::Item;
use isotherm_model::port::SitePolicy;
use isotherm_model::site::SiteId;
use isotherm_model::tier::{Placement, Tier, TierKind, Tiers};
use isotherm_model::units::Bytes;
use proptest::prelude::*;

use crate::knapsack::PAGE;
use crate::standing::by_hotness;
use crate::{
    AllFast, AllSlow, FirstTouch, Fractional, Hotset, Knapsack, POLICIES, PlanRequest, Ratio,
    SizeThreshold, StaticRatio, Thermos, bound, by_name, names, plan,
};

/// Sites from (value, weight in bytes); ids and order by position.
pub(crate) fn items(list: &[(u64, u64)]) -> Vec<Item> {
    list.iter()
        .enumerate()
        .map(|(i, &(value, weight))| Item {
            site: SiteId(i as u64 + 2),
            value,
            weight: Bytes(weight),
            order: i as u32,
        })
        .collect()
}

/// Tiers of these capacities, one node each.
pub(crate) fn node_tiers(capacities: &[u64]) -> Tiers {
    let tier = |(i, &capacity): (usize, &u64)| Tier {
        name: format!("tier{i}"),
        kind: TierKind::Nodes(vec![i as u32]),
        capacity: Bytes(capacity),
        placement: Placement::Preferred,
        latency: None,
        read_bandwidth: None,
        write_bandwidth: None,
        loaded: Vec::new(),
        reason: String::new(),
    };
    Tiers::new(capacities.iter().enumerate().map(tier).collect()).unwrap()
}

/// Positions of the taken sites, ascending.
pub(crate) fn taken(policy: &dyn SitePolicy, items: &[Item], capacity: Bytes) -> Vec<usize> {
    let choices = policy.choose(items, capacity);
    assert_eq!(
        choices.len(),
        items.len(),
        "{} names every site",
        policy.name()
    );
    let mut taken: Vec<usize> = choices.iter().filter(|c| c.taken).map(|c| c.item).collect();
    taken.sort_unstable();
    taken
}

fn sums(items: &[Item], taken: &[usize]) -> (u128, u128) {
    taken.iter().fold((0, 0), |(value, weight), &i| {
        (
            value + u128::from(items[i].value),
            weight + u128::from(items[i].weight.0),
        )
    })
}

/// Best value by the textbook table over capacities in pages: the reference implementation.
fn table(items: &[Item], capacity: Bytes) -> u128 {
    let mut best = vec![0_u128; (capacity.0 / PAGE) as usize + 1];
    for item in items {
        let pages = item.weight.0.div_ceil(PAGE) as usize;
        for room in (pages..best.len()).rev() {
            best[room] = best[room].max(best[room - pages] + u128::from(item.value));
        }
    }
    best[best.len() - 1]
}

fn site() -> impl Strategy<Value = (u64, u64)> {
    let value = prop_oneof![8 => 0_u64..100, 1 => Just(0), 1 => Just(u64::MAX)];
    let weight = prop_oneof![
        8 => (0_u64..40).prop_map(|pages| pages * PAGE),
        2 => 0..20 * PAGE,
        1 => Just(u64::MAX)
    ];
    (value, weight)
}

fn sites() -> impl Strategy<Value = Vec<Item>> {
    prop::collection::vec(site(), 0..24).prop_map(|list| items(&list))
}

fn capacity() -> impl Strategy<Value = Bytes> {
    prop_oneof![
        8 => (0..200 * PAGE).prop_map(Bytes),
        1 => Just(Bytes(0)),
        1 => Just(Bytes(u64::MAX))
    ]
}

proptest! {
    #[test]
    fn the_plan_does_not_depend_on_the_order_of_the_sites(
        sites in sites(), capacity in capacity(), turn in 0_usize..24
    ) {
        let tiers = node_tiers(&[capacity.0, capacity.0 / 2, u64::MAX]);
        let mut turned = sites.clone();
        turned.rotate_left(turn % sites.len().max(1));
        turned.reverse();
        for policy in names().filter_map(by_name) {
            let a = plan(&PlanRequest::new(policy, &sites, &tiers));
            let b = plan(&PlanRequest::new(policy, &turned, &tiers));
            prop_assert_eq!(a, b);
        }
    }

    #[test]
    fn whole_sites_fit_where_the_definition_says_so_and_no_standing_passes_the_bound(
        sites in sites(), capacity in capacity()
    ) {
        let ratio: &'static dyn SitePolicy = &StaticRatio {
            ratio: Some(Ratio { fast: 2, slow: 1 }),
        };
        // A policy that may exceed the capacity states why, and has its own test.
        let others = names().filter_map(by_name).filter(|policy| policy.overfills().is_none());
        for policy in others.chain([ratio]) {
            let (_, weight) = sums(&sites, &taken(policy, &sites, capacity));
            prop_assert!(weight <= u128::from(capacity.0), "{}", policy.name());
        }
        let (_, weight) = sums(&sites, &taken(ratio, &sites, capacity));
        prop_assert!(weight * 3 <= sums(&sites, &(0..sites.len()).collect::<Vec<_>>()).1 * 2);
        let tiers = node_tiers(&[capacity.0, u64::MAX]);
        for policy in names().filter_map(by_name) {
            let standing = plan(&PlanRequest::new(policy, &sites, &tiers)).standing;
            prop_assert!(standing.planned <= standing.bound, "{} {standing:?}", policy.name());
            prop_assert!(standing.first_touch <= standing.bound);
            prop_assert!(standing.bound <= standing.total);
        }
    }

    #[test]
    fn knapsack_equals_the_table_and_no_policy_beats_it_in_the_bytes_it_used(
        list in prop::collection::vec((0_u64..60, 0_u64..25), 0..18), pages in 0_u64..120
    ) {
        let list: Vec<_> = list.into_iter().map(|(v, w)| (v, w * PAGE)).collect();
        let sites = items(&list);
        let capacity = Bytes(pages * PAGE);
        let (best, _) = sums(&sites, &taken(&Knapsack::DEFAULT, &sites, capacity));
        prop_assert_eq!(best, table(&sites, capacity));
        prop_assert!(best <= u128::from(bound(&sites, capacity)));
        for policy in POLICIES {
            let (value, used) = sums(&sites, &taken(policy, &sites, capacity));
            let at = Bytes((used as u64).max(capacity.0));
            let (best, _) = sums(&sites, &taken(&Knapsack::DEFAULT, &sites, at));
            prop_assert!(best >= value, "{}", policy.name());
        }
    }

    #[test]
    fn knapsack_equals_the_table_on_strongly_correlated_sites_and_huge_values(
        weights in prop::collection::vec(1_u64..60, 1..20), pages in 0_u64..400,
        surplus in 0_u64..12, scale in prop_oneof![Just(1_u64), Just(u64::MAX / 80)]
    ) {
        let list: Vec<_> = weights.iter().map(|w| ((w + surplus) * scale, w * PAGE)).collect();
        let sites = items(&list);
        let capacity = Bytes(pages * PAGE);
        let (best, _) = sums(&sites, &taken(&Knapsack::DEFAULT, &sites, capacity));
        prop_assert_eq!(best, table(&sites, capacity));
    }

    #[test]
    fn more_capacity_never_serves_less_where_the_definition_is_monotone(
        sites in sites(), small in capacity(), more in 0_u64..50 * PAGE
    ) {
        let large = Bytes(small.0.saturating_add(more));
        prop_assert!(bound(&sites, small) <= bound(&sites, large));
        let value = |policy: &dyn SitePolicy, at| sums(&sites, &taken(policy, &sites, at)).0;
        prop_assert!(value(&Knapsack::DEFAULT, small) <= value(&Knapsack::DEFAULT, large));
        let names = [
            "hotset", "fractional", "first-touch", "all-fast", "all-slow", "size-threshold",
            "size-threshold-larger",
        ];
        for policy in names.into_iter().filter_map(by_name) {
            let (few, many) = (taken(policy, &sites, small), taken(policy, &sites, large));
            prop_assert!(few.iter().all(|i| many.contains(i)), "{}", policy.name());
        }
        // The walk of a static ratio is not monotone, only its allowance is: a site that now fits
        // may keep out smaller ones after it.
        let ratio = |fast| Ratio { fast, slow: 3 }.of(large);
        prop_assert!(ratio(1) <= ratio(2) && ratio(2) <= large);
    }

    #[test]
    fn hotset_and_first_touch_go_past_the_capacity_by_less_than_the_last_site_they_take(
        sites in sites(), capacity in capacity()
    ) {
        let limit = u128::from(capacity.0);
        for policy in [&Hotset as &dyn SitePolicy, &FirstTouch] {
            let choices = policy.choose(&sites, capacity);
            let taken: Vec<usize> = choices.iter().filter(|c| c.taken).map(|c| c.item).collect();
            // Sites without weight follow even after the tier is full, and change nothing.
            let heavy = taken.iter().rposition(|&i| sites[i].weight > Bytes(0));
            let before_last = sums(&sites, &taken[..heavy.unwrap_or(0)]).1;
            prop_assert!(before_last <= limit, "{}", policy.name());
        }
        let everything: Vec<usize> = (0..sites.len()).collect();
        prop_assert_eq!(taken(&AllFast, &sites, capacity), everything);
        prop_assert!(taken(&AllSlow, &sites, capacity).is_empty());
    }

    #[test]
    fn thermos_is_its_definition_site_by_site(
        list in prop::collection::vec((0_u64..100, 0_u64..40), 0..24), capacity in 0_u64..200
    ) {
        let sites = items(&list);
        let mut fast: Vec<usize> = Vec::new();
        for site in by_hotness(&sites) {
            let used = sums(&sites, &fast).1;
            let weight = u128::from(sites[site].weight.0);
            let over = (used + weight).saturating_sub(u128::from(capacity));
            // The value of the hottest bytes already taken, as many as overflow.
            let (mut left, mut displaced) = (over, 0);
            for &i in &fast {
                let (value, bytes) = sums(&sites, &[i]);
                let part = bytes.min(left);
                displaced += if part == bytes { value } else { value * part / bytes };
                left -= part;
            }
            let fits = over == 0 || weight == 0;
            if fits || u128::from(sites[site].value) > displaced {
                fast.push(site);
            }
        }
        fast.sort_unstable();
        prop_assert_eq!(taken(&Thermos::default(), &sites, Bytes(capacity)), fast);
    }

    #[test]
    fn every_site_has_one_of_any_number_of_tiers_and_two_runs_agree(
        sites in sites(), capacities in prop::collection::vec(0..100 * PAGE, 1..6)
    ) {
        let tiers = node_tiers(&capacities);
        for policy in names().filter_map(by_name) {
            let plan = || plan(&PlanRequest::new(policy, &sites, &tiers));
            let first = plan();
            prop_assert_eq!(&first, &plan());
            let mut placed: Vec<SiteId> = first.assignments.iter().map(|a| a.site).collect();
            placed.sort_unstable();
            prop_assert_eq!(placed, sites.iter().map(|s| s.site).collect::<Vec<_>>());
            prop_assert!(first.assignments.iter().all(|a| a.tier <= tiers.slowest()));
            prop_assert!(first.assignments.iter().all(|a| !a.reason.is_empty()));
        }
        // Policies that never overfill a tier fit into every tier but the last.
        for name in ["knapsack", "static-ratio", "size-threshold", "size-threshold-larger"] {
            let plan = plan(&PlanRequest::new(by_name(name).unwrap(), &sites, &tiers));
            let faster = tiers.all().iter().zip(0..tiers.slowest().0);
            for (tier, index) in faster {
                let assigned = plan.assignments.iter().filter(|a| a.tier.0 == index);
                let bytes: u128 = assigned.map(|a| u128::from(a.weight.0)).sum();
                prop_assert!(bytes <= u128::from(tier.capacity.0), "{name} in tier {index}");
            }
        }
    }

    #[test]
    fn thermos_takes_a_part_of_hotset_and_what_colder_sites_bring(
        sites in sites(), capacity in capacity()
    ) {
        // Every site that fits without overflow when its turn comes is in both.
        let hotset = taken(&Hotset, &sites, capacity);
        let fits = taken(&Fractional, &sites, capacity);
        let thermos = taken(&Thermos::default(), &sites, capacity);
        prop_assert!(fits.iter().all(|i| hotset.contains(i) && thermos.contains(i)));
    }
}

#[test]
fn hotset_takes_the_crossing_site_that_thermos_refuses_and_knapsack_replaces() {
    // 12 pages. A is hottest, B crosses. Thermos refuses B, which could displace the hottest 4
    // pages of A (worth 400) for 300, and takes C, which fits. Knapsack agrees with thermos here.
    let sites = items(&[(1000, 10 * PAGE), (300, 6 * PAGE), (40, 2 * PAGE)]);
    let capacity = Bytes(12 * PAGE);
    assert_eq!(taken(&Hotset, &sites, capacity), [0, 1]);
    assert_eq!(taken(&Thermos::default(), &sites, capacity), [0, 2]);
    assert_eq!(taken(&Knapsack::DEFAULT, &sites, capacity), [0, 2]);
}

#[test]
fn knapsack_leaves_the_hottest_site_out_because_two_lukewarm_ones_fill_the_tier_better() {
    // The hottest, 6 pages of 10, blocks both others (5 pages each), which together are worth more.
    // Hotset lets B cross. Thermos takes B too (50 beats the 10 it could displace) and refuses C.
    let sites = items(&[(66, 6 * PAGE), (50, 5 * PAGE), (49, 5 * PAGE)]);
    let capacity = Bytes(10 * PAGE);
    assert_eq!(taken(&Knapsack::DEFAULT, &sites, capacity), [1, 2]);
    assert_eq!(taken(&Hotset, &sites, capacity), [0, 1]);
    assert_eq!(taken(&Thermos::default(), &sites, capacity), [0, 1]);
}

#[test]
fn thermos_takes_a_large_site_that_knapsack_must_refuse_because_a_part_of_it_is_worth_more() {
    // B never fits whole, but even after displacing all of A it gains more.
    let sites = items(&[(100, 4 * PAGE), (5000, 400 * PAGE), (10, 4 * PAGE)]);
    let capacity = Bytes(8 * PAGE);
    assert_eq!(taken(&Knapsack::DEFAULT, &sites, capacity), [0, 2]);
    assert_eq!(taken(&Thermos::default(), &sites, capacity), [0, 1]);
    assert_eq!(taken(&Hotset, &sites, capacity), [0, 1]);
}

#[test]
fn all_three_differ_because_hotset_overfills_thermos_keeps_to_the_order_and_knapsack_does_not() {
    // Ten pages. All take A, the hottest. B exceeds the capacity by four pages, and the hottest
    // four of A are worth more (66), so thermos refuses B and hotset takes it. C fits and is next
    // by hotness, so thermos takes it; D, colder but worth more, then no longer fits. Knapsack
    // leaves C out for D.
    let sites = items(&[
        (100, 6 * PAGE),
        (40, 8 * PAGE),
        (14, 3 * PAGE),
        (15, 4 * PAGE),
    ]);
    let capacity = Bytes(10 * PAGE);
    assert_eq!(taken(&Hotset, &sites, capacity), [0, 1]);
    assert_eq!(taken(&Thermos::default(), &sites, capacity), [0, 2]);
    assert_eq!(taken(&Knapsack::DEFAULT, &sites, capacity), [0, 3]);
}

#[test]
fn static_ratio_and_size_threshold_fill_three_tiers_with_what_the_faster_left() {
    let sites = items(&[(1, 3), (1, 1), (1, 2), (1, 9)]);
    let tiers = node_tiers(&[3, 3, 99]);
    let tier_of = |policy: &dyn SitePolicy| -> Vec<u32> {
        let plan = plan(&PlanRequest::new(policy, &sites, &tiers));
        sites.iter().map(|s| plan.tier_of(s.site).0).collect()
    };
    assert_eq!(tier_of(&SizeThreshold::default()), [1, 0, 0, 2]);
    // Half of the 15 bytes is more than a tier holds, so the tiers limit it: 3 bytes each.
    let half = StaticRatio {
        ratio: Some(Ratio { fast: 1, slow: 1 }),
    };
    let tiers_used = tier_of(&half);
    assert_eq!(tiers_used[3], 2);
    assert_eq!(tiers_used.iter().filter(|&&tier| tier < 2).count(), 3);
}

#[test]
fn a_knapsack_that_meets_its_limit_says_so_and_still_fits() {
    let list: Vec<_> = (1..200_u64)
        .map(|i| (i % 37 + 11, (i % 37 + 1) * PAGE))
        .collect();
    let sites = items(&list);
    let capacity = Bytes(1001 * PAGE);
    let limited = Knapsack::with_steps(3);
    let choices = limited.choose(&sites, capacity);
    assert!(
        choices.iter().all(|c| c.reason.contains("not proved")),
        "{}",
        choices[0].reason
    );
    let (value, weight) = sums(&sites, &taken(&limited, &sites, capacity));
    assert!(weight <= u128::from(capacity.0));
    assert!(value <= table(&sites, capacity));
    let proved = Knapsack::DEFAULT.choose(&sites, capacity);
    assert!(proved.iter().all(|c| !c.reason.contains("not proved")));
}
