//! `PreparedRun` is the program of any run without a plan (online, or with `--policy`, `--remap`, `--optimize-after`, `--java`, `--tiers
//! compressed`), observed and held before its exec; its data is placed in the order of first touch or left to the kernel. `begin` starts
//! it. `conclude` writes the summary of such a run at its end, names the next command and returns the exit status.

use std::ffi::OsString;
use std::process::ExitStatus;

use anyhow::Result;
use isotherm_act::configuration::Configuration;
use isotherm_console::Console;
use isotherm_model::port::Executor;
use isotherm_model::profile::Meta;
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Nanos;
use isotherm_observe::live::LiveRun;
use isotherm_pipeline::{BANDWIDTH_INTERVAL, LONGEST_EPOCH, Online, Step};
use isotherm_profile::{FinishOutcome, Writer};
use serde_json::{Value, json};

use super::results::{say_next, write_summary};
use crate::cli::{Observing, RunArgs};
use crate::launch::{self, EndedProgram, Output, Ready};
use crate::observed_run::ObservedRun;
use crate::recording;
use crate::session_directory::SessionDirectory;
use crate::session_summary::recorded_sites;

/// A program that is observed and held before its exec.
pub(super) struct PreparedRun {
    /// The flags, with the sources to use.
    pub observing: Observing,
    pub ready: Ready,
    observer: LiveRun,
    meta: Meta,
    /// Where the recording goes, if the flags name a file.
    profile: Option<Writer>,
}

impl PreparedRun {
    /// Prepares the program so that its data is fast in the order of first touch. The timer can change to the other rates. With --remap an
    /// epoch is at most as long as data takes to cool.
    ///
    /// # Errors
    /// The flags contradict each other, the program cannot be started or watched, the profile cannot be begun.
    pub(super) fn new(
        args: &RunArgs,
        tiers: &Tiers,
        other_hz: &'static [u32],
        console: Console,
    ) -> Result<Self> {
        let mut observing = observing(args, console)?;
        if args.remap.is_some() {
            observing.epoch = observing.epoch.min(LONGEST_EPOCH);
        }
        let mut configuration =
            Configuration::online(observing.depth, tiers.clone(), TierIndex::FASTEST);
        configuration.mover = args.mover;
        Self::launched(args, observing, configuration, (tiers.emulates(), other_hz))
    }

    /// Prepares the program so that all its data stays where the kernel puts it. An epoch is at most this long.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(super) fn unplaced(args: &RunArgs, longest: Nanos, console: Console) -> Result<Self> {
        let mut observing = observing(args, console)?;
        observing.epoch = observing.epoch.min(longest);
        let configuration = Configuration::profile(observing.depth);
        Self::launched(args, observing, configuration, (false, &[]))
    }

    /// Prepares another command line in place of the program's: `words` makes it of the flags, for this session directory. Data that the
    /// runtime places is fast in the order of first touch. With --remap an epoch is at most as long as the time between two bandwidth
    /// samples.
    ///
    /// # Errors
    /// As [`Self::new`] and as `words`.
    pub(super) fn instead(
        args: &RunArgs,
        tiers: &Tiers,
        words: impl FnOnce(&Observing, &SessionDirectory) -> Result<Vec<OsString>>,
        console: Console,
    ) -> Result<Self> {
        let mut observing = observing(args, console)?;
        if args.remap.is_some() {
            observing.epoch = observing.epoch.min(BANDWIDTH_INTERVAL);
        }
        let configuration =
            Configuration::online(observing.depth, tiers.clone(), TierIndex::FASTEST);
        let configuration = recording::for_sources(configuration, &observing);
        let session = SessionDirectory::new()?;
        let words = words(&observing, &session)?;
        let ready = launch::prepare_in(session, &words, &configuration, Output::Ours)?;
        Self::observed(args, observing, ready, (tiers.emulates(), &[]))
    }

    fn launched(
        args: &RunArgs,
        observing: Observing,
        configuration: Configuration,
        run: (bool, &'static [u32]),
    ) -> Result<Self> {
        let configuration = recording::for_sources(configuration, &observing);
        let ready = launch::prepare(&args.program.words, &configuration, Output::Ours)?;
        Self::observed(args, observing, ready, run)
    }

    /// Lets the program run, with the steps of this executor, which decide by `online`.
    ///
    /// # Errors
    /// The program cannot be started.
    pub(super) fn begin<E: Executor>(
        self,
        executor: E,
        online: Option<Online>,
        console: Console,
    ) -> Result<ObservedRun<E>> {
        let step = Step::new(self.observer, executor, self.profile, &self.meta, online);
        ObservedRun::start(self.ready, step, self.observing.epoch, console)
    }

    fn observed(
        args: &RunArgs,
        observing: Observing,
        ready: Ready,
        (emulated, other_hz): (bool, &'static [u32]),
    ) -> Result<Self> {
        let observer = recording::attach(&ready, &observing, other_hz)?;
        let meta = recording::meta(&args.program.words, &observing, emulated);
        let profile = args.output.as_deref();
        let profile = profile.map(|path| crate::commands::create_profile(path, &meta, args.force));
        Ok(Self {
            observing,
            ready,
            observer,
            meta,
            profile: profile.transpose()?,
        })
    }
}

/// The flags, checked, with the sources to use.
fn observing(args: &RunArgs, console: Console) -> Result<Observing> {
    recording::check(&args.observing)?;
    recording::with_sources(&args.observing, &args.program.words, console)
}

/// The summary of a run: what every run has, and the figures of its kind, which take the place of those.
pub(super) fn summary_of(
    program: &EndedProgram,
    mode: &str,
    emulates: bool,
    figures: Value,
) -> Value {
    let worked = program.summary.worked();
    let mut summary = json!({
        "mode": mode,
        "placed": worked,
        "emulated": emulates && worked,
        "seconds": program.took.0 as f64 / 1e9,
        "runtime": program.summary.to_json(recorded_sites(&program.session).len()),
    });
    if let (Value::Object(all), Value::Object(figures)) = (&mut summary, figures) {
        all.extend(figures);
    }
    summary
}

/// Writes the summary, says what to do next, and returns the program's exit status; a failure if it succeeded and a result could not be
/// written.
pub(super) fn conclude(
    args: &RunArgs,
    program: &EndedProgram,
    profile: Result<Option<FinishOutcome>>,
    summary: Value,
    console: Console,
) -> ExitStatus {
    let written = write_summary(args, summary, &program.energy, console);
    if !matches!(profile, Ok(Some(FinishOutcome::Former)) | Err(_)) {
        say_next(args, console);
    }
    let kept = [written, profile.map(drop)];
    launch::ended(program.status, kept, console)
}
