//! Finds, from the decision of an optimization and before its moves, why each range that was not chosen is not in fast memory afterwards:
//! hot but beyond the capacity, or not hot; and of ranges that a hint calls hot and that are not resident: not touched yet, or not movable
//! (in no extent). The reasons of moves that fail are not found here.
//!
//! ```text
//! slow, or leaves fast memory    | a b c d |      hot by a hint and not resident     | e f |
//! chosen                           a                                       extents     e
//! hot, beyond the capacity           b            Capacity: b   NotHot: c, d   NotTouched: e   NotMovable: f
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use isotherm_model::batch::Process;
use isotherm_model::movement::AddressRange;
use isotherm_model::spans;
use isotherm_model::stay::{StayReason, StayedRange};
use isotherm_model::units::Bytes;
use isotherm_policy::PAGE;

use super::input::{OptimizationInput, ProcessRange};
use super::resident::ResidentByTier;

/// Addresses by process.
type Addresses = BTreeMap<Process, Vec<Range<u64>>>;

/// The ranges of all processes, each with its reason. `beyond` are addresses that samples prove hot and that lack room.
pub(super) fn stays(
    input: &OptimizationInput<'_>,
    tiers: &ResidentByTier,
    (selected, beyond): (&Addresses, &Addresses),
    demotions: &[ProcessRange],
) -> Vec<StayedRange> {
    let mut stayed = Vec::new();
    for process in input.resident.keys() {
        let of = |set: &Addresses| set.get(process).cloned().unwrap_or_default();
        let hot_by_hint = input.hints.hot_of(*process);
        let leaves = demotions.iter().filter(|(other, _)| other == process);
        let leaves = leaves.map(|(_, range)| range.start..range.end());
        let slow: Vec<_> = tiers
            .slow_of(*process)
            .iter()
            .cloned()
            .chain(leaves)
            .collect();
        let stays = spans::difference(&spans::joined(slow), &of(selected));
        // Samples choose among pages without a hint.
        let by_samples = spans::difference(&of(beyond), &input.hints.all_of(*process));
        let hot = spans::joined([by_samples.as_slice(), hot_by_hint].concat());

        let resident = [tiers.slow_of(*process), tiers.fast_of(*process)].concat();
        let absent = spans::difference(hot_by_hint, &spans::joined(resident));
        let own = extents(input, *process);
        let by_reason = [
            (StayReason::Capacity, spans::intersection(&stays, &hot)),
            (StayReason::NotHot, spans::difference(&stays, &hot)),
            (StayReason::NotTouched, spans::intersection(&absent, &own)),
            (StayReason::NotMovable, spans::difference(&absent, &own)),
        ];
        for (reason, spans) in by_reason {
            stayed.extend(spans.into_iter().map(|span| StayedRange {
                process: *process,
                range: AddressRange {
                    start: span.start,
                    bytes: Bytes(span.end - span.start),
                },
                reason,
            }));
        }
    }
    stayed
}

/// The pages that hold a part of an extent of a process.
fn extents(input: &OptimizationInput<'_>, process: Process) -> Vec<Range<u64>> {
    let own = input
        .extents
        .iter()
        .filter(|extent| extent.process == process);
    let pages = own.map(|extent| {
        let end = extent.address.saturating_add(extent.bytes.0);
        extent.address / PAGE * PAGE..end.saturating_add(PAGE - 1) / PAGE * PAGE
    });
    spans::joined(pages.collect())
}
