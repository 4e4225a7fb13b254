//! `Guard` wraps the executor for the moves that a memory limit causes: for a number of epochs it refuses to page out a unit that was paged
//! out by mistake, and it keeps the outcomes of these moves. What leaves by the budget of lost time, or for a control group near its own
//! limit, does not pass it. [`by_unit`] divides an outcome among the units of its range.

use std::collections::BTreeSet;

use isotherm_model::batch::Process;
use isotherm_model::movement::{AddressRange, RangeAction, RangeOutcome};
use isotherm_model::outcome::{Fate, Reason};
use isotherm_model::paged::PAGED_OUT;
use isotherm_model::port::RangeExecutor;
use isotherm_model::watch::Unit;

/// The reason for which such a unit stays.
pub(super) const WAS_A_MISTAKE: &str = "it was needed again soon after it was paged out";

/// The executor of one epoch.
pub(super) struct Guard<'a, E> {
    pub inner: &'a mut E,
    /// Units that stay in memory.
    pub held: BTreeSet<Unit>,
    /// Bytes of a unit.
    pub unit: u64,
    pub outcomes: Vec<RangeOutcome>,
}

impl<E: RangeExecutor> RangeExecutor for Guard<'_, E> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let mut outcome = RangeOutcome::begin(action);
        let mut at = action.range.start;
        while at < action.range.end() {
            let is_held = self.is_held(&action, at);
            let mut end = at;
            while end < action.range.end() && self.is_held(&action, end) == is_held {
                end = unit_end(end, self.unit).min(action.range.end());
            }
            let range = AddressRange::between(at, end);
            match is_held {
                true => outcome.push(range.bytes, Fate::Busy(WAS_A_MISTAKE.into())),
                false => {
                    let parts = self.inner.carry_out(RangeAction { range, ..action }).parts;
                    parts
                        .into_iter()
                        .for_each(|part| outcome.push(part.bytes, part.fate));
                }
            }
            at = end;
        }
        self.outcomes.push(outcome.clone());
        outcome
    }
}

impl<E> Guard<'_, E> {
    fn is_held(&self, action: &RangeAction, address: u64) -> bool {
        let unit = Unit {
            process: action.process,
            start: address / self.unit * self.unit,
        };
        action.node == PAGED_OUT && self.held.contains(&unit)
    }
}

const fn unit_end(address: u64, unit: u64) -> u64 {
    (address / unit * unit).saturating_add(unit)
}

/// The result of an action for a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitOutcome {
    /// Most of its bytes reached the target.
    There,
    /// Most of its bytes stay, for a reason in the unit itself, such as locked pages.
    Stays,
    /// There was no time or no room, or the unit has no pages.
    Later,
}

/// The outcome of each unit of a range; if `modelled`, bytes that would have moved count as moved.
pub(super) fn by_unit(
    outcome: &RangeOutcome,
    unit: u64,
    modelled: bool,
) -> Vec<(Unit, UnitOutcome)> {
    let process: Process = outcome.action.process;
    let (mut at, mut units) = (outcome.action.range.start, Vec::new());
    let (mut there, mut stays, mut later) = (0, 0, 0);
    for part in &outcome.parts {
        let mut left = part.bytes.0;
        while left > 0 {
            let bytes = left.min(unit_end(at, unit) - at);
            match &part.fate {
                Fate::Moved | Fate::Requested | Fate::AlreadyThere => there += bytes,
                Fate::NotAttempted(Reason::DryRun) if modelled => there += bytes,
                fate if fate.lacks_room() => later += bytes,
                Fate::Busy(why) if why == WAS_A_MISTAKE => later += bytes,
                Fate::Busy(_) | Fate::Denied(_) => stays += bytes,
                Fate::NotAttempted(Reason::NotTouched) => {}
                Fate::NotAttempted(_) => later += bytes,
            }
            (at, left) = (at + bytes, left - bytes);
            if at.is_multiple_of(unit) || at == outcome.action.range.end() {
                let start = (at - 1) / unit * unit;
                let result = match (there > stays + later, stays > later) {
                    (true, _) => UnitOutcome::There,
                    (false, true) => UnitOutcome::Stays,
                    (false, false) => UnitOutcome::Later,
                };
                units.push((Unit { process, start }, result));
                (there, stays, later) = (0, 0, 0);
            }
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
    use isotherm_model::outcome::{Fate, Reason};
    use isotherm_model::paged::{IN_MEMORY, PAGED_OUT};
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::Bytes;
    use isotherm_model::watch::Unit;

    use super::{Guard, UnitOutcome, by_unit};

    const UNIT: u64 = 100;

    struct All;

    impl RangeExecutor for All {
        fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
            RangeOutcome::whole(action, Fate::Moved)
        }
    }

    fn action(units: u64, node: NodeId) -> RangeAction {
        RangeAction {
            process: Process::default(),
            range: AddressRange {
                start: UNIT,
                bytes: Bytes(units * UNIT),
            },
            node,
        }
    }

    #[test]
    fn a_unit_that_is_held_stays_and_its_neighbours_leave() {
        let unit = Unit {
            process: Process::default(),
            start: 2 * UNIT,
        };
        let mut guard = Guard {
            inner: &mut All,
            held: BTreeSet::from([unit]),
            unit: UNIT,
            outcomes: Vec::new(),
        };
        let out = guard.carry_out(action(3, PAGED_OUT));
        assert_eq!(out.bytes_of(|fate| *fate == Fate::Moved), Bytes(2 * UNIT));
        let results: Vec<UnitOutcome> = by_unit(&out, UNIT, false).iter().map(|it| it.1).collect();
        let (there, later) = (UnitOutcome::There, UnitOutcome::Later);
        assert_eq!(results, [there, later, there]);
        let back = guard.carry_out(action(3, IN_MEMORY));
        assert_eq!(back.parts.len(), 1, "it may always come back");
        assert_eq!(guard.outcomes.len(), 2);
    }

    #[test]
    fn most_of_what_a_unit_has_decides() {
        let mut outcome = RangeOutcome::begin(action(2, PAGED_OUT));
        outcome.push(Bytes(60), Fate::Moved);
        outcome.push(Bytes(80), Fate::Busy("pinned".into()));
        outcome.push(Bytes(60), Fate::AlreadyThere);
        let results: Vec<UnitOutcome> = by_unit(&outcome, UNIT, false)
            .iter()
            .map(|it| it.1)
            .collect();
        assert_eq!(results, [UnitOutcome::There, UnitOutcome::There]);
        let mut outcome = RangeOutcome::begin(action(2, PAGED_OUT));
        outcome.push(Bytes(90), Fate::Denied("locked".into()));
        outcome.push(Bytes(110), Fate::NotAttempted(Reason::OutOfTime));
        let results: Vec<UnitOutcome> = by_unit(&outcome, UNIT, false)
            .iter()
            .map(|it| it.1)
            .collect();
        assert_eq!(results, [UnitOutcome::Stays, UnitOutcome::Later]);
    }
}
