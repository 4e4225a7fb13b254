//! Finds, from the decision of an optimization and before its moves, why each range that was not chosen is not in fast memory afterwards:
//! hot but beyond the capacity, or not hot; and of ranges that a hint calls hot and that are not resident: not touched yet, or not movable
//! (in no extent). The reasons of moves that fail are not found here.
//!
//! ```text
//! slow, or leaves fast memory    | a b c d |      hot by a hint and not resident     | e f |
//! chosen                           a                                       extents     e
//! hot, beyond the capacity           b            Capacity: b   NotHot: c, d   NotTouched: e   NotMovable: f
//! ```

use isotherm_model::movement::AddressRange;
use isotherm_model::stay::{StayReason, StayedRange};

use super::addresses::{Addresses, ResidentByTier, pages};
use super::input::OptimizationInput;

/// The ranges of all processes, each with its reason. `beyond` are addresses that samples prove hot and that lack room.
pub(super) fn stays(
    input: &OptimizationInput<'_>,
    tiers: &ResidentByTier,
    (selected, beyond): (&Addresses, &Addresses),
    demotions: &Addresses,
) -> Vec<StayedRange> {
    let stays = tiers.slow.union(demotions).difference(selected);
    let hot_by_hint = &input.hints.hot;
    // Samples choose among pages without a hint.
    let hot = beyond.difference(&input.hints.all()).union(hot_by_hint);
    let absent = hot_by_hint.difference(&tiers.slow).difference(&tiers.fast);
    let extents = input.extents.iter();
    let extents: Addresses = extents
        .map(|extent| (extent.process, pages(&extent.range().span())))
        .collect();
    let by_reason = [
        (StayReason::Capacity, stays.intersection(&hot)),
        (StayReason::NotHot, stays.difference(&hot)),
        (StayReason::NotTouched, absent.intersection(&extents)),
        (StayReason::NotMovable, absent.difference(&extents)),
    ];
    let mut stayed = Vec::new();
    for process in input.resident.keys() {
        for (reason, addresses) in &by_reason {
            let ranges = addresses.of(*process).iter();
            stayed.extend(ranges.map(|range| StayedRange {
                process: *process,
                range: AddressRange::between(range.start, range.end),
                reason: *reason,
            }));
        }
    }
    stayed
}
