//! Adds up the accesses to a site by their offset within its data objects, over all objects of the site: in places of one length
//! ([`site_places`]) or of many ([`uneven_places`]). Sites are left out if too few of their accesses have a known offset. [`sample_period`]
//! finds the accesses that one sample represents.
//!
//! ```text
//! objects of a site   |=======####====|
//!                     |=======####=========|
//! equal places        | 1 | 0 | 9 | 1 | 1 |      the chunks of a selection (ATMem)
//! uneven places       |   1   |4|5|   2   |      what is divided into blocks of even heat
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use isotherm_model::batch::{OBJECT_AT_LEAST, Process};
use isotherm_model::movement::AddressRange;
use isotherm_model::profile::{Heat, HeatBin, Profile};
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;
use isotherm_policy::PAGE;

use crate::division::Division;
use crate::place_tree::{self, Halving, RangeCount};

/// Samples for each accessed place, on average: fewer prove nothing.
const SAMPLES_PER_PLACE: f64 = 4.0;
/// Samples from which a site may be divided.
const SAMPLES_AT_LEAST: f64 = 64.0;
/// Share of a site's accesses whose place is known, from which it may be divided.
const KNOWN_AT_LEAST: f64 = 0.9;
/// Most equal places of a site: as many as a selection takes.
const EQUAL_PLACES_AT_MOST: u64 = 4096;
/// Share of a site's accesses that may be known by longer ranges than a place; they are spread over the places.
const LONGER_AT_MOST: f64 = 0.1;

/// The places in the objects of a site, side by side from the first byte on, and the counts of each.
#[derive(Clone, Debug, PartialEq)]
pub struct SitePlaces {
    /// Bytes of a place in an object; a multiple of the bin or chunk by which nine in ten of the site's accesses are known.
    pub grain: Bytes,
    /// The counts of each place; shorter objects have no bytes in the last places.
    pub counts: Vec<PlaceCount>,
}

/// The counts of one place in all objects of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlaceCount {
    /// Accesses.
    pub accesses: u64,
    /// Accesses that follow a stream.
    pub streamed: u64,
    /// Bytes of the objects that were accessed.
    pub bytes: u64,
}

/// Places of any length, side by side.
pub(crate) struct UnevenPlaces {
    pub(crate) places: Vec<(Range<Bytes>, PlaceCount)>,
    /// Samples of all places together.
    pub(crate) samples: f64,
}

/// The places of each site whose accesses have known places; all places of a site have one length.
#[must_use]
pub fn site_places(profile: &Profile) -> BTreeMap<SiteId, SitePlaces> {
    of_sites(profile, Places::equal)
}

/// The places of the sites whose accesses have known places, shorter where there are more accesses.
pub(crate) fn uneven_places(profile: &Profile) -> BTreeMap<SiteId, UnevenPlaces> {
    of_sites(profile, Places::uneven)
}

fn of_sites<T>(profile: &Profile, form: impl Fn(&Places, Known) -> T) -> BTreeMap<SiteId, T> {
    let samples_per_access = samples_per_access(profile);
    let mut sites = BTreeMap::<SiteId, Places>::new();
    for heat in &profile.heat {
        sites
            .entry(heat.site)
            .or_default()
            .add(heat, profile.meta.chunk);
    }
    let places = sites.iter().filter(|(site, _)| site.is_placeable());
    let formed = |(site, places): (&SiteId, &Places)| {
        let known = places.known(samples_per_access)?;
        Some((*site, form(places, known)))
    };
    places.filter_map(formed).collect()
}

/// Accesses that one sample of the profile represents.
#[must_use]
pub fn sample_period(profile: &Profile) -> u64 {
    let samples = samples_per_access(profile);
    if samples > 0.0 {
        (1.0 / samples).round().max(1.0) as u64
    } else {
        1
    }
}

/// Samples that one access of the profile represents, at most 1: sources count the accesses between two samples, too.
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

/// A site whose places are known.
#[derive(Clone, Copy)]
struct Known {
    /// Length of its longest object.
    largest: Bytes,
    samples_per_access: f64,
    samples: f64,
}

/// The accesses of a site by their place in its objects.
#[derive(Default)]
struct Places {
    objects: BTreeSet<(Process, AddressRange)>,
    /// All accesses and those that follow a stream, by the bin in the object, or by the chunk.
    counts: BTreeMap<(u64, u64), [u64; 2]>,
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
        if accesses == 0 {
            return;
        }
        self.known = self.known.saturating_add(accesses);
        let place = |address: u64| address.saturating_sub(range.start);
        let (start, end) = match bin {
            Some(bin) => (bin.start.0, bin.start.saturating_add(bin.bytes).0),
            None => (
                place(heat.address),
                place(heat.address.saturating_add(chunk.0)),
            ),
        };
        let within = (start.min(range.bytes.0), end.min(range.bytes.0));
        let counts = self.counts.entry(within).or_default();
        for (sum, count) in counts.iter_mut().zip([accesses, heat.streamed.0]) {
            *sum = sum.saturating_add(count);
        }
    }

    /// The site's lengths and samples; `None` where the places are not known.
    fn known(&self, samples_per_access: f64) -> Option<Known> {
        let largest = self.objects.iter().map(|(_, range)| range.bytes).max();
        let largest = largest.filter(|bytes| *bytes >= OBJECT_AT_LEAST)?;
        if self.known == 0 || (self.known as f64) < self.all as f64 * KNOWN_AT_LEAST {
            return None;
        }
        Some(Known {
            largest,
            samples_per_access,
            samples: self.known as f64 * samples_per_access,
        })
    }

    fn ranges(&self) -> impl Iterator<Item = RangeCount> + '_ {
        self.counts.iter().map(|((start, end), counts)| RangeCount {
            start: *start,
            end: *end,
            counts: *counts,
        })
    }

    /// Places that are halved as long as each half has its samples, if its heat is even.
    fn uneven(&self, known: Known) -> UnevenPlaces {
        let accesses = 2.0 * SAMPLES_PER_PLACE / known.samples_per_access;
        let divisible = known.samples >= SAMPLES_AT_LEAST;
        let halving = Halving {
            object: known.largest.0,
            accesses: if divisible { accesses as u64 } else { u64::MAX },
            least: HeatBin::LEAST.0,
        };
        let lengths = Lengths::of(self.objects.iter().map(|(_, range)| range.bytes.0));
        let place = |place: RangeCount| {
            let count = PlaceCount {
                accesses: place.counts[0],
                streamed: place.counts[1],
                bytes: lengths.within(place.start..place.end),
            };
            (Bytes(place.start)..Bytes(place.end), count)
        };
        let found = place_tree::places(self.ranges().collect(), halving);
        let mut places: Vec<_> = found.into_iter().map(place).collect();
        // Parts are whole pages.
        if let Some((last, _)) = places.last_mut() {
            last.end.0 = last
                .end
                .0
                .checked_next_multiple_of(PAGE)
                .unwrap_or(u64::MAX);
        }
        UnevenPlaces {
            places,
            samples: known.samples,
        }
    }

    /// Places of one length, as small as the samples allow.
    fn equal(&self, known: Known) -> SitePlaces {
        let grain = self.grain(known);
        let places = known.largest.0.div_ceil(grain) as usize;
        let mut counts = vec![PlaceCount::default(); places];
        for range in self.ranges() {
            let mut add = |place: u64, [accesses, streamed]: [u64; 2]| {
                let count = &mut counts[(place as usize).min(places - 1)];
                count.accesses = count.accesses.saturating_add(accesses);
                count.streamed = count.streamed.saturating_add(streamed);
            };
            if range.bytes() <= grain {
                add(range.middle() / grain, range.counts);
                continue;
            }
            let mut divisions = range
                .counts
                .map(|count| Division::new(count, range.bytes()));
            let (first, end) = (range.start / grain, range.end.div_ceil(grain));
            for place in first..end.min(places as u64) {
                let start = place.saturating_mul(grain).max(range.start);
                let bytes = (place + 1).saturating_mul(grain).min(range.end) - start;
                add(
                    place,
                    divisions.each_mut().map(|division| division.next(bytes)),
                );
            }
        }
        let lengths = Lengths::of(self.objects.iter().map(|(_, range)| range.bytes.0));
        for (number, count) in (0_u64..).zip(&mut counts) {
            let start = number.saturating_mul(grain);
            count.bytes = lengths.within(start..start.saturating_add(grain));
        }
        SitePlaces {
            grain: Bytes(grain),
            counts,
        }
    }

    /// Bytes of an equal place: long enough that each place has its samples if the heat is even. If it is not, the places are halved as
    /// long as those that were accessed have their samples, because the others need none.
    fn grain(&self, known: Known) -> u64 {
        let finest = self.usual_length();
        let (largest, samples) = (known.largest.0, known.samples);
        let multiple = |bytes: u64| bytes.checked_next_multiple_of(finest).unwrap_or(u64::MAX);
        if samples < SAMPLES_AT_LEAST {
            return multiple(largest);
        }
        let most = ((samples / SAMPLES_PER_PLACE) as u64).clamp(1, EQUAL_PLACES_AT_MOST);
        let mut grain = multiple(largest.div_ceil(most));
        loop {
            let half = multiple(grain.div_ceil(2));
            let is_enough = samples >= self.accessed(half) as f64 * SAMPLES_PER_PLACE;
            if half >= grain || largest.div_ceil(half) > EQUAL_PLACES_AT_MOST || !is_enough {
                return grain;
            }
            grain = half;
        }
    }

    /// Length of the ranges by which most accesses are known.
    fn usual_length(&self) -> u64 {
        let mut by_length = BTreeMap::<u64, u64>::new();
        for range in self.ranges() {
            let sum = by_length.entry(range.bytes()).or_default();
            *sum = sum.saturating_add(range.counts[0]);
        }
        let mut longer = 0_u64;
        let usual = by_length.iter().rev().find(|(_, accesses)| {
            longer = longer.saturating_add(**accesses);
            longer as f64 > self.known as f64 * LONGER_AT_MOST
        });
        let length = usual.map_or(0, |(length, _)| *length).max(PAGE);
        // The last bin of an object, and a chunk at its end, are cut.
        length.checked_next_power_of_two().unwrap_or(1 << 63)
    }

    /// Number of places of this length that were accessed.
    fn accessed(&self, grain: u64) -> usize {
        let mut numbers: Vec<u64> = self.ranges().map(|range| range.middle() / grain).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.len()
    }
}

/// The lengths of the objects of a site.
struct Lengths {
    /// The lengths in order, each with the sum of those before it.
    sums: Vec<(u64, u128)>,
}

impl Lengths {
    fn of(lengths: impl Iterator<Item = u64>) -> Self {
        let mut lengths: Vec<u64> = lengths.collect();
        lengths.sort_unstable();
        let mut sum = 0;
        let with_sum = |length: u64| {
            let before = sum;
            sum += u128::from(length);
            (length, before)
        };
        Self {
            sums: lengths.into_iter().map(with_sum).collect(),
        }
    }

    /// Bytes of all objects that lie between two places in them.
    fn within(&self, range: Range<u64>) -> u64 {
        let bytes = self.before(range.end) - self.before(range.start);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Bytes of all objects before a place in them; a shorter object counts its whole length.
    fn before(&self, place: u64) -> u128 {
        let shorter = self.sums.partition_point(|(length, _)| *length <= place);
        let of_shorter = match shorter.checked_sub(1) {
            Some(last) => self.sums[last].1 + u128::from(self.sums[last].0),
            None => 0,
        };
        let longer = (self.sums.len() - shorter) as u128;
        of_shorter + longer * u128::from(place)
    }
}

#[cfg(test)]
mod tests {
    use super::Lengths;

    #[test]
    fn an_object_has_no_bytes_behind_its_end() {
        let lengths = Lengths::of([40, 10, 40].into_iter());
        assert_eq!(lengths.within(0..10), 30);
        assert_eq!(lengths.within(5..20), 15 + 20);
        assert_eq!(lengths.within(10..100), 60);
        assert_eq!(lengths.within(40..100), 0);
        let longest = Lengths::of([u64::MAX; 3].into_iter());
        assert_eq!(longest.within(0..u64::MAX), u64::MAX);
    }
}
