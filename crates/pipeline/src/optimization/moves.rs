//! Computes the moves that put the chosen addresses into the fast tier without exceeding its capacity: their promotion, and the demotion of
//! what a hint calls cold and of the coldest of the other data.
//!
//! ```text
//! fast now     | a b c d |          capacity: 4
//! chosen         b       e f
//! promoted               e f        needs 2
//! demoted          c d              the coldest of a, c and d
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use isotherm_model::batch::Process;
use isotherm_model::movement::AddressRange;
use isotherm_model::spans;
use isotherm_model::units::Bytes;
use isotherm_policy::PAGE;

use super::input::ProcessRange;
use super::region::Region;
use super::resident::ResidentByTier;

/// Addresses by process.
type Addresses = BTreeMap<Process, Vec<Range<u64>>>;

/// Demotions and promotions, each by process and address. The cold memory is fast now and leaves in any case.
pub(super) fn moves(
    (selected, cold): (&Addresses, &Addresses),
    tiers: &ResidentByTier,
    regions: &[Region],
    capacity: Bytes,
) -> (Vec<ProcessRange>, Vec<ProcessRange>) {
    let mut promotions = Vec::new();
    for (process, ranges) in selected {
        let slow = spans::intersection(ranges, tiers.slow_of(*process));
        promotions.extend(slow.into_iter().map(|range| (*process, range)));
    }
    let fast: u64 = tiers.fast().map(|(_, fast)| spans::total(fast)).sum();
    let enter: u64 = promotions
        .iter()
        .map(|(_, range)| range.end - range.start)
        .sum();
    let mut demotions: Vec<(Process, Range<u64>)> = cold
        .iter()
        .flat_map(|(process, ranges)| ranges.iter().map(|range| (*process, range.clone())))
        .collect();
    let leaves: u64 = cold.values().map(|ranges| spans::total(ranges)).sum();
    let leave = fast
        .saturating_add(enter)
        .saturating_sub(capacity.0)
        .saturating_sub(leaves);
    let spare = spare((selected, cold), tiers, regions);
    demotions.extend(coldest(spare, leave));
    (actions(demotions), actions(promotions))
}

/// A stretch of fast memory that was not chosen and has no hint that it is cold.
struct Spare {
    /// Accesses a byte.
    density: f64,
    process: Process,
    range: Range<u64>,
}

/// The spare memory, chunk by chunk; what is in no region has no accesses.
fn spare(
    (selected, cold): (&Addresses, &Addresses),
    tiers: &ResidentByTier,
    regions: &[Region],
) -> Vec<Spare> {
    let mut found = Vec::new();
    for (process, fast) in tiers.fast() {
        let of_process = |set: &Addresses| set.get(&process).cloned().unwrap_or_default();
        let unchosen = spans::difference(fast, &of_process(selected));
        let spare = spans::difference(&unchosen, &of_process(cold));
        let first = regions.partition_point(|region| region.process < process);
        let end = regions.partition_point(|region| region.process <= process);
        let own = &regions[first..end];
        let known = spans::joined(own.iter().map(|region| region.range.clone()).collect());
        let unknown = spans::difference(&spare, &known);
        found.extend(unknown.into_iter().map(|range| Spare {
            density: 0.0,
            process,
            range,
        }));
        for region in own {
            of_region(region, &spare, &mut found);
        }
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

/// The coldest stretches, of at least this many bytes together, as far as there are so many.
fn coldest(mut spare: Vec<Spare>, bytes: u64) -> Vec<(Process, Range<u64>)> {
    spare.sort_by(|a, b| {
        let by_density = a.density.total_cmp(&b.density);
        by_density.then_with(|| (a.process, a.range.start).cmp(&(b.process, b.range.start)))
    });
    let mut left = bytes.next_multiple_of(PAGE);
    let mut chosen = Vec::new();
    for Spare { process, range, .. } in spare {
        if left == 0 {
            break;
        }
        let taken = left.min(range.end - range.start);
        left -= taken;
        chosen.push((process, range.start..range.start + taken));
    }
    chosen
}

/// Joins neighbours.
pub(super) fn actions(ranges: Vec<(Process, Range<u64>)>) -> Vec<ProcessRange> {
    let mut by_process = BTreeMap::<Process, Vec<Range<u64>>>::new();
    for (process, range) in ranges {
        by_process.entry(process).or_default().push(range);
    }
    let action = |process: Process, range: Range<u64>| {
        let bytes = Bytes(range.end - range.start);
        (
            process,
            AddressRange {
                start: range.start,
                bytes,
            },
        )
    };
    by_process
        .into_iter()
        .flat_map(|(process, ranges)| {
            let joined = spans::joined(ranges).into_iter();
            joined.map(move |range| action(process, range))
        })
        .collect()
}
