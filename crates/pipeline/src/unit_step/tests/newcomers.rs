//! Tests the fair start: the memory of a new process in its first epochs and afterwards, and what
//! many of them cost.

use std::collections::{BTreeMap, VecDeque};

use isotherm_model::units::Bytes;
use isotherm_model::watch::Unit;
use proptest::prelude::*;

use super::{Machine, UNIT, limits, step, unit};
use crate::unit_step::{EpochReport, GroupLimit, StepLimits, UnitStep};

const FAIR_START: u32 = 4;
const CAPACITY: u64 = 12;
/// The process that is there before all others, and one that comes.
const OLD: u32 = 1;
const NEW: u32 = 2;

fn fair_limits() -> StepLimits {
    StepLimits {
        fair_start: FAIR_START,
        ..limits()
    }
}

fn units(pid: u32, count: u64) -> impl Iterator<Item = Unit> {
    (0..count).map(move |number| unit(pid, number))
}

/// Units with the same number of hits each.
fn heat(units: impl Iterator<Item = Unit>, hits: u64) -> Vec<(Unit, u64)> {
    units.map(|unit| (unit, hits)).collect()
}

fn fast_of(machine: &Machine, pid: u32) -> usize {
    let fast = machine.fast_units();
    fast.iter().filter(|unit| unit.process.pid == pid).count()
}

/// An old program that has filled the fast tier with hot memory, and a step that knows it.
fn old_program(policy: &'static str, limits: &StepLimits) -> (Machine, UnitStep, Vec<(Unit, u64)>) {
    let hot = heat(units(OLD, CAPACITY), 90);
    let (mut machine, mut step) = (Machine::default(), step(policy, false));
    machine.fast = units(OLD, CAPACITY).map(|unit| (unit, true)).collect();
    for epoch in 0..3 {
        let seen = machine.observation(epoch, CAPACITY, &hot);
        step.run(&seen, limits, &mut machine);
    }
    assert_eq!(fast_of(&machine, OLD) as u64, CAPACITY, "{policy}");
    (machine, step, hot)
}

#[test]
fn a_cool_newcomer_has_its_share_at_first_and_then_what_its_heat_earns() {
    for policy in ["payback", "history"] {
        let (mut machine, mut step, mut hot) = old_program(policy, &fair_limits());
        machine
            .fast
            .extend(units(NEW, 10).map(|unit| (unit, false)));
        // Two of its units are hotter than anything else, the others cool.
        hot.extend(heat(units(NEW, 2), 300));
        hot.extend(heat(units(NEW, 10).skip(2), 3));
        let mut kept = Vec::new();
        for epoch in 3..3 + 2 * FAIR_START {
            let seen = machine.observation(epoch, CAPACITY, &hot);
            let report = step.run(&seen, &fair_limits(), &mut machine);
            let shares: Vec<u64> = report
                .processes
                .iter()
                .map(|one| one.fair_share.0)
                .collect();
            let is_new = epoch < 3 + FAIR_START;
            let share = if is_new { CAPACITY / 2 * UNIT } else { 0 };
            assert_eq!(shares, [0, share], "{policy}: epoch {epoch}");
            kept.push(fast_of(&machine, NEW));
            assert!(machine.most as u64 <= CAPACITY);
        }
        let fair = FAIR_START as usize;
        assert_eq!(kept[..fair], [6; FAIR_START as usize], "{policy}: {kept:?}");
        assert_eq!(kept.last(), Some(&2), "{policy}: {kept:?}");
        for number in 0..2 {
            assert!(machine.fast[&unit(NEW, number)], "{policy}: it stays hot");
        }
    }
}

#[test]
fn a_floor_is_kept_before_shares_are_divided() {
    let floor = GroupLimit {
        floor: Bytes(8 * UNIT),
        ..GroupLimit::default()
    };
    let limits = StepLimits {
        groups: [(format!("/services/{OLD}"), floor)].into(),
        ..fair_limits()
    };
    let (mut machine, mut step, mut hot) = old_program("history", &limits);
    machine
        .fast
        .extend(units(NEW, 10).map(|unit| (unit, false)));
    hot.extend(heat(units(NEW, 10), 3));
    step.run(
        &machine.observation(3, CAPACITY, &hot),
        &limits,
        &mut machine,
    );
    assert_eq!(fast_of(&machine, NEW), 2, "half of what the floor leaves");
}

#[test]
fn one_process_alone_and_one_with_an_entry_have_no_fair_share() {
    let priority = [(format!("/services/{NEW}"), GroupLimit::default())];
    for (groups, pids) in [
        (BTreeMap::new(), vec![NEW]),
        (priority.into(), vec![OLD, NEW]),
    ] {
        let limits = StepLimits {
            groups,
            ..fair_limits()
        };
        let mut step = step("history", false);
        let mut machine = Machine::default();
        step.run(
            &machine.observation(0, CAPACITY, &[]),
            &limits,
            &mut machine,
        );
        let all: Vec<Unit> = pids.iter().flat_map(|pid| units(*pid, 10)).collect();
        machine = Machine::with(all.iter().copied());
        let hot = heat(all.into_iter().filter(|unit| unit.process.pid == NEW), 3);
        let seen = machine.observation(1, CAPACITY, &hot);
        let report = step.run(&seen, &limits, &mut machine);
        let shares = report.processes.iter().map(|process| process.fair_share);
        assert_eq!(shares.max(), Some(Bytes::ZERO), "{pids:?}");
    }
}

#[test]
fn newcomers_without_heat_have_no_fair_share() {
    let (mut machine, mut step, mut hot) = old_program("history", &fair_limits());
    let cold = [NEW + 1, NEW + 2].map(|pid| unit(pid, 0));
    let new = units(NEW, 10).chain(cold);
    machine.fast.extend(new.map(|unit| (unit, false)));
    hot.extend(heat(units(NEW, 10), 300));
    let seen = machine.observation(3, CAPACITY, &hot);
    let report = step.run(&seen, &fair_limits(), &mut machine);
    let of = |pid| {
        let mut processes = report.processes.iter();
        let found = processes.find(|one| one.process.pid == pid);
        found.expect("it is watched").fair_share
    };
    assert_eq!(of(NEW), Bytes(CAPACITY / 2 * UNIT));
    assert_eq!([of(NEW + 1), of(NEW + 2)], [Bytes::ZERO; 2]);
}

/// A process that starts and ends.
#[derive(Clone, Debug)]
struct Arrival {
    /// Epoch of its start.
    from: u32,
    /// Epochs until its end.
    lives: u32,
    units: u64,
    /// Hits of each of its units in every epoch.
    hits: u64,
}

fn arrivals(hits: std::ops::Range<u64>) -> impl Strategy<Value = Vec<Arrival>> {
    let arrival = (0_u32..24, 1_u32..10, 1_u64..12, hits);
    let arrival = arrival.prop_map(|(from, lives, units, hits)| Arrival {
        from,
        lives,
        units,
        hits,
    });
    prop::collection::vec(arrival, 0..20)
}

/// Runs 30 epochs of an old program, whose control group may have a floor, and of all arrivals, which
/// have none. Calls `check` with each epoch's report and the machine.
fn live(
    policy: &'static str,
    arrivals: &[Arrival],
    limits: &StepLimits,
    grain: u64,
    mut check: impl FnMut(&EpochReport, &Machine),
) {
    let (mut machine, mut step, old) = old_program(policy, limits);
    machine.grain = grain;
    for epoch in 0..30 {
        let lives = |one: &Arrival| (one.from..one.from + one.lives).contains(&epoch);
        let mut hot = old.clone();
        for (arrival, pid) in arrivals.iter().zip(NEW..) {
            if lives(arrival) {
                hot.extend(heat(units(pid, arrival.units), arrival.hits));
            }
        }
        let before = std::mem::take(&mut machine.fast);
        let tier = |(unit, _): &(Unit, u64)| (*unit, before.get(unit) == Some(&true));
        machine.fast = hot.iter().map(tier).collect();
        let seen = machine.observation(epoch + 3, CAPACITY, &hot);
        check(&step.run(&seen, limits, &mut machine), &machine);
    }
}

/// Bytes of all fair shares in an epoch.
fn shares(report: &EpochReport) -> u64 {
    report.processes.iter().map(|one| one.fair_share.0).sum()
}

fn moved(report: &EpochReport) -> u64 {
    report.moves.promoted.0 + report.moves.demoted.0
}

proptest! {
    /// Whatever comes and goes: never is more fast than fits, no epoch moves more than its limit,
    /// the floor of the settings is held in every epoch, and fair shares fit beside it.
    #[test]
    fn floors_and_limits_hold_while_programs_come_and_go(
        arrivals in arrivals(0..200), floor in 0..CAPACITY, moves in prop::option::of(0_u64..12),
        grain in prop::sample::select(vec![1_u64, 2, 4])
    ) {
        let kept = GroupLimit {
            floor: Bytes(floor * UNIT),
            ..GroupLimit::default()
        };
        let limits = StepLimits {
            moves: Bytes(moves.map_or(u64::MAX, |moves| moves * UNIT)),
            groups: [(format!("/services/{OLD}"), kept)].into(),
            ..fair_limits()
        };
        for policy in ["payback", "history"] {
            live(policy, &arrivals, &limits, grain, |report, machine| {
                assert!(machine.most as u64 <= CAPACITY, "{policy}: {}", machine.most);
                assert!(moved(report) <= limits.moves.0, "{policy}: {}", moved(report));
                let fast = fast_of(machine, OLD) as u64;
                assert!(fast >= floor, "{policy}: {fast} of {floor}");
                assert!(shares(report) <= (CAPACITY - floor) * UNIT, "{policy}");
            });
        }
    }

    /// Programs that are cooler than the old one move no more than their shares in and out, and the
    /// old one's memory out and in: at once by `history`; by `payback` when it pays, some epochs later and then together.
    #[test]
    fn short_lived_programs_move_their_shares_and_no_more(arrivals in arrivals(0..40)) {
        for (policy, epochs) in [("payback", 8), ("history", 3)] {
            let mut last = VecDeque::new();
            live(policy, &arrivals, &fair_limits(), 1, |report, _| {
                last.push_front(shares(report));
                last.truncate(epochs);
                let most = 2 * last.iter().sum::<u64>();
                assert!(moved(report) <= most, "{policy}: {} of {most}", moved(report));
            });
        }
    }
}
