//! The parts of each site that differ in heat, by their place in the site's data objects: what a plan can split.
//!
//! ```text
//! objects of a site   |=======####====|
//!                     |=======####=========|      # hot
//! by place            |   a   | b  |    c  |      accesses and bytes of all objects together
//! ```
//!
//! A place in an object is the same in the next run, an address is not. Where the samples of a site do not prove that its heat is uneven
//! ([`blocks`]), it has one part, which may be cut anywhere; where places are not known, it has none. The bytes of a part are its share of the site's, by the sizes of the objects that were
//! accessed.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isotherm_model::batch::ObjectRange;
use isotherm_model::batch::{OBJECT_AT_LEAST, Process};
use isotherm_model::plan::{Item, PartItem};
use isotherm_model::profile::{Heat, Profile};
use isotherm_model::site::SiteId;
use isotherm_model::units::{Accesses, Bytes};

use crate::blocks::{Bin, blocks, penalty};
use crate::division::Division;
use crate::live_objects::BINS_OF_SITE;

/// Samples for each accessed place, on average: fewer prove nothing.
const SAMPLES_PER_BIN: f64 = 4.0;
/// Samples from which a site may be divided.
const SAMPLES_AT_LEAST: f64 = 64.0;
/// Share of a site's accesses whose place is known, from which it may be divided.
const KNOWN_AT_LEAST: f64 = 0.9;
/// Most parts of a site: each costs a guided allocation a system call.
const PARTS_AT_MOST: usize = 64;

/// A range within the data objects of a site, with what the profile says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SitePart {
    /// First byte from the object's start.
    pub start: Bytes,
    /// First byte past it.
    pub end: Bytes,
    /// Accesses.
    pub accesses: Accesses,
    /// Those of them that follow a stream.
    pub streamed: Accesses,
    /// Bytes of it in all objects that were accessed.
    pub bytes: u64,
}

/// The parts of the sites whose accesses have known places, in order and side by side.
pub type SiteParts = BTreeMap<SiteId, Vec<SitePart>>;

/// The places in the objects of a site, from the first on, and what lies in each.
#[derive(Clone, Debug, PartialEq)]
pub struct SitePlaces {
    /// Bytes of a place in an object; a multiple of the profile's coarsest bin of the site, and of its chunk where that is all that is known.
    pub grain: Bytes,
    /// What lies in each place; the objects that are shorter have no bytes in the last ones.
    pub counts: Vec<PlaceCount>,
    /// Samples of all places together.
    pub(crate) samples: f64,
}

/// What lies in one place of all objects of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceCount {
    /// Accesses.
    pub accesses: u64,
    /// Those of them that follow a stream.
    pub streamed: u64,
    /// Bytes of the objects that were accessed.
    pub bytes: u64,
}

impl SitePlaces {
    /// These places as a part.
    pub(crate) fn part(&self, places: Range<usize>) -> SitePart {
        let counts = &self.counts[places.clone()];
        let sum = |of: fn(&PlaceCount) -> u64| counts.iter().map(of).fold(0, u64::saturating_add);
        let byte = |place: usize| Bytes((place as u64).saturating_mul(self.grain.0));
        SitePart {
            start: byte(places.start),
            end: byte(places.end),
            accesses: Accesses(sum(|count| count.accesses)),
            streamed: Accesses(sum(|count| count.streamed)),
            bytes: sum(|count| count.bytes),
        }
    }

    /// The parts of even heat; one where the samples do not prove more.
    fn divide(&self) -> Vec<SitePart> {
        let accesses = self.counts.iter().map(|count| count.accesses);
        let accesses = accesses.fold(0, u64::saturating_add);
        let samples_per_access = self.samples / accesses.max(1) as f64;
        let bin = |count: &PlaceCount| Bin {
            samples: count.accesses as f64 * samples_per_access,
            bytes: count.bytes as f64,
        };
        let proof: Vec<Bin> = self.counts.iter().map(bin).collect();
        let mut penalty = penalty(self.samples);
        let mut found = blocks(&proof, penalty);
        while found.len() > PARTS_AT_MOST {
            penalty *= 2.0;
            found = blocks(&proof, penalty);
        }
        found.into_iter().map(|block| self.part(block)).collect()
    }
}

/// The parts of the sites of a profile.
#[must_use]
pub fn site_parts(profile: &Profile) -> SiteParts {
    let places = site_places(profile).into_iter();
    places
        .map(|(site, places)| (site, places.divide()))
        .collect()
}

/// The places of the sites whose accesses have known places.
#[must_use]
pub fn site_places(profile: &Profile) -> BTreeMap<SiteId, SitePlaces> {
    let samples_per_access = samples_per_access(profile);
    let mut sites = BTreeMap::<SiteId, Places>::new();
    for heat in &profile.heat {
        sites
            .entry(heat.site)
            .or_default()
            .add(heat, profile.meta.chunk);
    }
    let places = sites.iter().filter(|(site, _)| site.is_placeable());
    let counted =
        |(site, places): (&SiteId, &Places)| Some((*site, places.counted(samples_per_access)?));
    places.filter_map(counted).collect()
}

/// Accesses that one sample of the profile stands for.
#[must_use]
pub fn sample_period(profile: &Profile) -> u64 {
    let samples = samples_per_access(profile);
    if samples > 0.0 {
        (1.0 / samples).round().max(1.0) as u64
    } else {
        1
    }
}

/// The parts as a policy takes them: those of each item share its value and its weight.
#[must_use]
pub fn part_items(items: &[Item], parts: &SiteParts) -> BTreeMap<SiteId, Vec<PartItem>> {
    let of_item = |item: &Item| Some((item.site, shared(item, parts.get(&item.site)?)));
    items.iter().filter_map(of_item).collect()
}

fn shared(item: &Item, parts: &[SitePart]) -> Vec<PartItem> {
    let values = division(item.value, parts.iter().map(|part| part.accesses.0));
    let weights = division(item.weight.0, parts.iter().map(|part| part.bytes));
    let parts = parts.iter().zip(values.zip(weights));
    parts
        .map(|(part, (value, weight))| PartItem {
            start: part.start,
            end: part.end,
            value,
            weight: Bytes(weight),
        })
        .collect()
}

/// Divides a number by shares, so that the parts add up to it.
pub(crate) fn division(
    whole: u64,
    shares: impl Iterator<Item = u64> + Clone,
) -> impl Iterator<Item = u64> {
    let total = shares.clone().fold(0, u64::saturating_add);
    let mut division = Division::new(whole, total);
    shares.map(move |share| division.next(share))
}

/// Samples that one access of the profile stands for: sources count the accesses between two samples, too.
fn samples_per_access(profile: &Profile) -> f64 {
    let sources = profile.sources.iter();
    // Readers of sizes observe no accesses.
    let sources = sources.filter(|source| source.unit(false).is_some());
    let samples = sources.fold(0, |sum: u64, source| sum.saturating_add(source.usable));
    let counted = profile.heat.iter().fold(0, |sum: u64, heat| {
        sum.saturating_add(heat.accesses.0)
            .saturating_add(heat.served.0)
    });
    (samples as f64 / counted.max(1) as f64).min(1.0)
}

/// Where the accesses of a site fall in its objects.
#[derive(Default)]
struct Places {
    objects: BTreeSet<(Process, ObjectRange)>,
    /// Accesses and those that follow a stream, by the middle of the bin in the object, or of the chunk.
    counts: BTreeMap<u64, (u64, u64)>,
    /// Bytes of the coarsest bin or chunk of these accesses.
    coarsest: u64,
    known: u64,
    all: u64,
}

impl Places {
    fn add(&mut self, heat: &Heat, chunk: Bytes) {
        let accesses = heat.accesses.0;
        self.all = self.all.saturating_add(accesses);
        let Some(object) = heat.object else { return };
        let (range, bin) = (object.range, object.bin);
        self.objects.insert((heat.process, range));
        self.known = self.known.saturating_add(accesses);
        let place = |address: u64| address.saturating_sub(range.address);
        let (start, end) = match bin {
            Some(bin) => (bin.start.0, bin.start.saturating_add(bin.bytes).0),
            None => (
                place(heat.address),
                place(heat.address.saturating_add(chunk.0)),
            ),
        };
        self.coarsest = self.coarsest.max(bin.map_or(chunk, |bin| bin.bytes).0);
        let middle = start.min(range.bytes.0).midpoint(end.min(range.bytes.0));
        let counts = self.counts.entry(middle).or_default();
        counts.0 = counts.0.saturating_add(accesses);
        counts.1 = counts.1.saturating_add(heat.streamed.0);
    }

    /// What lies in each place, of places as small as the samples allow; `None` where the places are not known.
    fn counted(&self, samples_per_access: f64) -> Option<SitePlaces> {
        let samples = self.known as f64 * samples_per_access;
        let largest = self.objects.iter().map(|(_, range)| range.bytes).max();
        let largest = largest.filter(|bytes| *bytes >= OBJECT_AT_LEAST)?;
        if self.known == 0 || (self.known as f64) < self.all as f64 * KNOWN_AT_LEAST {
            return None;
        }
        let bin = self.grain(largest, samples);
        Some(SitePlaces {
            grain: Bytes(bin),
            counts: self.bins(bin, largest.0.div_ceil(bin) as usize),
            samples,
        })
    }

    /// Bytes of a place: so many that each place has its samples, if the heat is even. Where it is not, the places are halved as long as
    /// those that were accessed have theirs, because the others need none.
    fn grain(&self, largest: Bytes, samples: f64) -> u64 {
        let finest = self.coarsest.max(1);
        let multiple = |bytes: u64| bytes.checked_next_multiple_of(finest).unwrap_or(u64::MAX);
        if samples < SAMPLES_AT_LEAST {
            return multiple(largest.0);
        }
        let most = ((samples / SAMPLES_PER_BIN) as u64).clamp(1, BINS_OF_SITE);
        let mut grain = multiple(largest.0.div_ceil(most));
        loop {
            let half = multiple(grain.div_ceil(2));
            let is_enough = samples >= self.accessed(half) as f64 * SAMPLES_PER_BIN;
            if half >= grain || largest.0.div_ceil(half) > BINS_OF_SITE || !is_enough {
                return grain;
            }
            grain = half;
        }
    }

    /// How many places of this length were accessed.
    fn accessed(&self, grain: u64) -> usize {
        let with_heat = self
            .counts
            .iter()
            .filter(|(_, (accesses, _))| *accesses > 0);
        let mut numbers: Vec<u64> = with_heat.map(|(middle, _)| middle / grain).collect();
        numbers.dedup();
        numbers.len()
    }

    /// What lies in each bin of the objects.
    fn bins(&self, bin: u64, bins: usize) -> Vec<PlaceCount> {
        let mut counts = vec![PlaceCount::default(); bins];
        let last = bins.saturating_sub(1);
        for (place, (accesses, streamed)) in &self.counts {
            let count = &mut counts[((place / bin) as usize).min(last)];
            count.accesses = count.accesses.saturating_add(*accesses);
            count.streamed = count.streamed.saturating_add(*streamed);
        }
        // Objects that reach beyond a bin have all of it, the others their rest.
        let mut whole_to = vec![0_u64; bins + 1];
        for (_, range) in &self.objects {
            let full = (range.bytes.0 / bin) as usize;
            whole_to[full.min(bins)] += 1;
            if let Some(count) = counts.get_mut(full) {
                count.bytes = count.bytes.saturating_add(range.bytes.0 % bin);
            }
        }
        let mut reach = 0;
        for (number, count) in counts.iter_mut().enumerate().rev() {
            reach += whole_to[number + 1];
            count.bytes = count.bytes.saturating_add(reach.saturating_mul(bin));
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::{part_items, site_parts, site_places};
    use isotherm_model::batch::ObjectRange;
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::plan::Item;
    use isotherm_model::profile::{Heat, HeatBin, HeatObject, Meta, Profile};
    use isotherm_model::site::SiteId;
    use isotherm_model::units::{Accesses, Bytes};

    const CHUNK: u64 = 64 << 10;
    const SITE: SiteId = SiteId(5);

    /// A profile of objects of `sizes` chunks, one after another, whose chunk n was accessed `heat(n)` times.
    fn profile(sizes: &[u64], heat: impl Fn(u64) -> u64) -> Profile {
        let mut profile = Profile::new(Meta {
            chunk: Bytes(CHUNK),
            ..Meta::default()
        });
        let mut address = 7 << 30;
        for chunks in sizes {
            let object = ObjectRange {
                address,
                bytes: Bytes(chunks * CHUNK),
            };
            profile.heat.extend((0..*chunks).map(|chunk| Heat {
                epoch: Epoch(0),
                process: Process::default(),
                site: SITE,
                address: address + chunk * CHUNK,
                object: Some(object.into()),
                accesses: Accesses(heat(chunk)),
                streamed: Accesses(heat(chunk) / 2),
                served: Accesses(0),
            }));
            address += 2 * chunks * CHUNK;
        }
        let total = profile.heat.iter().map(|heat| heat.accesses.0).sum();
        profile.sources = vec![SourceReport {
            taken: total,
            usable: total,
            ..SourceReport::new("timer", "")
        }];
        profile
    }

    #[test]
    fn the_hot_part_of_an_array_is_found_by_its_place() {
        let hot = |chunk| if (10..20).contains(&chunk) { 40 } else { 2 };
        let parts = site_parts(&profile(&[100], hot));
        let facts: Vec<_> = parts[&SITE]
            .iter()
            .map(|part| {
                (
                    part.start.0 / CHUNK,
                    part.end.0 / CHUNK,
                    part.accesses.0,
                    part.streamed.0,
                    part.bytes / CHUNK,
                )
            })
            .collect();
        assert_eq!(
            facts,
            [
                (0, 10, 20, 10, 10),
                (10, 20, 400, 200, 10),
                (20, 100, 160, 80, 80)
            ]
        );
        let item = Item {
            site: SITE,
            value: 1160,
            weight: Bytes(1000),
            order: 0,
        };
        let items = part_items(&[item], &parts);
        let shares: Vec<_> = items[&SITE]
            .iter()
            .map(|part| (part.value, part.weight.0))
            .collect();
        assert_eq!(shares, [(40, 100), (800, 100), (320, 800)]);
    }

    const PAGE: u64 = 4 << 10;

    /// A profile of one object of so many pages, with bins of a page, one sample for each of these.
    fn by_page(pages: u64, samples: impl Iterator<Item = u64>) -> Profile {
        let mut profile = profile(&[], |_| 0);
        let range = ObjectRange {
            address: (7 << 30) + PAGE,
            bytes: Bytes(pages * PAGE),
        };
        let heat = samples.map(|page| Heat {
            epoch: Epoch(0),
            process: Process::default(),
            site: SITE,
            address: (range.address + page * PAGE) / CHUNK * CHUNK,
            object: Some(HeatObject {
                range,
                bin: HeatBin::new(Bytes(page * PAGE), Bytes(PAGE), &range),
            }),
            accesses: Accesses(1),
            streamed: Accesses(0),
            served: Accesses(0),
        });
        profile.heat.extend(heat);
        profile.sources[0].usable = profile.heat.len() as u64;
        profile
    }

    /// Numbers below a limit, by SplitMix64.
    fn at_random(seed: u64, limit: u64) -> impl Iterator<Item = u64> {
        let mut state = seed;
        std::iter::from_fn(move || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            Some((z ^ (z >> 31)) % limit)
        })
    }

    #[test]
    fn bins_find_hot_pages_within_a_chunk() {
        // Pages 21 and 22 have 400 samples each, all others together as many.
        let hot = (0..800).map(|number| 21 + number % 2);
        let profile = by_page(128, hot.chain(at_random(1, 128).take(800)));
        let facts: Vec<_> = site_parts(&profile)[&SITE]
            .iter()
            .map(|part| (part.start.0 / PAGE, part.end.0 / PAGE))
            .collect();
        assert_eq!(facts, [(0, 21), (21, 23), (23, 128)]);
    }

    #[test]
    fn a_site_that_is_heated_evenly_is_whole_however_fine_its_bins_are() {
        for seed in 0..40 {
            for (pages, samples) in [(64, 100), (256, 1_000), (2048, 3_000), (2048, 60_000)] {
                let profile = by_page(pages, at_random(seed, pages).take(samples));
                let parts = site_parts(&profile);
                assert_eq!(
                    parts[&SITE].len(),
                    1,
                    "seed {seed}, {pages} pages: {parts:?}"
                );
            }
        }
    }

    #[test]
    fn places_are_as_small_as_size_samples_and_heat_allow() {
        let grain = |profile: &Profile| site_places(profile)[&SITE].grain.0 / PAGE;
        // Even: four samples each, on average.
        assert_eq!(grain(&by_page(1024, at_random(1, 1024).take(400))), 11);
        assert_eq!(grain(&by_page(1024, at_random(1, 1024).take(800))), 6);
        // Few samples: one place.
        assert_eq!(grain(&by_page(1024, at_random(1, 1024).take(60))), 1024);
        // All heat in 32 pages: those have enough samples for places of a page.
        assert_eq!(grain(&by_page(1024, at_random(1, 32).take(400))), 1);
        // A large object: no more places than its division can take.
        assert_eq!(grain(&by_page(65_536, at_random(1, 32).take(4_000))), 33);
    }

    #[test]
    fn a_row_without_a_bin_makes_places_of_chunks() {
        let mut profile = by_page(1024, at_random(1, 32).take(400));
        for heat in profile.heat.iter_mut().take(1) {
            heat.object = heat.object.map(|object| object.range.into());
        }
        let grain = site_places(&profile)[&SITE].grain.0;
        assert_eq!(grain % CHUNK, 0, "{grain}");
    }

    #[test]
    fn sizes_at_their_limits_do_not_panic() {
        for bytes in [1 << 63, u64::MAX] {
            let mut profile = by_page(1024, at_random(1, 1024).take(400));
            for heat in &mut profile.heat {
                let bytes = Bytes(bytes);
                heat.object = Some(ObjectRange { address: 5, bytes }.into());
            }
            let range = ObjectRange {
                address: 5,
                bytes: Bytes(bytes),
            };
            let bin = HeatBin::new(Bytes(0), Bytes(1 << 62), &range);
            profile.heat[0].object = Some(HeatObject { range, bin });
            assert!(!site_parts(&profile)[&SITE].is_empty());
        }
    }

    #[test]
    fn objects_of_one_site_are_joined_by_place() {
        let hot = |chunk| if chunk < 8 { 30 } else { 1 };
        let parts = site_parts(&profile(&[40, 40, 20], hot));
        let facts: Vec<_> = parts[&SITE]
            .iter()
            .map(|part| (part.end.0 / CHUNK, part.bytes / CHUNK))
            .collect();
        assert_eq!(facts, [(8, 24), (40, 12 + 64)]);
    }

    #[test]
    fn even_heat_and_few_samples_make_one_part_and_unknown_places_none() {
        let parts = |profile: &Profile| site_parts(profile).get(&SITE).map_or(0, Vec::len);
        assert_eq!(parts(&profile(&[100], |_| 9)), 1);
        let uneven = |chunk| u64::from(chunk < 3) * 60;
        assert_eq!(parts(&profile(&[100], |chunk| uneven(chunk) / 30)), 1);
        let mut unknown = profile(&[100], uneven);
        assert_eq!(parts(&unknown), 2);
        for heat in unknown.heat.iter_mut().step_by(2) {
            heat.object = None;
        }
        assert_eq!(parts(&unknown), 0);
        // One sample stands for a thousand accesses.
        let mut sampled = profile(&[100], uneven);
        sampled.sources[0].usable = 12;
        assert_eq!(parts(&sampled), 1);
    }
}
