//! Executors around an executor: dry run, recording, rate limit. Each adds one behaviour to the
//! same small port, so that no executor needs flags.

use isotherm_model::batch::Extent;
use isotherm_model::outcome::{Action, Fate, Outcome};
use isotherm_model::port::Executor;
use isotherm_model::units::Bytes;

/// Does nothing and says of each action that it was not attempted.
#[derive(Clone, Copy, Debug, Default)]
pub struct DryRun;

impl Executor for DryRun {
    fn execute(&mut self, actions: &[Action]) -> Vec<Outcome> {
        let fate = || Fate::NotAttempted("dry run".to_owned());
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
pub struct Recording<E> {
    inner: E,
    /// All outcomes so far, in order.
    pub outcomes: Vec<Outcome>,
}

impl<E> Recording<E> {
    /// Records what `inner` does.
    pub const fn new(inner: E) -> Self {
        Self {
            inner,
            outcomes: Vec::new(),
        }
    }
}

impl<E: Executor> Executor for Recording<E> {
    fn see(&mut self, extents: &[Extent]) {
        self.inner.see(extents);
    }

    fn execute(&mut self, actions: &[Action]) -> Vec<Outcome> {
        let outcomes = self.inner.execute(actions);
        self.outcomes.extend_from_slice(&outcomes);
        outcomes
    }
}

/// Lets at most so many bytes through in one call (one epoch); the rest is not attempted, in
/// order, and comes again with the next plan. An action larger than the limit goes through when it
/// is the first, or it would never go at all.
#[derive(Debug)]
pub struct RateLimit<E> {
    inner: E,
    bytes: Bytes,
}

impl<E> RateLimit<E> {
    /// Limits `inner` to `bytes` a call.
    pub const fn new(inner: E, bytes: Bytes) -> Self {
        Self { inner, bytes }
    }
}

impl<E: Executor> Executor for RateLimit<E> {
    fn see(&mut self, extents: &[Extent]) {
        self.inner.see(extents);
    }

    fn execute(&mut self, actions: &[Action]) -> Vec<Outcome> {
        let mut left = self.bytes.0;
        let mut through = 0;
        for action in actions {
            if through > 0 && action.bytes.0 > left {
                break;
            }
            left = left.saturating_sub(action.bytes.0);
            through += 1;
        }
        let mut outcomes = self.inner.execute(&actions[..through]);
        let fate =
            || Fate::NotAttempted(format!("the limit of {} an epoch is used up", self.bytes));
        let rest = actions[through..].iter();
        outcomes.extend(rest.map(|action| Outcome {
            action: *action,
            fate: fate(),
        }));
        outcomes
    }
}

#[cfg(test)]
mod tests {
    use super::{DryRun, RateLimit, Recording};
    use isotherm_model::batch::Process;
    use isotherm_model::outcome::{Action, Fate, Outcome};
    use isotherm_model::port::Executor;
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::Bytes;

    struct Obedient;

    impl Executor for Obedient {
        fn execute(&mut self, actions: &[Action]) -> Vec<Outcome> {
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
        let outcomes = DryRun.execute(&actions(&[1, 2]));
        assert_eq!(moved(&outcomes), [false, false]);
    }

    #[test]
    fn the_rate_limit_stops_in_order_but_lets_one_large_action_through() {
        let mut limited = RateLimit::new(Obedient, Bytes(10));
        assert_eq!(
            moved(&limited.execute(&actions(&[4, 4, 4, 1]))),
            [true, true, false, false]
        );
        assert_eq!(moved(&limited.execute(&actions(&[40, 1]))), [true, false]);
    }

    #[test]
    fn recording_keeps_what_the_inner_executor_answered() {
        let mut recording = Recording::new(Obedient);
        recording.execute(&actions(&[1]));
        recording.execute(&actions(&[2, 3]));
        assert_eq!(recording.outcomes.len(), 3);
    }
}
