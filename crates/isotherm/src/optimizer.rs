//! `Optimizer` makes an optimization of a running program, for `isotherm run --optimize-after` or at the program's own request: it chooses
//! among the living data of the program by the samples so far and the program's hints, and moves data to fast memory and out of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use isotherm_abi::interface::InterfaceHint;
use isotherm_console::Console;
use isotherm_model::batch::{AllocatedObject, Process};
use isotherm_model::movement::{AddressRange, NodeId};
use isotherm_model::stay::{StayReason, StayedBytes, StayedRange};
use isotherm_model::tier::Tiers;
use isotherm_model::units::{Bytes, Capacity};
use isotherm_model::watch::ResidentRun;
use isotherm_observe::live::{LiveRun, ResidentRuns};
use isotherm_observe::watch::memory;
use isotherm_pipeline::{
    AccessCounts, Attribution, CarriedOut, ChunkChoice, HeatHint, HeatHints, ObjectOutcome,
    Optimization, OptimizationInput, ProcessRange, bytes_in_tier, object_outcomes, optimize,
    parts_in_tier,
};
use isotherm_policy::{ATMEM, chunk_parameters_from_text, policy_from_text};
use isotherm_report::optimizations::OptimizationSummary;
use isotherm_session::OpenFiles;

use crate::chunk_plan;
use crate::cli::RunArgs;
use crate::launch::Ready;
use crate::range_mover::{MovedRanges, RangeMover};

/// The limits of an optimization: its process, its fast memory and its policy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptimizationLimits<'a> {
    /// The process; all of the program where none is named.
    pub process: Option<Process>,
    /// Most bytes of fast memory, or most of it as a share of the data.
    pub fast: Option<Capacity>,
    /// The policy, as in `isotherm plan --policy`.
    pub policy: &'a str,
}

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
/// It names no policy, or has a bad parameter.
pub(crate) fn check_policy(text: &str) -> Result<()> {
    choice(text, 1).map(drop)
}

/// The choice that a policy's text names; `period` is the number of accesses that one sample stands for.
fn choice(text: &str, period: u64) -> Result<ChunkChoice> {
    let choice = match chunk_plan::is_named(text) {
        true => {
            ChunkChoice::Selection(chunk_parameters_from_text(text, period).context("--policy")?)
        }
        false => {
            let policy = policy_from_text(text).context("--policy")?;
            if policy.balances() {
                bail!(
                    "--policy {text}: a run does not measure the bandwidth of its sites; leave out --optimize-after to balance each epoch, or plan \
                     by it from a profile: isotherm plan --policy {text}"
                );
            }
            ChunkChoice::Policy(policy)
        }
    };
    Ok(choice)
}

impl Optimizer {
    /// The optimizer of a program that is held before its start.
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

    /// Chooses by these counts, and moves. Where some bytes failed to move, it chooses and moves once more: memory that was first touched
    /// meanwhile may have taken the room.
    ///
    /// # Errors
    /// The policy's text is no policy.
    pub(crate) fn optimize(
        &mut self,
        seen: (&LiveRun, &Attribution),
        counts: &AccessCounts,
        limits: OptimizationLimits<'_>,
    ) -> Result<Optimized> {
        let first = self.pass(seen, counts, limits)?;
        let done = match first.summary.failed_bytes {
            0 => first,
            _ => first.followed_by(self.pass(seen, counts, limits)?),
        };
        let objects: Vec<AllocatedObject> = seen.1.objects().collect();
        let carried_out = done.carried_out((&objects, seen.1, counts));
        let of_process = |process| object_outcomes(process, &carried_out);
        Ok(Optimized {
            objects: limits.process.map(of_process).unwrap_or_default(),
            summary: done.summary,
        })
    }

    fn pass(
        &mut self,
        (observer, attribution): (&LiveRun, &Attribution),
        counts: &AccessCounts,
        limits: OptimizationLimits<'_>,
    ) -> Result<Pass> {
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
        let mut stayed = found.stayed;
        stayed.extend(moved.promoted.stayed);
        stayed.extend(moved.demoted.stayed);
        let stayed_bytes: StayedBytes = stayed.iter().collect();
        let bytes_of =
            |ranges: &[ProcessRange]| ranges.iter().map(|(_, range)| range.bytes.0).sum();
        let summary = OptimizationSummary {
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
            promoted_bytes: bytes_of(&moved.promoted.moved),
            demoted_bytes: bytes_of(&moved.demoted.moved),
            failed_bytes: stayed_bytes.failed().0,
            stayed_bytes,
            resident_bytes: bytes(&moved.after, |_| true).0,
            fast_bytes: bytes(&moved.after, |run| run.is_fast).0,
            selection_ns: nanos(began, chosen),
            migration_ns: nanos(chosen, moved.at),
        };
        Ok(Pass {
            summary,
            before: own,
            after: moved.after,
            selected: found.selected,
            promoted: moved.promoted.moved,
            demoted: moved.demoted.moved,
            stayed,
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
        let result = |known: Option<MovedRanges>, ranges: &[ProcessRange], to_fast: bool| {
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
        NodeId::of(&self.tiers.all()[0]).collect()
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
            None => memory::capacity(Path::new("/"), &nodes, (held, tier), false),
        };
        let left = machine.saturating_sub(bytes(others, |run| run.is_fast));
        let limit = limit.map(|limit| limit.of(bytes(own, |_| true)));
        limit.map_or(left, |limit| limit.min(left))
    }
}

/// Resident runs by process.
type Runs = BTreeMap<Process, Vec<ResidentRun>>;

/// What an optimization did.
pub(crate) struct Optimized {
    /// The sums.
    pub summary: OptimizationSummary,
    /// By data object, where the optimization is for one process.
    pub objects: Vec<ObjectOutcome>,
}

/// One choice with its moves.
struct Pass {
    summary: OptimizationSummary,
    before: Runs,
    after: Runs,
    selected: Vec<ProcessRange>,
    promoted: Vec<ProcessRange>,
    demoted: Vec<ProcessRange>,
    stayed: Vec<StayedRange>,
}

impl Pass {
    /// Both passes as one decision: the choice of the later, and the moves of both. Data counts as in place if it was so before the first.
    fn followed_by(mut self, last: Self) -> Self {
        self.promoted.extend(last.promoted);
        self.demoted.extend(last.demoted);
        let (first, second) = (self.summary, last.summary);
        let summary = OptimizationSummary {
            placed_bytes: bytes_in_tier(&last.selected, &self.before, true).0,
            promoted_bytes: first.promoted_bytes + second.promoted_bytes,
            demoted_bytes: first.demoted_bytes + second.demoted_bytes,
            at_ns: first.at_ns,
            selection_ns: first.selection_ns + second.selection_ns,
            migration_ns: first.migration_ns + second.migration_ns,
            ..second
        };
        Self {
            summary,
            before: self.before,
            promoted: self.promoted,
            demoted: self.demoted,
            ..last
        }
    }

    fn carried_out<'a>(
        &'a self,
        (objects, attribution, counts): (&'a [AllocatedObject], &'a Attribution, &'a AccessCounts),
    ) -> CarriedOut<'a> {
        CarriedOut {
            objects,
            extents: attribution.extents(),
            counts,
            before: &self.before,
            after: &self.after,
            selected: &self.selected,
            promoted: &self.promoted,
            demoted: &self.demoted,
            stayed: &self.stayed,
        }
    }
}

/// The result of an optimization's moves.
struct Moves {
    demoted: MovedRanges,
    promoted: MovedRanges,
    /// When they ended.
    at: Instant,
    after: Runs,
}

/// The result of moves, by the tiers of the pages afterwards: to the fast tier of this capacity, or to the slow one.
fn seen(ranges: &[ProcessRange], after: &Runs, capacity: Option<Bytes>) -> MovedRanges {
    let to_fast = capacity.is_some();
    let left = parts_in_tier(ranges, after, Some(!to_fast));
    let left_bytes: Bytes = left.iter().map(|(_, range)| range.bytes).sum();
    let fast = bytes(after, |run| run.is_fast);
    let is_full = capacity.is_some_and(|capacity| fast.saturating_add(left_bytes) > capacity);
    let reason = match is_full {
        true => StayReason::NoRoom,
        false => StayReason::InUse,
    };
    let mut result = MovedRanges {
        moved: parts_in_tier(ranges, after, Some(to_fast)),
        stayed: Vec::new(),
    };
    result.stay(left, reason);
    result.stay(parts_in_tier(ranges, after, None), StayReason::NotTouched);
    result
}

fn bytes(runs: &Runs, like: impl Fn(&ResidentRun) -> bool) -> Bytes {
    let runs = runs.values().flatten().filter(|run| like(run));
    runs.map(|run| run.range.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::{
        AddressRange, Bytes, OptimizationSummary, Pass, Process, ProcessRange, ResidentRun, Runs,
    };

    const PROCESS: Process = Process { pid: 7, image: 0 };
    const PAGE: u64 = 4096;

    fn pages(first: u64, end: u64) -> AddressRange {
        AddressRange {
            start: first * PAGE,
            bytes: Bytes((end - first) * PAGE),
        }
    }

    /// A choice of these pages, of which the given ones are fast before and move.
    fn pass(selected: (u64, u64), fast: (u64, u64), promoted: (u64, u64)) -> Pass {
        let run = |(first, end): (u64, u64), is_fast| ResidentRun {
            range: pages(first, end),
            is_fast,
            is_huge: false,
        };
        let own =
            |(first, end): (u64, u64)| -> Vec<ProcessRange> { vec![(PROCESS, pages(first, end))] };
        let runs = vec![run(fast, true), run((fast.1, 20), false)];
        let bytes = |(first, end): (u64, u64)| (end - first) * PAGE;
        Pass {
            summary: OptimizationSummary {
                selected_bytes: bytes(selected),
                placed_bytes: bytes((selected.0, fast.1)),
                promoted_bytes: bytes(promoted),
                ..OptimizationSummary::default()
            },
            before: Runs::from([(PROCESS, runs)]),
            after: Runs::new(),
            selected: own(selected),
            promoted: own(promoted),
            demoted: Vec::new(),
            stayed: Vec::new(),
        }
    }

    #[test]
    fn two_passes_are_one_decision_whose_numbers_fit_together() {
        // Pages 0 to 2 are fast. Of 1 to 8 the first pass moves all but page 7; the second wants 2 to 9, of which 2 to 7 are fast then.
        let first = pass((1, 8), (0, 3), (3, 7));
        let second = pass((2, 10), (0, 7), (7, 10));
        let done = first.followed_by(second).summary;
        let in_pages = |bytes: u64| bytes / PAGE;
        assert_eq!(in_pages(done.selected_bytes), 8);
        assert_eq!(in_pages(done.placed_bytes), 1, "page 2, before both");
        assert_eq!(in_pages(done.promoted_bytes), 7);
        assert_eq!(
            done.placed_bytes + done.promoted_bytes,
            done.selected_bytes,
            "nothing failed"
        );
    }
}
