//! `choose` finds the addresses of an optimization's regions that are to be fast ([`Choice`]): whole chunks by ATMem's selection, or parts
//! of even heat by a site policy, for which each region is a site. It also finds the hot data for which the capacity has no room.

use std::collections::BTreeMap;
use std::ops::Range;

use isotherm_model::batch::Process;
use isotherm_model::emulation::Emulation;
use isotherm_model::plan::{Item, PartItem};
use isotherm_model::port::SitePolicy;
use isotherm_model::site::SiteId;
use isotherm_model::spans;
use isotherm_model::tier::{TierIndex, Tiers};
use isotherm_model::units::Bytes;
use isotherm_policy::chunks::{ChunkParameters, DataObject, FastRange, SelectionError, select};
use isotherm_policy::{PAGE, PlanRequest, plan};

use super::addresses::{Addresses, first_bytes};
use super::input::{ChunkChoice, OptimizationInput};
use super::region::Region;
use crate::blocks::{Bin, blocks, penalty};
use crate::place_tree::{self, Halving, RangeCount};
use crate::sampling_rate::SAMPLES_PER_CHUNK;

/// Samples from which a region may be divided.
const SAMPLES_AT_LEAST: f64 = 64.0;

/// The addresses that are hot: those to be fast, and those without room.
#[derive(Default)]
pub(super) struct Choice {
    /// Addresses that are to be fast.
    pub(super) selected: Addresses,
    /// Addresses that are hot as well, but for which the capacity has no room.
    pub(super) beyond: Addresses,
}

/// Chooses the addresses that are to be fast.
pub(super) fn choose(
    regions: &[Region],
    choice: &ChunkChoice,
    input: &OptimizationInput<'_>,
) -> Result<Choice, SelectionError> {
    match choice {
        ChunkChoice::Selection(parameters) => selected(regions, parameters, input.capacity),
        ChunkChoice::Policy(policy) => Ok(planned(regions, &**policy, input)),
    }
}

fn selected(
    regions: &[Region],
    parameters: &ChunkParameters,
    capacity: Bytes,
) -> Result<Choice, SelectionError> {
    let objects: Vec<DataObject<'_>> = regions.iter().map(Region::object).collect();
    let selection = select(&objects, parameters, capacity)?;
    let range = |range: &FastRange| (range.process, range.address..range.address + range.bytes.0);
    let ranges = |found: &[FastRange]| found.iter().map(range).collect();
    Ok(Choice {
        selected: ranges(&selection.ranges),
        beyond: ranges(&selection.left),
    })
}

/// Makes a plan in which each region is a site, with an id from its number. Accessed parts left out for lack of room are hot as well.
fn planned(regions: &[Region], policy: &dyn SitePolicy, input: &OptimizationInput<'_>) -> Choice {
    let name = |number: usize| SiteId((number as u64 + 1) << 8);
    let item = |(number, region): (usize, &Region)| Item {
        site: name(number),
        value: region.total(),
        weight: Bytes(region.range.end - region.range.start),
        order: u32::try_from(number).unwrap_or(u32::MAX),
    };
    let items: Vec<Item> = regions.iter().enumerate().map(item).collect();
    let of_region = |(number, region): (usize, &Region)| (name(number), parts(region, input));
    let parts: BTreeMap<_, _> = regions.iter().enumerate().map(of_region).collect();
    // The costs of the page trap do not influence the choice; any others would do.
    let tiers = Tiers::emulated(input.capacity, Bytes(u64::MAX), Emulation::TMP);
    let plan = plan(&PlanRequest {
        parts: Some(&parts),
        ..PlanRequest::new(policy, &items, &tiers)
    });
    let mut chosen = Vec::new();
    for site in &plan.assignments {
        let region = &regions[(site.site.0 >> 8) as usize - 1];
        let apart = site.parts.iter();
        let apart: Vec<_> = apart
            .map(|part| region.place(part.start, part.end))
            .collect();
        let fast = match site.tier {
            TierIndex::FASTEST => spans::difference(std::slice::from_ref(&region.range), &apart),
            _ => apart,
        };
        // Parts without accesses that a policy takes to fill the room are left out: there is no reason to move them.
        let accessed = parts[&site.site].iter().filter(|part| part.value > 0);
        for part in accessed {
            let density = part.value as f64 / part.weight.0.max(1) as f64;
            let within = spans::within(&fast, region.place(part.start, part.end));
            chosen.extend(within.map(|range| (density, region.process, range)));
        }
    }
    let selected = bounded(chosen, input.capacity);
    Choice {
        beyond: without_room(regions, &parts, (&selected, input.capacity)),
        selected,
    }
}

/// The accessed parts that were not selected and are larger than the room that the selection leaves.
fn without_room(
    regions: &[Region],
    parts: &BTreeMap<SiteId, Vec<PartItem>>,
    (selected, capacity): (&Addresses, Bytes),
) -> Addresses {
    let room = capacity.0.saturating_sub(selected.total());
    let mut found = Vec::new();
    for (region, parts) in regions.iter().zip(parts.values()) {
        for part in parts.iter().filter(|part| part.value > 0) {
            let whole = region.place(part.start, part.end);
            let left = spans::difference(std::slice::from_ref(&whole), selected.of(region.process));
            if spans::total(&left) > room {
                found.extend(left.into_iter().map(|range| (region.process, range)));
            }
        }
    }
    found.into_iter().collect()
}

/// The densest of these ranges, as far as the capacity goes: some policies exceed the capacity.
fn bounded(mut ranges: Vec<(f64, Process, Range<u64>)>, capacity: Bytes) -> Addresses {
    ranges.sort_by(|a, b| {
        let by_density = b.0.total_cmp(&a.0);
        by_density.then_with(|| (a.1, a.2.start).cmp(&(b.1, b.2.start)))
    });
    let ranges = ranges
        .into_iter()
        .map(|(_, process, range)| (process, range));
    first_bytes(ranges, &mut (capacity.0 / PAGE * PAGE))
}

/// The parts of even heat of a region; a single part where the samples do not prove more.
fn parts(region: &Region, input: &OptimizationInput<'_>) -> Vec<PartItem> {
    let all = input.counts.total(region.process).max(1);
    let samples_per_count = input.counts.samples(region.process) as f64 / all as f64;
    let samples = region.total() as f64 * samples_per_count;
    let pages = input.counts.within(region.process, region.range.clone());
    let range = |(page, count): (u64, u64)| RangeCount {
        start: page - region.range.start,
        end: page.saturating_add(PAGE) - region.range.start,
        counts: [count, 0],
    };
    let divisible = samples >= SAMPLES_AT_LEAST;
    let least_count = 2.0 * SAMPLES_PER_CHUNK as f64 / samples_per_count;
    let halving = Halving {
        object: region.range.end - region.range.start,
        accesses: if divisible {
            least_count as u64
        } else {
            u64::MAX
        },
        least: region.page,
    };
    let places = place_tree::places(pages.map(range).collect(), halving);
    let bin = |place: &RangeCount| Bin {
        samples: place.counts[0] as f64 * samples_per_count,
        bytes: place.bytes() as f64,
    };
    let bins: Vec<Bin> = places.iter().map(bin).collect();
    let found = blocks(&bins, penalty(samples));
    let part = |block: Range<usize>| {
        let (start, end) = (places[block.start].start, places[block.end - 1].end);
        let counts = places[block].iter().map(|place| place.counts[0]);
        PartItem {
            start: Bytes(start),
            end: Bytes(end),
            value: counts.fold(0, u64::saturating_add),
            weight: Bytes(end - start),
        }
    };
    found.into_iter().map(part).collect()
}
