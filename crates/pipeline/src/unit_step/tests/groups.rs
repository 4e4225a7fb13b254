//! Tests caps, floors and priorities: the memory of each group at the end of an epoch, under any
//! load of others.

use isotherm_model::units::Bytes;
use isotherm_model::watch::Unit;
use proptest::prelude::*;

use super::{Machine, Turn, UNIT, all_units, limits, step, turns, unit};
use crate::unit_step::{EpochReport, GroupLimit, Priority, StepLimits};

/// The settings for the control group of a process.
fn group(pid: u32, limit: GroupLimit) -> (String, GroupLimit) {
    (format!("/services/{pid}"), limit)
}

fn floor(units: u64) -> GroupLimit {
    GroupLimit {
        floor: Bytes(units * UNIT),
        ..GroupLimit::default()
    }
}

fn cap(units: u64) -> GroupLimit {
    GroupLimit {
        cap: Some(Bytes(units * UNIT)),
        ..GroupLimit::default()
    }
}

/// The fast units after one epoch of History with room for three: three units of process 1, hit 9,
/// 8 and 7 times, and two of process 2, hit twice and once.
fn after_one_epoch(
    groups: impl IntoIterator<Item = (String, GroupLimit)>,
) -> (Vec<Unit>, EpochReport) {
    let units = [unit(1, 0), unit(1, 1), unit(1, 2), unit(2, 0), unit(2, 1)];
    let mut machine = Machine::with(units);
    let hot = units.iter().copied().zip([9, 8, 7, 2, 1]);
    let seen = machine.observation(0, 3, &hot.collect::<Vec<_>>());
    let limits = StepLimits {
        groups: groups.into_iter().collect(),
        ..limits()
    };
    let report = step("history", false).run(&seen, &limits, &mut machine);
    (machine.fast_units(), report)
}

#[test]
fn a_capped_group_leaves_room_to_others() {
    let (fast, report) = after_one_epoch([group(1, cap(1))]);
    assert_eq!(fast, [unit(1, 0), unit(2, 0), unit(2, 1)]);
    let told = &report.groups[0];
    assert_eq!((told.name.as_str(), told.processes), ("/services/1", 1));
    assert_eq!((told.resident, told.fast), (Bytes(3 * UNIT), Bytes(UNIT)));
}

#[test]
fn a_floor_brings_the_hottest_of_a_cool_group_in_and_no_more() {
    let (fast, _) = after_one_epoch([group(2, floor(1))]);
    assert_eq!(fast, [unit(1, 0), unit(1, 1), unit(2, 0)]);
    let (fast, _) = after_one_epoch([group(2, floor(100))]);
    assert_eq!(fast, [unit(1, 0), unit(2, 0), unit(2, 1)]);
}

#[test]
fn a_floor_counts_what_units_hold_and_not_their_size() {
    // The hottest unit of the group is the edge of a mapping.
    let hot = (0..4).map(|number| (unit(1, number), 90));
    let cool = (0..5).map(|number| (unit(2, number), 9 - number));
    let heat: Vec<(Unit, u64)> = hot.chain(cool).collect();
    let mut machine = Machine::with(heat.iter().map(|(unit, _)| *unit));
    let limits = StepLimits {
        groups: [group(2, floor(3))].into(),
        ..limits()
    };
    let mut step = step("history", false);
    for epoch in 0..4 {
        let mut seen = machine.observation(epoch, 6, &heat);
        let edge = seen
            .residency
            .iter_mut()
            .find(|held| held.unit == unit(2, 0));
        let edge = edge.expect("it is resident");
        edge.resident = Bytes(UNIT / 8);
        edge.fast = edge.fast.min(edge.resident);
        let report = step.run(&seen, &limits, &mut machine);
        assert_eq!(
            report.groups[0].fast,
            Bytes(3 * UNIT + UNIT / 8),
            "epoch {epoch}"
        );
        assert_eq!(fast_by_process(&machine)[1], 2);
    }
}

#[test]
fn a_priority_weighs_heat_for_decisions_and_not_for_the_hit_rate() {
    let priority = |thousandths| GroupLimit {
        priority: Priority(thousandths),
        ..GroupLimit::default()
    };
    let (fast, plain) = after_one_epoch([group(2, priority(4_000))]);
    assert_eq!(fast, [unit(1, 0), unit(1, 1), unit(2, 0)]);
    let (fast, lower) = after_one_epoch([group(1, priority(200))]);
    assert_eq!(fast, [unit(1, 0), unit(1, 1), unit(2, 0)]);
    assert_eq!(plain.accesses, lower.accesses);
}

#[test]
fn a_group_that_is_kept_by_its_floor_costs_no_moves_in_a_steady_state() {
    let units: Vec<Unit> = (0..10).map(|number| unit(1, number)).collect();
    let cool: Vec<Unit> = (0..4).map(|number| unit(2, number)).collect();
    let mut machine = Machine::with(units.iter().chain(&cool).copied());
    let hot = units.iter().map(|unit| (*unit, 90));
    let hot: Vec<(Unit, u64)> = hot.chain(cool.iter().map(|unit| (*unit, 3))).collect();
    for policy in ["payback", "history"] {
        let mut step = step(policy, false);
        let limits = StepLimits {
            groups: [group(2, floor(4))].into(),
            ..limits()
        };
        let mut moved = 0;
        for epoch in 0..20 {
            let seen = machine.observation(epoch, 8, &hot);
            let report = step.run(&seen, &limits, &mut machine);
            let sums = report.moves;
            moved = if epoch < 4 {
                0
            } else {
                moved + sums.promoted.0 + sums.demoted.0
            };
        }
        let fast = machine.fast_units();
        let kept = fast.iter().filter(|unit| unit.process.pid == 2).count();
        assert_eq!((fast.len(), kept, moved), (8, 4, 0), "{policy}");
    }
}

#[test]
fn a_floor_takes_huge_pages_whole_whatever_small_thing_is_fast_already() {
    // A process of two hot huge pages, and one of a cool huge page and a small thing beside it.
    let hot = (0..8).map(|number| (unit(1, number), 90));
    let cool = (0..4).chain([9]).map(|number| (unit(2, number), 3));
    let heat: Vec<(Unit, u64)> = hot.chain(cool).collect();
    let mut machine = Machine::with(heat.iter().map(|(unit, _)| *unit));
    machine.grain = 4;
    machine.fast.insert(unit(2, 9), true);
    let limits = StepLimits {
        groups: [group(2, floor(4))].into(),
        ..limits()
    };
    for policy in ["payback", "history"] {
        let (mut machine, mut step) = (machine.clone(), step(policy, false));
        for epoch in 0..8 {
            let seen = machine.observation(epoch, 9, &heat);
            step.run(&seen, &limits, &mut machine);
            let kept = fast_by_process(&machine)[2];
            assert!(kept >= 4, "{policy}: {kept} units in epoch {epoch}");
        }
        assert_eq!(
            fast_by_process(&machine)[1],
            4,
            "{policy}: the rest is the hotter one's"
        );
    }
}

fn fast_by_process(machine: &Machine) -> [u64; 3] {
    let mut fast = [0; 3];
    for unit in machine.fast_units() {
        fast[unit.process.pid as usize] += 1;
    }
    fast
}

/// Units of a process that were accessed in one of the last eight epochs.
fn warm(turns: &[Turn], process: usize) -> u64 {
    let last = &turns[turns.len().saturating_sub(8)..];
    let units = process * 10..process * 10 + 10;
    units
        .filter(|unit| last.iter().any(|turn| turn.heat[*unit] > 0))
        .count() as u64
}

proptest! {
    /// With any limit of moves a group never loses the memory that its floor keeps. Without a limit
    /// it has its floor at the end of every epoch, or all of its memory with any heat. If floors
    /// are not multiples of a huge page and the tier has no room to round them all up, a group has
    /// the whole huge pages of its floor.
    #[test]
    fn floors_are_kept_whatever_others_do(
        turns in turns(), floors in prop::array::uniform3(0_u64..7), more in 0_u64..12,
        moves in prop::option::of(0_u64..10), grain in prop::sample::select(vec![1_u64, 2, 5])
    ) {
        let is_round = more >= 3 * (grain - 1);
        let capacity = floors.iter().sum::<u64>() + more;
        let limits = StepLimits {
            moves: Bytes(moves.map_or(u64::MAX, |moves| moves * UNIT)),
            groups: (0..3).map(|pid| group(pid, floor(floors[pid as usize]))).collect(),
            ..limits()
        };
        for policy in ["payback", "history", "first-come-first-allocated"] {
            let mut machine = Machine::with(all_units());
            machine.grain = grain;
            let mut step = step(policy, false);
            for (epoch, turn) in turns.iter().enumerate() {
                let before = fast_by_process(&machine);
                let seen = machine.observation(epoch as u32, capacity, &turn.hot());
                step.run(&seen, &limits, &mut machine);
                let after = fast_by_process(&machine);
                for pid in 0..3 {
                    let due = floors[pid].min(warm(&turns[..=epoch], pid));
                    let due = if is_round { due } else { due - due % grain };
                    let least = moves.map_or(due, |_| due.min(before[pid]));
                    prop_assert!(after[pid] >= least, "{policy} {epoch}: {pid} {after:?} {before:?} {due}");
                }
            }
            prop_assert!(machine.most as u64 <= capacity);
        }
    }

    #[test]
    fn caps_win_over_floors_and_priorities(
        turns in turns(), caps in prop::array::uniform3(0_u64..7), floors in prop::array::uniform3(0_u64..7),
        priority in 1_u32..100_000, capacity in 0_u64..32
    ) {
        let limit = |pid: usize| GroupLimit {
            cap: Some(Bytes(caps[pid] * UNIT)),
            priority: Priority(priority),
            ..floor(floors[pid])
        };
        let limits = StepLimits {
            groups: (0..3).map(|pid| group(pid, limit(pid as usize))).collect(),
            ..limits()
        };
        for policy in ["payback", "history"] {
            let mut machine = Machine::with(all_units());
            let mut step = step(policy, false);
            for (epoch, turn) in turns.iter().enumerate() {
                let seen = machine.observation(epoch as u32, capacity, &turn.hot());
                step.run(&seen, &limits, &mut machine);
                let fast = fast_by_process(&machine);
                prop_assert!((0..3).all(|pid| fast[pid] <= caps[pid]), "{policy}: {fast:?}");
                prop_assert!(fast.iter().sum::<u64>() <= capacity);
            }
        }
    }
}
