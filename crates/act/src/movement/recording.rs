//! Records the outcomes of an executor.

use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::port::RangeExecutor;

/// Keeps every outcome for the report.
#[derive(Debug)]
pub struct RecordingRangeExecutor<E> {
    inner: E,
    /// All outcomes so far, in order.
    pub outcomes: Vec<RangeOutcome>,
}

impl<E> RecordingRangeExecutor<E> {
    /// Records the outcomes of `inner`.
    pub const fn new(inner: E) -> Self {
        Self {
            inner,
            outcomes: Vec::new(),
        }
    }
}

impl<E: RangeExecutor> RangeExecutor for RecordingRangeExecutor<E> {
    fn execute(&mut self, actions: &[RangeAction]) -> Vec<RangeOutcome> {
        let outcomes = self.inner.execute(actions);
        self.outcomes.extend_from_slice(&outcomes);
        outcomes
    }
}
