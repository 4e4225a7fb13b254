//! [`Workload::of_profile`] makes a workload of a recorded profile: its resident and accessed chunks become the pages, but for memory that
//! no site allocated.
//!
//! A profile holds the resident bytes of each site in each epoch, and the addresses of accessed chunks. The site gets as many pages as were
//! resident, including pages without an access, because they take fast memory too. No row records the first touch of a page, so the
//! accessed chunks are spread evenly over the resident pages:
//!
//! ```text
//! resident in the epoch    4 chunks of site 5      numbers 0 1 2 3
//! accessed in it           chunks at 0x2000 and 0x9000
//! pages                    0x2000 . 0x9000 .       those without an address wait for later epochs
//! ```

use std::collections::BTreeMap;

use isotherm_model::batch::{Epoch, Process};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;
use isotherm_pipeline::data_objects;

use super::{EpochEnd, MOST_CHUNKS, MOST_PAGES, Place, Touches, Workload, WorkloadError};

impl Workload {
    /// A workload of a profile's heat and residency, in the profile's epochs. A chunk that was
    /// freed and allocated again by another site is two pages, one of each site. Heat of memory
    /// that no site allocated is left out and counted in [`Workload::left_out`].
    ///
    /// # Errors
    /// No heat of any site; a chunk size that is not a power of two; heat of an epoch that is not
    /// in the list of epochs; too many chunks.
    pub fn of_profile(profile: &Profile) -> Result<Self, WorkloadError> {
        let page = profile.meta.chunk;
        if !page.0.is_power_of_two() {
            return Err(WorkloadError::PageSize(page));
        }
        let (epochs, left_out) = by_epoch(profile)?;
        let mut workload = Self {
            page,
            touches: Touches::Heat(Vec::new()),
            epochs: Vec::new(),
            places: Vec::new(),
            footprint: profile.footprint(),
            objects: data_objects(profile),
            accesses: 0,
            left_out,
        };
        let first_seen = profile.sites.iter().map(|site| (site.id, site.first_seen));
        let mut numbering = Numbering {
            page,
            first_seen: first_seen.collect(),
            ..Numbering::default()
        };
        workload.fill(&mut numbering, epochs.into_values())?;
        workload.places = numbering.places;
        Ok(workload)
    }

    /// Numbers the pages by first touch and lists the accesses of each epoch.
    fn fill(
        &mut self,
        numbering: &mut Numbering,
        epochs: impl Iterator<Item = ChunkResidency>,
    ) -> Result<(), WorkloadError> {
        let mut touches = Vec::new();
        for held in epochs {
            numbering.add(&held)?;
            for (chunk, count) in held.accessed {
                touches.push((numbering.numbers[&chunk], count));
                self.accesses = self.accesses.saturating_add(count);
            }
            self.epochs.push(EpochEnd {
                touches: touches.len(),
                known: numbering.places.len() as u32,
            });
        }
        if touches.is_empty() {
            return Err(WorkloadError::Empty);
        }
        self.touches = Touches::Heat(touches);
        Ok(())
    }
}

/// An accessed chunk: its site, process and address.
type Chunk = (SiteId, Process, u64);

/// The residency and accesses of one epoch in memory that can be placed.
#[derive(Default)]
struct ChunkResidency {
    accessed: BTreeMap<Chunk, u64>,
    resident: BTreeMap<SiteId, Bytes>,
}

/// The residency of each epoch, and the accesses to memory that no site allocated.
fn by_epoch(profile: &Profile) -> Result<(BTreeMap<Epoch, ChunkResidency>, u64), WorkloadError> {
    let mut left_out = 0_u64;
    let epochs = profile.epochs.iter().map(|epoch| epoch.epoch);
    let mut epochs: BTreeMap<Epoch, ChunkResidency> = epochs
        .map(|epoch| (epoch, ChunkResidency::default()))
        .collect();
    for heat in &profile.heat {
        let Some(held) = epochs.get_mut(&heat.epoch) else {
            return Err(WorkloadError::UnknownEpoch(heat.epoch));
        };
        if !heat.site.is_placeable() {
            left_out = left_out.saturating_add(heat.accesses.0);
        } else if heat.accesses.0 > 0 {
            let chunk = (heat.site, heat.process, heat.address);
            let count = held.accessed.entry(chunk).or_default();
            *count = count.saturating_add(heat.accesses.0);
        }
    }
    for row in profile
        .resident
        .iter()
        .filter(|row| row.site.is_placeable())
    {
        if let Some(held) = epochs.get_mut(&row.epoch) {
            *held.resident.entry(row.site).or_default() += row.bytes;
        }
    }
    Ok((epochs, left_out))
}

/// The numbers of the pages.
#[derive(Default)]
struct Numbering {
    page: Bytes,
    /// Position of each site in the order of first allocation.
    first_seen: BTreeMap<SiteId, u32>,
    places: Vec<Place>,
    numbers: BTreeMap<Chunk, u32>,
    sites: BTreeMap<SiteId, Pages>,
}

/// The pages of one site.
#[derive(Default)]
struct Pages {
    count: u64,
    /// Pages without an observed access so far.
    quiet: Vec<u32>,
}

impl Numbering {
    /// Numbers the pages that an epoch shows for the first time, by site in the order of first
    /// allocation.
    fn add(&mut self, held: &ChunkResidency) -> Result<(), WorkloadError> {
        let mut new = BTreeMap::<SiteId, Vec<Chunk>>::new();
        for chunk in held
            .accessed
            .keys()
            .filter(|c| !self.numbers.contains_key(*c))
        {
            new.entry(chunk.0).or_default().push(*chunk);
        }
        for site in held.resident.keys() {
            new.entry(*site).or_default();
        }
        let mut order: Vec<_> = new.into_iter().collect();
        order.sort_by_key(|(site, chunks)| {
            let first_seen = self.first_seen.get(site).copied().unwrap_or(u32::MAX);
            let address = chunks.first().map(|chunk| (chunk.1, chunk.2));
            (first_seen, address.is_none(), address, *site)
        });
        for (site, chunks) in order {
            let resident = held.resident.get(&site).copied().unwrap_or_default();
            let pages = resident.0.saturating_add(self.page.0 / 2) / self.page.0;
            self.make(site, pages, chunks.len())?;
            self.spread(site, chunks);
        }
        Ok(())
    }

    /// Adds pages to a site until it has the given number of pages, and of pages without an access.
    fn make(&mut self, site: SiteId, resident: u64, new: usize) -> Result<(), WorkloadError> {
        let pages = self.sites.entry(site).or_default();
        let quiet = (new as u64).saturating_sub(pages.quiet.len() as u64);
        let more = resident.saturating_sub(pages.count).max(quiet);
        let next = self.places.len() as u64;
        let end = next.saturating_add(more);
        if end >= MOST_PAGES as u64 || more > quiet && end > u64::from(MOST_CHUNKS) {
            return Err(match more > quiet {
                true => WorkloadError::TooMuchResident(self.page),
                false => WorkloadError::TooManyPages,
            });
        }
        pages.count += more;
        pages.quiet.extend(next as u32..end as u32);
        self.places.resize(end as usize, Place { site, at: None });
        Ok(())
    }

    /// Assigns quiet pages of their site to new chunks, which are in the order of their addresses.
    fn spread(&mut self, site: SiteId, chunks: Vec<Chunk>) {
        let Some(pages) = self.sites.get_mut(&site) else {
            return;
        };
        let quiet = std::mem::take(&mut pages.quiet);
        let (there, wanted) = (quiet.len(), chunks.len());
        let mut chunks = chunks.into_iter().enumerate().peekable();
        for (at, number) in quiet.into_iter().enumerate() {
            let is_next = |(index, _): &(usize, Chunk)| index * there / wanted == at;
            match chunks.next_if(is_next) {
                Some((_, chunk)) => {
                    self.places[number as usize].at = Some((chunk.1, chunk.2));
                    self.numbers.insert(chunk, number);
                }
                None => pages.quiet.push(number),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Workload, WorkloadError};
    use crate::machine::Traffic;
    use isotherm_model::batch::{Epoch, Process};
    use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile, Resident};
    use isotherm_model::site::SiteId;
    use isotherm_model::units::{Accesses, Bytes, Nanos};

    fn profile(heat: &[(u32, u64, u64, u64)]) -> Profile {
        let mut profile = Profile::new(Meta {
            chunk: Bytes(4096),
            ..Meta::default()
        });
        profile.epochs = (0..3)
            .map(|epoch| EpochSpan {
                epoch: Epoch(epoch),
                span: Nanos(1_000),
            })
            .collect();
        let heat = heat.iter().map(|&(epoch, address, site, count)| Heat {
            epoch: Epoch(epoch),
            process: Process::default(),
            site: SiteId(site),
            address,
            object: None,
            accesses: Accesses(count),
            streamed: Accesses::ZERO,
            served: Accesses::ZERO,
        });
        profile.heat = heat.collect();
        profile
    }

    #[test]
    fn chunks_are_pages_by_first_touch_and_a_reused_chunk_is_a_page_of_each_site() {
        let heat = [
            (0, 0x2000, 5, 3),
            (0, 0x1000, 5, 4),
            (2, 0x2000, 6, 1),
            (2, 0x1000, 5, 9),
            (2, 0x3000, 0, 100),
        ];
        let workload = Workload::of_profile(&profile(&heat)).unwrap();
        assert_eq!((workload.pages(), workload.epochs()), (3, 3));
        assert_eq!((workload.accesses(), workload.left_out()), (17, 100));
        let mut counts = [0; 6];
        assert_eq!(
            workload.tally(2, &mut counts),
            Traffic {
                reads: 10,
                writes: 0
            }
        );
        assert_eq!(counts, [9, 0, 0, 0, 1, 0]);
        let facts: Vec<_> = workload
            .items()
            .iter()
            .map(|i| (i.site.0, i.value, i.weight.0, i.order))
            .collect();
        assert_eq!(facts, [(5, 16, 8192, 0), (6, 1, 4096, 2)]);
    }

    #[test]
    fn what_was_resident_and_never_accessed_takes_fast_memory_as_well() {
        let mut profile = profile(&[(0, 0x2000, 5, 3), (0, 0x9000, 5, 4), (1, 0x5000, 5, 1)]);
        let resident = [(0, 5, 4), (0, 6, 2), (1, 5, 3), (1, 0, 50)];
        profile.resident = resident
            .map(|(epoch, site, chunks)| Resident {
                epoch: Epoch(epoch),
                site: SiteId(site),
                bytes: Bytes(chunks * 4096),
            })
            .into();
        let workload = Workload::of_profile(&profile).unwrap();
        assert_eq!(workload.footprint(), profile.footprint());
        assert_eq!(workload.footprint().0, Bytes(6 * 4096));
        assert_eq!(workload.pages(), 6, "nothing new in the second epoch");
        let at = |page: usize| workload.places()[page].at.map(|at| at.1);
        assert_eq!(
            [0, 1, 2, 3, 4, 5].map(at),
            [Some(0x2000), Some(0x5000), Some(0x9000), None, None, None]
        );
        let weights: Vec<_> = workload.items().iter().map(|i| i.weight.0).collect();
        assert_eq!(weights, [4 * 4096, 2 * 4096]);
    }

    #[test]
    fn a_few_rows_that_claim_all_memory_are_refused() {
        let mut profile = profile(&[(0, 0x2000, 5, 3)]);
        profile.resident.push(Resident {
            epoch: Epoch(0),
            site: SiteId(5),
            bytes: Bytes(u64::MAX),
        });
        let refusal = Workload::of_profile(&profile).unwrap_err();
        assert_eq!(refusal, WorkloadError::TooMuchResident(Bytes(4096)));
    }

    #[test]
    fn a_profile_that_cannot_be_replayed_is_refused() {
        let refusal = |profile: &Profile| Workload::of_profile(profile).unwrap_err();
        assert_eq!(refusal(&profile(&[])), WorkloadError::Empty);
        assert_eq!(refusal(&profile(&[(0, 0, 0, 9)])), WorkloadError::Empty);
        assert_eq!(
            refusal(&profile(&[(7, 0, 5, 1)])),
            WorkloadError::UnknownEpoch(Epoch(7))
        );
        let mut broken = profile(&[(0, 0, 5, 1)]);
        broken.meta.chunk = Bytes(0);
        assert_eq!(refusal(&broken), WorkloadError::PageSize(Bytes(0)));
    }
}
