//! From a recorded profile to a workload: its chunks are the pages.

use std::collections::BTreeMap;

use isotherm_model::batch::Epoch;
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_pipeline::data_objects;

use super::{EpochEnd, MOST_PAGES, Place, Touches, Workload, WorkloadError};

impl Workload {
    /// A workload of a profile's heat, in the profile's epochs. A chunk that was freed and made
    /// anew by another site is two pages, one of each site. Heat of memory that no site made is
    /// left out and counted in [`Workload::left_out`].
    ///
    /// # Errors
    /// No heat of any site; a chunk size that is no power of two; heat of an epoch that is not in
    /// the list of epochs; too many chunks.
    pub fn of_profile(profile: &Profile) -> Result<Self, WorkloadError> {
        let page = profile.meta.chunk;
        if !page.0.is_power_of_two() {
            return Err(WorkloadError::PageSize(page));
        }
        let mut by_epoch: BTreeMap<Epoch, Vec<Chunk>> = profile
            .epochs
            .iter()
            .map(|epoch| (epoch.epoch, Vec::new()))
            .collect();
        let mut left_out = 0_u64;
        for heat in &profile.heat {
            let Some(chunks) = by_epoch.get_mut(&heat.epoch) else {
                return Err(WorkloadError::UnknownEpoch(heat.epoch));
            };
            if heat.site == SiteId::UNATTRIBUTED {
                left_out = left_out.saturating_add(heat.accesses.0);
            } else if heat.accesses.0 > 0 {
                let place = Place {
                    process: heat.process,
                    address: heat.address,
                    site: heat.site,
                };
                chunks.push((place, heat.accesses.0));
            }
        }
        let mut workload = Self {
            page,
            touches: Touches::Heat(Vec::new()),
            epochs: Vec::new(),
            places: Vec::new(),
            objects: data_objects(profile),
            accesses: 0,
            left_out,
        };
        workload.fill(by_epoch.into_values())?;
        Ok(workload)
    }

    /// Numbers the chunks by first touch; within an epoch, whose order nobody recorded, by process
    /// and address.
    fn fill(&mut self, epochs: impl Iterator<Item = Vec<Chunk>>) -> Result<(), WorkloadError> {
        let mut numbers = BTreeMap::<Place, u32>::new();
        let mut touches = Vec::new();
        for mut chunks in epochs {
            chunks.sort_unstable();
            for (place, count) in chunks {
                let next = numbers.len();
                if next >= MOST_PAGES {
                    return Err(WorkloadError::TooManyPages);
                }
                let number = *numbers.entry(place).or_insert(next as u32);
                if number as usize == next {
                    self.places.push(place);
                }
                touches.push((number, count));
                self.accesses = self.accesses.saturating_add(count);
            }
            self.epochs.push(EpochEnd {
                touches: touches.len(),
                known: numbers.len() as u32,
            });
        }
        if touches.is_empty() {
            return Err(WorkloadError::Empty);
        }
        self.touches = Touches::Heat(touches);
        Ok(())
    }
}

/// A chunk and its accesses in one epoch.
type Chunk = (Place, u64);

#[cfg(test)]
mod tests {
    use super::{Workload, WorkloadError};
    use crate::machine::Traffic;
    use isotherm_model::batch::{Epoch, Process};
    use isotherm_model::profile::{EpochSpan, Heat, Meta, Profile};
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
            accesses: Accesses(count),
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
