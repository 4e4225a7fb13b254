//! `PreparedRun` is the program of any run without a plan (online, or with `--policy`, `--remap`, `--optimize-after`, `--java`, `--tiers
//! compressed`), observed and held before its exec; its data is placed in the order of first touch or left to the kernel. `begin` starts
//! it. `conclude` writes the summary of such a run at its end, names the next command and returns the exit status.

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};

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
use isotherm_sys::file_root::FileRoot;

use super::results::{RunFigures, say_next, write_summary};
use crate::cli::{Observing, RunArgs};
use crate::launch::{self, Ready};
use crate::observed_run::{EndedRun, ObservedRun};
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
        let longest = args.remap.as_ref().map(|_| LONGEST_EPOCH);
        let own = |_: &_, _: &_| Ok(args.program.words.clone());
        Self::held(args, longest, (Some(tiers), other_hz), own, console)
    }

    /// Prepares the program so that all its data stays where the kernel puts it. An epoch is at most this long.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(super) fn unplaced(args: &RunArgs, longest: Nanos, console: Console) -> Result<Self> {
        let own = |_: &_, _: &_| Ok(args.program.words.clone());
        Self::held(args, Some(longest), (None, &[]), own, console)
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
        let longest = args.remap.as_ref().map(|_| BANDWIDTH_INTERVAL);
        Self::held(args, longest, (Some(tiers), &[]), words, console)
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
        let (start, root) = (|| self.ready.start(), FileRoot::default());
        ObservedRun::start(start, root, step, self.observing.epoch, console)
    }

    /// Holds the program of these words, whose epochs are at most this long, and attaches to it. With tiers its data is placed on them.
    fn held(
        args: &RunArgs,
        longest: Option<Nanos>,
        (tiers, other_hz): (Option<&Tiers>, &'static [u32]),
        words: impl FnOnce(&Observing, &SessionDirectory) -> Result<Vec<OsString>>,
        console: Console,
    ) -> Result<Self> {
        let observing = observing(args, longest, console)?;
        let configuration = match tiers {
            Some(tiers) => {
                Configuration::online(observing.depth, tiers.clone(), TierIndex::FASTEST)
            }
            None => Configuration::profile(observing.depth),
        };
        let configuration = Configuration {
            mover: args.mover,
            ..recording::for_sources(configuration, &observing)
        };
        let session = SessionDirectory::new()?;
        let words = words(&observing, &session)?;
        let ready = launch::prepare(session, &words, &configuration, Stdio::inherit())?;
        let observer = recording::attach(&ready, &observing, other_hz);
        let emulated = tiers.is_some_and(Tiers::emulates);
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

/// The flags, checked, with the sources to use and an epoch that is at most this long.
fn observing(args: &RunArgs, longest: Option<Nanos>, console: Console) -> Result<Observing> {
    recording::check(&args.observing)?;
    let observing = recording::with_sources(&args.observing, &args.program.words, console)?;
    Ok(Observing {
        epoch: observing.epoch.min(longest.unwrap_or(observing.epoch)),
        ..observing
    })
}

/// Writes the summary, says what to do next, and returns the program's exit status; a failure if it succeeded and a result could not be
/// written.
pub(super) fn conclude(
    args: &RunArgs,
    EndedRun {
        program, profile, ..
    }: EndedRun,
    figures: RunFigures<'_>,
    console: Console,
) -> ExitStatus {
    let sites = recorded_sites(&program.session).len();
    let written = write_summary(args, (&program, sites), figures, console);
    if !matches!(profile, Ok(Some(FinishOutcome::Former)) | Err(_)) {
        say_next(args, console);
    }
    let kept = [written, profile.map(drop)];
    launch::ended(program.status, kept, console)
}
