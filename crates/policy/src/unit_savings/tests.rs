//! Tests which units leave, by probes, mistakes and the time that the program waits.

use std::collections::BTreeSet;

use isotherm_model::batch::Process;
use isotherm_model::paged::PagedUnit;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::Unit;

use super::{SavingsConfig, UnitSavings, first_units};

const PAGE: u64 = 4096;
const UNIT: u64 = 512 * PAGE;
const EPOCH: Nanos = Nanos(100_000_000);
const LOST: Nanos = Nanos(0);

fn savings(slowdown: f64) -> UnitSavings {
    UnitSavings::new(&SavingsConfig {
        unit: Bytes(UNIT),
        page: Bytes(PAGE),
        back: Nanos(8_000),
        slowdown,
        modelled: false,
    })
}

fn unit(number: u64) -> Unit {
    Unit {
        process: Process::default(),
        start: number * UNIT,
    }
}

/// A unit with this number of pages out, and this number that came back.
fn held(number: u64, out: u64, returned: u64) -> PagedUnit {
    PagedUnit {
        unit: unit(number),
        present: Bytes(UNIT - out * PAGE),
        out: Bytes(out * PAGE),
        returned: Bytes(returned * PAGE),
        grain: Bytes(UNIT),
        has_huge: false,
    }
}

/// Ends an epoch in which samples fell on these units.
fn follow(savings: &mut UnitSavings, units: &[PagedUnit], touched: &[u64]) -> Vec<Unit> {
    let touched: BTreeSet<Unit> = touched.iter().map(|number| unit(*number)).collect();
    let back = savings.follow(units, &touched, (EPOCH, LOST));
    [back.needed, back.recalled].concat()
}

#[test]
fn a_probe_takes_a_page_of_each_of_eight_parts_of_a_unit() {
    let mut savings = savings(0.02);
    let units = [held(0, 0, 0), held(1, 0, 0)];
    follow(&mut savings, &units, &[]);
    let saving = savings.choose(&units, Bytes::ZERO, |_| true);
    assert!(saving.leaving.is_empty(), "nothing is known");
    let [(first, pages), (second, others)] = saving.probes.as_slice() else {
        panic!("{saving:?}");
    };
    assert_eq!((*first, *second), (unit(0), unit(1)));
    let parts: Vec<u64> = pages.iter().map(|page| page / 64).collect();
    assert_eq!(parts, [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_ne!(pages, others);
}

#[test]
fn a_unit_leaves_whose_probe_stays_out_and_one_rests_whose_probe_returns() {
    let mut savings = savings(0.02);
    follow(&mut savings, &[held(0, 0, 0), held(1, 0, 0)], &[]);
    savings.probed(unit(0), 8);
    savings.probed(unit(1), 8);
    let units = [held(0, 8, 0), held(1, 4, 4)];
    follow(&mut savings, &units, &[]);
    let units = [held(0, 8, 0), held(1, 4, 0)];
    for _ in 0..3 {
        follow(&mut savings, &units, &[]);
        assert!(
            savings
                .choose(&units, Bytes::ZERO, |_| true)
                .leaving
                .is_empty()
        );
    }
    follow(&mut savings, &units, &[]);
    let saving = savings.choose(&units, Bytes::ZERO, |_| true);
    assert_eq!(saving.leaving, [unit(0)]);
    assert!(saving.probes.is_empty(), "{saving:?}");
    let kept = savings.choose(&units, Bytes(2 * UNIT), |_| true);
    assert!(kept.leaving.is_empty(), "all is to stay");
    let bound = savings.choose(&units, Bytes::ZERO, |unit| unit.start > 0);
    assert!(bound.leaving.is_empty(), "it is not free to leave");
}

#[test]
fn a_unit_that_returns_soon_was_a_mistake_and_one_that_stays_is_left_alone() {
    let mut savings = savings(0.02);
    follow(&mut savings, &[held(0, 0, 0), held(1, 0, 0)], &[]);
    savings.left(unit(0));
    savings.stayed(unit(1));
    let units = [held(0, 200, 312), held(1, 0, 0)];
    assert_eq!(follow(&mut savings, &units, &[]), [unit(0)]);
    let saving = savings.choose(&units, Bytes::ZERO, |_| true);
    assert!(
        saving.leaving.is_empty() && saving.probes.is_empty(),
        "{saving:?}"
    );
}

#[test]
fn a_mistake_recalls_what_left_as_early_and_leaves_what_is_out_for_longer() {
    let mut savings = savings(0.02);
    let all = [0, 1, 2, 3].map(|number| held(number, 0, 0));
    follow(&mut savings, &all, &[]);
    savings.left(unit(3));
    let later = [held(0, 0, 0), held(1, 0, 0), held(2, 0, 0), held(3, 512, 0)];
    // Longer than twice the time for which the others will have rested.
    for _ in 0..50 {
        follow(&mut savings, &later, &[0, 1, 2]);
    }
    (0..3).for_each(|number| savings.left(unit(number)));
    let out = [0, 1, 2, 3].map(|number| held(number, 512, 0));
    for _ in 0..9 {
        assert_eq!(follow(&mut savings, &out, &[]), []);
    }
    let back = [
        held(0, 512, 0),
        held(1, 200, 312),
        held(2, 512, 0),
        held(3, 512, 0),
    ];
    assert_eq!(
        follow(&mut savings, &back, &[]),
        [unit(1), unit(0), unit(2)]
    );
    let quiet = [held(0, 0, 0), held(1, 0, 0), held(2, 0, 0), held(3, 512, 0)];
    let saving = savings.choose(&quiet, Bytes::ZERO, |_| true);
    assert!(saving.probes.is_empty(), "recalled units rest: {saving:?}");
}

#[test]
fn in_a_change_of_phase_a_few_pages_bring_a_unit_back() {
    let stalled = Nanos(EPOCH.0 / 2);
    for (stalled, back) in [(stalled, vec![unit(0)]), (LOST, vec![])] {
        let mut savings = savings(0.02);
        follow(&mut savings, &[held(0, 0, 0), held(1, 0, 0)], &[]);
        (0..2).for_each(|number| savings.left(unit(number)));
        let units = [held(0, 504, 8), held(1, 511, 1)];
        let came = savings.follow(&units, &BTreeSet::new(), (EPOCH, stalled));
        assert_eq!(came.needed, back);
        assert_eq!(came.recalled, []);
    }
}

#[test]
fn the_patience_after_a_mistake_counts_the_time_before_the_unit_left() {
    let mut savings = savings(0.02);
    let units = [held(0, 0, 0)];
    follow(&mut savings, &units, &[0]);
    for _ in 0..20 {
        follow(&mut savings, &units, &[]);
    }
    savings.left(unit(0));
    assert_eq!(follow(&mut savings, &[held(0, 0, 512)], &[]), [unit(0)]);
    assert!(savings.patience >= Nanos(2 * 21 * EPOCH.0), "{savings:?}");
}

#[test]
fn the_least_recently_touched_units_are_as_many_as_have_the_bytes() {
    let mut savings = savings(0.02);
    let units = [0, 1, 2, 3].map(|number| held(number, 0, 0));
    follow(&mut savings, &units, &[]);
    follow(&mut savings, &units, &[0, 3]);
    follow(&mut savings, &units, &[0]);
    let least = |bytes| savings.least_recent(&units, Bytes(bytes), |_| true);
    assert_eq!(least(UNIT), [unit(1)]);
    assert_eq!(least(2 * UNIT + 1), [unit(1), unit(2), unit(3)]);
    assert_eq!(least(0), []);
}

#[test]
fn the_coldest_units_are_those_whose_probes_stay_out_and_mistakes_come_last() {
    let mut savings = savings(0.02);
    let units = [0, 1, 2, 3].map(|number| held(number, 0, 0));
    follow(&mut savings, &units, &[]);
    savings.stayed(unit(0));
    savings.probed(unit(3), 8);
    let later = [held(0, 0, 0), held(1, 0, 0), held(2, 0, 0), held(3, 8, 0)];
    for _ in 0..6 {
        follow(&mut savings, &later, &[2, 3]);
    }
    let coldest = |bytes| savings.coldest(&later, Bytes(bytes), |_| true);
    assert_eq!(coldest(UNIT - 8 * PAGE), [unit(3)]);
    assert_eq!(coldest(UNIT), [unit(1), unit(3)]);
    assert_eq!(coldest(3 * UNIT - 8 * PAGE), [unit(1), unit(2), unit(3)]);
}

#[test]
fn the_first_units_of_some_bytes_are_in_the_order_of_units() {
    let units = [held(2, 0, 0), held(0, 0, 0), held(1, 0, 0)];
    let first = first_units(units.iter().collect(), Bytes(2 * UNIT));
    assert_eq!(first, [unit(0), unit(2)]);
}

#[test]
fn what_is_unknown_is_probed_for_the_first_time_or_was_never() {
    let mut savings = savings(1.0);
    assert!(savings.is_unlimited());
    let units = [held(0, 0, 0), held(1, 8, 0)];
    follow(&mut savings, &units, &[]);
    savings.probed(unit(1), 8);
    assert_eq!(savings.unknown(&units), Bytes(2 * UNIT - 8 * PAGE));
    savings.left(unit(1));
    assert_eq!(savings.unknown(&units), Bytes(UNIT));
}
