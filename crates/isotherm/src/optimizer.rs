//! Optimizes a running program once or at its request: chooses among its living data by the samples so far, and moves it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use isotherm_abi::interface::InterfaceHint;
use isotherm_console::Console;
use isotherm_model::batch::{AllocatedObject, Process};
use isotherm_model::movement::{AddressRange, NodeId};
use isotherm_model::stay::{StayReason, StayedBytes};
use isotherm_model::tier::{TierKind, Tiers};
use isotherm_model::units::{Bytes, Capacity};
use isotherm_model::watch::ResidentRun;
use isotherm_observe::live::{LiveRun, ResidentRuns};
use isotherm_observe::watch::memory;
use isotherm_pipeline::{
    AccessCounts, Attribution, ChunkChoice, HeatHint, HeatHints, Optimization, OptimizationInput,
    ProcessRange, bytes_in_tier, optimize,
};
use isotherm_policy::{ATMEM, chunk_parameters_from_text, policy_from_text};
use isotherm_report::optimizations::OptimizationSummary;
use isotherm_session::OpenFiles;

use crate::chunk_plan;
use crate::cli::RunArgs;
use crate::launch::Ready;
use crate::range_mover::{MovedBytes, RangeMover};

/// What an optimization may use, and for which process it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptimizationLimits<'a> {
    /// The process; all of the program where none is named.
    pub process: Option<Process>,
    /// Most bytes of fast memory, or most of it as a share of the data.
    pub fast: Option<Capacity>,
    /// The policy, as in `isotherm plan --policy`.
    pub policy: &'a str,
}

/// Chooses and moves.
pub(crate) struct Optimizer {
    tiers: Tiers,
    mover: RangeMover,
    files: OpenFiles,
    dry_run: bool,
    started: Instant,
}

/// The policy where none is named.
pub(crate) const DEFAULT_POLICY: &str = ATMEM;

/// Checks the text of a policy.
///
/// # Errors
/// It names none, or has a bad parameter.
pub(crate) fn check_policy(text: &str) -> Result<()> {
    choice(text, 1).map(drop)
}

/// The choice for a text; `period` is what one sample stands for.
fn choice(text: &str, period: u64) -> Result<ChunkChoice> {
    let choice = match chunk_plan::is_named(text) {
        true => {
            ChunkChoice::Selection(chunk_parameters_from_text(text, period).context("--policy")?)
        }
        false => {
            let policy = policy_from_text(text).context("--policy")?;
            if policy.balances() {
                bail!(
                    "--policy {text}: a run does not measure the bandwidth of its sites; plan by it from a profile: isotherm plan --policy {text}"
                );
            }
            ChunkChoice::Policy(policy)
        }
    };
    Ok(choice)
}

impl Optimizer {
    /// For a program that is held before its start.
    pub(crate) fn new(args: &RunArgs, ready: &Ready, tiers: &Tiers, console: Console) -> Self {
        let sessions = ready.session.path().to_owned();
        Self {
            tiers: tiers.clone(),
            mover: RangeMover::new(args, sessions.clone(), tiers, console),
            files: OpenFiles::new(sessions),
            dry_run: args.dry_run,
            started: Instant::now(),
        }
    }

    /// Chooses by these counts, and moves. Where memory that was first touched meanwhile took the room of what was to enter, it is
    /// chosen and moved once more.
    ///
    /// # Errors
    /// The policy's text is no policy.
    pub(crate) fn optimize(
        &mut self,
        seen: (&LiveRun, &Attribution),
        counts: &AccessCounts,
        limits: OptimizationLimits<'_>,
    ) -> Result<OptimizationSummary> {
        let first = self.pass(seen, counts, limits)?;
        if first.failed_bytes == 0 {
            return Ok(first);
        }
        let second = self.pass(seen, counts, limits)?;
        Ok(OptimizationSummary {
            placed_bytes: first.placed_bytes,
            promoted_bytes: first.promoted_bytes + second.promoted_bytes,
            demoted_bytes: first.demoted_bytes + second.demoted_bytes,
            at_ns: first.at_ns,
            selection_ns: first.selection_ns + second.selection_ns,
            migration_ns: first.migration_ns + second.migration_ns,
            ..second
        })
    }

    fn pass(
        &mut self,
        (observer, attribution): (&LiveRun, &Attribution),
        counts: &AccessCounts,
        limits: OptimizationLimits<'_>,
    ) -> Result<OptimizationSummary> {
        let began = Instant::now();
        let before = observer.resident_runs(&self.fast_nodes());
        let is_meant = |process: &Process| limits.process.is_none_or(|only| only == *process);
        let (own, others): (Runs, Runs) = before
            .runs
            .clone()
            .into_iter()
            .partition(|(process, _)| is_meant(process));
        let capacity = self.capacity(&before, (&own, &others), limits.fast);
        let objects: Vec<AllocatedObject> = attribution.objects().collect();
        let choice = choice(limits.policy, counts.period())?;
        let found = optimize(
            &OptimizationInput {
                objects: &objects,
                extents: attribution.extents(),
                resident: &own,
                counts,
                hints: &self.hints(own.keys()),
                capacity,
            },
            &choice,
        )?;
        let chosen = Instant::now();
        let moved = self.carry_out(&found, observer);
        let nanos = |from: Instant, to: Instant| (to - from).as_nanos() as u64;
        let figures = found.figures;
        let mut stayed = figures.stayed;
        stayed += moved.promoted.stayed;
        stayed += moved.demoted.stayed;
        Ok(OptimizationSummary {
            policy: limits.policy.to_owned(),
            dry_run: self.dry_run,
            process: limits.process.map(|process| process.pid),
            at_ns: nanos(self.started, began),
            samples: figures.samples,
            sampling_hz: observer.timer_hz(),
            regions: figures.regions,
            capacity_bytes: capacity.0,
            selected_bytes: figures.selected.0,
            placed_bytes: figures.placed.0,
            promoted_bytes: moved.promoted.moved.0,
            demoted_bytes: moved.demoted.moved.0,
            failed_bytes: stayed.failed().0,
            stayed_bytes: stayed,
            resident_bytes: bytes(&moved.after, |_| true).0,
            fast_bytes: bytes(&moved.after, |run| run.is_fast).0,
            selection_ns: nanos(began, chosen),
            migration_ns: nanos(chosen, moved.at),
        })
    }

    fn carry_out(&mut self, found: &Optimization, observer: &LiveRun) -> Moves {
        // The demotions make the room.
        let demoted = self.mover.move_to(&found.demotions, false);
        let promoted = self.mover.move_to(&found.promotions, true);
        let at = Instant::now();
        let after = observer.resident_runs(&self.fast_nodes());
        let tier = self.tiers.all()[0].capacity;
        let capacity = after.fast_capacity.map_or(tier, |most| most.min(tier));
        let after = after.runs;
        let result = |known: Option<MovedBytes>, ranges: &[ProcessRange], to_fast: bool| {
            known.unwrap_or_else(|| seen(ranges, &after, to_fast.then_some(capacity)))
        };
        Moves {
            demoted: result(demoted, &found.demotions, false),
            promoted: result(promoted, &found.promotions, true),
            at,
            after,
        }
    }

    /// What these processes say of the heat of their memory.
    fn hints<'p>(&mut self, processes: impl Iterator<Item = &'p Process>) -> HeatHints {
        let mut hints = HeatHints::default();
        for process in processes {
            // The file of a process that has ended may be gone.
            let file = self.files.of(*process).ok();
            let said = file.and_then(|file| file.read_hints().ok());
            for said in said.into_iter().flatten() {
                let hint = match said.hint {
                    InterfaceHint::Hot => HeatHint::Hot,
                    InterfaceHint::Cold => HeatHint::Cold,
                    InterfaceHint::Streaming => HeatHint::Streaming,
                    InterfaceHint::Unknown => continue,
                };
                let range = AddressRange {
                    start: said.address,
                    bytes: Bytes(said.bytes),
                };
                hints.add(*process, range, hint);
            }
        }
        hints
    }

    /// Takes moves between nodes back, where the flags say so.
    pub(crate) fn undo(&mut self, console: Console) {
        self.mover.undo(console);
    }

    fn fast_nodes(&self) -> BTreeSet<NodeId> {
        match &self.tiers.all()[0].kind {
            TierKind::Nodes(nodes) => nodes.iter().copied().map(NodeId).collect(),
            TierKind::EmulatedFast | TierKind::EmulatedSlow(_) => BTreeSet::new(),
        }
    }

    /// Fast memory that these processes may use: what the tier holds beside the other processes, and no more than the limit.
    fn capacity(
        &self,
        before: &ResidentRuns,
        (own, others): (&Runs, &Runs),
        limit: Option<Capacity>,
    ) -> Bytes {
        let tier = self.tiers.all()[0].capacity;
        let nodes = self.fast_nodes();
        let held = bytes(&before.runs, |run| run.is_fast);
        let machine = match before.fast_capacity {
            Some(capacity) => capacity.min(tier),
            None if nodes.is_empty() => tier,
            None => memory::capacity(Path::new("/"), &nodes, held, tier),
        };
        let left = machine.saturating_sub(bytes(others, |run| run.is_fast));
        let limit = limit.map(|limit| limit.of(bytes(own, |_| true)));
        limit.map_or(left, |limit| limit.min(left))
    }
}

/// Resident runs by process.
type Runs = BTreeMap<Process, Vec<ResidentRun>>;

/// The result of an optimization's moves.
struct Moves {
    demoted: MovedBytes,
    promoted: MovedBytes,
    /// When they ended.
    at: Instant,
    after: Runs,
}

/// The result of moves, by the tiers of the pages afterwards: to the fast tier of this capacity, or to the slow one.
fn seen(ranges: &[ProcessRange], after: &Runs, capacity: Option<Bytes>) -> MovedBytes {
    let to_fast = capacity.is_some();
    let moved = bytes_in_tier(ranges, after, to_fast);
    let left = bytes_in_tier(ranges, after, !to_fast);
    let fast = bytes(after, |run| run.is_fast);
    let is_full = capacity.is_some_and(|capacity| fast.saturating_add(left) > capacity);
    let reason = match is_full {
        true => StayReason::NoRoom,
        false => StayReason::InUse,
    };
    let mut stayed = StayedBytes::default();
    stayed.add(reason, left);
    let all: Bytes = ranges.iter().map(|(_, range)| range.bytes).sum();
    stayed.add(
        StayReason::NotTouched,
        all.saturating_sub(moved).saturating_sub(left),
    );
    MovedBytes { moved, stayed }
}

fn bytes(runs: &Runs, like: impl Fn(&ResidentRun) -> bool) -> Bytes {
    let runs = runs.values().flatten().filter(|run| like(run));
    runs.map(|run| run.range.bytes).sum()
}
