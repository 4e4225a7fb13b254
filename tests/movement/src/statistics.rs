//! [`Totals`] adds up the outcomes of an executor, in bytes for each fate.

use std::collections::BTreeMap;

use isotherm_model::movement::RangeOutcome;
use isotherm_model::outcome::Fate;
use isotherm_model::units::Bytes;

/// Names of the fates, in the order of a table's columns.
pub const FATES: [&str; 6] = ["moved", "there", "busy", "denied", "not tried", "placed"];

/// Bytes by the name of their fate, since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals(BTreeMap<&'static str, Bytes>);

impl Totals {
    /// Adds the parts of an outcome.
    pub fn add(&mut self, outcome: &RangeOutcome) {
        for part in &outcome.parts {
            *self.0.entry(name(&part.fate)).or_default() += part.bytes;
        }
    }

    /// The bytes with one of the [`FATES`].
    #[must_use]
    pub fn of(&self, fate: &str) -> Bytes {
        self.0.get(fate).copied().unwrap_or_default()
    }

    /// Total bytes of the actions.
    #[must_use]
    pub fn asked(&self) -> Bytes {
        self.0.values().copied().sum()
    }
}

const fn name(fate: &Fate) -> &'static str {
    match fate {
        Fate::Moved => "moved",
        Fate::Requested => "placed",
        Fate::AlreadyThere => "there",
        Fate::Busy(_) => "busy",
        Fate::Denied(_) => "denied",
        Fate::NotAttempted(_) => "not tried",
    }
}

#[cfg(test)]
mod tests {
    use super::{FATES, Totals};
    use isotherm_model::batch::Process;
    use isotherm_model::movement::{AddressRange, NodeId, RangeAction, RangeOutcome};
    use isotherm_model::outcome::{Fate, Reason};
    use isotherm_model::units::Bytes;

    /// Of these pages the first is moved, the second was there, the third has none and the fourth is busy.
    fn outcome(pages: u64) -> RangeOutcome {
        let mut outcome = RangeOutcome::begin(RangeAction {
            process: Process::default(),
            range: AddressRange {
                start: 1 << 30,
                bytes: Bytes(pages * 4096),
            },
            node: NodeId(1),
        });
        let fates = [
            Fate::Moved,
            Fate::AlreadyThere,
            Fate::NotAttempted(Reason::NotTouched),
            Fate::Busy("pinned".into()),
        ];
        for fate in fates {
            outcome.push(outcome.left().min(Bytes(4096)), fate);
        }
        outcome
    }

    #[test]
    fn every_byte_asked_for_is_counted_once() {
        let mut totals = Totals::default();
        totals.add(&outcome(4));
        totals.add(&outcome(1));
        assert_eq!(totals.asked(), Bytes(5 * 4096));
        let pages = FATES.map(|fate| totals.of(fate).0 / 4096);
        assert_eq!(pages, [2, 1, 1, 0, 1, 0]);
    }
}
