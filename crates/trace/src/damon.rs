//! `Gatherer` makes a profile of DAMON's snapshots, which [`damon_trace`](crate::damon_trace) and [`damo_record`](crate::damo_record) read
//! from their file formats: each contiguous area that DAMON watched becomes a site, and the count of a region is added to each of its
//! pages, by epoch and chunk. Snapshots that contradict each other or are too large are refused with the reason.
//!
//! DAMON watches *regions*: ranges of addresses whose pages it assumes to be equally hot. At the
//! end of each aggregation interval it reports a *snapshot*: for each region, how often a sampled
//! page was found accessed.
//!
//! ```text
//! snapshot 1   |---- 0 ----|-- 7 --|     heat = 7 for each page of the second region,
//! snapshot 2   |---- 0 --|-- 9 --|-1-|   added up by epoch and chunk
//! area         |=====================|   one site: what regions covered without a gap
//! ```
//!
//! DAMON knows no allocation sites, so each contiguous area that it watched becomes one. It does
//! not report resident memory, so an area counts as fully resident. Both make a profile from DAMON
//! good for chunks and epochs, and coarse for sites.

use std::collections::BTreeMap;

use isotherm_model::batch::{Epoch, Process, SourceReport};
use isotherm_model::profile::{Ending, EpochSpan, Heat, Meta, Profile};
use isotherm_model::site::{Frame, Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes, Nanos};

use crate::error::Fault;
use crate::grain::{Grain, add_site};
use crate::site_hash::site_hash;

/// Bytes of a page, the unit in which DAMON samples.
const PAGE: u64 = 4096;
/// Most epochs of a recording: eleven days of seconds.
const EPOCHS: u64 = 1 << 20;
/// Most rows of heat; each takes about a hundred bytes while they are gathered.
const ROWS: usize = 1 << 22;

/// A range of addresses, and how often a page of it was found accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) accesses: u64,
}

impl Region {
    pub(crate) fn new(start: u64, end: u64, accesses: u64) -> Result<Self, Fault> {
        if start >= end {
            let found = format!("the region {start}-{end} ends before it begins");
            return Err(Fault::new(found, "a first address below the end"));
        }
        Ok(Self {
            start,
            end,
            accesses,
        })
    }

    /// Checks that the region follows the one before it in the same snapshot.
    pub(crate) fn behind(&self, before: Option<&Self>) -> Result<(), Fault> {
        match before {
            Some(before) if before.end > self.start => {
                let found = format!(
                    "the region {}-{} overlaps the one before it, {}-{}",
                    self.start, self.end, before.start, before.end
                );
                Err(Fault::new(found, "regions in ascending order"))
            }
            _ => Ok(()),
        }
    }
}

/// All regions of one target at the end of one aggregation interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot {
    /// The file's name for the target: a pointer of the kernel, or a number.
    pub(crate) target: u64,
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    /// Ascending, without overlap.
    pub(crate) regions: Vec<Region>,
}

/// Gathers snapshots into a profile.
#[derive(Debug, Default)]
pub(crate) struct Gatherer {
    grain: Grain,
    /// Targets in the order of their appearance, and the end of the last snapshot of each.
    targets: BTreeMap<u64, (Process, Nanos)>,
    first: Option<Nanos>,
    last: Nanos,
    heat: BTreeMap<(Epoch, Process, u64), u64>,
    areas: BTreeMap<Process, Areas>,
    snapshots: u64,
    regions: u64,
}

impl Gatherer {
    pub(crate) fn new(grain: Grain) -> Self {
        Self {
            grain,
            ..Self::default()
        }
    }

    /// Adds a snapshot.
    pub(crate) fn add(&mut self, snapshot: &Snapshot) -> Result<(), Fault> {
        let process = self.process(snapshot)?;
        let first = *self.first.get_or_insert(snapshot.start);
        self.last = self.last.max(snapshot.end);
        // A snapshot belongs to the epoch that contains its last moment.
        let moment = snapshot.end.saturating_sub(first).0.saturating_sub(1);
        let epoch = moment / self.grain.epoch.0.max(1);
        let number = u32::try_from(epoch).ok().filter(|_| epoch < EPOCHS);
        let Some(number) = number else {
            let start = snapshot.start.0;
            let found = format!("the snapshot at {start} ns ends in epoch {epoch}");
            let expected = format!("at most {EPOCHS} epochs (choose longer ones)");
            return Err(Fault::new(found, expected));
        };
        let epoch = Epoch(number);
        for region in &snapshot.regions {
            self.areas.entry(process).or_default().cover(region);
            self.heat_up(epoch, process, region)?;
        }
        self.snapshots += 1;
        self.regions += snapshot.regions.len() as u64;
        Ok(())
    }

    /// The process that represents a target; its snapshots must come in the order of time.
    fn process(&mut self, snapshot: &Snapshot) -> Result<Process, Fault> {
        let (start, ends) = (snapshot.start.0, snapshot.end.0);
        if ends < start {
            let found = format!("the snapshot ends at {ends} ns, before it starts at {start} ns");
            return Err(Fault::new(found, "an end after the start"));
        }
        let pid = u32::try_from(self.targets.len()).unwrap_or(u32::MAX);
        let unseen = (Process { pid, image: 0 }, Nanos::ZERO);
        let (process, end) = self.targets.entry(snapshot.target).or_insert(unseen);
        if snapshot.start < *end {
            let before = format!("before the end of the last one at {} ns", end.0);
            let found = format!("the snapshot starts at {start} ns, {before}");
            return Err(Fault::new(found, "snapshots in the order of time"));
        }
        *end = snapshot.end;
        Ok(*process)
    }

    /// Adds a region's accesses to the chunks that it covers: the count of the region for each of
    /// its pages.
    fn heat_up(&mut self, epoch: Epoch, process: Process, region: &Region) -> Result<(), Fault> {
        if region.accesses == 0 {
            return Ok(());
        }
        let chunk = self.grain.chunk.0.max(PAGE);
        let chunks = (region.end - 1) / chunk - region.start / chunk + 1;
        if chunks > (ROWS - self.heat.len().min(ROWS)) as u64 {
            let found = format!(
                "the region {}-{} is {chunks} more chunks of {}",
                region.start, region.end, self.grain.chunk
            );
            let expected = format!("at most {ROWS} in all (choose larger chunks or longer epochs)");
            return Err(Fault::new(found, expected));
        }
        let first = region.start - region.start % chunk;
        for index in 0..chunks {
            // Not beyond the region's end, so it does not overflow.
            let address = first + index * chunk;
            let from = region.start.max(address);
            let to = region.end.min(address.saturating_add(chunk));
            let pages = (to - from).div_ceil(PAGE);
            let sum = self.heat.entry((epoch, process, address)).or_default();
            *sum = sum.saturating_add(region.accesses.saturating_mul(pages));
        }
        Ok(())
    }

    /// The profile of the gathered snapshots.
    pub(crate) fn finish(self) -> Result<Profile, Fault> {
        let Some(first) = self.first else {
            let expected = "at least one; is the file whole, and of this format?";
            return Err(Fault::new("it holds no snapshot of DAMON", expected));
        };
        let mut profile = Profile::new(Meta {
            epoch_length: self.grain.epoch,
            chunk: Bytes(self.grain.chunk.0.max(PAGE)),
            ..crate::grain::meta("DAMON")
        });
        profile.ending = Ending::Unknown;
        profile.epochs = self.epochs(first);
        let areas: usize = self.areas.values().map(|areas| areas.0.len()).sum();
        if areas.saturating_mul(profile.epochs.len()) > ROWS {
            let found = format!("{areas} areas in {} epochs", profile.epochs.len());
            let expected = format!("at most {ROWS} pairs of both (choose longer epochs)");
            return Err(Fault::new(found, expected));
        }
        for (process, areas) in &self.areas {
            for (start, end) in areas.ranges() {
                add_area(&mut profile, *process, start, end);
            }
        }
        profile.sites.sort_by_key(|site| site.id);
        profile.resident.sort_by_key(|row| (row.epoch, row.site));
        for ((epoch, process, address), accesses) in self.heat {
            let areas = self.areas.get(&process);
            let end = address.saturating_add(profile.meta.chunk.0);
            let area = areas.and_then(|areas| areas.before(end));
            profile.heat.push(Heat {
                epoch,
                process,
                site: area.map_or(SiteId::UNATTRIBUTED, |start| area_site(process, start)),
                address,
                object: None,
                accesses: Accesses(accesses),
                streamed: Accesses::ZERO,
                served: Accesses::ZERO,
            });
        }
        profile.sources.push(SourceReport {
            name: "damon".to_owned(),
            taken: self.regions,
            usable: self.regions,
            ..SourceReport::default()
        });
        Ok(profile)
    }

    /// Epochs of equal length up to the last one, which ends with the recording.
    fn epochs(&self, first: Nanos) -> Vec<EpochSpan> {
        let length = self.grain.epoch.0.max(1);
        let whole = self.last.saturating_sub(first).0;
        let last_heat = self.heat.keys().next_back().map_or(0, |key| key.0.0);
        // The recording's last instant belongs to the epoch before it.
        let count = (whole.div_ceil(length)).max(u64::from(last_heat) + 1);
        let count = u32::try_from(count.min(EPOCHS)).unwrap_or(u32::MAX);
        let span = |number: u32| {
            let start = u64::from(number).saturating_mul(length);
            Nanos(length.min(whole.saturating_sub(start)).max(1))
        };
        let epochs = (0..count).map(|number| EpochSpan {
            epoch: Epoch(number),
            span: span(number),
        });
        epochs.collect()
    }
}

/// The name of an area: its process and first address.
fn area_site(process: Process, start: u64) -> SiteId {
    let words = [u64::from(process.pid), start].into_iter();
    site_hash(words.flat_map(u64::to_le_bytes))
}

/// Adds a site for an area, resident in every epoch.
fn add_area(profile: &mut Profile, process: Process, start: u64, end: u64) {
    let site = Site {
        frames: vec![Frame {
            offset: start,
            function: Some(format!("area 0x{start:x}-0x{end:x}")),
            ..Frame::default()
        }]
        .into(),
        peak_rss: Bytes(end - start),
        ..Site::new(area_site(process, start), SiteKind::Mapping)
    };
    add_site(profile, site, process, start);
}

/// The covered ranges: they neither overlap nor touch, sorted by first address.
#[derive(Clone, Debug, Default)]
struct Areas(BTreeMap<u64, u64>);

impl Areas {
    fn cover(&mut self, region: &Region) {
        let (mut start, mut end) = (region.start, region.end);
        // Visits the areas that begin no later than this end, from the back, until one ends before
        // it.
        while let Some((&known, &known_end)) = self.0.range(..=end).next_back() {
            if known_end < start {
                break;
            }
            if known <= start && known_end >= end {
                return;
            }
            start = start.min(known);
            end = end.max(known_end);
            self.0.remove(&known);
        }
        self.0.insert(start, end);
    }

    fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(start, end)| (*start, *end))
    }

    /// First address of the last area that begins before this address.
    fn before(&self, address: u64) -> Option<u64> {
        self.0.range(..address).next_back().map(|(start, _)| *start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(start: u64, end: u64, accesses: u64) -> Region {
        Region::new(start, end, accesses).expect("is a range")
    }

    fn snapshot(start: u64, end: u64, regions: &[Region]) -> Snapshot {
        Snapshot {
            target: 0xffff_8000,
            start: Nanos(start),
            end: Nanos(end),
            regions: regions.to_vec(),
        }
    }

    fn grain() -> Grain {
        Grain {
            epoch: Nanos(100),
            chunk: Bytes(4 * PAGE),
        }
    }

    /// ```text
    /// pages      0 1 2 3 | 4 5 6 7 | 8 ...     chunks of four pages
    /// region 1   . . 5 5 | 5 . . . |           2 pages of the first chunk, 1 of the second
    /// region 2           |   2 2 2 |           3 pages of the second
    /// ```
    #[test]
    fn each_page_of_a_region_counts_what_was_found_for_the_region() {
        let mut gatherer = Gatherer::new(grain());
        let regions = [
            region(2 * PAGE, 5 * PAGE, 5),
            region(5 * PAGE, 8 * PAGE, 2),
            region(64 * PAGE, 65 * PAGE, 0),
        ];
        gatherer.add(&snapshot(1000, 1050, &regions)).unwrap();
        gatherer.add(&snapshot(1100, 1150, &regions[..1])).unwrap();
        let profile = gatherer.finish().unwrap();
        let heat: Vec<_> = profile
            .heat
            .iter()
            .map(|heat| (heat.epoch.0, heat.address / PAGE, heat.accesses.0))
            .collect();
        assert_eq!(heat, [(0, 0, 10), (0, 4, 11), (1, 0, 10), (1, 4, 5)]);
        let sizes: Vec<u64> = profile.extents.iter().map(|e| e.bytes.0 / PAGE).collect();
        assert_eq!(sizes, [6, 1]);
        assert_eq!(profile.footprint().0, Bytes(7 * PAGE));
        assert_eq!(profile.span(), Nanos(150));
        assert_eq!(profile.epochs.len(), 2);
    }

    #[test]
    fn areas_that_touch_become_one() {
        let mut areas = Areas::default();
        for (start, end) in [(10, 20), (30, 40), (50, 60), (20, 30), (12, 15), (61, 70)] {
            areas.cover(&region(start, end, 0));
        }
        let ranges: Vec<_> = areas.ranges().collect();
        assert_eq!(ranges, [(10, 40), (50, 60), (61, 70)]);
        areas.cover(&region(0, 100, 0));
        assert_eq!(areas.ranges().collect::<Vec<_>>(), [(0, 100)]);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        assert!(Region::new(5, 5, 0).is_err());
        let overlap = region(4, 9, 0).behind(Some(&region(0, 5, 0))).unwrap_err();
        assert!(overlap.found.contains("overlaps"), "{overlap:?}");
        let add = |snapshots: &[Snapshot]| {
            let mut gatherer = Gatherer::new(grain());
            let added = snapshots.iter().try_for_each(|s| gatherer.add(s));
            added
                .and_then(|()| gatherer.finish().map(drop))
                .unwrap_err()
        };
        for (snapshots, what) in [
            (vec![], "no snapshot"),
            (vec![snapshot(9, 3, &[])], "before it starts"),
            (
                vec![snapshot(0, 50, &[]), snapshot(40, 60, &[])],
                "before the end of the last one",
            ),
            (
                vec![snapshot(0, 1, &[]), snapshot(u64::MAX, u64::MAX, &[])],
                "ends in epoch",
            ),
            (
                vec![snapshot(0, 1, &[region(0, u64::MAX, 1)])],
                "more chunks",
            ),
        ] {
            let fault = add(&snapshots);
            assert!(fault.found.contains(what), "{fault:?}");
        }
    }

    #[test]
    fn the_end_of_the_address_space_does_not_overflow() {
        let mut gatherer = Gatherer::new(grain());
        let regions = [region(u64::MAX - 3 * PAGE, u64::MAX, u64::MAX)];
        gatherer.add(&snapshot(0, u64::MAX, &regions)).unwrap_err();
        let mut gatherer = Gatherer::new(Grain {
            epoch: Nanos(u64::MAX),
            ..grain()
        });
        gatherer.add(&snapshot(0, u64::MAX, &regions)).unwrap();
        let profile = gatherer.finish().unwrap();
        assert_eq!(profile.heat.len(), 1);
        assert_eq!(profile.heat[0].accesses, Accesses(u64::MAX));
    }
}
