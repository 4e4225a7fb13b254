//! Tests the policy against a modelled machine: two tiers whose latencies rise with the bytes that their pages ask for.

use std::collections::BTreeSet;

use isotherm_model::loaded_latency::{LoadPoint, LoadedLatency};
use isotherm_model::page::EpochView;
use isotherm_model::port::EpochPolicy as _;
use isotherm_model::tier_loads::TierLoads;
use isotherm_model::units::Nanos;
use proptest::prelude::*;

use super::LoadBalance;
use super::evidence::{EPOCHS, FEWEST_HITS};
use super::share_control::BAND;

const GB: u64 = 1_000_000_000;

/// Epochs after which a policy has found the balance.
const ENOUGH: usize = 60;

/// A machine with the pages of a program.
struct Machine {
    curves: [LoadedLatency; 2],
    /// Bytes a second that each page asks for.
    pages: Vec<u64>,
    fast: Vec<bool>,
    capacity: u32,
    /// Bytes a second that other programs ask of each tier.
    others: [u64; 2],
    policy: LoadBalance,
}

impl Machine {
    /// Tiers of an idle latency in nanoseconds and a bandwidth in bytes a second; the first pages are fast.
    fn new(tiers: [(u64, u64); 2], pages: &[u64], capacity: u32) -> Self {
        let curve = |(latency, bandwidth)| {
            let point = LoadPoint {
                bandwidth,
                latency: Nanos(latency),
            };
            LoadedLatency::through(vec![point]).expect("a point")
        };
        Self {
            curves: tiers.map(curve),
            pages: pages.to_vec(),
            fast: (0..pages.len())
                .map(|page| page < capacity as usize)
                .collect(),
            capacity,
            others: [0, 0],
            policy: LoadBalance::default(),
        }
    }

    /// Bytes a second that the pages of a tier ask for.
    fn asked(&self, is_fast: bool) -> u64 {
        let pages = self.pages.iter().zip(&self.fast);
        let own = pages.filter(|(_, fast)| **fast == is_fast);
        own.map(|(bytes, _)| *bytes).sum()
    }

    /// Latencies if `more` bytes a second are asked of fast memory in addition, and as many less of slow memory.
    fn latencies(&self, more: i64) -> [f64; 2] {
        let fast = (self.asked(true) + self.others[0]).saturating_add_signed(more);
        let slow = (self.asked(false) + self.others[1]).saturating_add_signed(-more);
        [self.curves[0].at(fast), self.curves[1].at(slow)]
    }

    fn is_balanced(&self) -> bool {
        let [fast, slow] = self.latencies(0);
        fast.max(slow) <= fast.min(slow) * (1.0 + BAND)
    }

    /// Shows the policy an epoch with as many hits as each page asks for, and makes the moves that it wants. Returns their number.
    fn epoch(&mut self, loads: Option<TierLoads>) -> usize {
        let hits = self.pages.clone();
        self.epoch_of(&hits, loads)
    }

    /// As [`Self::epoch`], with these hits of the pages.
    fn epoch_of(&mut self, hits: &[u64], loads: Option<TierLoads>) -> usize {
        let view = EpochView {
            previous_ranks: hits,
            next_ranks: None,
            fast: &self.fast,
            capacity: self.capacity,
            hit: 1,
            loads,
        };
        let mut wanted = Vec::new();
        self.policy.decide(&view, &mut wanted);
        let once: BTreeSet<_> = wanted.iter().map(|page| page.at()).collect();
        assert_eq!(once.len(), wanted.len(), "a page twice");
        assert!(wanted.len() <= self.capacity as usize, "more than fits");
        let before = std::mem::take(&mut self.fast);
        self.fast = (0..before.len()).map(|page| once.contains(&page)).collect();
        let moved = before
            .iter()
            .zip(&self.fast)
            .filter(|(old, new)| old != new);
        moved.count()
    }

    fn loads(&self) -> TierLoads {
        TierLoads {
            latencies_ns: self.latencies(0),
            demand: self.asked(true) + self.asked(false) + self.others[0] + self.others[1],
        }
    }

    /// Runs epochs, and returns the moves of all.
    fn run(&mut self, epochs: usize) -> usize {
        (0..epochs)
            .map(|_| {
                let loads = self.loads();
                self.epoch(Some(loads))
            })
            .sum()
    }
}

#[test]
fn of_tiers_of_one_latency_the_load_is_divided_as_their_bandwidths() {
    let mut machine = Machine::new([(100, 10 * GB), (100, 5 * GB)], &[GB / 10; 300], 300);
    machine.run(ENOUGH);
    assert!(machine.is_balanced(), "{:?}", machine.latencies(0));
    let fast = machine.asked(true) as f64 / GB as f64;
    assert!((19.0..21.0).contains(&fast), "{fast} of 30 GB/s");
    assert_eq!(machine.run(20), 0, "no move between equal latencies");
}

#[test]
fn memory_of_a_lower_latency_takes_more_than_its_share_of_the_bandwidth() {
    // 100 ns x load / 10 is equal to 200 ns x the rest / 5 at 24 and 6 of 30 GB/s.
    let mut machine = Machine::new([(100, 10 * GB), (200, 5 * GB)], &[GB / 10; 300], 300);
    machine.run(ENOUGH);
    let fast = machine.asked(true) as f64 / GB as f64;
    assert!((23.0..25.0).contains(&fast), "{fast} of 30 GB/s");
}

#[test]
fn a_fast_tier_below_its_bandwidth_is_filled_with_the_hottest_pages() {
    let pages: Vec<u64> = (1..=40).map(|page| page * 1_000_000).collect();
    let mut machine = Machine::new([(100, 40 * GB), (250, 5 * GB)], &pages, 10);
    machine.run(ENOUGH);
    let fast: Vec<usize> = (0..40).filter(|page| machine.fast[*page]).collect();
    assert_eq!(fast, (30..40).collect::<Vec<_>>());
    assert_eq!(machine.run(20), 0);
}

#[test]
fn pages_that_differ_by_chance_do_not_change_places() {
    let mut machine = Machine::new([(100, 40 * GB), (250, 5 * GB)], &[9, 9, 13, 15], 2);
    assert_eq!(
        machine.run(10),
        2,
        "15 hits are more than 9, and 13 are not"
    );
    assert_eq!(machine.fast, [true, false, false, true]);
}

#[test]
fn an_overloaded_fast_tier_is_left_with_free_room() {
    // 14.8 GB/s for 10, of which two pages have a third.
    let pages = [&[2_500_000_000; 2][..], &[100_000_000; 98]].concat();
    let mut machine = Machine::new([(100, 10 * GB), (100, 5 * GB)], &pages, 100);
    machine.run(ENOUGH);
    assert!(machine.is_balanced(), "{:?}", machine.latencies(0));
    let slow = machine.fast.iter().filter(|fast| !**fast).count();
    assert!(
        (1..=52).contains(&slow),
        "{slow} pages left, and 10 GB/s need no more room"
    );
    assert_eq!(machine.run(20), 0);
}

#[test]
fn latencies_within_the_band_move_nothing() {
    let mut machine = Machine::new([(100, 10 * GB), (108, 10 * GB)], &[GB / 10; 50], 50);
    machine.fast = (0..50).map(|page| page % 2 == 0).collect();
    let before = machine.fast.clone();
    assert_eq!(machine.run(20), 0);
    assert_eq!(machine.fast, before, "whatever the ranks are");
}

#[test]
fn another_load_is_followed_in_either_direction() {
    let mut machine = Machine::new([(100, 10 * GB), (100, 5 * GB)], &[GB / 10; 200], 200);
    machine.run(ENOUGH);
    let alone = machine.asked(true);
    // Another program takes 8 GB/s of fast memory.
    machine.others = [8 * GB, 0];
    assert!(machine.run(ENOUGH) > 0);
    assert!(machine.is_balanced(), "{:?}", machine.latencies(0));
    assert!(machine.asked(true) + GB < alone);
    machine.others = [0, 0];
    assert!(machine.run(ENOUGH) > 0);
    assert!(machine.is_balanced(), "{:?}", machine.latencies(0));
    assert!(machine.asked(true).abs_diff(alone) < 2 * GB);
}

#[test]
fn a_change_that_no_demand_shows_is_followed_too() {
    // The load of other programs goes from one tier to the other.
    let mut machine = Machine::new([(100, 10 * GB), (100, 10 * GB)], &[GB / 10; 200], 200);
    machine.others = [0, 6 * GB];
    machine.run(ENOUGH);
    assert!(machine.is_balanced(), "{:?}", machine.latencies(0));
    machine.others = [6 * GB, 0];
    machine.run(2 * ENOUGH);
    assert!(machine.is_balanced(), "{:?}", machine.latencies(0));
}

#[test]
fn a_page_that_is_too_hot_for_either_tier_does_not_go_back_and_forth() {
    let pages = [&[6 * GB][..], &[GB / 10; 10]].concat();
    let mut machine = Machine::new([(100, GB), (100, GB)], &pages, 11);
    machine.run(ENOUGH);
    assert_eq!(machine.run(20), 0, "{:?}", machine.fast);
}

#[test]
fn the_epoch_in_which_pages_move_is_not_judged() {
    let mut machine = Machine::new([(100, GB), (100, GB)], &[GB / 10; 100], 100);
    let loads = machine.loads();
    assert!(machine.epoch(Some(loads)) > 0);
    assert_eq!(machine.epoch(Some(loads)), 0);
    assert!(machine.epoch(Some(loads)) > 0);
}

#[test]
fn without_known_latencies_only_what_does_not_fit_leaves() {
    let mut machine = Machine::new([(100, GB), (100, GB)], &[5, 90, 50, 1], 3);
    assert_eq!(machine.epoch(None), 0);
    machine.capacity = 2;
    assert_eq!(machine.epoch(None), 1);
    assert_eq!(machine.fast, [false, true, true, false]);
}

#[test]
fn an_epoch_of_few_accesses_moves_nothing() {
    for (accesses, moved) in [(0, false), (4, false), (5, true)] {
        let mut machine = Machine::new([(100, GB), (100, GB)], &[accesses; 4], 2);
        let loads = TierLoads {
            latencies_ns: [900.0, 100.0],
            demand: GB,
        };
        assert_eq!(machine.epoch(Some(loads)) > 0, moved, "{accesses} each");
    }
}

#[test]
fn epochs_of_few_accesses_are_added_up_until_they_tell_enough() {
    let mut machine = Machine::new([(100, GB), (100, GB)], &[2; 4], 2);
    let loads = TierLoads {
        latencies_ns: [900.0, 100.0],
        demand: GB,
    };
    let moved: Vec<usize> = (0..7).map(|_| machine.epoch(Some(loads))).collect();
    // Eight hits each, and the fourth epoch follows moves.
    assert_eq!(moved, [0, 0, 1, 0, 0, 0, 1]);
}

#[test]
fn accesses_that_are_many_epochs_old_tell_nothing() {
    for (epochs, moved) in [(EPOCHS - 2, true), (EPOCHS - 1, false)] {
        let mut machine = Machine::new([(100, GB), (100, GB)], &[5; 4], 2);
        let loads = Some(TierLoads {
            latencies_ns: [900.0, 100.0],
            demand: GB,
        });
        machine.epoch_of(&[4; 4], loads);
        for _ in 0..epochs {
            machine.policy.skip_epoch(loads);
        }
        assert_eq!(machine.epoch_of(&[1; 4], loads) > 0, moved, "{epochs}");
    }
}

/// Each epoch shows an eighth of the pages, in turn.
#[test]
fn a_program_that_is_hardly_sampled_is_balanced_too() {
    // 30 GB/s for 10 and 5.
    let mut machine = Machine::new([(100, 10 * GB), (100, 5 * GB)], &[GB * 3 / 4; 40], 40);
    for epoch in 0..8 * ENOUGH {
        let mut hits = vec![0; 40];
        for hit in 0..5 {
            hits[(epoch * 5 + hit) * 7 % 40] = 1;
        }
        let loads = machine.loads();
        machine.epoch_of(&hits, Some(loads));
    }
    assert!(machine.is_balanced(), "{:?}", machine.latencies(0));
}

/// Hits of twelve pages, many or few.
fn heat() -> impl Strategy<Value = Vec<u64>> {
    let pages = |hits| prop::collection::vec(0..hits, 12);
    prop_oneof![pages(1_000_u64), pages(3)]
}

proptest! {
    /// Hits that are enough only together tell the same in several epochs as in one: the last of 20 is in the last epoch.
    #[test]
    fn many_epochs_of_few_hits_are_answered_as_one_of_all(
        hits in prop::collection::vec((0_usize..12, 0..EPOCHS - 1), 20), capacity in 6_u32..13,
        fast_ns in prop::sample::select(vec![20.0, 77.0, 104.0, 131.0, 900.0])
    ) {
        let loads = Some(TierLoads { latencies_ns: [fast_ns, 100.0], demand: GB });
        let machine = || Machine::new([(100, GB), (100, GB)], &[0; 12], capacity);
        let (mut whole, mut parts) = (machine(), machine());
        let mut epochs = [[0_u64; 12]; EPOCHS];
        let mut all = [0_u64; 12];
        for (number, (page, epoch)) in hits.iter().enumerate() {
            let is_last = number + 1 == hits.len();
            epochs[if is_last { EPOCHS - 1 } else { *epoch }][*page] += 1;
            all[*page] += 1;
        }
        whole.epoch_of(&all, loads);
        for (number, epoch) in epochs.iter().enumerate() {
            let moved = match epoch == &[0; 12] {
                true => { parts.policy.skip_epoch(loads); 0 }
                false => parts.epoch_of(epoch, loads),
            };
            prop_assert!(moved == 0 || number + 1 == EPOCHS);
        }
        prop_assert_eq!(parts.fast, whole.fast);
    }

    /// Two equal pages fewer in fast memory would make it the faster tier, and two more the slower one, as far as there are pages and room.
    #[test]
    fn the_latencies_become_as_equal_as_the_pages_allow(
        count in 20_usize..80, bytes in 1_u64..2_000_000_000, bandwidths in (1_u64..60, 1_u64..60),
        latencies in (50_u64..200, 50_u64..400), room in 1_u32..90
    ) {
        let tiers = [(latencies.0, bandwidths.0 * GB), (latencies.1, bandwidths.1 * GB)];
        let mut machine = Machine::new(tiers, &vec![bytes; count], room);
        // A difference of 10 % is answered by a page or two at a time.
        machine.run(4 * ENOUGH);
        let fast = machine.fast.iter().filter(|fast| **fast).count();
        let two = 2 * bytes as i64;
        if fast >= 2 {
            let [here, next] = machine.latencies(-two);
            prop_assert!(here <= next * (1.0 + BAND), "{fast} of {count}: {here} and {next} with two fewer");
        }
        if fast + 2 <= count.min(room as usize) {
            let [here, next] = machine.latencies(two);
            prop_assert!(next <= here * (1.0 + BAND), "{fast} of {count}: {here} and {next} with two more");
        }
    }

    /// Whatever the heat and the latencies are, the capacity is kept and no page is named twice ([`Machine::epoch_of`]); and what is balanced
    /// stays where the epoch has enough hits by itself.
    #[test]
    fn no_epoch_wants_more_than_fits(
        epochs in prop::collection::vec((heat(), 1.0_f64..500.0, 0_u64..9, 0_u32..14), 1..20)
    ) {
        let mut machine = Machine::new([(100, GB), (100, GB)], &[0; 12], 6);
        for (pages, fast_ns, demand, capacity) in epochs {
            machine.pages = pages;
            machine.capacity = capacity;
            let held = machine.fast.iter().filter(|fast| **fast).count();
            let loads = TierLoads { latencies_ns: [fast_ns, 100.0], demand };
            let moved = machine.epoch(Some(loads));
            let is_alone = machine.pages.iter().sum::<u64>() as f64 >= FEWEST_HITS;
            let is_equal = fast_ns.max(100.0) <= fast_ns.min(100.0) * (1.0 + BAND);
            if is_alone && is_equal && held <= capacity as usize {
                prop_assert_eq!(moved, 0);
            }
        }
    }
}
