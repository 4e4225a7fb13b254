//! [`chunk_parts`] selects chunks of sites for the fast tier of a plan (ATMem) and returns them as [`ChunkParts`]: the parts of each site,
//! which are the selected ranges and the gaps between them, and which of them are selected.
//!
//! Each site is a data object of the selection: its chunks are the places in its objects, as small as the samples allow, and the bytes of a
//! chunk are those of the place in all objects that exist at one time. A site whose places are not known is one chunk.
//!
//! ```text
//! site A, places   | 9 8 1 0 0 7 |      three objects of 6 places each: the bytes of a chunk are those of a place, three times
//! selected         | # # . . . # |
//! parts            |fast|     |f |
//! site B           | 4           |      places unknown: all or nothing
//! ```

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::Process;
use isotherm_model::plan::Item;
use isotherm_model::site::SiteId;
use isotherm_model::units::{Bytes, portion};
use isotherm_policy::PAGE;
use isotherm_policy::chunks::{
    ChunkParameters, ChunkSelection, DataObject, SelectionError, select,
};

use crate::data_objects::CountedObject;
use crate::parts::{SitePart, SiteParts, division, part_items};
use crate::places::SitePlaces;

/// The parts of the sites, and which of them a selection of chunks puts into the fast tier.
#[derive(Clone, Debug, Default)]
pub struct ChunkParts {
    /// The parts of each site whose places are known, selected and not, side by side.
    pub parts: SiteParts,
    /// Site and start of each selected part; a site without parts starts at 0.
    pub(crate) selected: BTreeSet<(SiteId, Bytes)>,
}

impl ChunkParts {
    /// Selects these sites as a whole; none of them has parts.
    #[must_use]
    pub fn of_sites(sites: impl Iterator<Item = SiteId>) -> Self {
        Self {
            parts: SiteParts::new(),
            selected: sites.map(|site| (site, Bytes::ZERO)).collect(),
        }
    }

    /// Whether the part of a site that starts at this offset is selected; at 0 of a site without parts, whether the site is.
    #[must_use]
    pub fn is_selected(&self, site: SiteId, start: Bytes) -> bool {
        self.selected.contains(&(site, start))
    }

    /// Bytes of the selected parts, by the weights of the items.
    fn bytes(&self, items: &[Item]) -> Bytes {
        let parts = part_items(items, &self.parts);
        let of_item = |item: &Item| -> Bytes {
            let whole =
                || Bytes(u64::from(self.is_selected(item.site, Bytes::ZERO)) * item.weight.0);
            let of_parts = parts.get(&item.site).map(|parts| {
                let selected = parts
                    .iter()
                    .filter(|part| self.is_selected(item.site, part.start));
                selected.map(|part| part.weight).sum()
            });
            of_parts.unwrap_or_else(whole)
        };
        items.iter().map(of_item).sum()
    }
}

/// Selects chunks of these sites for a fast tier of this capacity. The selected parts never exceed it.
///
/// # Errors
/// A parameter out of its range.
pub fn chunk_parts(
    items: &[Item],
    places: &BTreeMap<SiteId, SitePlaces>,
    parameters: &ChunkParameters,
    capacity: Bytes,
) -> Result<ChunkParts, SelectionError> {
    let sites = sites(items, places);
    let objects: Vec<DataObject<'_>> = sites.iter().map(CountedObject::view).collect();
    let mut room = capacity;
    loop {
        let selection = select(&objects, parameters, room)?;
        let chosen = parts_of(&sites, places, &selection);
        let planned = chosen.bytes(items);
        if planned <= capacity {
            return Ok(chosen);
        }
        // If objects differ in length, more of them have the first places than the last, so the parts may exceed the capacity. The capacity
        // less a page then selects at least one chunk less.
        let selected = selection.bytes();
        let fewer = selected.saturating_sub(Bytes(PAGE));
        room = Bytes(portion(selected.0, capacity.0, planned.0)).min(fewer);
    }
}

/// The sites as data objects, side by side in one address space.
fn sites(items: &[Item], places: &BTreeMap<SiteId, SitePlaces>) -> Vec<CountedObject> {
    let mut address = PAGE;
    let site = |item: &Item| {
        let accesses: Vec<u64> = match places.get(&item.site) {
            Some(places) => {
                let accesses = places.counts.iter().map(|count| count.accesses);
                division(item.value, accesses).collect()
            }
            None => vec![item.value],
        };
        let count = accesses.len() as u64;
        let grain = item.weight.0.div_ceil(count.max(1));
        let grain = grain.max(1).next_multiple_of(PAGE);
        let site = CountedObject {
            process: Process::default(),
            site: item.site,
            address,
            bytes: Bytes(grain.saturating_mul(count)),
            grain: Bytes(grain),
            accesses,
        };
        address += site.bytes.0;
        site
    };
    items.iter().map(site).collect()
}

/// The parts of the sites by the ranges of a selection.
fn parts_of(
    sites: &[CountedObject],
    places: &BTreeMap<SiteId, SitePlaces>,
    selection: &ChunkSelection,
) -> ChunkParts {
    let mut chosen = ChunkParts::default();
    for site in sites {
        let mut is_fast = vec![false; site.accesses.len()];
        for range in selection
            .ranges
            .iter()
            .filter(|range| range.site == site.site)
        {
            let first = (range.address - site.address) / site.grain.0;
            let end = first + range.bytes.0.div_ceil(site.grain.0);
            is_fast[first as usize..end as usize].fill(true);
        }
        let Some(places) = places.get(&site.site) else {
            if is_fast == [true] {
                chosen.selected.insert((site.site, Bytes::ZERO));
            }
            continue;
        };
        let mut end = 0;
        let mut parts = Vec::new();
        for run in is_fast.chunk_by(|a, b| a == b) {
            let range = end..end + run.len();
            end = range.end;
            let byte = |place: usize| Bytes((place as u64).saturating_mul(places.grain.0));
            let bytes = byte(range.start)..byte(range.end);
            let part = SitePart::of(bytes, places.counts[range].iter());
            if run[0] {
                chosen.selected.insert((site.site, part.start));
            }
            parts.push(part);
        }
        chosen.parts.insert(site.site, parts);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::chunk_parts;
    use crate::parts::part_items;
    use crate::places::{PlaceCount, SitePlaces};
    use isotherm_model::plan::Item;
    use isotherm_model::site::SiteId;
    use isotherm_model::units::Bytes;
    use isotherm_policy::chunks::ChunkParameters;
    use std::collections::BTreeMap;

    const GRAIN: u64 = 64 << 10;
    const UNEVEN: SiteId = SiteId(5);
    const WHOLE: SiteId = SiteId(6);

    fn item(site: SiteId, value: u64, weight: u64) -> Item {
        Item {
            site,
            value,
            weight: Bytes(weight),
            order: 0,
        }
    }

    /// Places whose accesses and objects these are.
    fn places(counts: impl Iterator<Item = (u64, u64)>) -> BTreeMap<SiteId, SitePlaces> {
        let count = |(accesses, objects)| PlaceCount {
            accesses,
            streamed: 0,
            bytes: objects * GRAIN,
        };
        let places = SitePlaces {
            grain: Bytes(GRAIN),
            counts: counts.map(count).collect(),
        };
        [(UNEVEN, places)].into()
    }

    /// First and end place of the parts of the uneven site that are selected, and whether the other site is.
    fn selected(
        items: &[Item],
        places: &BTreeMap<SiteId, SitePlaces>,
        capacity: u64,
    ) -> (Vec<(u64, u64)>, bool) {
        let parameters = ChunkParameters::default();
        let chosen = chunk_parts(items, places, &parameters, Bytes(capacity)).unwrap();
        assert!(chosen.bytes(items) <= Bytes(capacity));
        let parts = &chosen.parts[&UNEVEN];
        assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
        let fast = parts
            .iter()
            .filter(|part| chosen.is_selected(UNEVEN, part.start));
        let fast = fast.map(|part| (part.start.0 / GRAIN, part.end.0 / GRAIN));
        (fast.collect(), chosen.is_selected(WHOLE, Bytes::ZERO))
    }

    #[test]
    fn the_hot_places_of_a_site_are_parts_and_a_site_without_places_is_one_chunk() {
        let hot = |place| if (8..15).contains(&place) { 900 } else { 2 };
        let places = places((0..128).map(|place| (hot(place), 1)));
        let items = [item(UNEVEN, 6542, 128 * GRAIN), item(WHOLE, 500, 2 * GRAIN)];
        // Seven of eight promote the last.
        assert_eq!(selected(&items, &places, 64 * GRAIN), (vec![(8, 16)], true));
        assert_eq!(selected(&items, &places, 9 * GRAIN), (vec![(8, 15)], true));
        assert_eq!(selected(&items, &places, 8 * GRAIN), (vec![(8, 15)], false));
        assert_eq!(selected(&items, &places, 3 * GRAIN), (vec![(8, 11)], false));
        assert_eq!(selected(&items, &places, 0), (vec![], false));
    }

    #[test]
    fn all_objects_of_a_site_count_against_the_capacity() {
        let hot = |place| if place < 7 { 900 } else { 2 };
        // Four objects, of which three end after the sixteenth place.
        let objects = |place| if place < 16 { 4 } else { 1 };
        let places = places((0..128).map(|place| (hot(place), objects(place))));
        let items = [item(UNEVEN, 6542, (16 * 4 + 112) * GRAIN)];
        assert_eq!(selected(&items, &places, 32 * GRAIN).0, [(0, 8)]);
        assert_eq!(selected(&items, &places, 31 * GRAIN).0, [(0, 7)]);
        let all = chunk_parts(
            &items,
            &places,
            &ChunkParameters::default(),
            Bytes(99 * GRAIN),
        );
        let weights: Vec<u64> = part_items(&items, &all.unwrap().parts)[&UNEVEN]
            .iter()
            .map(|part| part.weight.0 / GRAIN)
            .collect();
        assert_eq!(weights, [32, 144]);
    }
}
