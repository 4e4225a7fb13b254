//! `ObservedRun` observes a program, or a process that runs already, for `record` and for a `run` without a plan: a step each epoch until
//! the end, in which the command takes part as a `Follower`, then the end of the profile, if one is written.

use std::time::{Duration, Instant};

use anyhow::Result;
use isotherm_console::Console;
use isotherm_model::batch::Count;
use isotherm_model::port::{Executor, Recorder};
use isotherm_model::profile::{Ending, Segment};
use isotherm_model::site::Site;
use isotherm_model::units::Nanos;
use isotherm_observe::live::LiveRun;
use isotherm_pipeline::{Step, StepReport};
use isotherm_profile::{Error, FinishOutcome, Writer};
use isotherm_sys::file_root::FileRoot;

use crate::diagnostics::Diagnostics;
use crate::launch::{self, EndedProgram, Running, ending};
use crate::site_names::{NamedParts, Naming};

/// Rings and the touch table are emptied this often, so that a full processor cannot overrun them
/// within a long epoch.
const DRAIN_EVERY: Duration = Duration::from_millis(100);

/// The steps of an observed run. Without a profile to write it keeps nothing of past epochs.
pub(crate) type ObservedStep<E> = Step<LiveRun, E, Option<Writer>>;

/// When a run is no longer followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FollowUntil {
    /// At the program's end.
    End,
    /// At the program's end, or at a signal that requests it.
    EndOrInterrupt,
}

impl FollowUntil {
    /// A run that takes its moves back also stops at an interrupt, because it must do so before the program ends.
    pub(crate) const fn of(takes_back: bool) -> Self {
        match takes_back {
            true => Self::EndOrInterrupt,
            false => Self::End,
        }
    }
}

/// What a command does during an observed run.
pub(crate) trait Follower<E> {
    /// Called before each wait for the program; returns what it waits for.
    fn attend(&mut self, _step: &mut ObservedStep<E>) -> Attention {
        Attention::default()
    }

    /// Receives the report of each step, and the stages after it.
    fn note(&mut self, report: &StepReport<Error>, step: &mut ObservedStep<E>);
}

/// What a follower waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attention {
    /// Longest time until it is to be called again.
    pub within: Duration,
    /// Whether the epoch is to end now.
    pub ends_epoch: bool,
}

impl Default for Attention {
    fn default() -> Self {
        Self {
            within: DRAIN_EVERY,
            ends_epoch: false,
        }
    }
}

impl<E, F: FnMut(&StepReport<Error>, &mut ObservedStep<E>)> Follower<E> for F {
    fn note(&mut self, report: &StepReport<Error>, step: &mut ObservedStep<E>) {
        self(report, step);
    }
}

/// A process that is observed.
pub(crate) trait ObservedProcess {
    /// What is known of it when the observation has ended.
    type Ended;

    /// Waits at most `span` for the end of the observation. True once it has come.
    ///
    /// # Errors
    /// The kernel refused to wait.
    fn wait(&mut self, span: Duration) -> Result<bool>;

    /// Whether a signal requested the end.
    fn is_interrupted(&self) -> bool;

    /// Waits for the end, and warns of what was not observed.
    ///
    /// # Errors
    /// The kernel refused to wait.
    fn finish(self, console: Console) -> Result<(Self::Ended, ObservationEnd)>;
}

/// What the profile says of the end of an observation.
#[derive(Clone, Debug)]
pub(crate) struct ObservationEnd {
    /// How it ended.
    pub ending: Ending,
    /// What was counted until then, beside the observer's own counts.
    pub counts: Vec<Count>,
    /// False where the program's loader ended it, as it does where a library is missing.
    pub began: bool,
}

/// The exit status with which the dynamic loaders of glibc and musl end a program that they cannot load.
const NOT_LOADED: Ending = Ending::Exited(127);

impl ObservedProcess for Running {
    type Ended = EndedProgram;

    fn wait(&mut self, span: Duration) -> Result<bool> {
        Self::wait(self, span)
    }

    fn is_interrupted(&self) -> bool {
        self.interrupted().is_some()
    }

    fn finish(self, console: Console) -> Result<(EndedProgram, ObservationEnd)> {
        let program = Self::finish(self)?;
        launch::warn_of(&program.summary, console);
        let measured = program.energy.measured();
        let ending = ending(program.status);
        let end = ObservationEnd {
            ending,
            counts: measured.map(|energy| energy.to_count()).collect(),
            began: program.summary.images > 0 || ending != NOT_LOADED,
        };
        Ok((program, end))
    }
}

/// A running program, or a process that ran already, and its observation.
pub(crate) struct ObservedRun<E, P = Running> {
    /// The stages of each epoch.
    pub step: ObservedStep<E>,
    running: P,
    epoch: Duration,
    /// Names the sites of the profile, if one is written.
    naming: Option<Naming>,
    /// The last epoch, which is written with the end of the profile: a short run has one epoch, whose tables would else be written twice.
    last: Option<Segment>,
    diagnostics: Diagnostics,
    console: Console,
}

/// A program whose observation ended, and its profile.
pub(crate) struct EndedRun<T = EndedProgram> {
    /// The program.
    pub program: T,
    /// The sites, with the frames named that the profile shows; none without a profile.
    pub sites: Vec<Site>,
    /// Which profile is at the path; `None` if the run writes none.
    pub profile: Result<Option<FinishOutcome>>,
}

impl<E: Executor, P: ObservedProcess> ObservedRun<E, P> {
    /// Observes the process that `start` returns: one that it lets run, or that runs already. The files of its code are below `root`.
    ///
    /// # Errors
    /// As of `start`, or no thread could be created.
    pub(crate) fn start(
        start: impl FnOnce() -> Result<P>,
        root: FileRoot,
        step: ObservedStep<E>,
        epoch: Nanos,
        console: Console,
    ) -> Result<Self> {
        let naming = step.recorder.is_some().then(|| Naming::start(root));
        Ok(Self {
            naming: naming.transpose()?,
            step,
            running: start()?,
            epoch: Duration::from_nanos(epoch.0),
            last: None,
            diagnostics: Diagnostics::new(console),
            console,
        })
    }

    /// Runs a step each epoch, and one more for the time between the last of them and the program's end.
    ///
    /// # Errors
    /// The program could not be waited for.
    pub(crate) fn follow(
        &mut self,
        until: FollowUntil,
        follower: &mut impl Follower<E>,
    ) -> Result<()> {
        let mut due = Instant::now() + self.epoch;
        let mut drained = Instant::now();
        loop {
            let Attention { within, ends_epoch } = follower.attend(&mut self.step);
            let left = due.saturating_duration_since(Instant::now());
            let left = if ends_epoch { Duration::ZERO } else { left };
            let within = within.min(self.step.observer.samples_within());
            let ended = self.running.wait(left.min(DRAIN_EVERY).min(within))?;
            self.step.observer.read_heap_samples();
            if ended || ends_epoch || drained.elapsed() >= DRAIN_EVERY {
                self.step.observer.drain();
                drained = Instant::now();
                if let Some(naming) = &self.naming {
                    naming.look_up_early(self.step.observer.take_owners());
                }
            }
            let interrupted = self.running.is_interrupted();
            if !ended && interrupted && until == FollowUntil::EndOrInterrupt {
                return Ok(());
            }
            if ended || ends_epoch || Instant::now() >= due {
                self.epoch(ended, follower);
                // A step that took longer than an epoch must not be followed by a burst of steps.
                due = (due + self.epoch).max(Instant::now() + self.epoch / 2);
            }
            if ended {
                return Ok(());
            }
        }
    }

    /// Follows the program to its end, and finishes; `note` receives the report of each step.
    ///
    /// # Errors
    /// As [`Self::follow`] and [`Self::finish`].
    pub(crate) fn complete(
        mut self,
        mut note: impl FnMut(&StepReport<Error>, &mut ObservedStep<E>),
    ) -> Result<EndedRun<P::Ended>> {
        self.follow(FollowUntil::End, &mut note)?;
        self.finish()
    }

    fn epoch(&mut self, last: bool, follower: &mut impl Follower<E>) {
        let report = match last {
            true => self.step.run_last(),
            false => self.step.run(),
        };
        let Some(report) = self.diagnostics.observed(report) else {
            return;
        };
        follower.note(&report, &mut self.step);
        if let Err(error) = report.recorded {
            self.diagnostics.unwritten(&error);
        }
        if let Some(naming) = &mut self.naming {
            naming.look_up(&report.segment);
        }
        self.last = last.then_some(report.segment);
    }

    /// Adds counts to the profile, if one is written, once [`Self::follow`] has seen the end.
    pub(crate) fn add_counts(&mut self, counts: Vec<Count>) {
        if let Some(last) = &mut self.last {
            last.counts.extend(counts);
        }
    }

    /// Waits for the program's end and writes that of the profile.
    ///
    /// # Errors
    /// The program could not be waited for.
    pub(crate) fn finish(self) -> Result<EndedRun<P::Ended>> {
        let Self {
            mut step,
            naming,
            mut last,
            diagnostics,
            console,
            ..
        } = self;
        let (program, end) = self.running.finish(console)?;
        if let Some(last) = &mut last {
            last.counts.extend(end.counts);
        }
        if let Some(writer) = step.recorder.as_mut().filter(|_| !end.began) {
            writer.keep_former();
        }
        let named = naming.map(|naming| named(&mut step, naming, &mut last, console));
        let NamedParts { sites, code } = named.unwrap_or_default();
        let closed = step.recorder.map(|mut writer| {
            writer.name_code(code);
            let path = writer.path().to_owned();
            if let Some(last) = &last {
                writer.add_last(last);
            }
            let outcome = writer.finish(end.ending, &sites);
            if let Ok(FinishOutcome::Former) = outcome {
                let why = match end.began {
                    true => "nothing of the program was observed",
                    false => "the program did not begin",
                };
                console.warn(&format!("{why}, so {} is left unchanged", path.display()));
            }
            outcome.map_err(|error| diagnostics.at_the_end(error, &path))
        });
        Ok(EndedRun {
            program,
            sites,
            profile: closed.transpose(),
        })
    }
}

/// The sites with the frames named that the profile shows, and the code that accessed their data. If that takes long, the last epoch is
/// written first.
fn named<E: Executor>(
    step: &mut ObservedStep<E>,
    naming: Naming,
    last: &mut Option<Segment>,
    console: Console,
) -> NamedParts {
    let progress = console.progress("naming the sites");
    let all = NamedParts {
        sites: step.attribution().sites().values().cloned().collect(),
        code: step.attribution().code().cloned().collect(),
    };
    let named = naming.finish(all, || {
        if let Some(last) = last.take() {
            // A failure is reported by the end of the profile, which writes the same again.
            drop(step.recorder.record(&last));
        }
    });
    progress.finish_and_clear();
    named
}
