//! Counts the bytes, actions and time of an executor.

use std::time::Instant;

use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::outcome::Fate;
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::{Bytes, Nanos};

/// Bytes by outcome, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Actions carried out.
    pub actions: u64,
    /// Bytes moved.
    pub moved: Bytes,
    /// Bytes whose policy was set.
    pub requested: Bytes,
    /// Bytes that were already on their node.
    pub already_there: Bytes,
    /// Bytes to try again.
    pub busy: Bytes,
    /// Bytes that may not be moved.
    pub denied: Bytes,
    /// Bytes not tried.
    pub not_attempted: Bytes,
    /// Time inside the executor.
    pub time: Nanos,
}

impl Totals {
    fn add(&mut self, outcome: &RangeOutcome) {
        self.actions += 1;
        for part in &outcome.parts {
            let sum = match part.fate {
                Fate::Moved => &mut self.moved,
                Fate::Requested => &mut self.requested,
                Fate::AlreadyThere => &mut self.already_there,
                Fate::Busy(_) => &mut self.busy,
                Fate::Denied(_) => &mut self.denied,
                Fate::NotAttempted(_) => &mut self.not_attempted,
            };
            *sum += part.bytes;
        }
    }

    /// Total bytes of the actions.
    #[must_use]
    pub fn asked(&self) -> Bytes {
        [
            self.moved,
            self.requested,
            self.already_there,
            self.busy,
            self.denied,
            self.not_attempted,
        ]
        .into_iter()
        .sum()
    }
}

/// Adds up the outcomes of `inner`.
#[derive(Debug)]
pub struct Statistics<E> {
    inner: E,
    /// The sums.
    pub totals: Totals,
}

impl<E> Statistics<E> {
    /// All totals start at zero.
    pub fn new(inner: E) -> Self {
        Self {
            inner,
            totals: Totals::default(),
        }
    }
}

impl<E: RangeExecutor> RangeExecutor for Statistics<E> {
    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        let begun = Instant::now();
        let outcomes = self.inner.execute(actions);
        let nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.totals.time += Nanos(nanos);
        for outcome in &outcomes {
            self.totals.add(outcome);
        }
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::Statistics;
    use crate::movement::migration::Migration;
    use crate::movement::recording::RecordingRangeExecutor;
    use crate::movement::test_machine::{Machine, action};
    use isotherm_model::movement::NodeId;
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::Bytes;

    #[test]
    fn every_byte_asked_for_is_counted_once_and_every_outcome_kept() {
        let mut machine = Machine::with_pages(&[0, 1, -1, 0]);
        machine.busy = vec![3];
        let migration = Migration::new(&mut machine);
        let mut executor = Statistics::new(RecordingRangeExecutor::new(migration));
        let outcomes = executor.execute(&[action(7, 0, 4, NodeId(1)), action(7, 0, 1, NodeId(0))]);
        let totals = executor.totals;
        assert_eq!(totals.asked(), Bytes(5 * 4096));
        assert_eq!((totals.actions, totals.moved), (2, Bytes(2 * 4096)));
        assert_eq!(totals.already_there, Bytes(4096));
        assert_eq!(
            (totals.busy, totals.not_attempted),
            (Bytes(4096), Bytes(4096))
        );
        assert_eq!(executor.inner.outcomes, outcomes);
    }
}
