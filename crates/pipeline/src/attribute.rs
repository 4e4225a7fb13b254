//! Attributes raw addresses to sites: a batch becomes a segment of the profile.
//!
//! ```text
//! extents, by process and address      |--- site A ---|   |- site B -|
//! a sample                                    x                          x   unattributed
//! chunks                               |    |    |    |    |    |    |    |
//! ```
//!
//! A sample belongs to the extent with the greatest start at or below its address, if that extent
//! contains it: one binary search. Extents of one process do not overlap, because one address has
//! one owner at a time; if two did, the later start would win.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::batch::{
    AllocatedObject, Batch, Count, Extent, ExtentKey, OBJECTS_FOLDED, ObservedAccess, Process,
};
use isotherm_model::profile::{EpochSpan, Heat, HeatBin, HeatObject, Meta, Resident, Segment};
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes};

use crate::division::Division;
use crate::heat_bins::{self, HeatKey, HeatSums};
use crate::live_objects::LiveObjects;

/// Turns batches into segments, in the order of the epochs. It keeps the state that later segments
/// need: the sites with their peaks and order, and the extents.
#[derive(Clone, Debug)]
pub struct Attribution {
    chunk: u64,
    sites: BTreeMap<SiteId, Site>,
    extents: Vec<Extent>,
    objects: LiveObjects,
}

impl Attribution {
    /// An attribution by the chunk size of this profile. Chunks of zero bytes count as one.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        Self {
            chunk: meta.chunk.0.max(1),
            sites: BTreeMap::new(),
            extents: Vec::new(),
            objects: LiveObjects::default(),
        }
    }

    /// Every observed site, by id.
    #[must_use]
    pub const fn sites(&self) -> &BTreeMap<SiteId, Site> {
        &self.sites
    }

    /// Attributes one batch.
    #[must_use]
    pub fn attribute(&mut self, batch: &Batch) -> Segment {
        self.follow(batch);
        batch
            .objects
            .iter()
            .for_each(|object| self.objects.add(*object));
        let resident = resident_by_site(self.extents.iter().chain(&batch.departed));
        let heat = self.heat(batch);
        let sites = self.changed_sites(batch, &resident, &heat);
        Segment {
            epoch: EpochSpan {
                epoch: batch.epoch,
                span: batch.span,
            },
            sites,
            extents: self.told_extents(batch),
            heat,
            resident: resident
                .into_iter()
                .filter(|(_, bytes)| *bytes > Bytes::ZERO)
                .map(|(site, bytes)| Resident {
                    epoch: batch.epoch,
                    site,
                    bytes,
                })
                .collect(),
            counts: self.counts(batch),
            sources: batch.sources.clone(),
        }
    }

    /// The counters of the batch, and how many data objects were folded into their sites, where any was. A batch without counters leaves
    /// the last ones as they were.
    fn counts(&self, batch: &Batch) -> Vec<Count> {
        let folded = self.objects.folded();
        let own = (folded > 0 && !batch.counts.is_empty()).then(|| Count {
            process: None,
            name: OBJECTS_FOLDED.to_owned(),
            value: folded,
        });
        batch.counts.iter().cloned().chain(own).collect()
    }

    /// The extents that a segment reports: the changed ones, and the departed ones whose addresses are free, by key.
    fn told_extents(&self, batch: &Batch) -> Vec<Extent> {
        let is_free = |extent: &&Extent| {
            let at = self
                .extents
                .binary_search_by_key(&extent.key(), Extent::key);
            at.is_err()
        };
        let departed = batch.departed.iter().filter(is_free);
        let mut told: Vec<Extent> = batch.extents.iter().chain(departed).copied().collect();
        told.sort_by_key(Extent::key);
        told
    }

    /// The extents of the last batch, by key.
    #[must_use]
    pub fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// The data objects that no later one has replaced; those that were freed may be among them.
    pub fn objects(&self) -> impl Iterator<Item = AllocatedObject> + '_ {
        self.objects.all()
    }

    /// Replaces the changed extents and drops the freed ones.
    fn follow(&mut self, batch: &Batch) {
        let old = std::mem::take(&mut self.extents);
        let freed: BTreeSet<ExtentKey> = batch.freed.iter().copied().collect();
        let old = old
            .into_iter()
            .filter(|extent| !freed.contains(&extent.key()));
        self.extents = batch.extents.iter().copied().chain(old).collect();
        // Of two with one key, the new one comes first, because the sort is stable.
        self.extents.sort_by_key(Extent::key);
        self.extents.dedup_by_key(|extent| extent.key());
    }

    /// Weighted samples by process, chunk, site and data object, in that order.
    fn heat(&self, batch: &Batch) -> Vec<Heat> {
        let mut sums = HeatSums::new();
        for access in &batch.accesses {
            let counts = [access.count, access.streamed, access.served];
            for (number, count) in counts.into_iter().enumerate() {
                // An access of which the caches served nothing is counted even where it counts nothing.
                if number > 0 && count == 0 {
                    continue;
                }
                self.spread(access, count, &batch.departed, |chunk, site, count| {
                    let address = chunk.max(access.address);
                    let key = HeatKey {
                        process: access.process,
                        chunk,
                        site,
                        object: self.place((access.process, address), site, access.bytes),
                    };
                    sums.entry(key).or_default()[number] += Accesses(count);
                });
            }
        }
        let sums = heat_bins::bounded(sums, self.chunk).into_iter();
        sums.map(|(key, [accesses, streamed, served])| Heat {
            epoch: batch.epoch,
            process: key.process,
            site: key.site,
            address: key.chunk,
            object: key.object,
            accesses,
            streamed,
            served,
        })
        .collect()
    }

    /// The data object of a site that holds an address, with the finest bin that the accessed range allows. An access to a chunk or more
    /// has none.
    fn place(&self, at: (Process, u64), site: SiteId, accessed: Bytes) -> Option<HeatObject> {
        let range = self.objects.holding(at, site)?;
        let bytes = heat_bins::finest(accessed);
        let start = Bytes((at.1 - range.address) / bytes * bytes);
        let bin = (bytes < self.chunk).then(|| HeatBin::new(start, Bytes(bytes), &range));
        Some(HeatObject {
            range,
            bin: bin.flatten(),
        })
    }

    /// Divides a count of an access over the chunks of the extents in its range, by their sizes, and passes each
    /// part on with its chunk and site. An access to one address, or to a range without extents, counts at its first
    /// address.
    fn spread(
        &self,
        access: &ObservedAccess,
        count: u64,
        departed: &[Extent],
        mut take: impl FnMut(u64, SiteId, u64),
    ) {
        let parts = || parts(access, &self.extents, self.chunk);
        let total = parts().fold(0, |sum: u64, (_, bytes, _)| sum.saturating_add(bytes));
        if access.bytes <= Bytes(1) || total == 0 {
            let chunk = access.address - access.address % self.chunk;
            let site = owner(&self.extents, access).or_else(|| {
                let within = |extent: &&Extent| contains(extent, access);
                departed.iter().find(within).map(|extent| extent.site)
            });
            return take(chunk, site.unwrap_or(SiteId::UNATTRIBUTED), count);
        }
        let mut division = Division::new(count, total);
        for (chunk, bytes, site) in parts() {
            match division.next(bytes) {
                0 => {}
                count => take(chunk, site, count),
            }
        }
    }

    /// The sites of the batch and those that only its extents or samples name, where any number
    /// changed. Batches list sites in the order of creation, which is kept as `first_seen`; of
    /// sites that only extents name, the lower address comes first.
    fn changed_sites(
        &mut self,
        batch: &Batch,
        resident: &BTreeMap<SiteId, Bytes>,
        heat: &[Heat],
    ) -> Vec<Site> {
        let named = batch.sites.iter().cloned();
        let extents = self.extents.iter().chain(&batch.departed);
        let by_extent: Vec<SiteId> = extents.map(|extent| extent.site).collect();
        let by_heat = heat.iter().map(|heat| heat.site);
        let mut changed = BTreeSet::new();
        for site in named.chain(by_extent.into_iter().chain(by_heat).map(stranger)) {
            if self.learn(site.clone()) {
                changed.insert(site.id);
            }
        }
        for (id, bytes) in resident {
            if let Some(site) = self.sites.get_mut(id)
                && *bytes > site.peak_rss
            {
                site.peak_rss = *bytes;
                changed.insert(*id);
            }
        }
        let mut changed: Vec<Site> = changed
            .iter()
            .filter_map(|id| self.sites.get(id))
            .cloned()
            .collect();
        changed.sort_unstable_by_key(|site| site.first_seen);
        changed
    }

    /// Stores a site as reported, except its order and peak, which attribution computes. True if it
    /// changed.
    fn learn(&mut self, site: Site) -> bool {
        let count = u32::try_from(self.sites.len()).unwrap_or(u32::MAX);
        let site = match self.sites.get(&site.id) {
            Some(_) if site == stranger(site.id) => return false,
            Some(known) => Site {
                first_seen: known.first_seen,
                peak_rss: known.peak_rss.max(site.peak_rss),
                ..site
            },
            None => Site {
                first_seen: count,
                ..site
            },
        };
        let is_news = self.sites.get(&site.id) != Some(&site);
        self.sites.insert(site.id, site);
        is_news
    }
}

/// A site of which only the id is known.
fn stranger(id: SiteId) -> Site {
    let kind = match id {
        SiteId::UNATTRIBUTED => SiteKind::Unattributed,
        SiteId::SHARED => SiteKind::Shared,
        _ => SiteKind::Heap,
    };
    Site::new(id, kind)
}

/// The chunks of the extents in the range of an access, as (chunk, bytes in the range, site), by address. Of two
/// overlapping extents the first is taken. Extents are sorted by key.
fn parts(
    access: &ObservedAccess,
    extents: &[Extent],
    chunk: u64,
) -> impl Iterator<Item = (u64, u64, SiteId)> {
    let (begin, end) = (access.address, access.end());
    let end_of = |extent: &Extent| extent.address.saturating_add(extent.bytes.0);
    let first = extents.partition_point(|e| e.key() <= (access.process, begin));
    let mut from = begin;
    extents[first.saturating_sub(1)..]
        .iter()
        .take_while(move |e| e.key() < (access.process, end))
        .filter(|e| e.process == access.process)
        .flat_map(move |extent| {
            let start = extent.address.max(from);
            let stop = end_of(extent).min(end);
            from = from.max(stop);
            chunks(start, stop, chunk).map(|(chunk, bytes)| (chunk, bytes, extent.site))
        })
}

/// The chunks that a range reaches into, each with its bytes in the range.
fn chunks(start: u64, stop: u64, chunk: u64) -> impl Iterator<Item = (u64, u64)> {
    let mut at = start;
    std::iter::from_fn(move || {
        let first = at - at % chunk;
        // The last chunk of the address space has no end that fits.
        let end = first.saturating_add(chunk).min(stop);
        let bytes = end.checked_sub(at).filter(|bytes| *bytes > 0)?;
        at = end;
        Some((first, bytes))
    })
}

/// The site whose extent holds the first address of an access. Extents are sorted by key.
fn owner(extents: &[Extent], access: &ObservedAccess) -> Option<SiteId> {
    let after = extents.partition_point(|e| e.key() <= (access.process, access.address));
    after
        .checked_sub(1)
        .map(|at| &extents[at])
        .filter(|e| contains(e, access))
        .map(|e| e.site)
}

/// True where the first address of an access is in the extent.
fn contains(extent: &Extent, access: &ObservedAccess) -> bool {
    let offset = access.address.checked_sub(extent.address);
    extent.process == access.process && offset.is_some_and(|offset| offset < extent.bytes.0)
}

fn resident_by_site<'a>(extents: impl Iterator<Item = &'a Extent>) -> BTreeMap<SiteId, Bytes> {
    let mut sums = BTreeMap::<SiteId, Bytes>::new();
    for extent in extents {
        *sums.entry(extent.site).or_default() += extent.resident;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::Attribution;
    use isotherm_model::batch::{
        AllocatedObject, Batch, Count, Epoch, Extent, OBJECTS_FOLDED, ObjectRange, ObservedAccess,
        Process,
    };
    use isotherm_model::profile::{Meta, Profile};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::source_kind::SourceKind;
    use isotherm_model::units::{Accesses, Bytes, Nanos};
    use proptest::prelude::*;

    const A: SiteId = SiteId(0x50);
    const B: SiteId = SiteId(0x40);

    fn process(pid: u32) -> Process {
        Process { pid, image: 0 }
    }

    fn extent(pid: u32, site: SiteId, address: u64, bytes: u64, resident: u64) -> Extent {
        Extent {
            process: process(pid),
            site,
            address,
            bytes: Bytes(bytes),
            resident: Bytes(resident),
            tier: None,
        }
    }

    fn sample(pid: u32, address: u64) -> ObservedAccess {
        let source = SourceKind::Timer;
        ObservedAccess::at((process(pid), address), source, (1, source.unit(false)))
    }

    fn meta(chunk: u64) -> Meta {
        Meta {
            chunk: Bytes(chunk),
            ..Meta::default()
        }
    }

    fn batch(epoch: u32, extents: Vec<Extent>, samples: Vec<ObservedAccess>) -> Batch {
        Batch {
            epoch: Epoch(epoch),
            span: Nanos(1_000_000_000),
            extents,
            accesses: samples,
            ..Batch::default()
        }
    }

    #[test]
    fn samples_go_to_the_extent_that_holds_them_and_the_rest_is_unattributed() {
        let mut attribution = Attribution::new(&meta(0x100));
        let extents = vec![
            extent(1, B, 0x1000, 0x80, 0x80),
            extent(1, A, 0x1080, 0x100, 1),
        ];
        let samples = [0x1000, 0x107f, 0x1080, 0x117f, 0x1180, 0xfff, u64::MAX]
            .map(|at| sample(1, at))
            .into_iter()
            .chain([sample(2, 0x1000)]);
        let segment = attribution.attribute(&batch(0, extents, samples.collect()));
        let heat: Vec<_> = segment
            .heat
            .iter()
            .map(|h| (h.process.pid, h.address, h.site, h.accesses.0))
            .collect();
        let stray = SiteId::UNATTRIBUTED;
        assert_eq!(
            heat,
            [
                (1, 0xf00, stray, 1),
                (1, 0x1000, B, 2),
                (1, 0x1000, A, 1),
                (1, 0x1100, stray, 1),
                (1, 0x1100, A, 1),
                (1, u64::MAX - 0xff, stray, 1),
                (2, 0x1000, stray, 1),
            ]
        );
    }

    #[test]
    fn accesses_to_a_large_object_are_kept_by_bin_and_those_to_longer_ranges_by_chunk() {
        let mut attribution = Attribution::new(&meta(0x1_0000));
        let range = ObjectRange {
            address: 0x10_5000,
            bytes: Bytes(16 << 20),
        };
        let object = AllocatedObject {
            process: process(1),
            site: A,
            range,
        };
        let scan = |bytes| ObservedAccess {
            bytes: Bytes(bytes),
            ..sample(1, range.address + 0x6000)
        };
        let samples = [0x6010, 0x7fff, 0x8000].map(|place| sample(1, range.address + place));
        let batch = Batch {
            objects: vec![object],
            ..batch(
                0,
                vec![extent(1, A, range.address, range.bytes.0, 1)],
                samples
                    .into_iter()
                    .chain([scan(0x2000), scan(0x8001)])
                    .collect(),
            )
        };
        let segment = attribution.attribute(&batch);
        let rows: Vec<_> = segment
            .heat
            .iter()
            .map(|heat| {
                let object = heat.object.expect("is known");
                assert_eq!(object.range, range);
                let bin = object.bin.map(|bin| (bin.start.0, bin.bytes.0));
                (heat.address, bin, heat.accesses.0)
            })
            .collect();
        assert_eq!(
            rows,
            [
                (0x10_0000, Some((0x6000, 0x1000)), 1),
                (0x10_0000, Some((0x6000, 0x2000)), 1),
                (0x10_0000, Some((0x7000, 0x1000)), 1),
                (0x10_0000, Some((0x8000, 0x1000)), 1),
                (0x11_0000, None, 1),
            ]
        );
    }

    #[test]
    fn objects_beyond_the_limit_are_counted_and_their_accesses_count_for_the_site() {
        let mut attribution = Attribution::new(&meta(0x1_0000));
        let (bytes, most) = (0x1_0000, 1 << 18);
        let objects = (0..most + 9).map(|number| AllocatedObject {
            process: process(1),
            site: A,
            range: ObjectRange {
                address: number * bytes,
                bytes: Bytes(bytes),
            },
        });
        let batch = Batch {
            objects: objects.collect(),
            counts: vec![Count {
                process: None,
                name: "cpu_ns".to_owned(),
                value: 1,
            }],
            ..batch(
                0,
                vec![extent(1, A, 0, (most + 9) * bytes, 1)],
                vec![sample(1, 8 * bytes), sample(1, 9 * bytes)],
            )
        };
        let segment = attribution.attribute(&batch);
        let folded = segment
            .counts
            .iter()
            .find(|count| count.name == OBJECTS_FOLDED);
        assert_eq!(folded.map(|count| count.value), Some(9));
        let known: Vec<_> = segment
            .heat
            .iter()
            .map(|heat| heat.object.is_some())
            .collect();
        assert_eq!(known, [false, true]);
        assert!(segment.heat.iter().all(|heat| heat.site == A));
        assert_eq!(attribution.objects().count() as u64, most);
    }

    #[test]
    fn a_site_keeps_its_order_of_creation_and_the_peak_of_its_residents_over_processes() {
        let mut attribution = Attribution::new(&meta(4096));
        let mut profile = Profile::new(meta(4096));
        let sites = vec![Site::new(A, SiteKind::Heap), Site::new(B, SiteKind::Heap)];
        let two = vec![extent(1, A, 0, 9000, 300), extent(2, A, 0, 9000, 400)];
        let first = Batch {
            sites,
            ..batch(0, two, vec![])
        };
        let one = vec![extent(1, A, 0, 9000, 500), extent(1, B, 9000, 5, 5)];
        profile.absorb(attribution.attribute(&first));
        let second = Batch {
            freed: vec![(process(2), 0)],
            ..batch(1, one, vec![])
        };
        profile.absorb(attribution.attribute(&second));
        let facts: Vec<_> = profile
            .sites
            .iter()
            .map(|s| (s.id, s.first_seen, s.peak_rss.0))
            .collect();
        assert_eq!(facts, [(B, 1, 5), (A, 0, 700)]);
        assert_eq!(profile.footprint().0, Bytes(700));
    }

    #[test]
    fn what_did_not_change_is_not_told_again() {
        let mut attribution = Attribution::new(&meta(4096));
        let sites = vec![Site::new(A, SiteKind::Heap)];
        let extents = vec![extent(1, A, 0, 9000, 300)];
        let same = Batch {
            sites,
            ..batch(0, extents, vec![])
        };
        let first = attribution.attribute(&same);
        assert_eq!((first.sites.len(), first.extents.len()), (1, 1));
        let second = attribution.attribute(&batch(1, vec![], vec![]));
        assert_eq!((second.sites.len(), second.extents.len()), (0, 0));
        assert_eq!(second.resident.len(), 1);
        // The extent was freed and came back: it is reported again.
        let gone = attribution.attribute(&Batch {
            freed: vec![(process(1), 0)],
            ..batch(2, vec![], vec![])
        });
        assert!(gone.resident.is_empty());
        assert_eq!(attribution.attribute(&same).extents.len(), 1);
    }

    #[test]
    fn memory_that_was_freed_in_an_epoch_counts_in_it_beside_its_successor() {
        let mut attribution = Attribution::new(&meta(4096));
        let (freed, live) = (extent(1, A, 0, 9000, 300), extent(1, B, 0, 4096, 200));
        let first = Batch {
            departed: vec![freed],
            ..batch(0, vec![live], vec![sample(1, 10), sample(1, 5000)])
        };
        let segment = attribution.attribute(&first);
        let resident: Vec<_> = segment
            .resident
            .iter()
            .map(|it| (it.site, it.bytes.0))
            .collect();
        assert_eq!(resident, [(B, 200), (A, 300)]);
        let heat: Vec<_> = segment
            .heat
            .iter()
            .map(|it| (it.address, it.site))
            .collect();
        assert_eq!(heat, [(0, B), (4096, A)], "the live one first");
        assert_eq!(segment.extents, [live], "one extent for an address");
        let second = attribution.attribute(&batch(1, vec![], vec![sample(1, 5000)]));
        assert_eq!(
            second.heat[0].site,
            SiteId::UNATTRIBUTED,
            "only in its epoch"
        );
        assert_eq!(attribution.extents(), [live]);
    }

    /// The counts of a range by chunk and site, with chunks of 2 MiB.
    fn heat_of(
        extents: Vec<Extent>,
        (start, end): (u64, u64),
        count: u64,
    ) -> Vec<(u64, SiteId, u64)> {
        let access = ObservedAccess {
            bytes: Bytes(end - start),
            count,
            ..sample(1, start)
        };
        let mut attribution = Attribution::new(&meta(2 * MIB));
        let heat = attribution.attribute(&batch(0, extents, vec![access])).heat;
        let heat = heat.iter();
        heat.map(|heat| (heat.address, heat.site, heat.accesses.0))
            .collect()
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_range_is_spread_over_the_chunks_of_the_extents_and_no_count_is_lost() {
        // Half a chunk, a gap, and an extent that reaches beyond the range.
        let extents = || {
            vec![
                extent(1, SiteId(5), MIB, MIB, MIB),
                extent(1, SiteId(6), 4 * MIB, 8 * MIB, 8 * MIB),
            ]
        };
        let found = heat_of(extents(), (0, 8 * MIB), 7);
        let wanted = [
            (0, SiteId(5), 1),
            (4 * MIB, SiteId(6), 3),
            (6 * MIB, SiteId(6), 3),
        ];
        assert_eq!(found, wanted);
        assert_eq!(
            heat_of(extents(), (2 * MIB, 3 * MIB), 7),
            [(2 * MIB, SiteId::UNATTRIBUTED, 7)]
        );
        assert_eq!(
            heat_of(vec![], (0, 8 * MIB), 7),
            [(0, SiteId::UNATTRIBUTED, 7)]
        );
    }

    #[test]
    fn a_range_in_the_last_chunk_of_the_address_space_is_spread_too() {
        let (start, end) = (u64::MAX - 0xffff, u64::MAX);
        let extents = vec![extent(1, SiteId(5), start, end - start, 0)];
        let chunk = start - start % (2 * MIB);
        assert_eq!(heat_of(extents, (start, end), 3), [(chunk, SiteId(5), 3)]);
    }

    proptest! {
        #[test]
        fn every_sample_is_counted_once_and_as_the_slow_search_says(
            starts in prop::collection::btree_map((1_u32..3, 0_u64..60), (1_u64..9, 2_u64..5), 0..12),
            addresses in prop::collection::vec((1_u32..4, 0_u64..700), 0..60)
        ) {
            let extents: Vec<Extent> = starts
                .into_iter()
                .map(|((pid, at), (bytes, site))| extent(pid, SiteId(site), at * 10, bytes, bytes))
                .collect();
            let samples: Vec<ObservedAccess> = addresses.iter().map(|&(p, at)| sample(p, at)).collect();
            let slow = |s: &ObservedAccess| {
                extents
                    .iter()
                    .find(|e| {
                        let inside = e.address..e.address + e.bytes.0;
                        e.process == s.process && inside.contains(&s.address)
                    })
                    .map_or(SiteId::UNATTRIBUTED, |e| e.site)
            };
            let mut attribution = Attribution::new(&meta(64));
            let segment = attribution.attribute(&batch(0, extents.clone(), samples.clone()));
            let total: Accesses = segment.heat.iter().map(|heat| heat.accesses).sum();
            prop_assert_eq!(total.0, samples.len() as u64);
            for heat in &segment.heat {
                let chunk = |s: &ObservedAccess| s.address / 64 * 64;
                let wanted = samples
                    .iter()
                    .filter(|s| {
                        (s.process, chunk(s), slow(s)) == (heat.process, heat.address, heat.site)
                    })
                    .count();
                prop_assert_eq!(heat.accesses.0, wanted as u64);
            }
        }
    }
}
