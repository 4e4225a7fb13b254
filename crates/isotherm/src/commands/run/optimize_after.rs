//! `isotherm run --optimize-after` profiles the beginning of a run, moves its data once, and lets the program go on unsampled. A program
//! may request profiles and moves (docs/interface.md): from its first request on, the run samples and moves only as requested.
//!
//! ```text
//! first touch, samples ... | choose, move | the program goes on, unsampled
//!                          ^ 2s, or first-iteration
//! ```

use std::process::ExitStatus;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use isotherm_abi::config::Mover;
use isotherm_act::dry_run::DryRun;
use isotherm_console::Console;
use isotherm_model::batch::ObservedAccess;
use isotherm_model::port::Executor;
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Capacity, Nanos};
use isotherm_pipeline::{AccessCounts, Settling, StepReport, at_highest_rate};
use isotherm_profile::Error;
use isotherm_report::optimizations::OptimizationSummary;

use super::prepared_run::{PreparedRun, conclude};
use super::results::requested;
use crate::cli::RunArgs;
use crate::interface_service::InterfaceService;
use crate::launch::EndedProgram;
use crate::observed_run::{Attention, FollowUntil, Follower, ObservedStep};
use crate::optimize_after::OptimizeAfter;
use crate::optimizer::{self, OptimizationLimits, Optimizer};
use crate::profile_rate::{self, EXPECTED};
use crate::tiers_choice::{self, ShareBase};

/// The first window of the comparison for [`OptimizeAfter::FirstIteration`].
const FIRST_WINDOW: Nanos = Nanos(100_000_000);

/// When the rate of the samples is first chosen by the program's data.
const FIRST_RATE: Duration = Duration::from_millis(100);

/// Runs the program.
///
/// # Errors
/// The policy is none of chunks, the tiers cannot be used, and as a run without a policy.
pub(super) fn run(args: &RunArgs, after: OptimizeAfter, console: Console) -> Result<ExitStatus> {
    let policy = args.policy.as_deref().unwrap_or(optimizer::DEFAULT_POLICY);
    optimizer::check_policy(policy)?;
    let tiers = tiers_choice::for_run(&args.tiers, ShareBase::DataOnceKnown, console)?;
    check(args, &tiers)?;
    let prepared = PreparedRun::new(args, &tiers, profile_rate::others(args), console)?;
    let ready = &prepared.ready;
    let optimizer = Optimizer::new(args, ready, &tiers, console);
    let once = OptimizeOnce::new(optimizer, after, (policy, args.tiers.fast), console);
    let on_request = Optimizer::new(args, ready, &tiers, console);
    let mut service = InterfaceService::new(once, on_request, ready, (policy, args.tiers.fast));
    let mut run = prepared.begin(DryRun, None, console)?;
    run.follow(FollowUntil::of(args.undo), &mut service)?;
    service.end();
    service.optimizer.undo(console);
    service.inner.optimizer.undo(console);
    let ended = run.finish()?;
    say(&ended.program, &service, &tiers, console);
    let once = service.inner.state.made().into_iter();
    let all: Vec<_> = once.chain(&service.done).collect();
    let figures = serde_json::json!({ "optimizations": all });
    let figures = ("optimize", tiers.emulates(), figures);
    Ok(conclude(args, ended, figures, console))
}

/// Refuses what cannot be optimized.
fn check(args: &RunArgs, tiers: &Tiers) -> Result<()> {
    if tiers.emulates() && (args.mover == Mover::Staged || args.undo) {
        bail!(
            "--mover and --undo are for memory nodes; the emulated pair has its own mover, which ends with the program"
        );
    }
    if tiers.all().len() < 2 {
        bail!("--optimize-after: these tiers are one kind of memory, so there is nothing to move");
    }
    Ok(())
}

/// The optimization of a run.
enum State {
    Awaited,
    Made(Box<OptimizationSummary>),
    /// It could not be made, which was said.
    Failed,
}

impl State {
    const fn made(&self) -> Option<&OptimizationSummary> {
        match self {
            Self::Made(summary) => Some(&**summary),
            Self::Awaited | Self::Failed => None,
        }
    }
}

/// A run that is optimized once.
struct OptimizeOnce<'a> {
    optimizer: Optimizer,
    after: OptimizeAfter,
    policy: &'a str,
    fast: Option<Capacity>,
    counts: AccessCounts,
    settling: Settling,
    /// Time since the start at which the rate is chosen anew.
    next_rate: Duration,
    started: Instant,
    state: State,
    console: Console,
}

impl<'a> OptimizeOnce<'a> {
    fn new(
        optimizer: Optimizer,
        after: OptimizeAfter,
        (policy, fast): (&'a str, Option<Capacity>),
        console: Console,
    ) -> Self {
        Self {
            optimizer,
            after,
            policy,
            fast,
            counts: AccessCounts::default(),
            settling: Settling::new(FIRST_WINDOW.0),
            next_rate: FIRST_RATE,
            started: Instant::now(),
            state: State::Awaited,
            console,
        }
    }

    /// Time since the start at which the next decision is due.
    fn due(&self) -> Duration {
        Duration::from_nanos(match self.after {
            OptimizeAfter::Time(time) => time.0,
            OptimizeAfter::FirstIteration => self.settling.window_ends(),
        })
    }

    /// Chooses the rate for the data that is there now: soon after the start, and each time that the run's age has grown by half.
    fn choose_rate<E: Executor>(&mut self, step: &mut ObservedStep<E>) {
        let time = match self.after {
            OptimizeAfter::Time(time) => time,
            OptimizeAfter::FirstIteration => EXPECTED,
        };
        let processes = step.observer.living().collect();
        profile_rate::choose(step, &processes, time);
        let now = self.started.elapsed();
        self.next_rate = (now + now / 2).max(FIRST_RATE);
    }

    /// Adds the samples of an epoch; true if they are enough.
    fn add(&mut self, accesses: &[ObservedAccess]) -> bool {
        let now = self.started.elapsed();
        match self.after {
            OptimizeAfter::Time(_) => {
                self.counts.add(accesses);
                now >= self.due()
            }
            OptimizeAfter::FirstIteration => {
                let is_settled = self.settling.add(accesses, now.as_nanos() as u64);
                if is_settled {
                    self.counts = self.settling.last_window().clone();
                }
                is_settled
            }
        }
    }
}

impl<E: Executor> Follower<E> for OptimizeOnce<'_> {
    fn attend(&mut self, step: &mut ObservedStep<E>) -> Attention {
        if !matches!(self.state, State::Awaited) {
            return Attention::default();
        }
        let due = match step.observer.timer_rates() {
            [_, _, ..] => self.due().min(self.next_rate),
            _ => self.due(),
        };
        let left = due.saturating_sub(self.started.elapsed());
        Attention {
            within: left.min(Attention::default().within),
            ends_epoch: left.is_zero(),
        }
    }

    fn note(&mut self, report: &StepReport<Error>, step: &mut ObservedStep<E>) {
        if !matches!(self.state, State::Awaited) {
            return;
        }
        if !self.add(&at_highest_rate(&report.batch.accesses)) {
            return self.choose_rate(step);
        }
        let limits = OptimizationLimits {
            process: None,
            fast: self.fast,
            policy: self.policy,
        };
        let seen = (&step.observer, step.attribution());
        self.state = match self.optimizer.optimize(seen, &self.counts, limits) {
            Ok(done) => State::Made(Box::new(done.summary)),
            Err(error) => {
                self.console.warn(&format!("nothing is moved: {error:#}"));
                State::Failed
            }
        };
        step.observer.switch_sampling(false);
        self.counts = AccessCounts::default();
    }
}

/// The follower of such a run.
type Service<'a> = InterfaceService<'a, OptimizeOnce<'a>>;

fn say(program: &EndedProgram, service: &Service<'_>, tiers: &Tiers, console: Console) {
    let said = program.summary.took("optimized", program.took, tiers);
    if !program.summary.worked() {
        return console.info(&said);
    }
    let once = &service.inner;
    let made = once.state.made().map(OptimizationSummary::in_words);
    let done: Vec<String> = made.into_iter().chain(requested(&service.done)).collect();
    match once.state {
        _ if !done.is_empty() => console.info(&format!("{said}; {}", done.join("; "))),
        _ if service.is_used() => console.info(&format!(
            "{said}; the program asked for profiles and for no move"
        )),
        State::Failed => console.info(&said),
        _ => console.warn(&format!("{said}: {}", too_early(once.after))),
    }
}

/// Why nothing was chosen.
fn too_early(after: OptimizeAfter) -> String {
    match after {
        OptimizeAfter::Time(time) => {
            format!("the program ended before {time}, so nothing was moved; give a shorter time")
        }
        OptimizeAfter::FirstIteration => {
            "the program ended before its heat began to repeat, so nothing was moved; give a time, such as --optimize-after 1s"
                .to_owned()
        }
    }
}
