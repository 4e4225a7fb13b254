//! [`data_objects`] turns a profile into objects with counts by chunk ([`CountedObject`]), for chunk selection (ATMem) in the simulator.
//! Such an object is not one allocation but an extent, from its first accessed chunk to its last. Where the profile holds no extent,
//! neighbouring chunks of one site are one object.
//!
//! ```text
//! extents   |    of site 5    | of site 6 |
//! heat      | .  7  .  .  3  .| 5  .  .  .|      accesses of each chunk in the whole run
//! objects       [7  0  0  3]   [5]
//! ```

use isotherm_model::batch::{Extent, Process};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::Bytes;
use isotherm_policy::chunks::DataObject;

/// Most counts of an object per accessed chunk: two accesses at the ends of a terabyte must not
/// need a gigabyte of counts. Above it one count covers more chunks.
const COUNTS_PER_CHUNK: u64 = 64;

/// A data object that owns its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedObject {
    /// Process that owns the address space.
    pub process: Process,
    /// Site that allocated it.
    pub site: SiteId,
    /// First address.
    pub address: u64,
    /// Length.
    pub bytes: Bytes,
    /// Bytes that one count covers; of [`data_objects`] the profile's chunk, or a power of two of it.
    pub grain: Bytes,
    /// Accesses as weighted by the profile, one count for each grain.
    pub accesses: Vec<u64>,
}

impl CountedObject {
    /// The object in the form that chunk selection takes.
    #[must_use]
    pub fn view(&self) -> DataObject<'_> {
        DataObject {
            process: self.process,
            site: self.site,
            address: self.address,
            bytes: self.bytes,
            grain: self.grain,
            missed_reads: &self.accesses,
        }
    }
}

/// One chunk over the whole run.
#[derive(Clone, Copy)]
struct Chunk {
    process: Process,
    address: u64,
    /// The site with most of its accesses: a range has one owner, although its sites may change.
    site: SiteId,
    /// First address of the extent that holds it, if known.
    extent: Option<u64>,
    accesses: u64,
}

/// The accessed data objects of a profile, by process and address; no two overlap. Memory that no
/// site allocated is left out, because it cannot be placed.
#[must_use]
pub fn data_objects(profile: &Profile) -> Vec<CountedObject> {
    let grain = profile.meta.chunk;
    let is_one_object = |a: &Chunk, b: &Chunk| {
        let is_next = a.address.checked_add(grain.0) == Some(b.address);
        (a.process, a.site, a.extent) == (b.process, b.site, b.extent)
            && (a.extent.is_some() || is_next)
    };
    let chunks = chunks(profile);
    let runs = chunks.chunk_by(is_one_object);
    runs.map(|run| object(run, grain)).collect()
}

/// The accessed chunks by process and address.
fn chunks(profile: &Profile) -> Vec<Chunk> {
    let mut extents: Vec<&Extent> = profile.extents.iter().collect();
    extents.sort_unstable_by_key(|extent| (extent.process, extent.site, extent.address));
    let placeable = profile
        .heat
        .iter()
        .filter(|heat| heat.site != SiteId::UNATTRIBUTED && heat.accesses.0 > 0);
    let mut heat: Vec<_> = placeable
        .map(|heat| (heat.process, heat.address, heat.site, heat.accesses.0))
        .collect();
    heat.sort_unstable();
    heat.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1))
        .map(|rows| {
            let (process, address, ..) = rows[0];
            let sums = rows.chunk_by(|a, b| a.2 == b.2).map(|rows| {
                let sum = rows
                    .iter()
                    .fold(0_u64, |sum, row| sum.saturating_add(row.3));
                (sum, rows[0].2)
            });
            let (mut accesses, mut most) = (0_u64, (0, SiteId::UNATTRIBUTED));
            for (sum, site) in sums {
                accesses = accesses.saturating_add(sum);
                most = most.max((sum, site));
            }
            let site = most.1;
            let end = address.saturating_add(profile.meta.chunk.0);
            let extent = extent_of(&extents, process, site, address..end);
            Chunk {
                process,
                address,
                site,
                extent,
                accesses,
            }
        })
        .collect()
}

/// First address of the last extent of a site that has a byte in this range.
fn extent_of(
    extents: &[&Extent],
    process: Process,
    site: SiteId,
    range: std::ops::Range<u64>,
) -> Option<u64> {
    let begins_before = |extent: &&Extent| {
        (extent.process, extent.site, extent.address) < (process, site, range.end)
    };
    let behind = extents.partition_point(begins_before);
    let last = extents.get(behind.checked_sub(1)?)?;
    let reaches = last.range().span().end > range.start;
    ((last.process, last.site) == (process, site) && reaches).then_some(last.address)
}

/// The chunks of one object, with counts of zero between them.
fn object(run: &[Chunk], chunk: Bytes) -> CountedObject {
    let (first, last) = (&run[0], &run[run.len() - 1]);
    let bytes = (last.address - first.address).saturating_add(chunk.0);
    let most = (run.len() as u64).saturating_mul(COUNTS_PER_CHUNK);
    let mut grain = chunk.0.max(1);
    while bytes.div_ceil(grain) > most {
        grain = grain.saturating_mul(2);
    }
    let mut accesses = vec![0_u64; bytes.div_ceil(grain) as usize];
    for chunk in run {
        let count = &mut accesses[((chunk.address - first.address) / grain) as usize];
        *count = count.saturating_add(chunk.accesses);
    }
    CountedObject {
        process: first.process,
        site: first.site,
        address: first.address,
        bytes: Bytes(bytes),
        grain: Bytes(grain),
        accesses,
    }
}

#[cfg(test)]
mod tests {
    use super::{CountedObject, data_objects};
    use isotherm_model::batch::{Epoch, Extent, Process};
    use isotherm_model::profile::{Heat, Meta, Profile};
    use isotherm_model::site::SiteId;
    use isotherm_model::units::{Accesses, Bytes};
    use isotherm_policy::chunks::{ChunkParameters, select};
    use proptest::prelude::*;

    const PROCESS: Process = Process { pid: 7, image: 0 };
    const CHUNK: u64 = 4096;

    /// Extents as (site, first chunk, chunks), heat as (chunk, site, accesses).
    fn profile(extents: &[(u64, u64, u64)], heat: &[(u64, u64, u64)]) -> Profile {
        let mut profile = Profile::new(Meta {
            chunk: Bytes(CHUNK),
            ..Meta::default()
        });
        let extent = |&(site, first, chunks): &(u64, u64, u64)| Extent {
            process: PROCESS,
            site: SiteId(site),
            address: first * CHUNK,
            bytes: Bytes(chunks * CHUNK),
            resident: Bytes(0),
            tier: None,
        };
        profile.extents = extents.iter().map(extent).collect();
        let heat = heat.iter().map(|&(chunk, site, accesses)| Heat {
            epoch: Epoch(0),
            process: PROCESS,
            site: SiteId(site),
            address: chunk * CHUNK,
            object: None,
            accesses: Accesses(accesses),
            streamed: Accesses::ZERO,
            served: Accesses::ZERO,
        });
        profile.heat = heat.collect();
        profile
    }

    fn facts(objects: &[CountedObject]) -> Vec<(u64, u64, Vec<u64>)> {
        let facts = |o: &CountedObject| (o.site.0, o.address / CHUNK, o.accesses.clone());
        objects.iter().map(facts).collect()
    }

    #[test]
    fn an_object_reaches_from_the_first_accessed_chunk_of_an_extent_to_the_last() {
        let heat = [(11, 5, 4), (14, 5, 3), (11, 5, 3), (16, 6, 5), (30, 0, 9)];
        let objects = data_objects(&profile(&[(5, 10, 6), (6, 16, 4)], &heat));
        let expected = [(5, 11, vec![7, 0, 0, 3]), (6, 16, vec![5])];
        assert_eq!(facts(&objects), expected);
        assert_eq!(objects[0].bytes, Bytes(4 * CHUNK));
    }

    #[test]
    fn without_extents_only_neighbours_are_one_object() {
        let heat = [(1, 5, 1), (2, 5, 2), (4, 5, 3), (5, 6, 4)];
        let expected = [(5, 1, vec![1, 2]), (5, 4, vec![3]), (6, 5, vec![4])];
        assert_eq!(facts(&data_objects(&profile(&[], &heat))), expected);
    }

    #[test]
    fn a_chunk_that_two_sites_used_belongs_to_the_one_that_used_it_more() {
        let heat = [(1, 5, 9), (2, 5, 1), (2, 6, 8), (3, 5, 9)];
        let expected = [(5, 1, vec![9]), (6, 2, vec![9]), (5, 3, vec![9])];
        assert_eq!(
            facts(&data_objects(&profile(&[(5, 1, 3)], &heat))),
            expected
        );
    }

    #[test]
    fn two_accesses_far_apart_are_few_counts_of_many_chunks_each() {
        let far = 1 << 40;
        let objects = data_objects(&profile(&[(5, 0, 2 * far)], &[(0, 5, 1), (far, 5, 2)]));
        let counts = &objects[0].accesses;
        assert!(counts.len() <= 128, "{}", counts.len());
        assert_eq!((counts[0], counts[counts.len() - 1]), (1, 2));
    }

    proptest! {
        #[test]
        fn every_access_is_in_one_object_and_selection_takes_them(
            extents in prop::collection::vec((5_u64..8, 0_u64..60, 1_u64..20), 0..6),
            heat in prop::collection::vec((0_u64..70, 4_u64..8, 1_u64..100), 0..60),
        ) {
            let objects = data_objects(&profile(&extents, &heat));
            let counted: u64 = objects.iter().flat_map(|o| &o.accesses).sum();
            prop_assert_eq!(counted, heat.iter().map(|h| h.2).sum::<u64>());
            let views: Vec<_> = objects.iter().map(CountedObject::view).collect();
            prop_assert!(select(&views, &ChunkParameters::default(), Bytes(1 << 20)).is_ok());
        }
    }
}
