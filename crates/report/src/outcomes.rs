//! Reports the moves of an online run: the outcome of each as JSON for `run --summary` ([`OutcomeRow`]), and all of them in one sentence.

use isotherm_model::move_totals::MoveTotals;
use isotherm_model::outcome::{Fate, Outcome};
use serde::Serialize;

use crate::words::counted;

/// An action and its outcome, as `run --summary` writes it.
#[derive(Clone, Debug, Serialize)]
pub struct OutcomeRow {
    pid: u32,
    site: String,
    tier: u32,
    bytes: u64,
    fate: &'static str,
    why: Option<String>,
}

impl From<&Outcome> for OutcomeRow {
    fn from(outcome: &Outcome) -> Self {
        let (fate, why) = match &outcome.fate {
            Fate::Moved => ("moved", None),
            Fate::Requested => ("requested", None),
            Fate::AlreadyThere => ("already there", None),
            Fate::Busy(why) => ("busy", Some(why.to_string())),
            Fate::Denied(why) => ("denied", Some(why.to_string())),
            Fate::NotAttempted(why) => ("not attempted", Some(why.to_string())),
        };
        Self {
            pid: outcome.action.process.pid,
            site: outcome.action.site.to_string(),
            tier: outcome.action.tier.0,
            bytes: outcome.action.bytes.0,
            fate,
            why,
        }
    }
}

/// `3 moves of 12 MiB made, 1 already in place, 0 not finished`. On the emulated pair moves are requested, on real
/// nodes they are made.
#[must_use]
pub fn in_words(moves: &MoveTotals, emulated: bool) -> String {
    let done = match emulated {
        true => {
            let requested = counted(moves.requested, "move");
            format!("{requested} of {} requested", moves.requested_bytes)
        }
        false => {
            let (made, bytes) = (counted(moves.made, "move"), moves.made_bytes);
            let there = moves.already_there;
            format!("{made} of {bytes} made, {there} already in place")
        }
    };
    format!("{done}, {} not finished", moves.unfinished)
}

#[cfg(test)]
mod tests {
    use super::{OutcomeRow, in_words};
    use isotherm_model::batch::Process;
    use isotherm_model::move_totals::MoveTotals;
    use isotherm_model::outcome::{Action, Fate, Outcome, Reason};
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;

    fn outcome(fate: Fate) -> Outcome {
        let action = Action {
            process: Process { pid: 7, image: 0 },
            site: SiteId(0xab),
            tier: TierIndex(1),
            bytes: Bytes(4 << 20),
        };
        Outcome { action, fate }
    }

    #[test]
    fn a_row_has_the_action_the_fate_and_the_reason() {
        let row = |fate| serde_json::to_value(OutcomeRow::from(&outcome(fate))).unwrap();
        let late = row(Fate::NotAttempted(Reason::OutOfTime));
        assert_eq!(late["site"], "00000000000000ab");
        assert_eq!((&late["pid"], &late["tier"]), (&7.into(), &1.into()));
        assert_eq!(late["fate"], "not attempted");
        assert_eq!(late["why"], "no time left for moves in this epoch");
        assert!(row(Fate::Moved)["why"].is_null());
    }

    #[test]
    fn the_sentence_counts_what_was_made_or_requested_and_what_was_not() {
        let said = |outcomes: &[Outcome], emulated| {
            let mut moves = MoveTotals::default();
            moves.add(outcomes);
            in_words(&moves, emulated)
        };
        let busy = || Fate::Busy("pinned".into());
        let made = [Fate::Moved, Fate::Moved, Fate::AlreadyThere, busy()].map(outcome);
        assert_eq!(
            said(&made, false),
            "2 moves of 8 MiB made, 1 already in place, 1 not finished"
        );
        let requested = [Fate::Requested, busy()].map(outcome);
        assert_eq!(
            said(&requested, true),
            "1 move of 4 MiB requested, 1 not finished"
        );
    }
}
