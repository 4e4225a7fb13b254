//! `isotherm run --policy`, on an emulated machine and without `--optimize-after`, lets an epoch policy move pages while the program runs;
//! by `none` the program runs unobserved, so that the daemon moves its pages. `UNIT` serves `paged`, too.
//!
//! ```text
//! LiveRun --Batch, page tiers--> Observation --UnitStep--> PageRequestWriter --session file--> runtime
//! ```
//!
//! The step and the policies are the daemon's. All memory of the program's heap begins in the fast tier, in the order of
//! first touch, while that has room.

use std::process::ExitStatus;

use anyhow::{Result, bail};
use isotherm_abi::accesses::DEFAULT_PERIOD;
use isotherm_abi::config::Mover;
use isotherm_abi::session::SessionCounter;
use isotherm_act::configuration::Configuration;
use isotherm_act::dry_run::DryRun;
use isotherm_act::movement::page_requests::PageRequestWriter;
use isotherm_console::{Console, shell_quoting};
use isotherm_model::batch::Batch;
use isotherm_model::emulation::Emulation;
use isotherm_model::movement::NodeId;
use isotherm_model::outcome::Reason;
use isotherm_model::port::RangeExecutor;
use isotherm_model::source_kind::SourceKind;
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::tier_loads::TierLoads;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_pipeline::{Combine, EpochReport, StepLimits, TierDemand, UnitStep, UnitStepConfig};
use isotherm_policy::epoch::{LoadBalance, MoveCosts, is_first_come, of_run};
use isotherm_report::page_moves::{LastLoads, PageMoves};
use serde_json::json;

use super::oracle_future::OracleFuture;
use super::prepared_run::{PreparedRun, conclude};
use super::results::write_summary;
use crate::cli::{Observing, RunArgs};
use crate::launch::{self, EndedProgram};
use crate::observed_run::ObservedStep;
use crate::recording;
use crate::run_policies::{self, NONE, ORACLE};
use crate::session_summary::recorded_sites;
use crate::tiers_choice::{self, ShareBase};

/// The tiers of the emulated machine, as the step and the requests number them.
const FAST: NodeId = NodeId(0);
const SLOW: NodeId = NodeId(1);

/// Size of a unit where none is given: the daemon's.
pub(super) const UNIT: Bytes = Bytes(2 << 20);

/// Size of a page that has a tier.
const PAGE: Bytes = Bytes(isotherm_abi::page_tiers::PAGE_BYTES);

/// Bytes of a cache line: an accessed page that a scan finds stands for a read of each of its lines.
const LINE: u64 = 64;

/// The moves of one run.
struct PagePolicy {
    step: UnitStep,
    executor: Box<dyn RangeExecutor>,
    unit: Bytes,
    /// The accesses to come, for the oracle.
    future: Option<OracleFuture>,
    /// The bytes asked of each tier, for a policy that balances the tiers.
    demand: Option<TierDemand>,
    moves: PageMoves,
}

/// Checks that the oracle, and no other policy, has a profile to take the future from.
fn check_future(args: &RunArgs, policy: &str) -> Result<()> {
    match (policy == ORACLE, &args.profile) {
        (true, None) => bail!(
            "--policy oracle: decides by the accesses to come, which only an earlier run of the program tells; make one with \
             `isotherm record -o app.iso -- {}` and add --profile app.iso",
            shell_quoting::line(&shell_quoting::as_text(&args.program.words))
        ),
        (false, Some(_)) => bail!(
            "--profile: is the future of --policy oracle, and --policy {policy} decides by the past; leave it out"
        ),
        _ => Ok(()),
    }
}

/// The bytes asked of each tier, by which a policy that balances the tiers decides; `None` for another policy.
///
/// # Errors
/// The bytes are not counted on these tiers, or nothing limits them, or no page is to move.
fn demand(args: &RunArgs, policy: &str, tiers: &Tiers) -> Result<Option<TierDemand>> {
    if policy != LoadBalance::NAME {
        return Ok(None);
    }
    if args.dry_run {
        bail!(
            "--policy {policy}: each move answers what the move before it changed, and a dry run changes nothing; leave out --dry-run"
        );
    }
    match tiers.loaded_latencies() {
        Some(latencies) if tiers.emulates() => Ok(Some(TierDemand::new(latencies))),
        _ => bail!(
            "--policy {policy}: compares the latencies of the tiers under load, by the bytes that each serves, and only a machine that is \
             emulated by time with limited bandwidths counts these; add --tiers emulated:cxl,limit:5GiB/s,fast-limit:10GiB/s"
        ),
    }
}

/// Runs the program under this policy.
///
/// # Errors
/// The policy needs a future or loads of the tiers that are not known, the tiers are not emulated, and as a run without a policy.
pub(super) fn run(args: &RunArgs, policy: &str, console: Console) -> Result<ExitStatus> {
    run_policies::check(policy)?;
    if args.mover == Mover::Staged || args.undo {
        bail!(
            "--policy {policy}: moves pages of the emulated machine; leave out --mover and --undo, which are for memory nodes"
        );
    }
    check_future(args, policy)?;
    let tiers = tiers_choice::for_run(&args.tiers, ShareBase::Machine, console)?;
    let demand = demand(args, policy, &tiers)?;
    if !tiers.emulates() {
        bail!(
            "--policy {policy}: moves pages of the emulated machine, and these tiers are memory nodes; add --tiers emulated, \
             or let `isotherm daemon` move pages between nodes"
        );
    }
    if policy == NONE {
        return unobserved(args, &tiers, console);
    }
    observed(args, (policy, demand), &tiers, console)
}

/// Runs the program without any observation, for the daemon.
fn unobserved(args: &RunArgs, tiers: &Tiers, console: Console) -> Result<ExitStatus> {
    if args.output.is_some() || args.dry_run || args.unit.is_some() {
        bail!(
            "--policy none: observes and moves nothing; leave out --output, --dry-run and --unit"
        );
    }
    let configuration =
        Configuration::online(args.observing.depth, tiers.clone(), TierIndex::FASTEST);
    let ended = launch::run(&args.program.words, &configuration)?;
    launch::warn_of(&ended.summary, console);
    console.info(&ended.summary.took("unobserved", ended.took, tiers));
    let moves = PageMoves {
        policy: NONE.to_owned(),
        ..PageMoves::default()
    };
    let sites = recorded_sites(&ended.session).len();
    let figures = ("policy", true, json!({ "moves": moves }));
    let kept = write_summary(args, (&ended, sites), figures, console);
    Ok(launch::ended(ended.status, [kept], console))
}

fn observed(
    args: &RunArgs,
    (policy, demand): (&str, Option<TierDemand>),
    tiers: &Tiers,
    console: Console,
) -> Result<ExitStatus> {
    let prepared = PreparedRun::new(args, tiers, &[], console)?;
    let future = args.profile.as_deref();
    let future = future.map(|path| OracleFuture::read(path, &args.program.words, console));
    let mut policy = PagePolicy {
        future: future.transpose()?,
        demand,
        ..PagePolicy::new(args, policy, &prepared.observing, tiers, &prepared.ready)
    };
    // The run's own step moves nothing: the policy has a step of its own.
    let run = prepared.begin(DryRun, None, console)?;
    let ended = run.complete(|report, step| policy.decide(step, &report.batch))?;
    let program = &ended.program;
    let moves = policy.moves_of(program);
    console.info(&program.in_words(&moves.policy, tiers, &moves.in_words()));
    let figures = ("policy", true, json!({ "moves": moves }));
    Ok(conclude(args, ended, figures, console))
}

impl PagePolicy {
    fn new(
        args: &RunArgs,
        policy: &str,
        observing: &Observing,
        tiers: &Tiers,
        ready: &launch::Ready,
    ) -> Self {
        let unit = args.unit.unwrap_or(UNIT);
        let costs = costs(tiers, observing, unit);
        let name = policy.to_owned();
        let make = move || of_run(&name, costs);
        let config = UnitStepConfig {
            unit,
            page: PAGE,
            fast_nodes: vec![FAST],
            slow_nodes: vec![SLOW],
            combine: Combine::Sum,
            splits: false,
            modelled: args.dry_run,
        };
        let sessions = ready.session.path().to_owned();
        Self {
            step: UnitStep::new(config, Box::new(make)),
            // A policy that moves nothing leaves units where the machine put them: whole units, these may be more than fit.
            executor: match args.dry_run || is_first_come(policy) {
                true => Box::new(DryRun),
                false => Box::new(PageRequestWriter::new(sessions)),
            },
            unit,
            future: None,
            demand: None,
            moves: PageMoves {
                policy: policy.to_owned(),
                dry_run: args.dry_run,
                unit_bytes: unit.0,
                ..PageMoves::default()
            },
        }
    }

    /// Decides for the epoch that begins, unless no process has memory any more.
    fn decide(&mut self, run: &ObservedStep<DryRun>, batch: &Batch) {
        if let Some(future) = &mut self.future {
            future.follow(run.attribution().extents());
        }
        let loads = self.demand.as_mut().and_then(|it| it.loads(batch));
        self.step.set_loads(loads);
        if let Some(loads) = loads {
            self.moves.loads = Some(last_loads(loads));
        }
        let seen = run.observer.observation(batch, self.unit);
        if seen.residency.is_empty() {
            return;
        }
        if let Some(future) = &mut self.future {
            self.step.set_next_epoch(future.next(batch));
        }
        let limits = StepLimits {
            accesses_per_sample: 1,
            moves: Bytes(u64::MAX),
            groups: std::collections::BTreeMap::new(),
            fair_start: 0,
        };
        let report = self.step.run(&seen, &limits, &mut self.executor);
        self.add(&report);
    }

    fn add(&mut self, report: &EpochReport) {
        let moves = &mut self.moves;
        let units = |bytes: Bytes| bytes.0 / moves.unit_bytes;
        let waiting = report.moves.not_moved.get(&Reason::OutOfTime.to_string());
        moves.epochs += 1;
        moves.units_promoted += units(report.moves.promoted);
        moves.units_demoted += units(report.moves.demoted);
        moves.units_waiting += waiting.map_or(0, |bytes| units(*bytes));
        if report.resident.0 >= moves.resident_bytes {
            moves.resident_bytes = report.resident.0;
            moves.fast_bytes = report.fast.0;
        }
        moves.capacity_bytes = report.capacity.0;
        moves.accesses += report.accesses;
        moves.accesses_fast += report.accesses_fast;
    }

    /// The moves, with the runtime's own counts of a program that ended.
    fn moves_of(self, program: &EndedProgram) -> PageMoves {
        let counter = |counter| program.summary.counter(counter);
        PageMoves {
            future: self.future.map(|future| future.found),
            pages_promoted: counter(SessionCounter::PagesPromoted),
            pages_demoted: counter(SessionCounter::PagesDemoted),
            delay_ns: counter(SessionCounter::DelayNanos),
            ..self.moves
        }
    }
}

/// The loads of an epoch in whole numbers.
fn last_loads(loads: TierLoads) -> LastLoads {
    let [fast, slow] = loads.latencies_ns;
    LastLoads {
        fast_latency_ns: fast.round() as u64,
        slow_latency_ns: slow.round() as u64,
        demand_bytes_per_second: loads.demand,
    }
}

/// The costs by which a policy weighs moves: the time that a hit in fast memory saves the program, and the time to move a unit.
fn costs(tiers: &Tiers, observing: &Observing, unit: Bytes) -> MoveCosts {
    let Some(emulation) = tiers.emulation() else {
        return MoveCosts::TYPICAL;
    };
    let saved = match emulation {
        // The first access in a period pays, and a sampled page is a hot one.
        Emulation::PageTrap(costs) => costs.access.saturating_add(costs.hot),
        Emulation::Time(costs) => {
            let more = costs.latency.get() - 1.0;
            Nanos((hit_in_fast_memory(observing).0 as f64 * more) as u64)
        }
    };
    MoveCosts {
        saved,
        moved_page: Nanos(
            emulation
                .migrate()
                .0
                .saturating_mul((unit.0 / PAGE.0).max(1)),
        ),
    }
}

/// Time that the program waits for fast memory where a source counts a hit.
fn hit_in_fast_memory(observing: &Observing) -> Nanos {
    /// A load from fast memory, as `isotherm tiers` measures it on most machines.
    const LOAD: u64 = 90;
    let loads = match observing.source.first() {
        // A sample stands for the time between two samples.
        Some(SourceKind::Timer) | None => return recording::sample_interval(observing),
        Some(SourceKind::Instrumented) => observing.period.unwrap_or(DEFAULT_PERIOD),
        Some(source) if source.is_hardware() => observing.period.unwrap_or(1),
        // An accessed page stands for a read of each of its lines.
        Some(_) => PAGE.0 / LINE,
    };
    Nanos(loads.saturating_mul(LOAD))
}
