//! Chooses the bins (ranges of data objects) that count an epoch's accesses, for [`Attribution`](crate::Attribution): [`finest`] gives the
//! bin of one access, a page or more, and [`bounded`] limits their number: a site with too many keeps pages where its data is hot, and gets
//! longer bins elsewhere.
//!
//! ```text
//! accesses of pages          | 9 | 8 | 1 |   | 1 |   | 1 | 1 |
//! bins of 2 accesses or more | 9 | 8 |   |   |       |   2   |   the rest counts by chunk: 2
//! ```
//!
//! Where a site has more bins in an epoch than [`BINS_OF_SITE`], each must hold a number of accesses, the smallest power of two that leaves
//! no more bins than that. Colder pages join their neighbours in a bin of twice the length, and so on up to the chunk. So cold data costs
//! few rows and hot data stays exact, however large the object is.

use std::collections::BTreeMap;

use isotherm_model::batch::Process;
use isotherm_model::profile::{HeatBin, HeatObject};
use isotherm_model::site::SiteId;
use isotherm_model::units::{Accesses, Bytes};

/// Most bins of a site in an epoch, which is the most rows of heat beside those by chunk.
pub(crate) const BINS_OF_SITE: usize = 2048;

/// The key of a row of heat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HeatKey {
    pub(crate) process: Process,
    /// Address of the chunk.
    pub(crate) chunk: u64,
    pub(crate) site: SiteId,
    pub(crate) object: Option<HeatObject>,
}

/// The sums of an epoch: accesses, those that follow a stream, those that the caches served.
pub(crate) type HeatSums = BTreeMap<HeatKey, [Accesses; 3]>;

type Row = (HeatKey, [Accesses; 3]);

/// Length of the bin of an access to a range of this length: the length as a power of two, and no less than a page.
pub(crate) fn finest(accessed: Bytes) -> u64 {
    let bytes = accessed.max(HeatBin::LEAST).0;
    bytes.checked_next_power_of_two().unwrap_or(1 << 63)
}

/// The sums with at most [`BINS_OF_SITE`] bins of each site. No access is lost.
pub(crate) fn bounded(sums: HeatSums, chunk: u64) -> HeatSums {
    let binned = sums.keys().filter(|key| has_bin(key));
    let mut bins = isotherm_model::sums::sums(binned.map(|key| (key.site, 1)));
    bins.retain(|_, bins| *bins > BINS_OF_SITE);
    if bins.is_empty() {
        return sums;
    }
    let mut many = BTreeMap::<SiteId, Vec<Row>>::new();
    let mut all = HeatSums::new();
    for (key, counts) in sums {
        if bins.contains_key(&key.site) {
            many.entry(key.site).or_default().push((key, counts));
        } else {
            all.insert(key, counts);
        }
    }
    for rows in many.into_values() {
        all.extend(fewer(rows, chunk));
    }
    all
}

fn has_bin(key: &HeatKey) -> bool {
    key.object.is_some_and(|object| object.bin.is_some())
}

/// The rows of a site, with the finest bins that keep to [`BINS_OF_SITE`].
fn fewer(rows: Vec<Row>, chunk: u64) -> Vec<Row> {
    let bins = |rows: &[Row]| rows.iter().filter(|(key, _)| has_bin(key)).count();
    let mut found = rows.clone();
    for power in 0..u64::BITS {
        if bins(&found) <= BINS_OF_SITE {
            break;
        }
        found = coarsened(rows.clone(), 1 << power, chunk);
    }
    found
}

/// The rows with bins of at least `least` accesses; all other accesses are counted by chunk.
fn coarsened(rows: Vec<Row>, least: u64, chunk: u64) -> Vec<Row> {
    let (mut pending, mut kept): (Vec<Row>, Vec<Row>) =
        rows.into_iter().partition(|(key, _)| has_bin(key));
    let mut bytes = HeatBin::LEAST.0;
    while !pending.is_empty() {
        for (key, _) in &mut pending {
            key.object = key.object.map(|object| within(object, bytes, chunk));
        }
        // A longer bin, made by an access to a range, waits until the others have its length.
        let is_decided = |(key, counts): &Row| {
            let bin = key.object.and_then(|object| object.bin);
            bin.is_none_or(|bin| bin.bytes.0 == bytes && counts[0].0 >= least)
        };
        let (decided, rest) = joined(pending).into_iter().partition(is_decided);
        kept.extend::<Vec<Row>>(decided);
        pending = rest;
        bytes = bytes.saturating_mul(2);
    }
    joined(kept)
}

/// An object with its bin widened to this length, if it is shorter. A bin as long as a chunk is dropped.
fn within(object: HeatObject, bytes: u64, chunk: u64) -> HeatObject {
    let widened = |bin: HeatBin| {
        if bin.bytes.0 >= bytes {
            return Some(bin);
        }
        let start = Bytes(bin.start.0 / bytes * bytes);
        HeatBin::new(start, Bytes(bytes), &object.range).filter(|_| bytes < chunk)
    };
    HeatObject {
        range: object.range,
        bin: object.bin.and_then(widened),
    }
}

/// The rows by key; those with the same key are added up.
fn joined(mut rows: Vec<Row>) -> Vec<Row> {
    rows.sort_by_key(|(key, _)| *key);
    rows.dedup_by(|(key, counts), (kept, sums)| {
        let is_same = key == kept;
        if is_same {
            for (sum, count) in sums.iter_mut().zip(counts) {
                *sum += *count;
            }
        }
        is_same
    });
    rows
}

#[cfg(test)]
mod tests {
    use super::{BINS_OF_SITE, HeatKey, HeatSums, bounded, finest};
    use isotherm_model::batch::Process;
    use isotherm_model::movement::AddressRange;
    use isotherm_model::profile::{HeatBin, HeatObject};
    use isotherm_model::site::SiteId;
    use isotherm_model::units::{Accesses, Bytes};

    const PAGE: u64 = 4096;
    const CHUNK: u64 = 64 << 10;

    /// Accesses to pages of an object that begins in the middle of a chunk.
    fn sums(pages: impl Iterator<Item = (u64, u64)>) -> HeatSums {
        let range = AddressRange {
            start: (7 << 30) + CHUNK / 2,
            bytes: Bytes(1 << 30),
        };
        let row = |(page, accesses): (u64, u64)| {
            let bin = HeatBin::new(Bytes(page * PAGE), Bytes(PAGE), &range);
            let key = HeatKey {
                process: Process::default(),
                chunk: (range.start + page * PAGE) / CHUNK * CHUNK,
                site: SiteId(5),
                object: Some(HeatObject { range, bin }),
            };
            (key, [accesses, accesses / 2, 1].map(Accesses))
        };
        pages.map(row).collect()
    }

    fn bin(key: &HeatKey) -> Option<(u64, u64)> {
        let bin = key.object.expect("of the object").bin?;
        Some((bin.start.0 / PAGE, bin.bytes.0 / PAGE))
    }

    fn totals(sums: &HeatSums) -> [u64; 3] {
        [0, 1, 2].map(|number| sums.values().map(|counts| counts[number].0).sum())
    }

    #[test]
    fn few_pages_keep_their_bins_whatever_is_in_them() {
        let before = sums((0..BINS_OF_SITE as u64).map(|page| (page * 90, page % 3)));
        assert_eq!(bounded(before.clone(), CHUNK), before);
    }

    #[test]
    fn hot_pages_keep_their_bins_and_cold_ones_count_by_longer_bins_or_by_chunk() {
        // A gibibyte of which each eighth page was accessed once, pages 5,000 to 5,700 nine times, and all pages of its last MiB once.
        let cold = (0..262_144).step_by(8).map(|page| (page, 1));
        let hot = (5_000..5_700).map(|page| (page, 9));
        let near = (261_888..262_144).map(|page| (page, 1));
        let before = sums(cold.chain(near).chain(hot));
        let after = bounded(before.clone(), CHUNK);
        assert_eq!(totals(&after), totals(&before));
        let bins: Vec<(u64, u64)> = after.keys().filter_map(bin).collect();
        assert!(bins.len() <= BINS_OF_SITE, "{}", bins.len());
        assert!((5_000..5_700).all(|page| bins.contains(&(page, 1))));
        let longer: Vec<_> = bins.iter().filter(|(_, pages)| *pages > 1).collect();
        assert!(!longer.is_empty() && longer.iter().all(|(start, _)| *start >= 261_888));
        let chunks = after.keys().filter(|key| bin(key).is_none()).count();
        assert!(chunks <= 16_385, "{chunks}");
    }

    #[test]
    fn an_even_heat_has_bins_of_one_length_as_short_as_there_may_be_of_them() {
        let before = sums((0..8_192).map(|page| (page, 3)));
        let after = bounded(before.clone(), CHUNK);
        assert_eq!(totals(&after), totals(&before));
        assert!(
            after
                .keys()
                .all(|key| bin(key).is_some_and(|bin| bin.1 == 4))
        );
        assert_eq!(after.len(), 2_048);
    }

    #[test]
    fn pages_of_which_the_caches_served_all_are_the_coldest() {
        let before = sums((0..4_000).map(|page| (page * 40, u64::from(page < 900))));
        let after = bounded(before.clone(), CHUNK);
        assert_eq!(totals(&after), totals(&before));
        assert_eq!(after.keys().filter_map(bin).count(), 900);
    }

    #[test]
    fn counts_at_their_limits_end() {
        let before = sums((0..3_000).map(|page| (page, u64::MAX / 4_000)));
        assert!(bounded(before, CHUNK).len() <= BINS_OF_SITE + 200);
        assert_eq!(finest(Bytes(u64::MAX)), 1 << 63);
        assert_eq!(finest(Bytes(4097)), 8192);
    }
}
