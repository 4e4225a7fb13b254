//! One step, for one epoch: observe, attribute, record, decide, execute.
//!
//! The ports are arguments, so a live run, the replay of a profile and a simulated machine run this
//! same code. Recording comes before deciding, and its failure does not stop placement: a full disk
//! must not slow the program that runs.

use isotherm_model::batch::Epoch;
use isotherm_model::outcome::Outcome;
use isotherm_model::port::{Decision, Executor, Observer, Recorder};
use isotherm_model::profile::{Meta, Segment};

use crate::attribute::Attribution;
use crate::online::Online;

/// The stages in a row, and what they remember.
#[derive(Debug)]
pub struct Step<O, E, R> {
    /// Where batches come from.
    pub observer: O,
    /// Who carries out actions.
    pub executor: E,
    /// Where segments go.
    pub recorder: R,
    attribution: Attribution,
    online: Option<Online>,
    epoch: Epoch,
}

/// What one step did.
#[derive(Debug)]
pub struct StepReport<F> {
    /// What was learnt.
    pub segment: Segment,
    /// Whether it was recorded.
    pub recorded: Result<(), F>,
    /// What was decided; `None` in a run that does not re-plan.
    pub decision: Option<Decision>,
    /// What became of the decision's actions, in their order.
    pub outcomes: Vec<Outcome>,
}

impl<O: Observer, E: Executor, R: Recorder> Step<O, E, R> {
    /// The stages for a run; `online` is `None` where nothing is decided (recording, guided).
    pub fn new(observer: O, executor: E, recorder: R, meta: &Meta, online: Option<Online>) -> Self {
        Self {
            observer,
            executor,
            recorder,
            attribution: Attribution::new(meta),
            online,
            epoch: Epoch(0),
        }
    }

    /// The sites learnt so far.
    pub const fn attribution(&self) -> &Attribution {
        &self.attribution
    }

    /// The epoch that the next call runs.
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Runs one epoch.
    ///
    /// # Errors
    /// The observer failed; the step may be tried again for the same epoch.
    pub fn run(&mut self) -> Result<StepReport<R::Error>, O::Error> {
        let batch = self.observer.observe(self.epoch)?;
        self.epoch = Epoch(self.epoch.0.saturating_add(1));
        let segment = self.attribution.attribute(&batch);
        let recorded = self.recorder.record(&segment);
        let decision = self
            .online
            .as_mut()
            .map(|online| online.decide(&batch, &segment));
        let mut outcomes = Vec::new();
        if let (Some(online), Some(decision)) = (&mut self.online, &decision) {
            outcomes = self.executor.execute(&decision.actions);
            online.learn(&outcomes);
        }
        Ok(StepReport {
            segment,
            recorded,
            decision,
            outcomes,
        })
    }
}
