//! Converts decisions about units and probes into moves of ranges, outcomes of probes into pages that left, and touches into accesses.

use std::collections::BTreeMap;

use isotherm_model::batch::ObservedAccess;
use isotherm_model::movement::{NodeId, RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::paged::PAGED_OUT;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::units::Bytes;
use isotherm_model::watch::Unit;

/// One action for each run of neighbouring units of a process; a unit has `bytes` bytes.
pub(super) fn actions(units: &[Unit], bytes: u64, node: NodeId) -> Vec<RangeAction> {
    let mut actions: Vec<RangeAction> = Vec::new();
    for unit in units {
        match actions.last_mut() {
            Some(last) if (last.process, last.range.end()) == (unit.process, unit.start) => {
                last.range.bytes += Bytes(bytes);
            }
            _ => actions.push(unit.move_to(node, Bytes(bytes))),
        }
    }
    actions
}

/// One action for each page of a probe; pages have `page` bytes and are numbered within the unit.
pub(super) fn probe_actions(probes: &[(Unit, Vec<u64>)], page: u64) -> Vec<RangeAction> {
    let action = |unit: &Unit, number: &u64| {
        let start = unit.start + number * page;
        Unit { start, ..*unit }.move_to(PAGED_OUT, Bytes(page))
    };
    let all = probes.iter();
    all.flat_map(|(unit, pages)| pages.iter().map(move |number| action(unit, number)))
        .collect()
}

/// The probed pages of each unit that left memory. A probe that failed because swap was full, or because the epoch had no time left, is
/// no evidence about its unit.
pub(super) fn probes_that_left(
    outcomes: &[RangeOutcome],
    (unit, page): (u64, u64),
) -> BTreeMap<Unit, u64> {
    let mut left = BTreeMap::new();
    let says_nothing =
        |fate: &Fate| fate.lacks_room() || *fate == Fate::NotAttempted(Reason::OutOfTime);
    let is_empty =
        |outcome: &&RangeOutcome| outcome.parts.iter().all(|part| says_nothing(&part.fate));
    for outcome in outcomes.iter().filter(|outcome| !is_empty(outcome)) {
        let RangeAction { process, range, .. } = outcome.action;
        let start = range.start / unit * unit;
        let pages = outcome.bytes_of(|fate| *fate == Fate::Moved).0 / page;
        *left.entry(Unit { process, start }).or_default() += pages;
    }
    left
}

/// The touches of units as accesses to the whole unit, by which the policies of a limit rank.
pub(super) fn accesses(touches: Vec<(Unit, u64)>, unit: Bytes) -> Vec<ObservedAccess> {
    let source = SourceKind::PageFaults;
    let access = |(touched, parts): (Unit, u64)| ObservedAccess {
        bytes: unit,
        ..ObservedAccess::at(
            (touched.process, touched.start),
            source,
            (parts, source.unit(false)),
        )
    };
    touches.into_iter().map(access).collect()
}

#[cfg(test)]
mod tests {
    use isotherm_model::batch::Process;
    use isotherm_model::movement::RangeOutcome;
    use isotherm_model::outcome::{Fate, NO_SWAP_ROOM, Reason};
    use isotherm_model::paged::PAGED_OUT;
    use isotherm_model::units::Bytes;
    use isotherm_model::watch::Unit;

    use super::{accesses, actions, probe_actions, probes_that_left};

    const PAGE: u64 = 4096;
    const UNIT: u64 = 16 * PAGE;

    fn unit(number: u64) -> Unit {
        Unit {
            process: Process::default(),
            start: number * UNIT,
        }
    }

    #[test]
    fn neighbouring_units_are_one_action() {
        let actions = actions(&[unit(1), unit(2), unit(4)], UNIT, PAGED_OUT);
        let ranges = actions.iter().map(|it| (it.range.start, it.range.bytes.0));
        let ranges: Vec<(u64, u64)> = ranges.collect();
        assert_eq!(ranges, [(UNIT, 2 * UNIT), (4 * UNIT, UNIT)]);
    }

    #[test]
    fn the_pages_of_probes_that_left_are_counted_by_unit() {
        let probes = [
            (unit(1), vec![3, 9]),
            (unit(4), vec![0]),
            (unit(5), vec![7]),
            (unit(6), vec![1]),
        ];
        let actions = probe_actions(&probes, PAGE);
        let starts: Vec<u64> = actions.iter().map(|it| it.range.start).collect();
        assert_eq!(starts[..3], [UNIT + 3 * PAGE, UNIT + 9 * PAGE, 4 * UNIT]);
        let full = Fate::Busy(NO_SWAP_ROOM.into());
        let late = Fate::NotAttempted(Reason::OutOfTime);
        let fates = [Fate::Moved, Fate::Moved, Fate::AlreadyThere, full, late];
        let outcomes = actions.iter().zip(fates);
        let outcomes = outcomes.map(|(action, fate)| RangeOutcome::whole(*action, fate));
        let left = probes_that_left(&outcomes.collect::<Vec<_>>(), (UNIT, PAGE));
        assert_eq!(Vec::from_iter(left), [(unit(1), 2), (unit(4), 0)]);
    }

    #[test]
    fn touches_are_accesses_to_the_whole_unit() {
        let accesses = accesses(vec![(unit(3), 64)], Bytes(UNIT));
        let [access] = accesses.as_slice() else {
            panic!("{accesses:?}");
        };
        assert_eq!((access.address, access.end()), (3 * UNIT, 4 * UNIT));
        assert_eq!(access.count, 64);
    }
}
