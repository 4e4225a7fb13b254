//! `isotherm run` runs a program by a plan, or, without a plan, profiles the program and places its data in the same run: `online` places
//! sites, and the modules have the other kinds of run. `covered` and `warn_if_foreign` judge how much of a plan a run allocated.

mod class_heap;
mod coloured_classes;
mod coloured_devices;
mod coloured_stacks;
mod device_changes;
mod kernel_order;
mod optimize_after;
mod oracle_future;
mod page_policy;
mod paged;
mod prepared_run;
mod remap;
mod results;
mod site_executor;

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitStatus;

use anyhow::{Result, bail};
use isotherm_act::callers::direct_caller;
use isotherm_model::move_totals::MoveTotals;
use isotherm_model::plan::{Caller, Plan};
use isotherm_model::site::{CallerId, Site, SiteId};
use isotherm_model::source_kind::SourceKind;
use isotherm_model::tier::Tiers;
use isotherm_model::words::{counted, percent};
use isotherm_pipeline::{Coverage, Online, OnlineConfig, StepReport, coverage};
use isotherm_report::optimizations::OptimizationSummary;
use isotherm_report::outcomes::{self, OutcomeRow};

use crate::cli::{Observing, RunArgs};
use crate::coloured_heap::ColouredHeap;
use crate::fit::{self, Fitted};
use crate::interface_service::InterfaceService;
use crate::launch;
use crate::observed_run::{FollowUntil, ObservedStep};
use crate::optimizer::{self, Optimizer};
use crate::output;
use crate::profile_rate;
use crate::recording;
use crate::session_summary::recorded_sites;
use crate::tiers_choice::{self, ShareBase};
use isotherm_console::Console;
use prepared_run::{PreparedRun, conclude};
use results::{requested, write_summary};
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
    if let Some(summary) = &args.summary {
        let inputs = args.plan.iter().chain(&args.profile);
        super::keep_inputs(inputs, summary, "--summary")?;
        output::check(summary)?;
    }
    if let Some(path) = &args.plan {
        return guided(args, &super::read_plan(path)?, console);
    }
    if let Some(cooling) = args.java.java_stacks {
        return coloured_stacks::run(args, cooling, console);
    }
    if args.java.java {
        return coloured_classes::run(args, console);
    }
    if tiers_choice::is_paged(&args.tiers) {
        return paged::run(args, console);
    }
    if args.slowdown.is_some() {
        bail!("--slowdown: is the budget of --tiers compressed; add that, or leave it out");
    }
    if args.unit.is_some() && args.policy.is_none() {
        bail!(
            "--unit: is of runs with --policy or --tiers compressed; add one of them, or leave it out"
        );
    }
    if let Some(model) = &args.remap {
        return remap::run(args, model, console);
    }
    match (args.optimize_after, &args.policy) {
        (Some(after), _) => optimize_after::run(args, after, console),
        (None, Some(policy)) => page_policy::run(args, policy, console),
        (None, None) => online(args, console),
    }
}

fn guided(args: &RunArgs, plan: &Plan, console: Console) -> Result<ExitStatus> {
    let words = &args.program.words;
    let heap = args
        .java
        .java
        .then(|| ColouredHeap::new(plan, words, &args.java));
    let heap = heap.transpose()?;
    let program = match &heap {
        Some(heap) => heap.machine.program().to_owned(),
        None => launch::program(words)?,
    };
    let fitted = fit::fitted(plan, &program);
    match &heap {
        Some(heap) => {
            heap.say(console);
            fitted.say_found(console);
        }
        None => fitted.say(console),
    }
    let static_data = args.static_data.unwrap_or_default();
    let cache = tiers_choice::cache(args.observing.cache, &plan.tiers)?;
    let configuration = static_data.guided(&fitted.plan, &program, cache);
    let ended = match &heap {
        Some(heap) => heap.run(&configuration)?,
        None => launch::run(words, &configuration)?,
    };
    let summary = &ended.summary;
    launch::warn_of(summary, console);
    let sites = recorded_sites(&ended.session);
    let covered = covered(&fitted, &sites);
    match &heap {
        // The virtual machine with colours has other sites of its own than an unchanged one.
        Some(heap) => heap.say_end(&ended, plan, console),
        // A foreign plan was reported before the start. Where the runtime was off, what the program allocated is unknown.
        None if summary.worked() && summary.off.is_empty() && !fitted.is_foreign() => {
            say_coverage(plan, &covered, console);
        }
        None => {}
    }
    console.info(&summary.took("guided", ended.took, &plan.tiers));
    let figures = serde_json::json!({
        "sites_matched": covered.matched.len(),
        "sites_only_in_plan": covered.only_in_plan.len(),
        "value_matched_share": covered.value_share(),
        "fit": fitted.to_json(),
        "java_heap": heap.map(|heap| heap.to_json(&ended)),
    });
    let figures = ("guided", plan.tiers.emulates(), figures);
    let kept = write_summary(args, (&ended, sites.len()), figures, console);
    Ok(launch::ended(ended.status, [kept], console))
}

/// The sites that a run allocated. For a caller whose contexts all go to one tier the runtime records the
/// first only, so all sites of such a caller count.
fn made(plan: &Plan, recorded: &BTreeMap<SiteId, Site>) -> BTreeSet<SiteId> {
    let callers = plan.tiers_by_caller().unwrap_or_default();
    let seen: BTreeSet<CallerId> = recorded
        .values()
        .filter_map(direct_caller)
        .filter(|caller| callers.get(caller).is_some_and(Option::is_some))
        .collect();
    let with_them = plan
        .assignments
        .iter()
        .filter(|site| matches!(site.caller, Caller::Direct { id, .. } if seen.contains(&id)));
    let with_them = with_them.map(|site| site.site);
    recorded.keys().copied().chain(with_them).collect()
}

/// The plan's sites that a run allocated, under their names in this build.
pub(super) fn covered(fitted: &Fitted, recorded: &BTreeMap<SiteId, Site>) -> Coverage {
    let made = made(&fitted.plan, recorded).into_iter();
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

fn online(args: &RunArgs, console: Console) -> Result<ExitStatus> {
    let tiers = tiers_choice::for_run(&args.tiers, ShareBase::Machine, console)?;
    let prepared = PreparedRun::new(args, &tiers, profile_rate::others(args), console)?;
    let ready = &prepared.ready;
    let executor = SiteExecutor::new(args, ready, &tiers, console);
    let online = Online::new(online_config(&prepared.observing, &tiers));
    let optimizer = Optimizer::new(args, ready, &tiers, console);
    let mut outcomes = Vec::new();
    let note = |report: &StepReport<_>, _: &mut ObservedStep<_>| {
        // A long run has any number of outcomes, which only the summary lists.
        if args.summary.is_some() {
            outcomes.extend(report.outcomes.iter().map(OutcomeRow::from));
        }
    };
    let limits = (optimizer::DEFAULT_POLICY, args.tiers.fast);
    let mut service = InterfaceService::new(note, optimizer, ready, limits);
    let mut run = prepared.begin(executor, Some(online), console)?;
    run.follow(FollowUntil::of(args.undo), &mut service)?;
    service.end();
    // Processes that run on, the program or its children, get their memory back on its original nodes.
    service.optimizer.undo(console);
    run.step.executor.undo(console);
    let done = service.done;
    let moves = *run.step.moves();
    let ended = run.finish()?;
    let said = moves_in_words(&moves, &done, &tiers);
    console.info(&ended.program.in_words("online", &tiers, &said));
    let figures = serde_json::json!({
        "actions": moves.actions(),
        "actions_requested": moves.requested,
        "actions_moved": moves.made,
        "outcomes": outcomes,
        "optimizations": done,
    });
    let figures = ("online", tiers.emulates(), figures);
    Ok(conclude(args, ended, figures, console))
}

/// The settings by which an online run decides.
fn online_config(observing: &Observing, tiers: &Tiers) -> OnlineConfig {
    let mut config = OnlineConfig::for_tiers(tiers.clone());
    // The counts of an instrumented program are accesses, not samples in time.
    if observing.source != [SourceKind::Instrumented] {
        config = config.sampled_every(recording::sample_interval(observing));
    }
    config
}

fn moves_in_words(moves: &MoveTotals, done: &[OptimizationSummary], tiers: &Tiers) -> String {
    let moves = outcomes::in_words(moves, tiers.emulates());
    match requested(done) {
        Some(more) => format!("{moves}; {more}"),
        None => moves,
    }
}
