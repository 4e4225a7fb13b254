//! [`MoveTotals`] counts the actions of a run, each the move of a site's data to a tier, by outcome, with the bytes of the moves that were
//! made and of those that the runtime accepted, to make them in the background (requested): for the run's report, and as counters of its
//! profile.

use crate::batch::Count;
use crate::outcome::{Fate, Outcome};
use crate::units::Bytes;

/// Sums of outcomes since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveTotals {
    /// Actions after which the data was moved.
    pub made: u64,
    /// Bytes of the actions that were made.
    pub made_bytes: Bytes,
    /// Actions that the runtime was asked to carry out.
    pub requested: u64,
    /// Bytes of the actions that were requested.
    pub requested_bytes: Bytes,
    /// Actions whose data was in place already.
    pub already_there: u64,
    /// Actions that were refused, or not attempted.
    pub unfinished: u64,
}

impl MoveTotals {
    /// Adds the outcomes of one epoch.
    pub fn add(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            match outcome.fate {
                Fate::Moved => {
                    self.made += 1;
                    self.made_bytes += outcome.action.bytes;
                }
                Fate::Requested => {
                    self.requested += 1;
                    self.requested_bytes += outcome.action.bytes;
                }
                Fate::AlreadyThere => self.already_there += 1,
                Fate::Busy(_) | Fate::Denied(_) | Fate::NotAttempted(_) => self.unfinished += 1,
            }
        }
    }

    /// Number of actions.
    #[must_use]
    pub const fn actions(&self) -> u64 {
        self.made + self.requested + self.already_there + self.unfinished
    }

    /// The sums as counters of a profile, without counters that are 0 and without actions whose data was in place already.
    pub fn counts(&self) -> impl Iterator<Item = Count> + use<> {
        let sums = [
            ("made_moves", self.made),
            ("moved_bytes", self.made_bytes.0),
            ("requested_moves", self.requested),
            ("requested_bytes", self.requested_bytes.0),
            ("unfinished_moves", self.unfinished),
        ];
        let known = sums.into_iter().filter(|(_, value)| *value > 0);
        known.map(|(name, value)| Count::of_run(name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::MoveTotals;
    use crate::batch::Process;
    use crate::outcome::{Action, Fate, Outcome};
    use crate::site::SiteId;
    use crate::tier::TierIndex;
    use crate::units::Bytes;

    #[test]
    fn each_fate_is_counted_under_its_own_name_and_nothing_is_no_counter() {
        let outcome = |fate| Outcome {
            action: Action {
                process: Process::default(),
                site: SiteId(2),
                tier: TierIndex(0),
                bytes: Bytes(100),
            },
            fate,
        };
        let mut totals = MoveTotals::default();
        assert_eq!(totals.counts().count(), 0);
        totals.add(&[
            outcome(Fate::Moved),
            outcome(Fate::Moved),
            outcome(Fate::AlreadyThere),
            outcome(Fate::Busy("full".into())),
        ]);
        totals.add(&[outcome(Fate::NotAttempted("late".into()))]);
        let counts: Vec<_> = totals
            .counts()
            .map(|count| (count.name, count.value))
            .collect();
        assert_eq!((totals.actions(), totals.already_there), (5, 1));
        let expected = [
            ("made_moves", 2),
            ("moved_bytes", 200),
            ("unfinished_moves", 2),
        ];
        assert_eq!(
            counts,
            expected.map(|(name, value)| (name.to_owned(), value))
        );
    }
}
