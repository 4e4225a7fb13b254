//! Tests the online policy on a modelled machine that grants each request at once.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Online, OnlineConfig};
use isotherm_model::batch::{Batch, Epoch, Extent, Process};
use isotherm_model::emulation::Emulation;
use isotherm_model::outcome::{Action, Fate, Outcome};
use isotherm_model::profile::{Heat, Segment};
use isotherm_model::site::SiteId;
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::{Accesses, Bytes, Nanos};

const MIB: u64 = 1 << 20;
const FAST: TierIndex = TierIndex(0);
const SLOW: TierIndex = TierIndex(1);

/// A machine that grants each request at once.
struct Machine {
    online: Online,
    tiers: BTreeMap<SiteId, TierIndex>,
    epochs: u32,
}

impl Machine {
    fn new(fast: u64) -> Self {
        let tiers = Tiers::emulated(Bytes(fast), Bytes(1 << 40), Emulation::TMP);
        Self {
            online: Online::new(OnlineConfig::for_tiers(tiers)),
            tiers: BTreeMap::new(),
            epochs: 0,
        }
    }

    /// One epoch of a second: (accesses, bytes) by site.
    fn epoch(&mut self, sites: &[(u64, u64)]) -> Vec<Action> {
        let process = Process { pid: 7, image: 0 };
        let batch = Batch {
            epoch: Epoch(self.epochs),
            span: Nanos(1_000_000_000),
            ..Batch::default()
        };
        self.epochs += 1;
        let (mut segment, mut extents) = (Segment::default(), Vec::new());
        for (i, &(accesses, bytes)) in sites.iter().enumerate() {
            let site = SiteId(i as u64 + 2);
            extents.push(Extent {
                process,
                site,
                address: i as u64 * (1 << 32),
                bytes: Bytes(bytes),
                resident: Bytes(bytes),
                tier: self.tiers.get(&site).copied(),
            });
            segment.heat.push(Heat {
                epoch: Epoch(0),
                process,
                site,
                address: 0,
                object: None,
                accesses: Accesses(accesses),
                streamed: Accesses::ZERO,
                served: Accesses::ZERO,
            });
        }
        let actions = self.online.decide(&batch, &segment, &extents);
        for action in &actions {
            self.tiers.insert(action.site, action.tier);
        }
        actions
    }

    /// The tier that the policy wants for the data of this site.
    fn wanted(&self, site: u64) -> TierIndex {
        self.online.sites[&SiteId(site)].at
    }
}

fn moves(actions: &[Action]) -> Vec<(u64, TierIndex)> {
    actions.iter().map(|a| (a.site.0, a.tier)).collect()
}

#[test]
fn a_hot_site_in_the_slow_tier_replaces_a_cold_one_and_the_demotion_comes_first() {
    let mut machine = Machine::new(4 * MIB);
    machine.tiers = [(SiteId(2), FAST), (SiteId(3), SLOW)].into();
    let actions = machine.epoch(&[(1, 4 * MIB), (900_000, 3 * MIB)]);
    assert_eq!(moves(&actions), [(2, SLOW), (3, FAST)]);
    assert_eq!(machine.wanted(3), FAST);
    assert_eq!(machine.online.default_tier, SLOW);
    assert!(
        machine
            .epoch(&[(1, 4 * MIB), (900_000, 3 * MIB)])
            .is_empty()
    );
}

#[test]
fn a_move_that_does_not_pay_for_itself_is_not_made() {
    let mut machine = Machine::new(4 * MIB);
    machine.tiers = [(SiteId(2), SLOW)].into();
    // 3 MiB cost 768 * 50 us = 38 ms to move; 100 accesses save 10 ms in the horizon.
    let actions = machine.epoch(&[(100, 3 * MIB)]);
    assert!(actions.is_empty());
    assert_eq!(machine.wanted(2), SLOW);
    assert_eq!(moves(&machine.epoch(&[(9000, 3 * MIB)])), [(2, FAST)]);
}

#[test]
fn an_overfull_tier_lets_cold_data_go_and_asks_again_for_the_hot() {
    let mut machine = Machine::new(4 * MIB);
    // All data was placed in the fast tier by default; the hot site came last and spilled.
    let actions = machine.epoch(&[(0, 4 * MIB), (900_000, 3 * MIB)]);
    assert_eq!(moves(&actions), [(2, SLOW), (3, FAST)]);
    assert!(
        machine
            .epoch(&[(0, 4 * MIB), (900_000, 3 * MIB)])
            .is_empty()
    );
}

#[test]
fn of_cold_data_larger_than_its_tier_only_what_can_be_there_has_to_leave() {
    let mut machine = Machine::new(4 * MIB);
    // 60 MiB cost 768 ms to move, the 4 MiB that fit 51 ms; 5000 accesses a second save 500 ms in the horizon.
    let actions = machine.epoch(&[(0, 60 * MIB), (5_000, 3 * MIB)]);
    assert_eq!(moves(&actions), [(2, SLOW), (3, FAST)]);
}

#[test]
fn what_spilled_is_asked_for_until_it_has_come() {
    let mut machine = Machine::new(4 * MIB);
    let sites = [(0, 4 * MIB), (900_000, 3 * MIB)];
    let mut fates = [
        Fate::NotAttempted("no time".into()),
        Fate::Denied("shared".into()),
        Fate::Moved,
    ]
    .into_iter();
    let mut asked = Vec::new();
    for epoch in 0..6 {
        let actions = machine.epoch(&sites);
        let mut outcome = |action: &Action| {
            let fate = match action.tier {
                FAST => fates.next().expect("asked for once too often"),
                _ => Fate::Moved,
            };
            asked.extend((action.tier == FAST).then_some((epoch, action.site.0)));
            Outcome {
                action: *action,
                fate,
            }
        };
        let outcomes: Vec<Outcome> = actions.iter().map(&mut outcome).collect();
        machine.online.learn(&outcomes);
    }
    // A denied move is not retried for an epoch.
    assert_eq!(asked, [(0, 3), (1, 3), (3, 3)]);
}

#[test]
fn a_change_of_phase_is_followed_within_a_few_epochs() {
    let mut machine = Machine::new(4 * MIB);
    let phases = [
        [(90_000, 3 * MIB), (10, 3 * MIB)],
        [(10, 3 * MIB), (90_000, 3 * MIB)],
    ];
    for _ in 0..20 {
        machine.epoch(&phases[0]);
    }
    let took = (0..20).find(|_| !machine.epoch(&phases[1]).is_empty());
    assert!(took.is_some_and(|epochs| epochs < 12), "{took:?}");
}

#[test]
fn what_was_busy_is_tried_in_the_next_epoch_and_what_was_denied_ever_more_rarely() {
    let sites = [(1, 4 * MIB), (900_000, 3 * MIB)];
    let tried = |fate: &Fate| -> Vec<u32> {
        let mut machine = Machine::new(4 * MIB);
        machine.tiers = [(SiteId(2), FAST), (SiteId(3), SLOW)].into();
        let mut tried = Vec::new();
        for epoch in 0..12 {
            let actions = machine.epoch(&sites);
            if !actions.is_empty() {
                tried.push(epoch);
            }
            let outcome = |action: &Action| Outcome {
                action: *action,
                fate: fate.clone(),
            };
            let outcomes: Vec<Outcome> = actions.iter().map(outcome).collect();
            machine.online.learn(&outcomes);
        }
        tried
    };
    assert_eq!(tried(&Fate::Busy("pinned".into())), Vec::from_iter(0..12));
    // The memory is shared after a fork, until the child has ended.
    assert_eq!(tried(&Fate::Denied("shared".into())), [0, 2, 5, 10]);
    assert_eq!(tried(&Fate::Moved), [0]);
}

#[test]
fn sites_that_take_turns_stay_where_they_are() {
    let mut machine = Machine::new(4 * MIB);
    let total: usize = (0..200)
        .map(|epoch| {
            let (a, b) = if epoch % 2 == 0 { (9000, 0) } else { (0, 9000) };
            machine.epoch(&[(a, 3 * MIB), (b, 3 * MIB)]).len()
        })
        .sum();
    assert!(total <= 4, "{total} actions");
}

#[test]
fn an_empty_epoch_decides_nothing() {
    let mut machine = Machine::new(0);
    assert!(machine.epoch(&[]).is_empty() && machine.online.sites.is_empty());
}

proptest! {
    #[test]
    fn with_constant_input_nothing_moves_after_two_epochs(
        sites in prop::collection::vec((0_u64..1_000_000, 0_u64..8 * MIB), 0..12),
        fast in 0_u64..20 * MIB,
        started_fast in prop::collection::vec(any::<bool>(), 12)
    ) {
        let mut machine = Machine::new(fast);
        let tier = |fast: &bool| if *fast { FAST } else { SLOW };
        machine.tiers = (2..).map(SiteId).zip(started_fast.iter().map(tier)).collect();
        for epoch in 0..8 {
            let actions = machine.epoch(&sites);
            prop_assert!(epoch < 2 || actions.is_empty(), "{:?}", moves(&actions));
            let ranks = actions.iter().map(|action| action.tier);
            prop_assert!(ranks.rev().is_sorted(), "a promotion came before a demotion");
        }
    }

    #[test]
    fn noise_around_equal_means_moves_a_bounded_number_of_times(
        noise in prop::collection::vec(prop::collection::vec(0_u64..20_000, 6), 200),
        fast in MIB..8 * MIB
    ) {
        let mut machine = Machine::new(fast);
        let total: usize = noise
            .iter()
            .map(|epoch| {
                let sites: Vec<_> = epoch.iter().map(|&n| (n, 2 * MIB)).collect();
                machine.epoch(&sites).len()
            })
            .sum();
        // Without the two averages and the price every epoch would reorder the six sites.
        prop_assert!(total <= 36, "{total} actions in 200 epochs");
    }
}
