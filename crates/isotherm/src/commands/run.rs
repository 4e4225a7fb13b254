//! `isotherm run`: by a plan, or profiling and placing in one run.

mod hand;

use std::collections::BTreeSet;
use std::process::ExitStatus;

use anyhow::Result;
use isotherm_act::callers::direct_caller;
use isotherm_act::configuration::Configuration;
use isotherm_act::wrap::Recording;
use isotherm_model::outcome::{Fate, Outcome};
use isotherm_model::plan::{Caller, Plan};
use isotherm_model::port::Recorder;
use isotherm_model::profile::{Meta, Profile, Segment};
use isotherm_model::site::{CallerId, SiteId};
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::{counted, percent};
use isotherm_observe::live::Source;
use isotherm_observe::probe::Machine;
use isotherm_pipeline::{Coverage, Online, OnlineConfig, Step, coverage};
use isotherm_profile::{Kept, Writer};

use crate::aftermath::Aftermath;
use crate::cli::RunArgs;
use crate::fit::{self, Fitted};
use crate::hint;
use crate::launch::{self, Output};
use crate::naming::Naming;
use crate::notes::Notes;
use crate::output;
use crate::recording::{self, InMemory, Troubles};
use crate::tiers_choice;
use hand::Hand;

/// Share of a plan's value that must be found in the run, below which the plan is called foreign.
const FOREIGN_BELOW: f64 = 0.5;

/// Runs, and returns how the program ended; a failure where it ended well and something of the run
/// could not be written.
///
/// # Errors
/// The plan or the tiers cannot be used, the summary or the profile could not be written, the program
/// cannot be started or watched.
pub(crate) fn run(args: &RunArgs, notes: Notes) -> Result<ExitStatus> {
    // What takes long is not begun where its result could not be kept.
    args.summary.as_deref().map_or(Ok(()), output::check)?;
    match &args.plan {
        Some(path) => guided(args, &super::read_plan(path)?, notes),
        None => online(args, notes),
    }
}

fn guided(args: &RunArgs, plan: &Plan, notes: Notes) -> Result<ExitStatus> {
    let fitted = fit::fitted(plan, &launch::program(&args.program.words)?);
    fitted.say(notes);
    let configuration = Configuration::guided(&fitted.plan);
    let ready = launch::prepare(&args.program.words, &configuration, Output::Ours)?;
    let (session, running) = ready.start()?;
    let (status, took) = running.finish()?;
    let aftermath = Aftermath::read(&session);
    launch::warn_of(&aftermath, notes);
    let covered = covered(&fitted, &aftermath);
    if aftermath.off.is_empty() {
        say_coverage(plan, &covered, notes);
    }
    let took = Nanos(took.as_nanos() as u64);
    notes.say(&aftermath.took("guided", took, &plan.tiers));
    let summary = serde_json::json!({
        "mode": "guided",
        "placed": aftermath.worked(),
        "emulated": plan.tiers.emulates() && aftermath.worked(),
        "seconds": took.0 as f64 / 1e9,
        "sites_matched": covered.matched.len(),
        "sites_only_in_plan": covered.only_in_plan.len(),
        "value_matched_share": covered.value_share(),
        "fit": fitted.to_json(),
        "runtime": aftermath.to_json(),
    });
    let kept = write_summary(args, &summary);
    Ok(launch::ended(status, [kept], notes))
}

/// The sites that a run made. Of a caller whose contexts all go to one tier the runtime looks at the
/// first only, so all sites of such a caller count as made.
fn made(plan: &Plan, aftermath: &Aftermath) -> BTreeSet<SiteId> {
    let mut made = aftermath.site_ids();
    let callers = plan.tiers_by_caller().unwrap_or_default();
    let seen: BTreeSet<CallerId> = aftermath
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

/// Which of the plan's sites a run made, under whichever names.
pub(super) fn covered(fitted: &Fitted, aftermath: &Aftermath) -> Coverage {
    let made = made(&fitted.plan, aftermath).into_iter();
    coverage(&fitted.original, made.flat_map(|site| fitted.former(site)))
}

fn say_coverage(plan: &Plan, seen: &Coverage, notes: Notes) {
    let planned = seen.matched.len() + seen.only_in_plan.len();
    if planned == 0 {
        return;
    }
    let share = seen.value_share();
    let others = seen.only_in_run.len();
    notes.say(&format!(
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
    warn_if_foreign(plan, seen, notes);
}

/// Says it where a run made little of what its plan was made for.
pub(super) fn warn_if_foreign(plan: &Plan, seen: &Coverage, notes: Notes) {
    let has_sites = !(seen.matched.is_empty() && seen.only_in_plan.is_empty());
    if has_sites && seen.value_share() < FOREIGN_BELOW {
        let missing = seen.only_in_plan.iter().take(3).map(ToString::to_string);
        notes.warn(&format!(
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

/// Where an online run's segments go.
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
}

fn online(args: &RunArgs, notes: Notes) -> Result<ExitStatus> {
    let words = &args.program.words;
    recording::check(&args.observing)?;
    let observing = &recording::with_sources(&args.observing, words, notes)?;
    let tiers = tiers(args, notes)?;
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
    let hand = Hand::new(args, &ready, &tiers, notes);
    let mut config = OnlineConfig::for_tiers(tiers.clone());
    // What the program counts itself are accesses, not moments of time.
    if observing.source != [Source::Instrumented] {
        config = config.sampled_every(recording::sample_interval(observing));
    }
    config.command.clone_from(&meta.command);
    config.depth = observing.depth;
    let online = Online::new(config);
    let mut step = Step::new(observer, Recording::new(hand), sink, &meta, Some(online));
    let mut naming = Naming::start()?;
    let (session, mut running) = ready.start()?;

    let mut troubles = Troubles::default();
    let ended = recording::watch(
        &mut step,
        &mut running,
        observing.epoch,
        &mut naming,
        |running| args.undo && running.interrupted().is_some(),
        |report, last| troubles.hear(report, last, notes),
    )?;
    // What runs on, the program or what it left behind, gets its memory back where it was.
    step.executor.inner.undo(notes);
    let status = match ended {
        Some(status) => status,
        None => running.until_end()?,
    };
    let took = Nanos(running.elapsed().as_nanos() as u64);
    let aftermath = Aftermath::read(&session);
    launch::warn_of(&aftermath, notes);
    let sites = recording::named(&step, naming);
    say_moves(&aftermath, &step.executor.outcomes, &tiers, took, notes);
    let summary = online_summary(&step.executor.outcomes, &tiers, took, &aftermath);
    let written = write_summary(args, &summary);
    let closed = match (step.recorder, &args.output) {
        (Sink::File(writer), Some(path)) => {
            let closed = writer.finish(launch::ending(status), &sites);
            closed.map_err(|error| troubles.at_the_end(error, path))
        }
        _ => Ok(Kept::New),
    };
    match (&closed, &args.output) {
        (Ok(Kept::Former), Some(path)) => recording::warn_of_former(path, notes),
        (Ok(_), _) => say_next(args, notes),
        (Err(_), _) => {}
    }
    Ok(launch::ended(status, [written, closed.map(drop)], notes))
}

/// The tiers that the flags ask for, with a warning where they cannot work.
fn tiers(args: &RunArgs, notes: Notes) -> Result<Tiers> {
    let tiers = tiers_choice::resolve(&args.tiers, None, notes)?;
    if let Some(why) = tiers_choice::trouble(&tiers, &Machine) {
        notes.warn(&why);
    }
    Ok(tiers)
}

fn online_summary(
    outcomes: &[Outcome],
    tiers: &Tiers,
    took: Nanos,
    aftermath: &Aftermath,
) -> serde_json::Value {
    serde_json::json!({
        "mode": "online",
        "placed": aftermath.worked(),
        "emulated": tiers.emulates() && aftermath.worked(),
        "seconds": took.0 as f64 / 1e9,
        "actions": outcomes.len(),
        "actions_requested": count(outcomes, &Fate::Requested).0,
        "actions_moved": count(outcomes, &Fate::Moved).0,
        "outcomes": outcomes.iter().map(outcome).collect::<Vec<_>>(),
        "runtime": aftermath.to_json(),
    })
}

fn say_next(args: &RunArgs, notes: Notes) {
    notes.next(&match &args.output {
        Some(path) => format!("isotherm report {}", hint::file(path)),
        None => "isotherm record -o app.iso -- PROGRAM, to see what was hot".to_owned(),
    });
}

/// A profile on disk where one was asked for.
fn sink(args: &RunArgs, meta: &Meta) -> Result<Sink> {
    let Some(path) = &args.output else {
        return Ok(Sink::Memory(Box::new(InMemory(Profile::new(meta.clone())))));
    };
    let writer = super::create_profile(path, meta, args.force)?;
    Ok(Sink::File(Box::new(writer)))
}

/// An outcome by its action, so that a bare success is never all that is said.
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

/// Actions that fared so, and their bytes.
fn count(outcomes: &[Outcome], fate: &Fate) -> (usize, Bytes) {
    let like = || outcomes.iter().filter(|outcome| outcome.fate == *fate);
    (
        like().count(),
        like().map(|outcome| outcome.action.bytes).sum(),
    )
}

fn say_moves(
    aftermath: &Aftermath,
    outcomes: &[Outcome],
    tiers: &Tiers,
    took: Nanos,
    notes: Notes,
) {
    let said = aftermath.took("online", took, tiers);
    if !aftermath.worked() {
        return notes.say(&said);
    }
    // On the emulated pair moves are asked for, on real nodes they are made.
    let (asked, asked_bytes) = count(outcomes, &Fate::Requested);
    let (moved, moved_bytes) = count(outcomes, &Fate::Moved);
    let (there, _) = count(outcomes, &Fate::AlreadyThere);
    let done = match tiers.emulates() {
        true => format!("{} of {asked_bytes} asked for", counted(asked, "move")),
        false => {
            let moves = counted(moved, "move");
            format!("{moves} of {moved_bytes} made, {there} there already")
        }
    };
    let left = outcomes.len() - asked - moved - there;
    notes.say(&format!("{said}: {done}, {left} not finished"));
}
