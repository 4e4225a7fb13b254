//! [`Totals`] adds up the outcomes of an executor, in bytes for each fate.

use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::outcome::Fate;
use isotherm_model::port::RangeExecutor;
use isotherm_model::units::Bytes;

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

    /// The bytes with one of the [`FATES`].
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
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let outcome = self.inner.carry_out(action);
        self.totals.add(&outcome);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::Statistics;
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
    use isotherm_model::outcome::{Fate, Reason};
    use isotherm_model::port::RangeExecutor;
    use isotherm_model::units::Bytes;

    /// Moves the first page; of the others the second is there, the third has none and the fourth is busy.
    struct Pages;

    impl RangeExecutor for Pages {
        fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
            let mut outcome = RangeOutcome::begin(action);
            let fates = [
                Fate::Moved,
                Fate::AlreadyThere,
                Fate::NotAttempted(Reason::NotTouched),
                Fate::Busy("pinned".to_owned()),
            ];
            for fate in fates {
                outcome.push(outcome.left().min(Bytes(4096)), fate);
            }
            outcome
        }
    }

    fn action(pages: u64) -> RangeAction {
        RangeAction {
            process: Process::default(),
            range: AddressRange {
                start: 1 << 30,
                bytes: Bytes(pages * 4096),
            },
            node: NodeId(1),
        }
    }

    #[test]
    fn every_byte_asked_for_is_counted_once() {
        let mut executor = Statistics::new(Pages);
        executor.execute(&[action(4), action(1)]);
        let totals = executor.totals;
        assert_eq!(totals.asked(), Bytes(5 * 4096));
        assert_eq!((totals.actions, totals.moved), (2, Bytes(2 * 4096)));
        assert_eq!(totals.already_there, Bytes(4096));
        assert_eq!(
            (totals.busy, totals.not_attempted),
            (Bytes(4096), Bytes(4096))
        );
    }
}
