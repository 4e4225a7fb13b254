//! Wrappers of an executor: dry run and recording. Each adds one behaviour to the same small port,
//! so that no executor needs flags. [`crate::movement::limit`] limits rates by range.

use isotherm_model::batch::Extent;
use isotherm_model::outcome::{Action, Fate, Outcome, Reason};
use isotherm_model::port::Executor;

/// Moves nothing and reports each action as not attempted.
#[derive(Clone, Copy, Debug, Default)]
pub struct DryRun;

impl Executor for DryRun {
    fn execute(&mut self, actions: &[Action], _: &[Extent]) -> Vec<Outcome> {
        let fate = || Fate::NotAttempted(Reason::DryRun);
        actions
            .iter()
            .map(|action| Outcome {
                action: *action,
                fate: fate(),
            })
            .collect()
    }
}

/// Keeps every outcome for the report.
#[derive(Debug)]
pub struct RecordingExecutor<E> {
    /// The executor that carries the actions out.
    pub inner: E,
    /// All outcomes so far, in order.
    pub outcomes: Vec<Outcome>,
}

impl<E> RecordingExecutor<E> {
    /// Records the outcomes of `inner`.
    pub const fn new(inner: E) -> Self {
        Self {
            inner,
            outcomes: Vec::new(),
        }
    }
}

impl<E: Executor> Executor for RecordingExecutor<E> {
    fn execute(&mut self, actions: &[Action], extents: &[Extent]) -> Vec<Outcome> {
        let outcomes = self.inner.execute(actions, extents);
        self.outcomes.extend_from_slice(&outcomes);
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::{DryRun, RecordingExecutor};
    use isotherm_model::batch::{Extent, Process};
    use isotherm_model::outcome::{Action, Fate, Outcome};
    use isotherm_model::port::Executor;
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;

    struct Obedient;

    impl Executor for Obedient {
        fn execute(&mut self, actions: &[Action], _: &[Extent]) -> Vec<Outcome> {
            let moved = |action: &Action| Outcome {
                action: *action,
                fate: Fate::Moved,
            };
            actions.iter().map(moved).collect()
        }
    }

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

    #[test]
    fn recording_keeps_what_the_inner_executor_answered() {
        let mut recording = RecordingExecutor::new(Obedient);
        recording.execute(&actions(&[1]), &[]);
        recording.execute(&actions(&[2, 3]), &[]);
        assert_eq!(recording.outcomes.len(), 3);
    }
}
