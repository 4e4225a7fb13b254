//! Tests units of which little is hot, on a machine that moves any part of a unit alone.

use super::*;
use crate::unit_step::GroupLimit;
use crate::unit_step::sparse_units::{QUIET_EPOCHS, RENEWED_AFTER};
use isotherm_policy::PARTS;

const PART: u64 = UNIT / PARTS as u64;

/// The parts of units that are fast.
#[derive(Debug, Default)]
struct Parts {
    fast: BTreeSet<u64>,
    units: u64,
    /// Whole units only, as the kernel moves huge pages that it does not split.
    whole: bool,
    /// Fast parts are observed in steps of this many: the daemon queries a few pages of each unit only.
    seen_by: usize,
    most: usize,
}

impl Parts {
    fn new(units: u64) -> Self {
        Self {
            units,
            seen_by: 16,
            ..Self::default()
        }
    }

    fn fast_of(&self, number: u64) -> Vec<u64> {
        let parts = number * PARTS as u64..(number + 1) * PARTS as u64;
        let fast = self.fast.range(parts.clone());
        fast.map(|part| part - parts.start).collect()
    }

    fn observation(&self, epoch: u32, capacity: u64, hits: &[(u64, u64)]) -> Observation {
        let residency = (0..self.units).map(|number| UnitResidency {
            fast: Bytes((self.fast_of(number).len() / self.seen_by * self.seen_by) as u64 * PART),
            ..held(unit(7, number), false)
        });
        let sample = |(unit, part): &(u64, u64)| {
            let source = SourceKind::Timer;
            let address = unit * UNIT + part * PART + 100;
            ObservedAccess::at(
                (Process { pid: 7, image: 0 }, address),
                source,
                (1, source.unit(false)),
            )
        };
        Observation {
            epoch: Epoch(epoch),
            processes: vec![watched(unit(7, 0).process)],
            residency: residency.collect(),
            accesses: hits.iter().map(sample).collect(),
            capacity: Bytes(capacity * UNIT),
            ..Observation::default()
        }
    }
}

impl RangeExecutor for Parts {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let range = action.range;
        if self.whole && range.bytes.0 < UNIT {
            return RangeOutcome::whole(action, Fate::Busy("not split".into()));
        }
        for part in range.start / PART..range.end() / PART {
            match action.node == FAST {
                true => self.fast.insert(part),
                false => self.fast.remove(&part),
            };
        }
        self.most = self.most.max(self.fast.len());
        RangeOutcome::whole(action, Fate::Moved)
    }
}

struct Run {
    step: UnitStep,
    machine: Parts,
    epoch: u32,
    limits: StepLimits,
}

impl Run {
    fn new(units: u64) -> Self {
        let costs = MoveCosts {
            moved_page: Nanos(MoveCosts::TYPICAL.moved_page.0 * UNIT / 4096),
            ..MoveCosts::TYPICAL
        };
        let make = move || by_name("payback", costs).expect("a policy");
        let config = UnitStepConfig {
            splits: true,
            ..config(false)
        };
        Self {
            step: UnitStep::new(config, Box::new(make)),
            machine: Parts::new(units),
            epoch: 0,
            limits: limits(),
        }
    }

    fn epochs(&mut self, count: u32, capacity: u64, hits: &[(u64, u64)]) -> EpochReport {
        let mut report = EpochReport::default();
        for _ in 0..count {
            let seen = self.machine.observation(self.epoch, capacity, hits);
            report = self.step.run(&seen, &self.limits, &mut self.machine);
            self.epoch += 1;
            let most = (capacity * PARTS as u64) as usize;
            assert!(self.machine.most <= most, "{}", self.machine.most);
        }
        report
    }
}

/// Ten hits in each of two parts of the first units.
fn in_two_parts(units: u64) -> Vec<(u64, u64)> {
    let hits = (0..units).flat_map(|unit| [(unit, 3), (unit, 4 + unit)]);
    hits.flat_map(|hit| [hit; 10]).collect()
}

/// Two hits in every part of a unit.
fn everywhere(unit: u64) -> Vec<(u64, u64)> {
    let parts = 0..PARTS as u64;
    parts.flat_map(|part| [(unit, part); 2]).collect()
}

#[test]
fn where_units_lack_room_only_their_hot_parts_are_promoted() {
    let mut run = Run::new(8);
    let report = run.epochs(6, 2, &in_two_parts(8));
    for unit in 0..8 {
        assert_eq!(
            run.machine.fast_of(unit),
            [3, 4 + unit].map(|it| it.max(3)),
            "{unit}"
        );
    }
    assert_eq!(report.split_units, 8);
    assert_eq!(report.split_fast, Bytes(16 * PART));
    assert_eq!(report.fast, Bytes(16 * PART));
}

#[test]
fn units_that_are_fast_give_up_all_but_their_hot_parts() {
    let mut run = Run::new(8);
    run.machine.fast = (0..2 * PARTS as u64).collect();
    run.epochs(6, 2, &in_two_parts(8));
    assert_eq!(run.machine.fast.len(), 16);
}

#[test]
fn where_all_warm_units_find_room_they_are_promoted_whole() {
    let mut run = Run::new(8);
    let report = run.epochs(6, 4, &in_two_parts(4));
    assert_eq!(run.machine.fast.len(), 4 * PARTS);
    assert_eq!(report.split_units, 0);
}

#[test]
fn a_unit_that_is_hot_as_a_whole_is_promoted_whole() {
    let mut run = Run::new(8);
    let mut hits = in_two_parts(7);
    hits.extend(everywhere(7));
    run.epochs(6, 2, &hits);
    assert_eq!(run.machine.fast_of(7).len(), PARTS);
    assert!((0..7).all(|unit| run.machine.fast_of(unit).len() == 2));
}

/// Hits in one part of a unit, and one hit in each of as many others.
fn in_one_part(unit: u64, hits: usize, others: u64) -> Vec<(u64, u64)> {
    let others = (10..10 + others).map(|part| (unit, part));
    std::iter::repeat_n((unit, 3), hits).chain(others).collect()
}

#[test]
fn a_unit_is_not_split_where_the_rest_of_it_is_as_hot_as_what_has_no_room() {
    let hits = |others| -> Vec<_> {
        let spots = (0..4).flat_map(|unit| in_one_part(unit, 40, others));
        spots
            .chain((4..8).flat_map(|unit| in_one_part(unit, 0, 20)))
            .collect()
    };
    let mut run = Run::new(8);
    assert_eq!(run.epochs(6, 4, &hits(12)).split_units, 0);
    assert_eq!(run.machine.fast_of(0).len(), PARTS);
    let mut run = Run::new(8);
    assert_eq!(run.epochs(6, 4, &hits(4)).split_units, 4);
    // The rest of one unit becomes hotter than those that have no room.
    let mut hits = hits(0);
    hits.extend(in_one_part(0, 0, 30));
    let report = run.epochs(20, 4, &hits);
    assert_eq!(run.machine.fast_of(0).len(), PARTS);
    assert_eq!(report.split_units, 3);
}

#[test]
fn units_that_are_not_split_are_moved_whole_and_not_tried_each_epoch() {
    let mut run = Run::new(8);
    run.machine.whole = true;
    let report = run.epochs(2, 2, &in_two_parts(8));
    assert_eq!(report.split_units, 0);
    assert!(report.backoff > 0);
    run.epochs(20, 2, &in_two_parts(8));
    assert!(run.machine.fast.len().is_multiple_of(PARTS));
}

#[test]
fn a_split_unit_takes_further_hot_parts_and_gives_up_all_where_it_is_cold() {
    let mut run = Run::new(8);
    run.epochs(6, 2, &in_two_parts(8));
    let mut hits = in_two_parts(8);
    hits.extend([(0, 40); 10]);
    run.epochs(4, 2, &hits);
    assert_eq!(run.machine.fast_of(0), [3, 4, 40]);
    // Cold, beside others that are not.
    let others: Vec<_> = in_two_parts(8).split_off(20);
    run.epochs(QUIET_EPOCHS + 4, 2, &others);
    assert_eq!(run.machine.fast_of(0), [0; 0]);
    assert_eq!(run.machine.fast_of(1), [3, 5]);
}

#[test]
fn a_split_unit_that_is_hot_in_many_parts_is_whole_again() {
    let mut run = Run::new(8);
    run.epochs(6, 2, &in_two_parts(8));
    let mut hits = in_two_parts(7);
    hits.extend(everywhere(7));
    let report = run.epochs(4, 2, &hits);
    assert_eq!(run.machine.fast_of(7).len(), PARTS);
    assert_eq!(report.split_units, 7);
}

#[test]
fn what_the_kernel_put_together_again_is_split_anew_in_time() {
    let mut run = Run::new(8);
    run.epochs(6, 2, &in_two_parts(8));
    // khugepaged made a huge page of it, on the slow node.
    run.machine.fast.retain(|part| part / PARTS as u64 != 5);
    run.epochs(RENEWED_AFTER + 1, 2, &in_two_parts(8));
    assert_eq!(run.machine.fast_of(5), [3, 9]);
}

#[test]
fn units_of_a_group_with_a_cap_are_not_split() {
    let mut run = Run::new(8);
    let cap = GroupLimit {
        cap: Some(Bytes(UNIT)),
        ..GroupLimit::default()
    };
    run.limits.groups.insert("/services".to_owned(), cap);
    let report = run.epochs(6, 2, &in_two_parts(8));
    assert_eq!(report.split_units, 0);
    assert_eq!(run.machine.fast.len(), PARTS, "the cap");
}

proptest! {
    /// Whatever is hot, the tier never holds more than fits ([`Run::epochs`]), and never more than is reported.
    #[test]
    fn the_capacity_holds_whatever_is_hot(
        epochs in prop::collection::vec(prop::collection::vec((0_u64..8, 0_u64..64, 1_usize..20), 0..12), 1..20), capacity in 1_u64..8
    ) {
        let mut run = Run::new(8);
        run.machine.seen_by = 1;
        for hits in epochs {
            let hits: Vec<_> = hits.iter().flat_map(|(unit, part, times)| vec![(*unit, *part); *times]).collect();
            let report = run.epochs(2, capacity, &hits);
            prop_assert!(report.fast >= Bytes(run.machine.fast.len() as u64 * PART));
        }
    }
}
