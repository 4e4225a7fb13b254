//! `run` times each `TimedProgram` for `isotherm colocate --run`, in rounds: alone with all its data fast, alone by its plan, and together
//! with the other programs, each by its own plan and started again until all have ended once. A round that a signal ends early does not
//! count.

use std::ffi::OsString;
use std::process::ExitStatus;

use anyhow::{Context, Result};
use isotherm_console::Console;
use isotherm_model::plan::{Plan, Weight};
use isotherm_model::profile::Profile;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::counted;
use isotherm_report::sharing::{SharingRuns, SharingTimes};
use isotherm_report::times::Times;

use crate::commands::plan::of_selected;
use crate::static_data::StaticPlacement;
use crate::timed_runs::without_limit;
use crate::together::{self, PlacedProgram, RunTimes, TogetherEnd};
use crate::{fit, launch, program_signals};

/// A program with its two placements, and the times so far.
pub(super) struct TimedProgram {
    all_fast: PlacedProgram,
    planned: PlacedProgram,
    fast_times: Vec<RunTimes>,
    alone_times: Vec<RunTimes>,
    together_times: Vec<RunTimes>,
    restarts: u32,
}

impl TimedProgram {
    /// Prepares a recorded program to run all fast and by its plan: the command of the profile is run, in this directory. `cache` is the
    /// size of the caches, of a machine that is emulated by time.
    ///
    /// # Errors
    /// The profile names no command, or the program cannot be run.
    pub(super) fn new(
        name: &str,
        profile: &Profile,
        plan: &Plan,
        (weight, cache): (Weight, Option<Bytes>),
        console: Console,
    ) -> Result<Self> {
        let words: Vec<OsString> = profile.meta.command.iter().map(OsString::from).collect();
        let program = launch::program(&words).with_context(|| {
            format!("program \"{name}\": the recorded command cannot be run from this directory")
        })?;
        let placed = |plan: &Plan, default: Option<TierIndex>| {
            let mut fitted = fit::fitted(plan, &program);
            if let Some(default) = default {
                fitted.plan.default_tier = default;
            }
            let placed = PlacedProgram {
                name: name.to_owned(),
                words: words.clone(),
                configuration: StaticPlacement::Plan.guided(&fitted.plan, &program, cache),
            };
            (fitted, placed)
        };
        let tiers = without_limit(&plan.tiers);
        let everything = of_selected(profile, (&tiers, weight), "all-fast", |_| true);
        let (_, all_fast) = placed(&everything, Some(TierIndex::FASTEST));
        let (fitted, planned) = placed(plan, None);
        fitted.say(console);
        Ok(Self {
            all_fast,
            planned,
            fast_times: Vec::new(),
            alone_times: Vec::new(),
            together_times: Vec::new(),
            restarts: 0,
        })
    }

    fn times(&self) -> Option<SharingTimes> {
        let median = |times: &[RunTimes], of: fn(&RunTimes) -> Nanos| {
            let times: Vec<Nanos> = times.iter().map(of).collect();
            Times::of(&times).map(|times| times.median().0.max(1) as f64 / 1e9)
        };
        let seconds = |times| median(times, |run| run.took);
        let processor_seconds = |times| median(times, |run| run.processor_time);
        Some(SharingTimes {
            program: self.planned.name.clone(),
            all_fast_seconds: seconds(&self.fast_times)?,
            alone_seconds: seconds(&self.alone_times)?,
            together_seconds: seconds(&self.together_times)?,
            all_fast_processor_seconds: processor_seconds(&self.fast_times)?,
            alone_processor_seconds: processor_seconds(&self.alone_times)?,
            together_processor_seconds: processor_seconds(&self.together_times)?,
            restarts: self.restarts,
        })
    }
}

/// The measured rounds.
#[derive(Debug, Default)]
pub(super) struct RoundResults {
    /// The times; `None` where a signal ended the first round.
    pub runs: Option<SharingRuns>,
    /// The exit status for the signal that ended them early.
    pub interrupted: Option<ExitStatus>,
}

/// Runs all rounds, until a signal ends them; each run of a program may take `limit`.
///
/// # Errors
/// A program fails, or takes longer.
pub(super) fn run(
    programs: &mut [TimedProgram],
    (rounds, limit): (u32, Option<Nanos>),
    console: Console,
) -> Result<RoundResults> {
    program_signals::catch_from_here()?;
    let progress = console.progress("running");
    let mut complete = 0;
    let mut interrupted = None;
    while complete < rounds && interrupted.is_none() {
        let round = complete + 1;
        let say = |what: &str| progress.set_message(format!("round {round} of {rounds}: {what}"));
        interrupted = run_round(programs, limit, say)?;
        complete += u32::from(interrupted.is_none());
    }
    progress.finish_and_clear();
    if interrupted.is_some() {
        console.warn(&format!(
            "interrupted after {complete} of {}",
            counted(rounds, "round")
        ));
    }
    let times: Option<Vec<SharingTimes>> = programs.iter().map(TimedProgram::times).collect();
    let runs = times.map(|programs| SharingRuns {
        rounds: complete,
        programs,
    });
    Ok(RoundResults { runs, interrupted })
}

/// Makes one round. Returns the exit status for the signal that ended it early, if any: then its times do not count.
fn run_round(
    programs: &mut [TimedProgram],
    limit: Option<Nanos>,
    say: impl Fn(&str),
) -> Result<Option<ExitStatus>> {
    let mut alone = Vec::new();
    for program in programs.iter() {
        say(&format!("{} alone", program.planned.name));
        let mut pair = [RunTimes::default(); 2];
        for (time, placed) in pair.iter_mut().zip([&program.all_fast, &program.planned]) {
            match together::run(std::slice::from_ref(placed), limit)? {
                TogetherEnd::All(ended) => *time = ended[0].times,
                TogetherEnd::Interrupted(signal) => return Ok(Some(signal)),
            }
        }
        alone.push(pair);
    }
    say("together");
    let planned: Vec<PlacedProgram> = programs.iter().map(|it| it.planned.clone()).collect();
    let ended = match together::run(&planned, limit)? {
        TogetherEnd::All(ended) => ended,
        TogetherEnd::Interrupted(signal) => return Ok(Some(signal)),
    };
    for ((program, [fast, planned]), ended) in programs.iter_mut().zip(alone).zip(ended) {
        program.together_times.push(ended.times);
        program.fast_times.push(fast);
        program.alone_times.push(planned);
        program.restarts += ended.restarts;
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::TimedProgram;
    use isotherm_console::Console;
    use isotherm_model::emulation::Emulation;
    use isotherm_model::plan::Weight;
    use isotherm_model::profile::{Meta, Profile};
    use isotherm_model::tier::Tiers;
    use isotherm_model::units::Bytes;

    use crate::commands::plan::of_selected;

    #[test]
    fn both_placements_of_a_program_have_the_cache_that_was_given() {
        let mut profile = Profile::new(Meta::default());
        profile.meta.command = vec!["true".to_owned()];
        let emulation = Emulation::preset("cxl").expect("a preset");
        let tiers = Tiers::emulated(Bytes(1 << 20), Bytes(1 << 40), emulation);
        let plan = of_selected(&profile, (&tiers, Weight::PeakRss), "comerge", |_| true);
        let pair = (Weight::PeakRss, Some(Bytes(5 << 20)));
        let console = Console::new(true);
        let program = TimedProgram::new("one", &profile, &plan, pair, console).expect("runs");
        for placed in [program.all_fast, program.planned] {
            assert_eq!(placed.configuration.cache, Some(Bytes(5 << 20)));
        }
    }
}
