//! [`site_parts`] divides the data objects of each site into parts of even heat, which a plan can place in different tiers; [`part_items`]
//! shares the value and weight of a site among its parts, for policies.
//!
//! ```text
//! objects of a site   |=======####====|
//!                     |=======####=========|      # hot
//! by place            |   a   | b  |    c  |      accesses and bytes of all objects together
//! ```
//!
//! A place in an object is the same in the next run, an address is not. A site has one part if its samples do not prove that its heat is
//! uneven ([`blocks`]): it may be cut anywhere. If places are not known, it has none. The bytes of a part are its share of the site's, by
//! the sizes of the objects that were accessed.

use std::collections::BTreeMap;
use std::ops::Range;

use isotherm_model::plan::{Item, PartItem};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::{Accesses, Bytes};

use crate::blocks::{Bin, blocks, penalty};
use crate::division::Division;
use crate::places::{PlaceCount, UnevenPlaces, uneven_places};

/// Most parts of a site: each part costs a guided allocation a system call.
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
    /// Accesses that follow a stream.
    pub streamed: Accesses,
    /// Bytes of the part in all objects that were accessed.
    pub bytes: u64,
}

impl SitePart {
    /// A range of an object with the sums of the places in it.
    pub(crate) fn of<'a>(
        range: Range<Bytes>,
        places: impl Iterator<Item = &'a PlaceCount> + Clone,
    ) -> Self {
        let sum = |of: fn(&PlaceCount) -> u64| places.clone().map(of).fold(0, u64::saturating_add);
        Self {
            start: range.start,
            end: range.end,
            accesses: Accesses(sum(|place| place.accesses)),
            streamed: Accesses(sum(|place| place.streamed)),
            bytes: sum(|place| place.bytes),
        }
    }
}

/// The parts of the sites whose accesses have known places, in order and side by side.
pub type SiteParts = BTreeMap<SiteId, Vec<SitePart>>;

/// The parts of the sites of a profile.
#[must_use]
pub fn site_parts(profile: &Profile) -> SiteParts {
    let places = uneven_places(profile).into_iter();
    places
        .map(|(site, places)| (site, divided(&places)))
        .collect()
}

/// The parts of even heat; a single part where the samples do not prove more.
fn divided(places: &UnevenPlaces) -> Vec<SitePart> {
    let UnevenPlaces { places, samples } = places;
    let accesses = places.iter().map(|(_, count)| count.accesses);
    let accesses = accesses.fold(0, u64::saturating_add);
    let samples_per_access = samples / accesses.max(1) as f64;
    let bin = |(_, count): &(_, PlaceCount)| Bin {
        samples: count.accesses as f64 * samples_per_access,
        bytes: count.bytes as f64,
    };
    let proof: Vec<Bin> = places.iter().map(bin).collect();
    let mut penalty = penalty(*samples);
    let mut found = blocks(&proof, penalty);
    while found.len() > PARTS_AT_MOST {
        penalty *= 2.0;
        found = blocks(&proof, penalty);
    }
    let part = |block: Range<usize>| {
        let (start, end) = (places[block.start].0.start, places[block.end - 1].0.end);
        SitePart::of(start..end, places[block].iter().map(|(_, count)| count))
    };
    found.into_iter().map(part).collect()
}

/// The parts as a policy takes them: the parts of each item share its value and its weight.
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

#[cfg(test)]
mod tests {
    use super::{SitePart, part_items, site_parts};
    use crate::places::site_places;
    use isotherm_model::batch::{Epoch, Process, SourceReport};
    use isotherm_model::movement::AddressRange;
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
            let object = AddressRange {
                start: address,
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

    /// A profile of one object of `pages` pages, with bins of a page; each item of `samples` is the page of one sample.
    fn by_page(pages: u64, samples: impl Iterator<Item = u64>) -> Profile {
        let mut profile = profile(&[], |_| 0);
        let range = AddressRange {
            start: (7 << 30) + PAGE,
            bytes: Bytes(pages * PAGE),
        };
        let heat = samples.map(|page| Heat {
            epoch: Epoch(0),
            process: Process::default(),
            site: SITE,
            address: (range.start + page * PAGE) / CHUNK * CHUNK,
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
        // A large object: no more places than a selection takes.
        assert_eq!(grain(&by_page(65_536, at_random(1, 32).take(4_000))), 17);
    }

    #[test]
    fn rows_without_a_bin_make_places_of_chunks_where_they_are_more_than_few() {
        let grain_and_parts = |without: usize| {
            let mut profile = by_page(1024, at_random(1, 32).take(400));
            for heat in profile.heat.iter_mut().take(without) {
                heat.object = heat.object.map(|object| object.range.into());
            }
            let places = site_places(&profile).remove(&SITE).expect("is known");
            let accesses = places.counts.iter().map(|count| count.accesses);
            assert_eq!(accesses.sum::<u64>(), 400);
            let first = site_parts(&profile)[&SITE][0];
            (places.grain.0 / PAGE, first.end.0 / PAGE)
        };
        // The object begins a page behind its first chunk.
        assert_eq!(grain_and_parts(4), (1, 32));
        assert_eq!(grain_and_parts(200).0, 16);
        assert_eq!(grain_and_parts(200).1 % 16, 0);
    }

    #[test]
    fn a_hot_place_of_three_mebibytes_in_a_large_object_is_found_to_the_page() {
        const PAGES: u64 = 512 << 8;
        let (first, hot) = (71_003, 3 << 8);
        for samples in [3_000_usize, 30_000] {
            let random = at_random(samples as u64, PAGES).take(samples);
            let hot_samples = at_random(7, hot).take(samples).map(|page| first + page);
            let parts = site_parts(&by_page(PAGES, random.chain(hot_samples)));
            let density = |part: &&SitePart| part.accesses.0 * PAGES / part.bytes;
            let hottest = parts[&SITE].iter().max_by_key(density);
            let hottest = hottest.expect("is known");
            let (start, end) = (hottest.start.0 / PAGE, hottest.end.0 / PAGE);
            assert!(start.abs_diff(first) <= 4, "{start} {end}");
            assert!(end.abs_diff(first + hot) <= 4, "{start} {end}");
            // A place at the edge may be a part of its own.
            assert!(parts[&SITE].len() <= 5, "{parts:?}");
        }
    }

    #[test]
    fn sizes_at_their_limits_do_not_panic() {
        for bytes in [1 << 63, u64::MAX] {
            let mut profile = by_page(1024, at_random(1, 1024).take(400));
            for heat in &mut profile.heat {
                let bytes = Bytes(bytes);
                heat.object = Some(AddressRange { start: 5, bytes }.into());
            }
            let range = AddressRange {
                start: 5,
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
