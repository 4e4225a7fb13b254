//! [`Step`] runs one epoch of a run: observe, attribute the accesses to sites, record and, in an online run, decide by [`Online`] and
//! execute. Runs that place by an epoch policy or by an optimization use it without `Online`, and decide by its [`StepReport`].
//!
//! The ports are arguments, so tests run the same code without a program and a disk. Recording comes before deciding, and its failure
//! does not stop placement: a full disk must not slow the running program.

use isotherm_model::batch::{Batch, Epoch};
use isotherm_model::move_totals::MoveTotals;
use isotherm_model::outcome::Outcome;
use isotherm_model::port::{Executor, Observer, Recorder};
use isotherm_model::profile::{Meta, Segment};

use crate::attribute::Attribution;
use crate::online::Online;

/// The stages in order, and their state.
#[derive(Debug)]
pub struct Step<O, E, R> {
    /// Source of batches.
    pub observer: O,
    /// Executor of actions.
    pub executor: E,
    /// Sink for segments.
    pub recorder: R,
    attribution: Attribution,
    online: Option<Online>,
    moves: MoveTotals,
    epoch: Epoch,
}

/// The results of one step.
#[derive(Debug)]
pub struct StepReport<F> {
    /// The observations of this epoch.
    pub batch: Batch,
    /// The segment of this epoch.
    pub segment: Segment,
    /// The result of recording it.
    pub recorded: Result<(), F>,
    /// The results of the actions that the online policy decided, in their order; none in a run that does not re-plan.
    pub outcomes: Vec<Outcome>,
}

impl<O: Observer, E: Executor, R: Recorder> Step<O, E, R> {
    /// A step for a run; `online` is `None` if no decisions are made (recording, guided).
    pub fn new(observer: O, executor: E, recorder: R, meta: &Meta, online: Option<Online>) -> Self {
        Self {
            observer,
            executor,
            recorder,
            attribution: Attribution::new(meta),
            online,
            moves: MoveTotals::default(),
            epoch: Epoch(0),
        }
    }

    /// The attribution with the sites observed so far.
    pub const fn attribution(&self) -> &Attribution {
        &self.attribution
    }

    /// Stops deciding: another part of the program places the data from now on.
    pub fn stop_deciding(&mut self) {
        self.online = None;
    }

    /// The outcomes of all actions so far.
    pub const fn moves(&self) -> &MoveTotals {
        &self.moves
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
        self.advance(R::record)
    }

    /// As [`Self::run`], but leaves the recording of the last epoch to the caller, who writes it with the end of the
    /// profile.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_last(&mut self) -> Result<StepReport<R::Error>, O::Error> {
        self.advance(|_, _| Ok(()))
    }

    fn advance(
        &mut self,
        record: impl FnOnce(&mut R, &Segment) -> Result<(), R::Error>,
    ) -> Result<StepReport<R::Error>, O::Error> {
        let batch = self.observer.observe(self.epoch)?;
        self.epoch = Epoch(self.epoch.0.saturating_add(1));
        let mut segment = self.attribution.attribute(&batch);
        // Moves come after recording, so each epoch counts the moves of earlier ones.
        segment.counts.extend(self.moves.counts());
        let recorded = record(&mut self.recorder, &segment);
        let extents = self.attribution.extents();
        let mut outcomes = Vec::new();
        if let Some(online) = &mut self.online {
            let actions = online.decide(&batch, &segment, extents);
            outcomes = self.executor.execute(&actions, extents);
            online.learn(&outcomes);
            self.moves.add(&outcomes);
        }
        Ok(StepReport {
            batch,
            segment,
            recorded,
            outcomes,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::fmt;

    use super::Step;
    use crate::absorb::absorb;
    use crate::{Online, OnlineConfig, items};
    use isotherm_model::batch::{Batch, Epoch, Extent, ObservedAccess, Process};
    use isotherm_model::count_unit::CountUnit;
    use isotherm_model::emulation::Emulation;
    use isotherm_model::outcome::{Action, Fate, Outcome};
    use isotherm_model::plan::{Value, Weight};
    use isotherm_model::port::{Executor, Observer, Recorder};
    use isotherm_model::profile::{Meta, Profile, Segment};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::source_kind::SourceKind;
    use isotherm_model::tier::{TierIndex, Tiers};
    use isotherm_model::units::{Bytes, Nanos};

    /// Two sites of which the second is hot and does not fit beside the first.
    struct Program;

    impl Observer for Program {
        type Error = Infallible;

        fn observe(&mut self, epoch: Epoch) -> Result<Batch, Infallible> {
            let process = Process::default();
            let extent = |id: u64| Extent {
                process,
                site: SiteId(id),
                address: id << 20,
                bytes: Bytes(1 << 20),
                resident: Bytes(1 << 20),
                tier: None,
            };
            let address = (process, (9 << 20) + 5);
            let access = ObservedAccess::at(address, SourceKind::Timer, (100_000, CountUnit::Time));
            Ok(Batch {
                epoch,
                span: Nanos(1_000_000_000),
                sites: [8, 9]
                    .map(|id| Site::new(SiteId(id), SiteKind::Heap))
                    .into(),
                extents: vec![extent(8), extent(9)],
                accesses: vec![access],
                ..Batch::default()
            })
        }
    }

    #[derive(Default)]
    struct Granted(Vec<Action>);

    impl Executor for Granted {
        fn execute(&mut self, actions: &[Action], _: &[Extent]) -> Vec<Outcome> {
            self.0.extend(actions);
            let outcome = |action: &Action| Outcome {
                action: *action,
                fate: Fate::Requested,
            };
            actions.iter().map(outcome).collect()
        }
    }

    #[derive(Debug)]
    struct Full;

    impl fmt::Display for Full {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "the disk is full")
        }
    }

    impl std::error::Error for Full {}

    /// Keeps one segment and is then full.
    struct Disk(Option<Profile>);

    impl Recorder for Disk {
        type Error = Full;

        fn record(&mut self, segment: &Segment) -> Result<(), Full> {
            match &mut self.0 {
                Some(profile) if profile.epochs.is_empty() => {
                    absorb(profile, segment.clone());
                    Ok(())
                }
                _ => Err(Full),
            }
        }
    }

    fn meta() -> Meta {
        Meta {
            chunk: Bytes(4096),
            ..Meta::default()
        }
    }

    #[test]
    fn a_step_records_decides_and_acts_and_a_full_disk_does_not_stop_placement() {
        let tiers = Tiers::emulated(Bytes(1 << 20), Bytes(1 << 30), Emulation::TMP);
        let online = Online::new(OnlineConfig::for_tiers(tiers));
        let full = Disk(None);
        let mut step = Step::new(Program, Granted::default(), full, &meta(), Some(online));
        let report = step.run().unwrap();
        assert_eq!(report.recorded.unwrap_err().to_string(), "the disk is full");
        let acts: Vec<_> = step.executor.0.iter().map(|a| (a.site.0, a.tier)).collect();
        assert_eq!(acts, [(8, TierIndex(1)), (9, TierIndex(0))]);
        assert_eq!(report.outcomes.len(), 2);
        assert_eq!(step.epoch(), Epoch(1));
        let still = step.run().unwrap();
        let told = still.segment.counts.iter();
        let told: Vec<_> = told
            .map(|count| (count.name.as_str(), count.value))
            .collect();
        assert_eq!(told, [("requested_moves", 2), ("requested_bytes", 2 << 20)]);
        assert!(still.outcomes.is_empty());
    }

    #[test]
    fn the_last_epoch_is_left_to_the_caller_to_record() {
        let disk = Disk(Some(Profile::new(meta())));
        let mut step = Step::new(Program, Granted::default(), disk, &meta(), None);
        let last = step.run_last().unwrap();
        let kept = |step: &Step<_, _, Disk>| step.recorder.0.as_ref().unwrap().epochs.len();
        assert_eq!(kept(&step), 0);
        step.recorder.record(&last.segment).unwrap();
        assert_eq!(kept(&step), 1);
    }

    #[test]
    fn a_run_that_only_records_yields_a_profile_that_a_policy_can_be_given() {
        let disk = Disk(Some(Profile::new(meta())));
        let mut step = Step::new(Program, Granted::default(), disk, &meta(), None);
        let report = step.run().unwrap();
        assert!(report.recorded.is_ok() && report.outcomes.is_empty());
        assert!(step.executor.0.is_empty());
        let profile = step.recorder.0.unwrap();
        let facts: Vec<_> = items(&profile, Value::Accesses, Weight::PeakRss)
            .iter()
            .map(|i| (i.site.0, i.value, i.weight.0, i.order))
            .collect();
        assert_eq!(facts, [(8, 0, 1 << 20, 0), (9, 100_000, 1 << 20, 1)]);
    }
}
