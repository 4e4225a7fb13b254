//! [`optimize`] makes one decision within a run: from the samples so far and the hints of the programs, which data becomes fast, and which
//! moves that takes. The caller makes the moves, and [`object_outcomes`] divides their results among the data objects.
//!
//! ```text
//! objects, extents, resident pages --> regions --+
//! samples by page -------------------> counts ---+--> chunks chosen --> demotions, promotions
//! hints of the programs -------------------------+
//! ```
//!
//! A *region* is a data object, or a stretch of the memory between data objects, from its first resident page to its last. Its chunks are
//! as small as its samples allow. Each call makes one choice; data that is not chosen stays where it is unless its room is needed.

mod choice;
mod hints;
mod input;
mod moves;
mod outcomes;
mod region;
mod regions;
mod resident;
mod stays;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use isotherm_model::batch::Process;
use isotherm_model::movement::AddressRange;
use isotherm_model::spans;
use isotherm_model::stay::StayedRange;
use isotherm_model::units::Bytes;
use isotherm_model::watch::ResidentRun;
use isotherm_policy::PAGE;
use isotherm_policy::chunks::SelectionError;

use crate::access_counts::AccessCounts;
use choice::Choice;
pub use hints::{HeatHint, HeatHints};
pub use input::{ChunkChoice, OptimizationInput, ProcessRange};
pub use outcomes::{CarriedOut, ObjectOutcome, object_outcomes};
use resident::ResidentByTier;

/// The chosen data and the moves of a decision, and its figures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Optimization {
    /// Ranges to move to the slow tier. They move first and make the room.
    pub demotions: Vec<ProcessRange>,
    /// Ranges to move to the fast tier.
    pub promotions: Vec<ProcessRange>,
    /// Ranges that were chosen for the fast tier, resident or not, by process and address.
    pub selected: Vec<ProcessRange>,
    /// Ranges that are in slow memory after the moves and were not chosen, each with the reason.
    pub stayed: Vec<StayedRange>,
    /// The numbers behind them.
    pub figures: OptimizationFigures,
}

/// The numbers of a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptimizationFigures {
    /// Samples of all accesses of the processes, also of those to data that cannot be moved.
    pub samples: u64,
    /// Number of regions.
    pub regions: u64,
    /// Resident bytes of the processes.
    pub resident: Bytes,
    /// Bytes of the processes that are in the fast tier before the moves.
    pub fast: Bytes,
    /// Resident bytes that were chosen for the fast tier.
    pub selected: Bytes,
    /// Bytes that were chosen and are in the fast tier already.
    pub placed: Bytes,
}

/// Chooses the chunks that are to be fast, and the moves that this takes. Without a sample in any region, only hints cause moves. With
/// samples and a capacity below a page nothing is chosen, and all that is fast leaves.
///
/// # Errors
/// A parameter of the selection is out of its range.
pub fn optimize(
    input: &OptimizationInput<'_>,
    choice: &ChunkChoice,
) -> Result<Optimization, SelectionError> {
    let tiers = ResidentByTier::of(input.resident);
    let (hot, rest) = input.hints.hot(&tiers, input.capacity.0);
    let counts = counts_without_hints(input);
    let by_samples = OptimizationInput {
        counts: &counts,
        capacity: Bytes(rest),
        ..*input
    };
    let regions = regions::regions(&by_samples);
    let is_sampled = regions.iter().any(|region| region.total() > 0);
    let Choice {
        mut selected,
        beyond,
    } = match is_sampled {
        true => choice::choose(&regions, choice, &by_samples)?,
        false => Choice::default(),
    };
    for (process, ranges) in &mut selected {
        *ranges = spans::difference(ranges, &input.hints.all_of(*process));
    }
    for (process, mut ranges) in hot {
        let chosen = selected.entry(process).or_default();
        ranges.append(chosen);
        *chosen = spans::joined(ranges);
    }
    selected.retain(|_, ranges| !ranges.is_empty());
    let mut found = Optimization {
        figures: figures(input, regions.len() as u64),
        ..Optimization::default()
    };
    for (process, ranges) in &selected {
        let sum = |set: &[Range<u64>]| Bytes(spans::total(&spans::intersection(ranges, set)));
        let fast = sum(tiers.fast_of(*process));
        found.figures.selected += fast;
        found.figures.selected += sum(tiers.slow_of(*process));
        found.figures.placed += fast;
    }
    let cold = |process: Process| {
        let fast = tiers.fast_of(process);
        (
            process,
            spans::intersection(input.hints.cold_of(process), fast),
        )
    };
    let cold: BTreeMap<_, _> = input.resident.keys().copied().map(cold).collect();
    let has_no_room = is_sampled && input.capacity.0 < PAGE;
    if has_no_room || !selected.is_empty() || cold.values().any(|ranges| !ranges.is_empty()) {
        (found.demotions, found.promotions) =
            moves::moves((&selected, &cold), &tiers, &regions, input.capacity);
    }
    found.stayed = stays::stays(input, &tiers, (&selected, &beyond), &found.demotions);
    found.selected = moves::actions(
        selected
            .into_iter()
            .flat_map(|(process, ranges)| ranges.into_iter().map(move |range| (process, range)))
            .collect(),
    );
    Ok(found)
}

/// The counts of the pages without a hint, among which samples choose.
fn counts_without_hints<'a>(input: &OptimizationInput<'a>) -> Cow<'a, AccessCounts> {
    let mut counts = Cow::Borrowed(input.counts);
    for process in input.resident.keys() {
        let hinted = input.hints.all_of(*process);
        if !hinted.is_empty() {
            counts.to_mut().leave_out(*process, &hinted);
        }
    }
    counts
}

/// Bytes of these ranges that are in the fast tier (`is_fast`), or in the slow one.
#[must_use]
pub fn bytes_in_tier(
    ranges: &[ProcessRange],
    resident: &BTreeMap<Process, Vec<ResidentRun>>,
    is_fast: bool,
) -> Bytes {
    let parts = parts_in_tier(ranges, resident, Some(is_fast)).into_iter();
    parts.map(|(_, range)| range.bytes).sum()
}

/// The parts of these ranges that are in the fast tier (`Some(true)`), in the slow one (`Some(false)`), or not resident (`None`).
#[must_use]
pub fn parts_in_tier(
    ranges: &[ProcessRange],
    resident: &BTreeMap<Process, Vec<ResidentRun>>,
    is_fast: Option<bool>,
) -> Vec<ProcessRange> {
    let tiers = ResidentByTier::of(resident);
    let of_range = |(process, range): &ProcessRange| {
        let whole = range.start..range.end();
        let (slow, fast) = (tiers.slow_of(*process), tiers.fast_of(*process));
        let parts: Vec<Range<u64>> = match is_fast {
            Some(true) => spans::within(fast, whole).collect(),
            Some(false) => spans::within(slow, whole).collect(),
            None => {
                let left = spans::difference(std::slice::from_ref(&whole), slow);
                spans::difference(&left, fast)
            }
        };
        let process = *process;
        parts.into_iter().map(move |part| {
            let bytes = Bytes(part.end - part.start);
            let start = part.start;
            (process, AddressRange { start, bytes })
        })
    };
    ranges.iter().flat_map(of_range).collect()
}

fn figures(input: &OptimizationInput<'_>, regions: u64) -> OptimizationFigures {
    let runs = || input.resident.values().flatten();
    let samples = |process: &Process| input.counts.samples(*process);
    OptimizationFigures {
        samples: input.resident.keys().map(samples).sum(),
        regions,
        resident: runs().map(|run| run.range.bytes).sum(),
        fast: runs()
            .filter(|run| run.is_fast)
            .map(|run| run.range.bytes)
            .sum(),
        ..OptimizationFigures::default()
    }
}

#[cfg(test)]
mod tests;
