//! `regions` finds the regions among which an optimization chooses: the data objects of the processes and the stretches of extents outside
//! them, trimmed to resident pages, without small stretches that have hardly a sample. It adds up the accesses of their chunks, which are
//! as small as the samples allow and fit the capacity.

use std::ops::Range;

use isotherm_model::batch::{OBJECT_AT_LEAST, Process};
use isotherm_model::spans;
use isotherm_model::watch::ResidentRun;
use isotherm_policy::PAGE;

use super::addresses::pages;
use super::input::OptimizationInput;
use super::region::Region;
use crate::sampling_rate::SAMPLES_PER_CHUNK;

/// Most chunks of a region.
const CHUNKS_AT_MOST: u64 = 1 << 16;
/// Bytes of a huge page.
const HUGE: u64 = 2 << 20;

/// The regions of all processes, by process and address; no two overlap.
pub(super) fn regions(input: &OptimizationInput<'_>) -> Vec<Region> {
    let of_process = |(process, runs): (&Process, &Vec<ResidentRun>)| {
        let memory = Memory::of(runs);
        let objects = objects(input, *process);
        let extents = input.extents.iter();
        let extents =
            extents.filter(|extent| extent.process == *process && extent.site.is_placeable());
        let between = spans::difference(
            &spans::joined(extents.map(|extent| extent.range().span()).collect()),
            &spans::joined(objects.clone()),
        );
        let mut all: Vec<(Range<u64>, bool)> =
            objects.into_iter().map(|range| (range, true)).collect();
        all.extend(between.into_iter().map(|range| (range, false)));
        all.sort_unstable_by_key(|(range, _)| (range.start, range.end));
        let mut end = 0;
        let mut found = Vec::new();
        for (range, is_object) in all {
            let Some(range) = memory.trimmed(range, end) else {
                continue;
            };
            end = range.end;
            found.extend(region(input, *process, range, (&memory, is_object)));
        }
        found
    };
    input.resident.iter().flat_map(of_process).collect()
}

/// The data objects of a process, in whole pages.
fn objects(input: &OptimizationInput<'_>, process: Process) -> Vec<Range<u64>> {
    let own = input
        .objects
        .iter()
        .filter(|object| object.process == process);
    own.map(|object| pages(&object.range.span())).collect()
}

/// The resident pages of a process.
struct Memory {
    pages: Vec<Range<u64>>,
    /// The pages of these that are huge.
    huge: Vec<Range<u64>>,
}

impl Memory {
    fn of(runs: &[ResidentRun]) -> Self {
        let range = |run: &ResidentRun| run.range.span();
        let huge = runs.iter().filter(|run| run.is_huge);
        Self {
            pages: spans::joined(runs.iter().map(range).collect()),
            huge: spans::joined(huge.map(range).collect()),
        }
    }

    fn is_huge(&self, range: &Range<u64>) -> bool {
        let huge = spans::bytes_within(&self.huge, range);
        huge > spans::bytes_within(&self.pages, range) / 2
    }

    /// The range from its first resident page to its last, after `end`, the end of the region before it. The kernel moves huge pages as a
    /// whole: a huge page that two ranges share belongs to the first of them.
    fn trimmed(&self, range: Range<u64>, end: u64) -> Option<Range<u64>> {
        let mut resident = spans::within(&self.pages, range);
        let first = resident.next()?;
        let last = resident.last().unwrap_or_else(|| first.clone());
        let mut whole = first.start..last.end;
        if self.is_huge(&whole) {
            whole = whole.start / HUGE * HUGE..whole.end.checked_next_multiple_of(HUGE)?;
        }
        whole.start = whole.start.max(end);
        (whole.start < whole.end).then_some(whole)
    }
}

/// A region with its counts. Between data objects, stretches that are small and hardly accessed are left out: a single sample would make
/// each of them hot.
fn region(
    input: &OptimizationInput<'_>,
    process: Process,
    range: Range<u64>,
    (memory, is_object): (&Memory, bool),
) -> Option<Region> {
    let samples = input.counts.samples_within(process, range.clone());
    let bytes = range.end - range.start;
    if !is_object && bytes < OBJECT_AT_LEAST.0 && samples < SAMPLES_PER_CHUNK {
        return None;
    }
    let chunks = (samples / SAMPLES_PER_CHUNK).clamp(1, CHUNKS_AT_MOST);
    let page = if memory.is_huge(&range) { HUGE } else { PAGE };
    // A chunk that is larger than the capacity could never be fast, however hot.
    let room = match input.capacity.0 / page * page {
        // Nothing can be fast then, so the capacity does not limit the chunks that are reported as hot.
        0 => u64::MAX,
        room => room,
    };
    let least = bytes.div_ceil(CHUNKS_AT_MOST);
    let grain = bytes.div_ceil(chunks).min(room).max(least);
    let grain = grain.checked_next_multiple_of(page)?;
    let mut counts = vec![0_u64; bytes.div_ceil(grain) as usize];
    for (page, count) in input.counts.within(process, range.clone()) {
        // The page begins in the region, so its chunk exists.
        let sum = &mut counts[((page - range.start) / grain) as usize];
        *sum = sum.saturating_add(count);
    }
    Some(Region {
        process,
        range,
        page,
        grain,
        counts,
    })
}
