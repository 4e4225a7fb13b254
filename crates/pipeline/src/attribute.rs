//! [`Attribution`] finds the site of each observed access by the extents of the sites, and so turns each batch of observations into a
//! segment of the profile: accesses by chunk, data object and code, resident bytes, and the sites whose numbers changed.
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
use std::sync::Arc;

use isotherm_model::batch::{
    AllocatedObject, Batch, Count, Extent, ExtentKey, OBJECTS_FOLDED, ObservedAccess, Process,
};
use isotherm_model::code_access::CODE_ACCESSES_FOLDED;
use isotherm_model::profile::{EpochSpan, Heat, HeatBin, HeatObject, Meta, Resident, Segment};
use isotherm_model::site::{Frame, Site, SiteId};
use isotherm_model::spans;
use isotherm_model::sums::sums;
use isotherm_model::units::{Accesses, Bytes};

use crate::code_accesses::CodeAccesses;
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
    code: CodeAccesses,
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
            code: CodeAccesses::default(),
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
        let extents = self.extents.iter().chain(&batch.departed);
        let resident = sums(extents.map(|extent| (extent.site, extent.resident)));
        let heat = self.heat(batch);
        self.count_code(batch);
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
            code: self.code.take_changed(),
            counts: self.counts(batch),
            sources: batch.sources.clone(),
        }
    }

    /// The counters of the batch, and how many data objects were folded into their sites and accesses into no code, where any was. A batch
    /// without counters leaves the last ones as they were.
    fn counts(&self, batch: &Batch) -> Vec<Count> {
        let folded = [
            (OBJECTS_FOLDED, self.objects.folded()),
            (CODE_ACCESSES_FOLDED, self.code.folded()),
        ];
        let own = folded
            .into_iter()
            .filter(|(_, value)| *value > 0 && !batch.counts.is_empty());
        let own = own.map(|(name, value)| Count::of_run(name, value));
        batch.counts.iter().cloned().chain(own).collect()
    }

    /// Counts the accesses of known instructions, each for the site of its data.
    fn count_code(&mut self, batch: &Batch) {
        self.code.learn(&batch.instructions);
        for access in &batch.accesses {
            let Some(instruction) = access.instruction else {
                continue;
            };
            let site = self.site_of(access, &batch.departed);
            self.code.count(site, instruction, access);
        }
    }

    /// The site of an access to one address.
    fn site_of(&self, access: &ObservedAccess, departed: &[Extent]) -> SiteId {
        let site = owner(&self.extents, access).or_else(|| {
            let within = |extent: &&Extent| contains(extent, access);
            departed.iter().find(within).map(|extent| extent.site)
        });
        site.unwrap_or(SiteId::UNATTRIBUTED)
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

    /// The instructions that accessed data so far, in no order.
    pub fn code(&self) -> impl Iterator<Item = &Arc<Frame>> {
        self.code.instructions()
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
        // Where two extents have one key, the new one comes first, because the sort is stable.
        self.extents.sort_by_key(Extent::key);
        self.extents.dedup_by_key(|extent| extent.key());
    }

    /// Weighted samples by process, chunk, site and data object, in that order.
    fn heat(&self, batch: &Batch) -> Vec<Heat> {
        let mut sums = HeatSums::new();
        for access in &batch.accesses {
            let counts = [access.count, access.streamed, access.served];
            for (number, count) in counts.into_iter().enumerate() {
                // Every access makes a row, also one that counts 0; the other two counts add nothing if they are 0.
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

    /// The data object of a site that holds an address, with the finest bin that the accessed range allows. For an access to a chunk or
    /// more there is no bin.
    fn place(&self, at: (Process, u64), site: SiteId, accessed: Bytes) -> Option<HeatObject> {
        let range = self.objects.holding(at, site)?;
        let bytes = heat_bins::finest(accessed);
        let start = Bytes((at.1 - range.start) / bytes * bytes);
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
            return take(chunk, self.site_of(access, departed), count);
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
        for site in named.chain(by_extent.into_iter().chain(by_heat).map(Site::nameless)) {
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
            Some(_) if site == Site::nameless(site.id) => return false,
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

/// The chunks of the extents in the range of an access, as (chunk, bytes in the range, site), by address. Of two
/// overlapping extents the first is taken. Extents are sorted by key.
fn parts(
    access: &ObservedAccess,
    extents: &[Extent],
    chunk: u64,
) -> impl Iterator<Item = (u64, u64, SiteId)> {
    let (begin, end) = (access.address, access.end());
    let first = extents.partition_point(|e| e.key() <= (access.process, begin));
    let mut from = begin;
    extents[first.saturating_sub(1)..]
        .iter()
        .take_while(move |e| e.key() < (access.process, end))
        .filter(|e| e.process == access.process)
        .flat_map(move |extent| {
            let start = extent.address.max(from);
            let stop = extent.range().span().end.min(end);
            from = from.max(stop);
            let parts = spans::by_unit(&(start..stop), chunk);
            parts.map(move |(chunk, part)| (chunk, part.end - part.start, extent.site))
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
    extent.process == access.process && extent.range().span().contains(&access.address)
}

#[cfg(test)]
mod tests;
