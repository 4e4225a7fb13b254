//! Computes the moves that put the chosen addresses into the fast tier without exceeding its capacity: their promotion, and the demotion of
//! what a hint calls cold and of the coldest of the other data.
//!
//! ```text
//! fast now     | a b c d |          capacity: 4
//! chosen         b       e f
//! promoted               e f        needs 2
//! demoted          c d              the coldest of a, c and d
//! ```

use std::ops::Range;

use isotherm_model::batch::Process;
use isotherm_model::spans;
use isotherm_model::units::Bytes;
use isotherm_policy::PAGE;

use super::addresses::{Addresses, ResidentByTier, first_bytes};
use super::region::Region;

/// Demotions and promotions. `cold` is memory that is fast now and leaves in any case.
pub(super) fn moves(
    (selected, cold): (&Addresses, &Addresses),
    tiers: &ResidentByTier,
    regions: &[Region],
    capacity: Bytes,
) -> (Addresses, Addresses) {
    let promotions = selected.intersection(&tiers.slow);
    let leave = tiers
        .fast
        .total()
        .saturating_add(promotions.total())
        .saturating_sub(capacity.0)
        .saturating_sub(cold.total());
    let unchosen = tiers.fast.difference(selected).difference(cold);
    let demotions = cold.union(&coldest(spare(&unchosen, regions), leave));
    (demotions, promotions)
}

/// A stretch of fast memory that was not chosen and has no hint that it is cold.
struct Spare {
    /// Accesses a byte.
    density: f64,
    process: Process,
    range: Range<u64>,
}

/// The spare memory, chunk by chunk; memory in no region counts as without accesses.
fn spare(unchosen: &Addresses, regions: &[Region]) -> Vec<Spare> {
    let known = regions
        .iter()
        .map(|region| (region.process, region.range.clone()));
    let unknown = unchosen.difference(&known.collect());
    let without_access = |(process, range)| Spare {
        density: 0.0,
        process,
        range,
    };
    let mut found: Vec<Spare> = unknown.ranges().map(without_access).collect();
    for region in regions {
        of_region(region, unchosen.of(region.process), &mut found);
    }
    found
}

/// The spare memory of a region; neighbouring chunks with as many accesses are one stretch.
fn of_region(region: &Region, spare: &[Range<u64>], found: &mut Vec<Spare>) {
    let mut end = 0;
    for chunks in region.counts.chunk_by(|a, b| a == b) {
        let range = region.chunks(end..end + chunks.len());
        end += chunks.len();
        found.extend(spans::within(spare, range).map(|range| Spare {
            density: chunks[0] as f64 / region.grain as f64,
            process: region.process,
            range,
        }));
    }
}

/// The coldest ranges of this many bytes together, rounded up to whole pages; all if they have less.
fn coldest(mut spare: Vec<Spare>, bytes: u64) -> Addresses {
    spare.sort_by(|a, b| {
        let by_density = a.density.total_cmp(&b.density);
        by_density.then_with(|| (a.process, a.range.start).cmp(&(b.process, b.range.start)))
    });
    let ranges = spare.into_iter().map(|spare| (spare.process, spare.range));
    first_bytes(ranges, &mut bytes.next_multiple_of(PAGE))
}
