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

mod addresses;
mod choice;
mod hints;
mod input;
mod moves;
mod outcomes;
mod region;
mod regions;
mod stays;

use std::borrow::Cow;
use std::collections::BTreeMap;

use isotherm_model::batch::Process;
use isotherm_model::stay::StayedRange;
use isotherm_model::units::Bytes;
use isotherm_model::watch::ResidentRun;
use isotherm_policy::PAGE;
use isotherm_policy::chunks::SelectionError;

use crate::access_counts::AccessCounts;
pub use addresses::ProcessRange;
use addresses::{Addresses, ResidentByTier};
use choice::Choice;
pub use hints::{HeatHint, HeatHints};
pub use input::{ChunkChoice, OptimizationInput};
pub use outcomes::{CarriedOut, ObjectOutcome, object_outcomes};

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
    let resident = tiers.slow.union(&tiers.fast);
    let hinted = input.hints.all();
    let (hot, capacity) = input.hints.hot_within(&resident, input.capacity);
    let counts = counts_without_hints(input, &hinted);
    let by_samples = OptimizationInput {
        counts: &counts,
        capacity,
        ..*input
    };
    let regions = regions::regions(&by_samples);
    let is_sampled = regions.iter().any(|region| region.total() > 0);
    let Choice { selected, beyond } = match is_sampled {
        true => choice::choose(&regions, choice, &by_samples)?,
        false => Choice::default(),
    };
    let selected = selected.difference(&hinted).union(&hot);
    let cold = input.hints.cold.intersection(&tiers.fast);
    let has_no_room = is_sampled && input.capacity.0 < PAGE;
    let (demotions, promotions) = match has_no_room || !selected.is_empty() || !cold.is_empty() {
        true => moves::moves((&selected, &cold), &tiers, &regions, input.capacity),
        false => (Addresses::default(), Addresses::default()),
    };
    let samples = |process: &Process| input.counts.samples(*process);
    Ok(Optimization {
        stayed: stays::stays(input, &tiers, (&selected, &beyond), &demotions),
        figures: OptimizationFigures {
            samples: input.resident.keys().map(samples).sum(),
            regions: regions.len() as u64,
            resident: Bytes(resident.total()),
            fast: Bytes(tiers.fast.total()),
            selected: Bytes(selected.intersection(&resident).total()),
            placed: Bytes(selected.intersection(&tiers.fast).total()),
        },
        demotions: demotions.process_ranges(),
        promotions: promotions.process_ranges(),
        selected: selected.process_ranges(),
    })
}

/// The counts of the pages without a hint, among which samples choose.
fn counts_without_hints<'a>(
    input: &OptimizationInput<'a>,
    hinted: &Addresses,
) -> Cow<'a, AccessCounts> {
    let mut counts = Cow::Borrowed(input.counts);
    for process in input.resident.keys() {
        let hinted = hinted.of(*process);
        if !hinted.is_empty() {
            counts.to_mut().leave_out(*process, hinted);
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
    let ranges: Addresses = ranges.iter().collect();
    let parts = match is_fast {
        Some(true) => ranges.intersection(&tiers.fast),
        Some(false) => ranges.intersection(&tiers.slow),
        None => ranges.difference(&tiers.slow).difference(&tiers.fast),
    };
    parts.process_ranges()
}

#[cfg(test)]
mod tests;
