//! `isotherm run`: runs a program by a plan, or profiles and places in one run.

mod site_executor;

use std::collections::BTreeSet;
use std::process::ExitStatus;

use anyhow::Result;
use isotherm_act::callers::direct_caller;
use isotherm_act::configuration::Configuration;
use isotherm_act::wrap::RecordingExecutor;
use isotherm_model::outcome::{Fate, Outcome};
use isotherm_model::plan::{Caller, Plan};
use isotherm_model::port::Recorder;
use isotherm_model::profile::{Meta, Profile, Segment};
use isotherm_model::site::{CallerId, SiteId};
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::{counted, percent};
use isotherm_observe::live::SampleSource;
use isotherm_observe::probe::KernelProbe;
use isotherm_pipeline::{Coverage, Online, OnlineConfig, Step, coverage};
use isotherm_profile::{FinishOutcome, Writer};

use crate::cli::{Observing, RunArgs};
use crate::fit::{self, Fitted};
use crate::launch::{self, Output};
use crate::output;
use crate::recording::{self, Diagnostics, InMemory};
use crate::session_summary::SessionSummary;
use crate::site_names::Naming;
use crate::tiers_choice;
use isotherm_console::Console;
use isotherm_console::shell_quoting;
use site_executor::SiteExecutor;

/// Least share of a plan's value that the run must allocate; below it a warning calls the plan foreign.
const FOREIGN_BELOW: f64 = 0.5;

/// Runs, and returns the program's exit status; a failure if it succeeded and a result of the run
/// could not be written.
///
/// # Errors
/// The plan or the tiers cannot be used, the summary or the profile could not be written, the program
/// cannot be started or watched.
pub(crate) fn run(args: &RunArgs, console: Console) -> Result<ExitStatus> {
    // A long run is not started if its result could not be stored.
    args.summary.as_deref().map_or(Ok(()), output::check)?;
    match &args.plan {
        Some(path) => guided(args, &super::read_plan(path)?, console),
        None => online(args, console),
    }
}

fn guided(args: &RunArgs, plan: &Plan, console: Console) -> Result<ExitStatus> {
    let fitted = fit::fitted(plan, &launch::program(&args.program.words)?);
    fitted.say(console);
    let configuration = Configuration::guided(&fitted.plan);
    let ready = launch::prepare(&args.program.words, &configuration, Output::Ours)?;
    let (session, running) = ready.start()?;
    let (status, took) = running.finish()?;
    let summary = SessionSummary::read(&session);
    launch::warn_of(&summary, console);
    let covered = covered(&fitted, &summary);
    if summary.off.is_empty() {
        say_coverage(plan, &covered, console);
    }
    let took = Nanos(took.as_nanos() as u64);
    console.info(&summary.took("guided", took, &plan.tiers));
    let summary = serde_json::json!({
        "mode": "guided",
        "placed": summary.worked(),
        "emulated": plan.tiers.emulates() && summary.worked(),
        "seconds": took.0 as f64 / 1e9,
        "sites_matched": covered.matched.len(),
        "sites_only_in_plan": covered.only_in_plan.len(),
        "value_matched_share": covered.value_share(),
        "fit": fitted.to_json(),
        "runtime": summary.to_json(),
    });
    let kept = write_summary(args, &summary);
    Ok(launch::ended(status, [kept], console))
}

/// The sites that a run allocated. For a caller whose contexts all go to one tier the runtime records the
/// first only, so all sites of such a caller count.
fn made(plan: &Plan, summary: &SessionSummary) -> BTreeSet<SiteId> {
    let mut made = summary.site_ids();
    let callers = plan.tiers_by_caller().unwrap_or_default();
    let seen: BTreeSet<CallerId> = summary
        .sites
        .values()
        .filter_map(direct_caller)
        .filter(|caller| callers.get(caller).is_some_and(Option::is_some))
        .collect();
    let with_them = plan
        .assignments
        .iter()
        .filter(|site| matches!(site.caller, Caller::Direct { id, .. } if seen.contains(&id)));
    made.extend(with_them.map(|site| site.site));
    made
}

/// The plan's sites that a run allocated, under their names in this build.
pub(super) fn covered(fitted: &Fitted, summary: &SessionSummary) -> Coverage {
    let made = made(&fitted.plan, summary).into_iter();
    coverage(&fitted.original, made.flat_map(|site| fitted.former(site)))
}

fn say_coverage(plan: &Plan, seen: &Coverage, console: Console) {
    let planned = seen.matched.len() + seen.only_in_plan.len();
    if planned == 0 {
        return;
    }
    let share = seen.value_share();
    let others = seen.only_in_run.len();
    console.info(&format!(
        "{} of the plan's {} {} made by this run ({} of its {}); {} {} not in it",
        seen.matched.len(),
        counted(planned, "site"),
        if seen.matched.len() == 1 {
            "was"
        } else {
            "were"
        },
        percent(share),
        plan.valued(),
        counted(others, "other site"),
        if others == 1 { "is" } else { "are" }
    ));
    warn_if_foreign(plan, seen, console);
}

/// Warns if a run allocated little of its plan's value.
pub(super) fn warn_if_foreign(plan: &Plan, seen: &Coverage, console: Console) {
    let has_sites = !(seen.matched.is_empty() && seen.only_in_plan.is_empty());
    if has_sites && seen.value_share() < FOREIGN_BELOW {
        let missing = seen.only_in_plan.iter().take(3).map(ToString::to_string);
        console.warn(&format!(
            "this plan was made for another program or another version ({}): sites {} were never \
             made; record and plan again",
            plan.command.join(" "),
            missing.collect::<Vec<_>>().join(", ")
        ));
    }
}

fn write_summary(args: &RunArgs, summary: &serde_json::Value) -> Result<()> {
    let Some(path) = &args.summary else {
        return Ok(());
    };
    output::write(path, format!("{summary:#}\n").as_bytes())
}

/// The destination of an online run's segments.
enum Sink {
    File(Box<Writer>),
    Memory(Box<InMemory>),
}

impl Recorder for Sink {
    type Error = isotherm_profile::Error;

    fn record(&mut self, segment: &Segment) -> Result<(), Self::Error> {
        match self {
            Self::File(writer) => writer.record(segment),
            Self::Memory(memory) => {
                let Ok(()) = memory.record(segment);
                Ok(())
            }
        }
    }

    fn record_last(&mut self, segment: &Segment) -> Result<(), Self::Error> {
        match self {
            Self::File(writer) => writer.record_last(segment),
            Self::Memory(_) => self.record(segment),
        }
    }

    fn write_noted(&mut self) -> Result<(), Self::Error> {
        match self {
            Self::File(writer) => writer.write_noted(),
            Self::Memory(_) => Ok(()),
        }
    }
}

fn online(args: &RunArgs, console: Console) -> Result<ExitStatus> {
    let words = &args.program.words;
    recording::check(&args.observing)?;
    let observing = &recording::with_sources(&args.observing, words, console)?;
    let tiers = tiers(args, console)?;
    let default_tier = isotherm_model::tier::TierIndex::FASTEST;
    let mut configuration = recording::for_sources(
        Configuration::online(observing.depth, tiers.clone(), default_tier),
        observing,
    );
    configuration.mover = args.mover;
    let ready = launch::prepare(words, &configuration, Output::Ours)?;
    let observer = recording::attach(&ready, observing)?;
    let meta = recording::meta(words, observing, tiers.emulates());
    let sink = sink(args, &meta)?;
    let hand = SiteExecutor::new(args, &ready, &tiers, console);
    let online = Online::new(online_config(observing, &tiers, &meta));
    let mut step = Step::new(
        observer,
        RecordingExecutor::new(hand),
        sink,
        &meta,
        Some(online),
    );
    let mut naming = Naming::start()?;
    let (session, mut running) = ready.start()?;

    let mut diagnostics = Diagnostics::default();
    let ended = recording::watch(
        &mut step,
        &mut running,
        observing.epoch,
        &mut naming,
        |running| args.undo && running.interrupted().is_some(),
        |report, last| diagnostics.hear(report, last, console),
    )?;
    // Processes that run on, the program or its children, get their memory back on its original nodes.
    step.executor.inner.undo(console);
    let status = match ended {
        Some(status) => status,
        None => running.until_end()?,
    };
    let took = Nanos(running.elapsed().as_nanos() as u64);
    let summary = SessionSummary::read(&session);
    launch::warn_of(&summary, console);
    let sites = recording::named(&mut step, naming);
    say_moves(&summary, &step.executor.outcomes, &tiers, took, console);
    let summary = online_summary(&step.executor.outcomes, &tiers, took, &summary);
    let written = write_summary(args, &summary);
    let closed = match (step.recorder, &args.output) {
        (Sink::File(writer), Some(path)) => {
            let closed = writer.finish(launch::ending(status), &sites);
            closed.map_err(|error| diagnostics.at_the_end(error, path))
        }
        _ => Ok(FinishOutcome::New),
    };
    match (&closed, &args.output) {
        (Ok(FinishOutcome::Former), Some(path)) => recording::warn_of_former(path, console),
        (Ok(_), _) => say_next(args, console),
        (Err(_), _) => {}
    }
    Ok(launch::ended(status, [written, closed.map(drop)], console))
}

/// The decisions of an online run.
fn online_config(observing: &Observing, tiers: &Tiers, meta: &Meta) -> OnlineConfig {
    let mut config = OnlineConfig::for_tiers(tiers.clone());
    // The counts of an instrumented program are accesses, not samples in time.
    if observing.source != [SampleSource::Instrumented] {
        config = config.sampled_every(recording::sample_interval(observing));
    }
    config.command.clone_from(&meta.command);
    config.depth = observing.depth;
    config
}

/// The tiers that the flags select, with a warning if they cannot work.
fn tiers(args: &RunArgs, console: Console) -> Result<Tiers> {
    let tiers = tiers_choice::resolve(&args.tiers, None, console)?;
    if let Some(why) = tiers_choice::trouble(&tiers, &KernelProbe) {
        console.warn(&why);
    }
    Ok(tiers)
}

fn online_summary(
    outcomes: &[Outcome],
    tiers: &Tiers,
    took: Nanos,
    summary: &SessionSummary,
) -> serde_json::Value {
    serde_json::json!({
        "mode": "online",
        "placed": summary.worked(),
        "emulated": tiers.emulates() && summary.worked(),
        "seconds": took.0 as f64 / 1e9,
        "actions": outcomes.len(),
        "actions_requested": count(outcomes, &Fate::Requested).0,
        "actions_moved": count(outcomes, &Fate::Moved).0,
        "outcomes": outcomes.iter().map(outcome).collect::<Vec<_>>(),
        "runtime": summary.to_json(),
    })
}

fn say_next(args: &RunArgs, console: Console) {
    console.next(&match &args.output {
        Some(path) => format!("isotherm report {}", shell_quoting::file(path)),
        None => "isotherm record -o app.iso -- PROGRAM, to see what was hot".to_owned(),
    });
}

/// The profile on disk, if one was requested.
fn sink(args: &RunArgs, meta: &Meta) -> Result<Sink> {
    let Some(path) = &args.output else {
        return Ok(Sink::Memory(Box::new(InMemory(Profile::new(meta.clone())))));
    };
    let writer = super::create_profile(path, meta, args.force)?;
    Ok(Sink::File(Box::new(writer)))
}

/// An outcome with its action and the reason.
fn outcome(outcome: &Outcome) -> serde_json::Value {
    let (fate, why) = match &outcome.fate {
        Fate::Moved => ("moved", None),
        Fate::Requested => ("requested", None),
        Fate::AlreadyThere => ("already there", None),
        Fate::Busy(why) => ("busy", Some(why.clone())),
        Fate::Denied(why) => ("denied", Some(why.clone())),
        Fate::NotAttempted(why) => ("not attempted", Some(why.to_string())),
    };
    serde_json::json!({
        "pid": outcome.action.process.pid,
        "site": outcome.action.site.to_string(),
        "tier": outcome.action.tier.0,
        "bytes": outcome.action.bytes.0,
        "fate": fate,
        "why": why,
    })
}

/// The number of actions with this result, and their bytes.
fn count(outcomes: &[Outcome], fate: &Fate) -> (usize, Bytes) {
    let like = || outcomes.iter().filter(|outcome| outcome.fate == *fate);
    (
        like().count(),
        like().map(|outcome| outcome.action.bytes).sum(),
    )
}

fn say_moves(
    summary: &SessionSummary,
    outcomes: &[Outcome],
    tiers: &Tiers,
    took: Nanos,
    console: Console,
) {
    let said = summary.took("online", took, tiers);
    if !summary.worked() {
        return console.info(&said);
    }
    // On the emulated pair moves are requested, on real nodes they are made.
    let (asked, asked_bytes) = count(outcomes, &Fate::Requested);
    let (moved, moved_bytes) = count(outcomes, &Fate::Moved);
    let (there, _) = count(outcomes, &Fate::AlreadyThere);
    let done = match tiers.emulates() {
        true => format!("{} of {asked_bytes} requested", counted(asked, "move")),
        false => {
            let moves = counted(moved, "move");
            format!("{moves} of {moved_bytes} made, {there} already in place")
        }
    };
    let left = outcomes.len() - asked - moved - there;
    console.info(&format!("{said}: {done}, {left} not finished"));
}
