//! [`Remembered`] passes actions to an executor and records their outcomes, by which its caller updates the account of paged-out memory
//! that is kept between epochs.

use isotherm_model::movement::{RangeAction, RangeOutcome};
use isotherm_model::port::RangeExecutor;

/// Passes actions on to another executor and keeps the outcomes.
pub struct Remembered<E> {
    inner: E,
    outcomes: Vec<RangeOutcome>,
}

impl<E> Remembered<E> {
    /// Remembers the outcomes of this executor.
    pub const fn new(inner: E) -> Self {
        Self {
            inner,
            outcomes: Vec::new(),
        }
    }

    /// The outcomes so far, in the order of the actions.
    pub fn outcomes(&self) -> &[RangeOutcome] {
        &self.outcomes
    }
}

impl<E: RangeExecutor> RangeExecutor for Remembered<E> {
    fn carry_out(&mut self, action: RangeAction) -> RangeOutcome {
        let outcome = self.inner.carry_out(action);
        self.outcomes.push(outcome.clone());
        outcome
    }
}
