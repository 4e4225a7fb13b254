//! Sums the outcomes of a run's actions, as counters of its profile.

use isotherm_model::batch::Count;
use isotherm_model::outcome::{Fate, Outcome};

/// Sums of outcomes since the start of the run.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    made: u64,
    made_bytes: u64,
    requested: u64,
    requested_bytes: u64,
    unfinished: u64,
}

impl Tally {
    /// Adds the outcomes of one epoch.
    pub(crate) fn add(&mut self, outcomes: &[Outcome]) {
        for outcome in outcomes {
            let bytes = outcome.action.bytes.0;
            match outcome.fate {
                Fate::Moved => {
                    self.made += 1;
                    self.made_bytes = self.made_bytes.saturating_add(bytes);
                }
                Fate::Requested => {
                    self.requested += 1;
                    self.requested_bytes = self.requested_bytes.saturating_add(bytes);
                }
                Fate::AlreadyThere => {}
                Fate::Busy(_) | Fate::Denied(_) | Fate::NotAttempted(_) => self.unfinished += 1,
            }
        }
    }

    /// The sums of the whole run, without those that are 0.
    pub(crate) fn counts(&self) -> impl Iterator<Item = Count> + use<> {
        let sums = [
            ("made_moves", self.made),
            ("moved_bytes", self.made_bytes),
            ("requested_moves", self.requested),
            ("requested_bytes", self.requested_bytes),
            ("unfinished_moves", self.unfinished),
        ];
        let known = sums.into_iter().filter(|(_, value)| *value > 0);
        known.map(|(name, value)| Count {
            process: None,
            name: name.to_owned(),
            value,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Tally;
    use isotherm_model::batch::Process;
    use isotherm_model::outcome::{Action, Fate, Outcome};
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;

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
        let mut tally = Tally::default();
        assert_eq!(tally.counts().count(), 0);
        tally.add(&[
            outcome(Fate::Moved),
            outcome(Fate::Moved),
            outcome(Fate::AlreadyThere),
            outcome(Fate::Busy("full".into())),
        ]);
        tally.add(&[outcome(Fate::NotAttempted("late".into()))]);
        let counts: Vec<_> = tally
            .counts()
            .map(|count| (count.name, count.value))
            .collect();
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
