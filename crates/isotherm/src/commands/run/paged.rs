//! `isotherm run --tiers compressed` pages the cold memory of a program out to compressed memory, or to other swap, while the program runs:
//! as much as a stall budget allows (`--slowdown`), but for what is to stay (`--fast`); without a budget, all that is beyond `--fast`.
//!
//! ```text
//! LiveRun --accesses--+
//!                     +--> PagedObservation --PagedStep--> PageOut --process_madvise--> kernel
//! page tables --------+
//! ```
//!
//! Under a limit alone the kernel chooses what leaves, from a control group of the run's own, unless the step's order is seen to be better
//! ([`KernelOrder`]).
//!
//! The program needs no help for it: its pages come back when it touches them, whatever happens to this process.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use isotherm_abi::config::Mover;
use isotherm_act::dry_run::DryRun;
use isotherm_act::movement::limit::{Allowance, Limit};
use isotherm_act::movement::page_out::PageOut;
use isotherm_act::movement::page_out::run_group::RunGroup;
use isotherm_act::movement::remembered::Remembered;
use isotherm_act::movement::system::{DrySystem, Kernel};
use isotherm_console::Console;
use isotherm_model::batch::{Batch, ObservedAccess, Process};
use isotherm_model::paged::{PagedObservation, PagedUnit, RefaultCosts};
use isotherm_model::port::{Clock, RangeExecutor};
use isotherm_model::units::{Bytes, Capacity, Nanos};
use isotherm_model::watch::{Observation, Watched};
use isotherm_observe::clock::MachineClock;
use isotherm_observe::limited_groups::limited_groups;
use isotherm_observe::live::LiveRun;
use isotherm_observe::paged::PagedMemory;
use isotherm_pipeline::{PagedConfig, PagedLimits, PagedReport, PagedStep, SavingRule, StepReport};
use isotherm_policy::ProgramTime;
use isotherm_policy::epoch::{FIRST_COME, LoadBalance, MoveCosts, of_run};
use isotherm_profile::Error;
use isotherm_report::paged_run::PagedRun;

use super::kernel_order::KernelOrder;
use super::page_policy::UNIT;
use super::prepared_run::{PreparedRun, conclude};
use crate::cli::{Observing, RunArgs};
use crate::observed_run::{Attention, FollowUntil, Follower, ObservedStep};
use crate::run_policies::{self, NONE, ORACLE, TMO};

const PAGE: Bytes = Bytes(4096);
/// Share of the time that a run may lose where none is given.
const SLOWDOWN: f64 = 0.02;
/// Longest epoch: what a scan brought back waits for the end of one until it leaves again.
const LONGEST_EPOCH: Nanos = Nanos(50_000_000);
/// This process reads page tables for at most one part in this number of the time.
const READING: u64 = 20;
/// As [`READING`], while the kernel chooses what leaves: then page tables only tell how much is out.
const READING_FOR_KERNEL: u64 = 100;
/// Time between two looks within an epoch, and the longest time of what leaves after one.
const LOOK: Nanos = Nanos(10_000_000);
const LONGEST_SWEEP: Nanos = Nanos(20_000_000);

/// The moves of one run.
struct PagedPolicy {
    step: PagedStep,
    memory: PagedMemory,
    kernel: KernelOrder,
    /// True where what returned since the last scan is counted already, by the kernel's counts.
    is_counted: bool,
    /// The limit of what stays in memory, if one is given.
    fast: Option<Capacity>,
    console: Console,
    /// Whether the lack of room in swap has been said.
    has_warned: bool,
    /// Accesses and time since the last decision.
    accesses: Vec<ObservedAccess>,
    span: Nanos,
    /// When the next decision is due, and when the next sweep of what came back meanwhile.
    due: Nanos,
    look_due: Nanos,
    /// The time of the last look at the pages that the program waited for.
    looked: Nanos,
    epoch: Nanos,
    sums: PagedSums,
}

/// The sums of a run, in bytes times nanoseconds where a mean is made of them.
#[derive(Default)]
struct PagedSums {
    run: PagedRun,
    all: u128,
    present: u128,
    taken: u128,
    span: u128,
}

/// Runs the program.
///
/// # Errors
/// A flag is of another kind of run, the machine has no swap, its costs cannot be measured, and as a run without a plan.
pub(super) fn run(args: &RunArgs, console: Console) -> Result<ExitStatus> {
    check(args)?;
    let root = Path::new("/");
    let swap = isotherm_topology::swap(root);
    if swap.areas.is_empty() {
        bail!(
            "--tiers compressed: this machine has no swap; `isotherm tiers --make-compressed 2GiB` sets up compressed memory (needs root)"
        );
    }
    if !swap.is_compressed() {
        console.warn(
            "the swap of this machine is not compressed memory, so that pages go to a disk; `isotherm tiers` lists it",
        );
    }
    let measured = isotherm_topology::measure::page_out(root)
        .context("--tiers compressed: the costs of a page were not measured")?;
    let costs = RefaultCosts {
        out: measured.out,
        back: measured.back,
    };
    let prepared = PreparedRun::unplaced(args, LONGEST_EPOCH, console)?;
    let mut policy = PagedPolicy::new(args, &prepared.observing, costs, console);
    if policy.step.is_unlimited() && !args.dry_run {
        match RunGroup::make(root, prepared.ready.pid()) {
            Ok(group) => policy.kernel.begin(group),
            Err(error) => console.info(&format!("the kernel does not choose what leaves: {error}")),
        }
    }
    let mut run = prepared.begin(DryRun, None, console)?;
    run.follow(FollowUntil::End, &mut policy)?;
    // Descendants that run on get their memory back.
    if !args.dry_run {
        PageOut::new(Kernel::default()).execute(&policy.memory.ways_back());
    }
    let mut sums = policy.sums.finish();
    run.add_counts(sums.counts());
    let ended = run.finish()?;
    sums.took_ns = ended.program.took.0;
    let name = args.program.words.first().map(Path::new);
    let name = name.and_then(Path::file_name).unwrap_or_default();
    console.info(&sums.in_words(&name.to_string_lossy()));
    let figures = serde_json::json!({
        "placed": sums.left_bytes > 0,
        "memory_share": sums.memory_share(),
        "saved_bytes": sums.saved_bytes(),
        "slowdown": sums.slowdown(),
        "paged": sums,
    });
    Ok(conclude(args, ended, ("paged", false, figures), console))
}

/// Refuses flags of other kinds of run.
fn check(args: &RunArgs) -> Result<()> {
    if args.mover == Mover::Staged || args.undo {
        bail!(
            "--tiers compressed: pages come back when they are touched; leave out --mover and --undo, which are for memory nodes"
        );
    }
    if args.optimize_after.is_some() || args.remap.is_some() {
        bail!(
            "--tiers compressed: moves pages while the program runs; leave out --optimize-after and --remap"
        );
    }
    if let Some(policy) = args.policy.as_ref().filter(|name| *name != TMO) {
        run_policies::check(policy)?;
        if [NONE, ORACLE, FIRST_COME, LoadBalance::NAME].contains(&policy.as_str()) {
            bail!(
                "--policy {policy}: pages nothing out, or needs a future or the loads of two tiers; name payback, history or tmo, or leave it out"
            );
        }
    }
    if args.policy.as_deref() == Some(TMO) && args.slowdown.is_some_and(|share| share >= 1.0) {
        bail!("--policy {TMO}: needs a budget; leave out --slowdown 100%");
    }
    if args.tiers.fast.is_none() && args.slowdown.is_some_and(|share| share >= 1.0) {
        bail!("--slowdown 100%: all memory might leave; add --fast with what stays");
    }
    Ok(())
}

impl<E> Follower<E> for PagedPolicy {
    fn attend(&mut self, step: &mut ObservedStep<E>) -> Attention {
        if self.sums.run.dry_run {
            return Attention::default();
        }
        let ends_epoch = self.follow_progress();
        if self.kernel.chooses() {
            self.reclaim();
            return Attention {
                within: Duration::from_nanos(LOOK.0),
                ends_epoch: false,
            };
        }
        let has_limit = self.step.has_limit(&self.limits(&[]));
        match has_limit {
            true => self.sweep(&step.observer),
            false => self.bring_back_late(),
        }
        // The program waits for these units now. Under a limit the next epoch brings them back, when it knows their room.
        let within = match self.step.has_late_units() && !has_limit {
            true => Nanos::ZERO,
            false => LOOK,
        };
        Attention {
            within: Duration::from_nanos(within.0),
            ends_epoch,
        }
    }

    fn note(&mut self, report: &StepReport<Error>, step: &mut ObservedStep<E>) {
        self.decide(&step.observer, &report.batch);
    }
}

impl PagedPolicy {
    fn new(args: &RunArgs, observing: &Observing, costs: RefaultCosts, console: Console) -> Self {
        let unit = args.unit.unwrap_or(UNIT);
        let slowdown = args.slowdown.unwrap_or(SLOWDOWN);
        let config = PagedConfig {
            unit,
            page: PAGE,
            costs,
            slowdown,
            rule: match args.policy.as_deref() {
                Some(TMO) => SavingRule::Pressure,
                _ => SavingRule::Probes,
            },
            modelled: args.dry_run,
        };
        let policy = args.policy.clone().unwrap_or_else(|| "payback".to_owned());
        let move_costs = MoveCosts::of_refaults(costs, unit);
        let name = policy.clone();
        let make = move || of_run(&name, move_costs);
        Self {
            step: PagedStep::new(config, Box::new(make)),
            memory: PagedMemory::new(Path::new("/"), unit),
            kernel: KernelOrder::new(MachineClock, console),
            is_counted: false,
            fast: args.tiers.fast,
            console,
            has_warned: false,
            accesses: Vec::new(),
            span: Nanos::ZERO,
            due: Nanos::ZERO,
            look_due: Nanos::ZERO,
            looked: MachineClock.now(),
            epoch: observing.epoch,
            sums: PagedSums {
                run: PagedRun {
                    policy,
                    dry_run: args.dry_run,
                    unit_bytes: unit.0,
                    back_ns: costs.back.0,
                    slowdown_budget: slowdown,
                    ..PagedRun::default()
                },
                ..PagedSums::default()
            },
        }
    }

    /// Decides for the epoch that begins, unless reading page tables takes too much of the time.
    fn decide(&mut self, observer: &LiveRun, batch: &Batch) {
        self.accesses.extend_from_slice(&batch.accesses);
        self.span = self.span.saturating_add(batch.span);
        let begun = MachineClock.now();
        if begun < self.due {
            return;
        }
        let seen = self.observe(observer, batch);
        if seen.units.is_empty() {
            return;
        }
        let reading = MachineClock.now().saturating_sub(begun);
        self.kernel.check(&seen.units);
        if self.kernel.chooses() {
            // The kernel's counts tell what returned, of all the time between two scans.
            let report = PagedReport {
                returned: Bytes::ZERO,
                stalled: Nanos::ZERO,
                ..self.step.watch(&seen)
            };
            self.sums.add(&report, seen.seen.span);
            let rest = Nanos(reading.0.saturating_mul(READING_FOR_KERNEL));
            self.due = begun.saturating_add(rest);
            return;
        }
        let limits = self.limits(&seen.units);
        let mut moves = Remembered::new(self.executor(Nanos(self.epoch.0 / 10 * 9)));
        let mut report = self.step.run(&seen, &limits, &mut moves);
        if std::mem::take(&mut self.is_counted) {
            (report.returned, report.stalled) = (Bytes::ZERO, Nanos::ZERO);
        }
        self.memory.moved(moves.outcomes());
        self.sums.add(&report, seen.seen.span);
        if report.lacks_swap && !self.has_warned {
            let swap = isotherm_topology::swap(Path::new("/"));
            self.console.warn(swap.lack_of_room());
            self.has_warned = true;
        }
        // A trial of this order is short: it must decide more than once.
        let reading = match self.kernel.is_trial() {
            true => Nanos::ZERO,
            false => reading,
        };
        let rest = reading.0.saturating_mul(READING);
        self.due = begun.saturating_add(Nanos(rest));
        self.look_due = MachineClock.now().saturating_add(LOOK.max(Nanos(rest)));
    }

    fn limits(&self, units: &[PagedUnit]) -> PagedLimits {
        let all = units.iter().map(PagedUnit::all).sum();
        PagedLimits {
            keep: self.fast.map_or(Bytes::ZERO, |fast| fast.of(all)),
            most: Bytes(u64::MAX),
            moves: Bytes(u64::MAX),
            groups: BTreeMap::new(),
            fair_start: 0,
        }
    }

    /// Measures the progress of the program between two epochs. True if it waits for such a share of its time that the next decision must
    /// not wait.
    fn follow_progress(&mut self) -> bool {
        let now = MachineClock.now();
        let span = now.saturating_sub(self.looked);
        if span < LOOK {
            return false;
        }
        self.looked = now;
        let progress = self.memory.progress();
        let waited = Nanos(progress.awaited_pages.saturating_mul(self.sums.run.back_ns));
        if self.kernel.chooses() {
            self.sums.run.returned_bytes += progress.awaited_pages.saturating_mul(PAGE.0);
            self.sums.run.stalled_ns += waited.0;
            self.is_counted = true;
        }
        let time = ProgramTime {
            span,
            worked: progress.worked,
            waited,
        };
        if self.kernel.is_possible() && self.kernel.follow(time) {
            self.due = now;
        }
        now >= self.due && self.step.is_change(span, waited)
    }

    /// Between two epochs: has the kernel reclaim what exceeds the limit.
    fn reclaim(&mut self) {
        if let Some(fast) = self.fast {
            let left = self.kernel.reclaim(fast, LONGEST_SWEEP);
            self.sums.run.left_bytes += left.0;
            self.sums.run.kernel_reclaimed_bytes += left.0;
        }
    }

    /// Between two epochs: what a scan brought back leaves again before the scan has brought back much more.
    fn sweep(&mut self, observer: &LiveRun) {
        let begun = MachineClock.now();
        if begun < self.look_due {
            return;
        }
        let mut units = Vec::new();
        for process in observer.living() {
            // A process that ends meanwhile has no memory.
            units.extend(self.memory.look(process).unwrap_or_default());
        }
        let reading = MachineClock.now().saturating_sub(begun);
        let limits = self.limits(&units);
        let mut moves = Remembered::new(self.executor(LONGEST_SWEEP));
        let left = self.step.sweep(&units, &limits, &mut moves);
        self.memory.moved(moves.outcomes());
        self.sums.run.left_bytes += left.0;
        let rest = Nanos(reading.0.saturating_mul(READING));
        self.look_due = MachineClock.now().saturating_add(LOOK.max(rest));
    }

    /// Between two epochs: brings back more of what a change of phase needs. The next decision waits for page tables to be read, and the
    /// program would bring back the rest a page at a time.
    fn bring_back_late(&mut self) {
        if !self.step.has_late_units() {
            return;
        }
        let mut moves = Remembered::new(self.executor(LONGEST_SWEEP));
        let came = self.step.bring_back_late(&mut moves);
        self.memory.moved(moves.outcomes());
        self.sums.run.brought_back_bytes += came.0;
    }

    fn observe(&mut self, observer: &LiveRun, batch: &Batch) -> PagedObservation {
        let living: Vec<Process> = observer.living().collect();
        let units = self.memory.scan(living.iter().copied());
        let watched = |process| Watched {
            process,
            name: String::new(),
            control_group: String::new(),
            warning: String::new(),
        };
        PagedObservation {
            seen: Observation {
                epoch: batch.epoch,
                span: std::mem::take(&mut self.span),
                accesses: std::mem::take(&mut self.accesses),
                sources: batch.sources.clone(),
                processes: living.into_iter().map(watched).collect(),
                ..Observation::default()
            },
            units,
            stalled: self.memory.stalled(),
            groups: limited_groups(Path::new("/"), observer.living()),
        }
    }

    /// An executor that begins no move later than this. It is not kept for the next one, because it holds a pidfd of each process.
    fn executor(&self, within: Nanos) -> Box<dyn RangeExecutor> {
        if self.sums.run.dry_run {
            let console = self.console;
            let say =
                move |call: std::fmt::Arguments<'_>| console.info(&format!("would call {call}"));
            return Box::new(PageOut::new(DrySystem::new(Kernel::default(), say)));
        }
        let kernel = PageOut::new(Kernel::default());
        Box::new(Limit::new(kernel, MachineClock, Allowance::UNLIMITED).within(within))
    }
}

impl PagedSums {
    fn add(&mut self, report: &PagedReport, span: Nanos) {
        let swap = isotherm_topology::swap(Path::new("/"));
        let taken = swap.taken_by(report.out).0;
        let run = &mut self.run;
        run.epochs += 1;
        run.left_bytes += report.left.0;
        run.returned_bytes += report.returned.0;
        run.brought_back_bytes += report.brought_back.0;
        run.mistakes += report.mistakes;
        run.stalled_ns += report.stalled.0;
        if report.out.0 > run.most_out_bytes {
            run.most_out_bytes = report.out.0;
            run.most_out_taken_bytes = taken;
        }
        for (why, bytes) in &report.units.moves.not_moved {
            let most = run.not_moved.entry(why.clone()).or_default();
            *most = (*most).max(bytes.0);
        }
        let span = u128::from(span.0);
        self.span += span;
        self.all += u128::from(report.present.0.saturating_add(report.out.0)) * span;
        self.present += u128::from(report.present.0) * span;
        self.taken += u128::from(report.present.0.saturating_add(taken)) * span;
    }

    /// The means; the time of the run is not known yet.
    fn finish(mut self) -> PagedRun {
        let mean = |sum: u128| u64::try_from(sum / self.span.max(1)).unwrap_or(u64::MAX);
        self.run.mean_bytes = mean(self.all);
        self.run.mean_present_bytes = mean(self.present);
        self.run.mean_taken_bytes = mean(self.taken);
        self.run
    }
}
