//! Tests the step against a model of a machine that refuses moves, fills up and loses processes.

mod balance;
mod day;
mod groups;
mod newcomers;
mod noise;
mod sparse;

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::ObservedAccess;
use isotherm_model::batch::{Epoch, Process};
use isotherm_model::movement::{NodeId, RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::port::RangeExecutor;
use isotherm_model::source_kind::{ProfilingMethod, SourceKind};
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::watch::{Observation, Placed, Unit, UnitResidency, Watched};
use isotherm_policy::epoch::{MoveCosts, by_name};
use proptest::prelude::*;

use super::{BATCH_PART, Combine, EpochReport, StepLimits, UnitStep, UnitStepConfig};

const UNIT: u64 = 2 << 20;
const FAST: NodeId = NodeId(0);
const SLOW: NodeId = NodeId(1);

/// The node of every unit, and the units that refuse to move.
#[derive(Clone, Debug, Default)]
struct Machine {
    fast: BTreeMap<Unit, bool>,
    pinned: BTreeSet<Unit>,
    /// Every action, in order.
    log: Vec<(Unit, NodeId)>,
    /// The most units that were fast at any time.
    most: usize,
    dry: bool,
    /// Units in a huge page, which moves as a whole; 0 counts as 1.
    grain: u64,
    /// The fate of every move to the fast node.
    refusal: Option<Fate>,
    /// Units that there is still time to move; `None` for no limit.
    moves_left: Option<usize>,
}

impl Machine {
    fn with(units: impl IntoIterator<Item = Unit>) -> Self {
        Self {
            fast: units.into_iter().map(|unit| (unit, false)).collect(),
            ..Self::default()
        }
    }

    /// The units that move with this one, and whether any of them refuses.
    fn page_of(&self, unit: Unit) -> (Vec<Unit>, bool) {
        let bytes = self.grain.max(1) * UNIT;
        let page = |other: &Unit| {
            other.process == unit.process && other.start / bytes == unit.start / bytes
        };
        let units: Vec<Unit> = self.fast.keys().copied().filter(page).collect();
        let refuses = units.iter().any(|unit| self.pinned.contains(unit));
        (units, refuses)
    }

    fn fast_units(&self) -> Vec<Unit> {
        let fast = self.fast.iter().filter(|(_, fast)| **fast);
        fast.map(|(unit, _)| *unit).collect()
    }

    fn observation(&self, epoch: u32, capacity: u64, hot: &[(Unit, u64)]) -> Observation {
        let processes: BTreeSet<Process> = self.fast.keys().map(|unit| unit.process).collect();
        Observation {
            epoch: Epoch(epoch),
            processes: processes.into_iter().map(watched).collect(),
            residency: self
                .fast
                .iter()
                .map(|(unit, fast)| UnitResidency {
                    grain: Bytes(self.grain.max(1) * UNIT),
                    ..held(*unit, *fast)
                })
                .collect(),
            accesses: hot
                .iter()
                .map(|(unit, hits)| samples(*unit, *hits))
                .collect(),
            capacity: Bytes(capacity * UNIT),
            ..Observation::default()
        }
    }
}

impl RangeExecutor for Machine {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let (mut outcome, node) = (RangeOutcome::begin(action), action.node);
        let (mut start, mut moved) = (action.range.start, BTreeSet::<Unit>::new());
        while start < action.range.end() {
            let unit = Unit {
                process: action.process,
                start,
            };
            self.log.push((unit, node));
            let refusal = self.refusal.clone().filter(|_| node == FAST);
            let gone = || Fate::NotAttempted("the process has ended".into());
            let (together, refuses) = self.page_of(unit);
            let fate = match (self.fast.get(&unit), refusal) {
                (None, _) => gone(),
                (Some(_), _) if self.dry => Fate::NotAttempted(Reason::DryRun),
                (Some(_), _) if refuses => Fate::Busy("pinned".into()),
                (Some(false), Some(fate)) => fate,
                (Some(_), _) if moved.contains(&unit) => Fate::Moved,
                (Some(fast), _) if *fast == (node == FAST) => Fate::AlreadyThere,
                (Some(_), _) if self.moves_left == Some(0) => Fate::NotAttempted(Reason::OutOfTime),
                (Some(_), _) => {
                    self.moves_left = self.moves_left.map(|left| left - 1);
                    moved.extend(&together);
                    Fate::Moved
                }
            };
            for unit in together.into_iter().filter(|_| fate == Fate::Moved) {
                self.fast.insert(unit, node == FAST);
            }
            outcome.push(Bytes(UNIT), fate);
            start += UNIT;
            self.most = self.most.max(self.fast_units().len());
        }
        outcome
    }
}

fn unit(pid: u32, number: u64) -> Unit {
    let process = Process { pid, image: 0 };
    Unit {
        process,
        start: number * UNIT,
    }
}

fn watched(process: Process) -> Watched {
    Watched {
        process,
        name: format!("program-{}", process.pid),
        control_group: format!("/services/{}", process.pid),
        warning: String::new(),
    }
}

fn held(unit: Unit, fast: bool) -> UnitResidency {
    let fast = if fast { Bytes(UNIT) } else { Bytes(0) };
    UnitResidency {
        unit,
        resident: Bytes(UNIT),
        fast,
        grain: Bytes(UNIT),
    }
}

fn samples(unit: Unit, hits: u64) -> ObservedAccess {
    let source = SourceKind::Timer;
    ObservedAccess::at(
        (unit.process, unit.start),
        source,
        (hits, source.unit(false)),
    )
}

fn limits() -> StepLimits {
    StepLimits {
        accesses_per_sample: 3_000,
        moves: Bytes(u64::MAX),
        groups: BTreeMap::new(),
        fair_start: 0,
    }
}

fn config(modelled: bool) -> UnitStepConfig {
    UnitStepConfig {
        unit: Bytes(UNIT),
        page: Bytes(4096),
        fast_nodes: vec![FAST],
        slow_nodes: vec![SLOW],
        combine: Combine::Balanced,
        splits: false,
        modelled,
    }
}

fn step(policy: &'static str, modelled: bool) -> UnitStep {
    let make = move || by_name(policy, MoveCosts::TYPICAL).expect("a policy");
    UnitStep::new(config(modelled), Box::new(make))
}

#[test]
fn hot_units_come_in_and_what_they_replace_goes_out_before() {
    let mut machine = Machine::with((0..8).map(|number| unit(7, number)));
    for number in 0..2 {
        machine.fast.insert(unit(7, number), true);
    }
    let mut step = step("history", false);
    let seen = machine.observation(0, 2, &[(unit(7, 4), 9), (unit(7, 5), 8)]);
    let report = step.run(&seen, &limits(), &mut machine);
    assert_eq!(machine.fast_units(), [unit(7, 4), unit(7, 5)]);
    assert_eq!(machine.most, 2, "never more than fits");
    let nodes: Vec<NodeId> = machine.log.iter().map(|(_, node)| *node).collect();
    assert_eq!(
        nodes,
        [SLOW, FAST, SLOW, FAST],
        "in turn, in so small a tier"
    );
    assert_eq!(report.moves.promoted, Bytes(2 * UNIT));
    assert_eq!(report.moves.demoted, Bytes(2 * UNIT));
    assert_eq!(
        report.hit_rate(),
        Some(0.0),
        "of the epoch before the moves"
    );
    let seen = machine.observation(1, 2, &[(unit(7, 4), 3), (unit(7, 0), 1)]);
    let report = step.run(&seen, &limits(), &mut machine);
    assert_eq!(report.hit_rate(), Some(0.75));
}

#[test]
fn little_of_the_fast_tier_is_empty_where_time_for_moves_ends_in_the_middle() {
    const HALF: u64 = 64;
    let batch = (HALF / BATCH_PART) as usize;
    for policy in ["history", "payback"] {
        let mut machine = Machine::with((0..2 * HALF).map(|number| unit(7, number)));
        for number in 0..HALF {
            machine.fast.insert(unit(7, number), true);
        }
        let hot: Vec<_> = (HALF..2 * HALF)
            .map(|number| (unit(7, number), 9))
            .collect();
        let mut step = step(policy, false);
        for epoch in 0..3 {
            machine.moves_left = Some(HALF as usize);
            let seen = machine.observation(epoch, HALF, &hot);
            step.run(&seen, &limits(), &mut machine);
            let fast = machine.fast_units();
            assert!(
                fast.len() >= HALF as usize - batch,
                "{policy}: {}",
                fast.len()
            );
            let hot = fast.iter().filter(|unit| unit.start >= HALF * UNIT);
            let due = (epoch as usize + 1) * (HALF as usize - 2 * batch) / 2;
            assert!(
                hot.count() >= due.min(HALF as usize),
                "{policy}: epoch {epoch}"
            );
        }
    }
}

/// Accessed bits of a whole unit.
fn bits(unit: Unit, hits: u64) -> ObservedAccess {
    ObservedAccess {
        source: SourceKind::AccessedBits,
        ..samples(unit, hits)
    }
}

#[test]
fn a_sample_counts_by_where_its_page_was_when_it_was_taken() {
    let mut machine = Machine::with((0..2).map(|number| unit(7, number)));
    // The unit was moved in this epoch, after most of its samples had been taken.
    machine.fast.insert(unit(7, 0), true);
    let mut seen = machine.observation(0, 1, &[(unit(7, 0), 30), (unit(7, 1), 10)]);
    // Bits show how many pages were accessed and not how often, so they are not counted.
    seen.accesses.push(bits(unit(7, 0), 100_000));
    let placed = Placed {
        samples: 40,
        fast: 10,
    };
    seen.placed.insert(unit(7, 0).process, placed);
    let report = step("history", false).run(&seen, &limits(), &mut machine);
    assert_eq!(report.hit_rate(), Some(0.25));
    assert_eq!(
        (report.seen_by, report.accesses),
        (Some(ProfilingMethod::TraceSamples), 40)
    );
    assert_eq!(report.processes[0].accesses_fast, 10);
    // The result of a dry run is in no page table.
    let report = step("history", true).run(&seen, &limits(), &mut machine);
    assert_eq!(report.hit_rate(), Some(0.75));
}

#[test]
fn without_samples_pages_found_accessed_are_counted_and_no_interval_is_given() {
    let mut machine = Machine::with((0..2).map(|number| unit(7, number)));
    machine.fast.insert(unit(7, 0), true);
    let mut seen = machine.observation(0, 1, &[]);
    seen.accesses = vec![bits(unit(7, 0), 300), bits(unit(7, 1), 100)];
    let report = step("history", false).run(&seen, &limits(), &mut machine);
    assert_eq!(report.hit_rate(), Some(0.75));
    assert_eq!(report.seen_by, Some(ProfilingMethod::AccessedBits));
    assert_eq!(report.hit_interval(), None);
}

#[test]
fn few_samples_leave_a_wide_interval_and_many_a_narrow_one() {
    let interval = |samples: u64, fast: u64| {
        let report = EpochReport {
            seen_by: Some(ProfilingMethod::TraceSamples),
            accesses: samples,
            accesses_fast: fast,
            ..EpochReport::default()
        };
        report.hit_interval()
    };
    // The values are from tables of Wilson's interval.
    for (samples, fast, low, high) in [(10, 8, 0.490, 0.943), (1_000, 800, 0.774, 0.824)] {
        let [lower, upper] = interval(samples, fast).expect("samples");
        let is_near = (lower - low).abs() < 1e-3 && (upper - high).abs() < 1e-3;
        assert!(is_near, "{lower} to {upper} for {fast} of {samples}");
    }
    let [lower, upper] = interval(3, 3).expect("samples");
    assert!(
        lower < 0.5 && (0.99..=1.0 + 1e-9).contains(&upper),
        "three samples say little"
    );
    assert_eq!(interval(0, 0), None);
}

#[test]
fn a_unit_that_cannot_leave_keeps_its_room_and_is_not_asked_every_epoch() {
    let mut machine = Machine::with((0..3).map(|number| unit(7, number)));
    machine.fast.insert(unit(7, 0), true);
    machine.pinned.insert(unit(7, 0));
    let mut step = step("history", false);
    for epoch in 0..8 {
        let seen = machine.observation(epoch, 1, &[(unit(7, 2), 9)]);
        let report = step.run(&seen, &limits(), &mut machine);
        assert_eq!(machine.fast_units(), [unit(7, 0)], "epoch {epoch}");
        assert_eq!(report.moves.promoted, Bytes(0));
    }
    // Requested in epochs 0, 2 and 5: the backoffs are 1, 2 and 4 epochs.
    assert_eq!(machine.log.len(), 3, "{:?}", machine.log);
}

/// An epoch in which two units are hot, and four cold units, half of each in the fast tier, fill its two units of room.
fn cold_halves(machine: &Machine, epoch: u32) -> Observation {
    let mut seen = machine.observation(epoch, 2, &[(unit(7, 8), 9), (unit(7, 9), 9)]);
    let cold = seen.residency.iter_mut().take(4);
    cold.for_each(|held| held.fast = Bytes(UNIT / 2));
    seen
}

#[test]
fn units_of_which_a_smaller_part_is_fast_leave_for_hot_ones() {
    let mut machine = Machine::with([0, 2, 4, 6, 8, 9].map(|number| unit(7, number)));
    let mut step = step("history", false);
    let seen = cold_halves(&machine, 0);
    let report = step.run(&seen, &limits(), &mut machine);
    assert_eq!(machine.fast_units(), [unit(7, 8), unit(7, 9)]);
    assert_eq!(report.fast, Bytes(2 * UNIT));
}

#[test]
fn units_of_which_a_smaller_part_is_fast_stay_where_no_room_is_needed() {
    let mut machine = Machine::with([0, 2, 4, 6].map(|number| unit(7, number)));
    let mut step = step("history", false);
    let mut seen = cold_halves(&machine, 0);
    seen.accesses = vec![samples(unit(7, 0), 1)];
    seen.capacity = Bytes(3 * UNIT);
    step.run(&seen, &limits(), &mut machine);
    assert_eq!(machine.log, [(unit(7, 0), FAST)]);
}

#[test]
fn a_small_fast_part_that_cannot_leave_is_not_asked_every_epoch() {
    let mut machine = Machine::with([0, 2, 4, 6, 8, 9].map(|number| unit(7, number)));
    machine.pinned = machine.fast.keys().copied().take(4).collect();
    let mut step = step("history", false);
    for epoch in 0..8 {
        let seen = cold_halves(&machine, epoch);
        step.run(&seen, &limits(), &mut machine);
        assert_eq!(machine.fast_units(), [], "epoch {epoch}");
    }
    // Each in epochs 0, 2 and 5: the backoffs are 1, 2 and 4 epochs.
    assert_eq!(machine.log.len(), 3 * 4, "{:?}", machine.log);
}

#[test]
fn a_huge_page_is_moved_once_and_counted_whole_however_its_units_differ() {
    let mut machine = Machine::with((0..12).map(|number| unit(7, number)));
    machine.grain = 4;
    let mut step = step("history", false);
    let mut moved = Vec::new();
    for epoch in 0..6 {
        // A hot and a warm unit in one page, and another page that is warm all over.
        let mut hot = vec![(unit(7, 1), 90), (unit(7, 2), 1)];
        hot.extend((8..12).map(|number| (unit(7, number), 9)));
        let seen = machine.observation(epoch, 6, &hot);
        let report = step.run(&seen, &limits(), &mut machine);
        moved.push((report.moves.promoted, report.moves.demoted));
        let first: Vec<Unit> = (0..4).map(|number| unit(7, number)).collect();
        assert_eq!(machine.fast_units(), first, "epoch {epoch}");
    }
    assert_eq!(moved[0], (Bytes(4 * UNIT), Bytes(0)));
    assert_eq!(moved[1..], [(Bytes(0), Bytes(0)); 5]);
}

#[test]
fn the_oracle_takes_huge_pages_by_all_that_is_coming_to_them() {
    let mut machine = Machine::with((0..8).map(|number| unit(7, number)));
    machine.grain = 4;
    let mut step = step("oracle", false);
    // A unit of one page will be the hottest; of the other page each unit will be warm.
    let warm = (4..8).map(|number| samples(unit(7, number), 3));
    step.set_next_epoch(warm.chain([samples(unit(7, 0), 8)]).collect());
    step.run(&machine.observation(0, 4, &[]), &limits(), &mut machine);
    let warm: Vec<Unit> = (4..8).map(|number| unit(7, number)).collect();
    assert_eq!(machine.fast_units(), warm);
}

#[test]
fn the_allowance_of_an_epoch_is_kept_and_spent_on_the_hottest() {
    let mut machine = Machine::with((0..8).map(|number| unit(7, number)));
    let hot: Vec<_> = (0..8).map(|number| (unit(7, number), number + 1)).collect();
    let mut step = step("history", false);
    let few = StepLimits {
        moves: Bytes(3 * UNIT),
        ..limits()
    };
    let report = step.run(&machine.observation(0, 8, &hot), &few, &mut machine);
    assert_eq!(report.moves.promoted, Bytes(3 * UNIT));
    assert_eq!(machine.fast_units(), [unit(7, 5), unit(7, 6), unit(7, 7)]);
}

#[test]
fn a_tier_with_too_much_in_it_is_emptied_before_anything_is_exchanged() {
    let mut machine = Machine::with((0..8).map(|number| unit(7, number)));
    for number in 0..6 {
        machine.fast.insert(unit(7, number), true);
    }
    let hot: Vec<_> = (0..8).map(|number| (unit(7, number), number + 1)).collect();
    let mut step = step("history", false);
    let few = StepLimits {
        moves: Bytes(2 * UNIT),
        ..limits()
    };
    let mut held = Vec::new();
    for epoch in 0..4 {
        step.run(&machine.observation(epoch, 2, &hot), &few, &mut machine);
        held.push(machine.fast_units().len());
    }
    assert_eq!(held[..2], [4, 2]);
    assert_eq!(machine.fast_units(), [unit(7, 6), unit(7, 7)]);
}

#[test]
fn a_dry_run_decides_as_if_it_had_moved() {
    let mut machine = Machine::with((0..4).map(|number| unit(7, number)));
    machine.dry = true;
    let mut step = step("history", true);
    for epoch in 0..3 {
        let seen = machine.observation(epoch, 2, &[(unit(7, 1), 5), (unit(7, 3), 5)]);
        let report = step.run(&seen, &limits(), &mut machine);
        assert_eq!(report.fast, Bytes(2 * UNIT));
        assert_eq!(report.wanted_units, [unit(7, 1), unit(7, 3)]);
    }
    assert_eq!(machine.log.len(), 2, "asked once, not in every epoch");
}

/// The events of an epoch: heat by unit, ending processes, refusing units.
#[derive(Clone, Debug)]
struct Turn {
    heat: Vec<u64>,
    ends: Option<u32>,
    refuses: Vec<bool>,
}

impl Turn {
    fn hot(&self) -> Vec<(Unit, u64)> {
        let hot = all_units().into_iter().zip(self.heat.iter().copied());
        hot.filter(|(_, hits)| *hits > 0).collect()
    }
}

/// Three processes of ten units.
fn all_units() -> Vec<Unit> {
    (0..30).map(|i| unit(i / 10, u64::from(i % 10))).collect()
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = (
        prop::collection::vec(prop_oneof![Just(0_u64), 0_u64..50], 30),
        prop::option::weighted(0.2, 0_u32..3),
        prop::collection::vec(prop::bool::weighted(0.1), 30),
    );
    let turn = turn.prop_map(|(heat, ends, refuses)| Turn {
        heat,
        ends,
        refuses,
    });
    prop::collection::vec(turn, 1..12)
}

/// Runs all processes through the turns. Returns the reports and the final machine.
fn play(
    policy: &'static str,
    turns: &[Turn],
    capacity: u64,
    moves: u64,
    grain: u64,
) -> (Vec<EpochReport>, Machine) {
    let units = all_units();
    let mut machine = Machine::with(units.iter().copied());
    machine.grain = grain;
    let mut step = step(policy, false);
    let limits = StepLimits {
        moves: Bytes(moves * UNIT),
        ..limits()
    };
    let mut reports = Vec::new();
    for (epoch, turn) in turns.iter().enumerate() {
        let hot: Vec<_> = units
            .iter()
            .copied()
            .zip(turn.heat.iter().copied())
            .collect();
        let pinned = units
            .iter()
            .zip(&turn.refuses)
            .filter(|(_, refuses)| **refuses);
        machine.pinned = pinned.map(|(unit, _)| *unit).collect();
        let seen = machine.observation(epoch as u32, capacity, &hot);
        // After the observation and before the moves.
        machine
            .fast
            .retain(|unit, _| Some(unit.process.pid) != turn.ends);
        reports.push(step.run(&seen, &limits, &mut machine));
    }
    (reports, machine)
}

proptest! {
    #[test]
    fn never_is_more_fast_than_fits_whatever_refuses_or_ends(
        turns in turns(), capacity in 0_u64..32, moves in 0_u64..40, grain in 1_u64..5
    ) {
        for policy in ["payback", "history", "first-come-first-allocated"] {
            let (reports, machine) = play(policy, &turns, capacity, moves, grain);
            prop_assert!(machine.most as u64 <= capacity, "{policy}: {}", machine.most);
            for report in &reports {
                prop_assert!(report.wanted <= report.capacity, "{policy}");
                prop_assert!(report.fast <= report.capacity, "{policy}");
                let moved = report.moves.promoted.0 + report.moves.demoted.0;
                prop_assert!(moved <= moves * UNIT, "{policy}: {moved}");
                let parts: Bytes = report.processes.iter().map(|process| process.fast).sum();
                prop_assert_eq!(parts, report.fast, "{}", policy);
            }
        }
    }

    #[test]
    fn the_same_epochs_give_the_same_moves(
        turns in turns(), capacity in 0_u64..32, moves in 0_u64..40, grain in 1_u64..5
    ) {
        for policy in ["payback", "history"] {
            let (reports, machine) = play(policy, &turns, capacity, moves, grain);
            let (again, same) = play(policy, &turns, capacity, moves, grain);
            prop_assert_eq!(reports, again);
            prop_assert_eq!(machine.log, same.log);
        }
    }

    #[test]
    fn a_unit_of_a_process_that_ended_is_never_named_again(
        turns in turns(), capacity in 1_u64..32
    ) {
        let units = all_units();
        let mut machine = Machine::with(units.iter().copied());
        let mut step = step("history", false);
        let mut ended = BTreeSet::new();
        for (epoch, turn) in turns.iter().enumerate() {
            machine.fast.retain(|unit, _| !ended.contains(&unit.process.pid));
            let hot: Vec<_> = units.iter().copied().zip(turn.heat.iter().copied()).collect();
            let before = machine.log.len();
            let seen = machine.observation(epoch as u32, capacity, &hot);
            let report = step.run(&seen, &limits(), &mut machine);
            let named = machine.log[before..].iter().map(|(unit, _)| unit);
            for unit in named.chain(&report.wanted_units) {
                prop_assert!(!ended.contains(&unit.process.pid), "{unit:?}");
            }
            ended.extend(turn.ends);
        }
    }
}

#[test]
fn an_epoch_that_ends_early_moves_less_and_its_samples_stand_for_more() {
    let whole = StepLimits {
        accesses_per_sample: 1_000,
        moves: Bytes(400),
        groups: BTreeMap::new(),
        fair_start: 8,
    };
    let second = Nanos(1_000_000_000);
    let of_part = |millis: u64| whole.clone().of_part(Nanos(millis * 1_000_000), second);
    assert_eq!(of_part(1_100), whole);
    assert_eq!(of_part(980), whole);
    let quarter = of_part(250);
    assert_eq!(
        (quarter.accesses_per_sample, quarter.moves),
        (4_000, Bytes(100))
    );
    let nothing = of_part(0);
    assert_eq!(nothing.moves, Bytes::ZERO);
    assert!(nothing.accesses_per_sample > 1_000);
}
