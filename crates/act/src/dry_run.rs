//! [`DryRun`] is the executor that moves nothing and reports each action as not attempted, for dry runs and for observed runs that move no
//! sites, such as a recording. It implements the same traits as the real executors ([`Executor`] for sites, [`RangeExecutor`] for address
//! ranges) and takes their place, so that none of these needs a flag.

use isotherm_model::batch::Extent;
use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::outcome::{Action, Fate, Outcome, Reason};
use isotherm_model::port::{Executor, RangeExecutor};

/// Moves nothing and reports each action as not attempted.
#[derive(Clone, Copy, Debug, Default)]
pub struct DryRun;

impl Executor for DryRun {
    fn execute(&mut self, actions: &[Action], _: &[Extent]) -> Vec<Outcome> {
        Outcome::of_each(actions, |_| Fate::NotAttempted(Reason::DryRun))
    }
}

impl RangeExecutor for DryRun {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        RangeOutcome::whole(action, Fate::NotAttempted(Reason::DryRun))
    }
}

#[cfg(test)]
mod tests {
    use super::DryRun;
    use isotherm_model::batch::Process;
    use isotherm_model::outcome::{Action, Fate, Outcome};
    use isotherm_model::port::Executor;
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;

    fn actions(sizes: &[u64]) -> Vec<Action> {
        let action = |(site, bytes): (usize, &u64)| Action {
            process: Process::default(),
            site: SiteId(site as u64 + 2),
            tier: TierIndex(0),
            bytes: Bytes(*bytes),
        };
        sizes.iter().enumerate().map(action).collect()
    }

    fn moved(outcomes: &[Outcome]) -> Vec<bool> {
        outcomes
            .iter()
            .map(|outcome| outcome.fate == Fate::Moved)
            .collect()
    }

    #[test]
    fn a_dry_run_names_every_action_and_moves_none() {
        let outcomes = DryRun.execute(&actions(&[1, 2]), &[]);
        assert_eq!(moved(&outcomes), [false, false]);
    }
}
