//! `isotherm colocate --run`: the programs alone with all data fast, alone by their plans, and together by their plans.

use std::ffi::OsString;

use anyhow::{Context, Result, bail};
use isotherm_act::configuration::Configuration;
use isotherm_console::Console;
use isotherm_model::plan::{Plan, Weight};
use isotherm_model::profile::Profile;
use isotherm_model::tier::TierIndex;
use isotherm_model::units::Nanos;
use isotherm_model::words::counted;
use isotherm_report::comparison::Times;
use isotherm_report::sharing::{SharingRuns, SharingTimes};

use crate::commands::plan::of_selected;
use crate::static_data::StaticPlacement;
use crate::timed_runs::without_limit;
use crate::together::{self, FirstEnd, PlacedProgram};
use crate::{fit, launch};

/// A program with its two placements, and the times so far.
pub(super) struct TimedProgram {
    all_fast: PlacedProgram,
    planned: PlacedProgram,
    fast_times: Vec<Nanos>,
    alone_times: Vec<Nanos>,
    together_times: Vec<Nanos>,
    restarts: u32,
}

impl TimedProgram {
    /// A recorded program by its plan: the command of the profile is run, in this directory.
    ///
    /// # Errors
    /// The profile names no command, or the program cannot be run.
    pub(super) fn new(
        name: &str,
        profile: &Profile,
        plan: &Plan,
        weight: Weight,
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
            let configuration = Configuration::guided(&fitted.plan);
            let placed = PlacedProgram {
                name: name.to_owned(),
                words: words.clone(),
                configuration: StaticPlacement::Plan.with(configuration, &fitted.plan, &program),
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
        let median =
            |times: &[Nanos]| Times::of(times).map(|times| times.median.0.max(1) as f64 / 1e9);
        Some(SharingTimes {
            program: self.planned.name.clone(),
            all_fast_seconds: median(&self.fast_times)?,
            alone_seconds: median(&self.alone_times)?,
            together_seconds: median(&self.together_times)?,
            restarts: self.restarts,
        })
    }
}

/// Runs all rounds; `None` where a signal ended the first one.
///
/// # Errors
/// A program fails.
pub(super) fn run(
    programs: &mut [TimedProgram],
    rounds: u32,
    console: Console,
) -> Result<Option<SharingRuns>> {
    let progress = console.progress("running");
    let mut complete = 0;
    for round in 1..=rounds {
        let say = |what: &str| progress.set_message(format!("round {round} of {rounds}: {what}"));
        if !run_round(programs, say)? {
            break;
        }
        complete = round;
    }
    progress.finish_and_clear();
    if complete < rounds {
        console.warn(&format!(
            "interrupted after {complete} of {}",
            counted(rounds, "round")
        ));
    }
    let times: Option<Vec<SharingTimes>> = programs.iter().map(TimedProgram::times).collect();
    Ok(times.filter(|_| complete > 0).map(|programs| SharingRuns {
        rounds: complete,
        programs,
    }))
}

/// One round; false where a signal ended it. Its times then do not count.
fn run_round(programs: &mut [TimedProgram], say: impl Fn(&str)) -> Result<bool> {
    let mut alone = Vec::new();
    for program in programs.iter() {
        say(&format!("{} alone", program.planned.name));
        let mut pair = [Nanos::ZERO; 2];
        for (time, placed) in pair.iter_mut().zip([&program.all_fast, &program.planned]) {
            let Some(ended) = together::run(std::slice::from_ref(placed))? else {
                return Ok(false);
            };
            *time = checked(placed, &ended[0])?;
        }
        alone.push(pair);
    }
    say("together");
    let planned: Vec<PlacedProgram> = programs.iter().map(|it| it.planned.clone()).collect();
    let Some(ended) = together::run(&planned)? else {
        return Ok(false);
    };
    for ((program, [fast, planned]), ended) in programs.iter_mut().zip(alone).zip(ended) {
        program
            .together_times
            .push(checked(&program.planned, &ended)?);
        program.fast_times.push(fast);
        program.alone_times.push(planned);
        program.restarts += ended.restarts;
    }
    Ok(true)
}

/// The time of a run that succeeded.
fn checked(program: &PlacedProgram, ended: &FirstEnd) -> Result<Nanos> {
    if !ended.status.success() {
        bail!(
            "program \"{}\" ended with {}; its time cannot be compared",
            program.name,
            ended.status
        );
    }
    Ok(ended.took)
}
