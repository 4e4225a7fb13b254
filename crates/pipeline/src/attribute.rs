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

use isotherm_model::batch::{Batch, Extent, Process, Sample};
use isotherm_model::profile::{EpochSpan, Heat, Meta, Resident, Segment};
use isotherm_model::site::{Site, SiteId, SiteKind};
use isotherm_model::units::{Accesses, Bytes};

/// Turns batches into segments, in the order of the epochs. It keeps the state that later segments
/// need: the sites with their peaks and order, and the extents as last reported.
#[derive(Clone, Debug)]
pub struct Attribution {
    chunk: u64,
    sites: BTreeMap<SiteId, Site>,
    extents: Vec<Extent>,
}

impl Attribution {
    /// An attribution by the chunk size of this profile. Chunks of zero bytes count as one.
    #[must_use]
    pub fn new(meta: &Meta) -> Self {
        Self {
            chunk: meta.chunk.0.max(1),
            sites: BTreeMap::new(),
            extents: Vec::new(),
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
        let mut extents = batch.extents.clone();
        extents.sort_unstable_by_key(key);
        let resident = resident_by_site(&extents);
        let heat = self.heat(batch, &extents);
        let sites = self.changed_sites(batch, &extents, &resident, &heat);
        let changed = self.changed_extents(&extents);
        self.extents = extents;
        Segment {
            epoch: EpochSpan {
                epoch: batch.epoch,
                span: batch.span,
            },
            sites,
            extents: changed,
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
            counts: batch.counts.clone(),
            sources: batch.sources.clone(),
        }
    }

    /// Weighted samples by process, chunk and site, in that order.
    fn heat(&self, batch: &Batch, extents: &[Extent]) -> Vec<Heat> {
        let mut sums = BTreeMap::<(Process, u64, SiteId), Accesses>::new();
        for sample in &batch.samples {
            let chunk = sample.address - sample.address % self.chunk;
            let site = owner(extents, sample);
            *sums.entry((sample.process, chunk, site)).or_default() += Accesses(sample.weight);
        }
        sums.into_iter()
            .map(|((process, address, site), accesses)| Heat {
                epoch: batch.epoch,
                process,
                site,
                address,
                accesses,
            })
            .collect()
    }

    /// The sites of the batch and those that only its extents or samples name, where any number
    /// changed. Batches list sites in the order of creation, which is kept as `first_seen`; of
    /// sites that only extents name, the lower address comes first.
    fn changed_sites(
        &mut self,
        batch: &Batch,
        extents: &[Extent],
        resident: &BTreeMap<SiteId, Bytes>,
        heat: &[Heat],
    ) -> Vec<Site> {
        let named = batch.sites.iter().cloned();
        let by_extent = extents.iter().map(|extent| extent.site);
        let by_heat = heat.iter().map(|heat| heat.site);
        let mut changed = BTreeSet::new();
        for site in named.chain(by_extent.chain(by_heat).map(stranger)) {
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

    /// Extents that are new or differ from the last report.
    fn changed_extents(&self, extents: &[Extent]) -> Vec<Extent> {
        extents
            .iter()
            .filter(|extent| {
                self.extents
                    .binary_search_by_key(&key(extent), key)
                    .map_or(true, |at| self.extents[at] != **extent)
            })
            .copied()
            .collect()
    }
}

const fn key(extent: &Extent) -> (Process, u64) {
    (extent.process, extent.address)
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

/// The site whose extent holds the sample's address. Extents are sorted by [`key`].
fn owner(extents: &[Extent], sample: &Sample) -> SiteId {
    let after = extents.partition_point(|e| key(e) <= (sample.process, sample.address));
    after
        .checked_sub(1)
        .map(|at| &extents[at])
        .filter(|e| e.process == sample.process && sample.address - e.address < e.bytes.0)
        .map_or(SiteId::UNATTRIBUTED, |e| e.site)
}

fn resident_by_site(extents: &[Extent]) -> BTreeMap<SiteId, Bytes> {
    let mut sums = BTreeMap::<SiteId, Bytes>::new();
    for extent in extents {
        *sums.entry(extent.site).or_default() += extent.resident;
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::Attribution;
    use isotherm_model::batch::{Batch, Epoch, Extent, Process, Sample};
    use isotherm_model::profile::{Meta, Profile};
    use isotherm_model::site::{Site, SiteId, SiteKind};
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

    fn sample(pid: u32, address: u64) -> Sample {
        Sample {
            process: process(pid),
            address,
            weight: 1,
        }
    }

    fn meta(chunk: u64) -> Meta {
        Meta {
            chunk: Bytes(chunk),
            ..Meta::default()
        }
    }

    fn batch(epoch: u32, extents: Vec<Extent>, samples: Vec<Sample>) -> Batch {
        Batch {
            epoch: Epoch(epoch),
            span: Nanos(1_000_000_000),
            extents,
            samples,
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
        profile.absorb(attribution.attribute(&batch(1, one, vec![])));
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
        let second = attribution.attribute(&same);
        assert_eq!((second.sites.len(), second.extents.len()), (0, 0));
        assert_eq!(second.resident.len(), 1);
        // The extent was freed and came back: it is reported again.
        let gone = attribution.attribute(&batch(2, vec![], vec![]));
        assert!(gone.resident.is_empty());
        assert_eq!(attribution.attribute(&same).extents.len(), 1);
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
            let samples: Vec<Sample> = addresses.iter().map(|&(p, at)| sample(p, at)).collect();
            let slow = |s: &Sample| {
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
                let chunk = |s: &Sample| s.address / 64 * 64;
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
