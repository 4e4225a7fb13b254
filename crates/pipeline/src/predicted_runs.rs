//! [`predicted_runs`] predicts, from one profile with timer samples, the run times of a program that CoMerge measures (section 3.2): with
//! all data fast, with all data slow, and with each object (a site, or a chunk of one) alone fast. The times are processor times of all
//! threads; they stand in for runs that were not measured.
//!
//! ```text
//!     F            processor time of the recorded run, in which all data was fast
//!     S            F plus what each object adds when it is slow: the time waited for it, times the factor of the tiers less one
//!     object fast  S less what it adds
//! ```
//!
//! So the benefits of a program's objects sum to 1 at most. Measured ones may sum to more: programs wait for several objects at once.

use std::ops::Range;

use isotherm_model::plan::{Value, Weight};
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::tier::SlowFactors;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_policy::sharing::{ColocationError, MeasuredObject, MeasuredProgram};

use crate::expected::{added_share, pieces, processor_time};
use crate::site_chunks::{SiteChunks, object_name};

/// Why the runs of a program cannot be predicted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unpredicted {
    /// The profile does not say how long the program waited: no timer sampled it, or others did, too.
    #[error(
        "the profile does not say how long the program waited for its data; record it with --source timer"
    )]
    NoTimes,
    /// The predicted runs are refused.
    #[error(transparent)]
    Refused(ColocationError),
}

/// The predicted runs of a program. Its objects are the chunks of its sites; those without memory are left out.
///
/// # Errors
/// The profile does not tell times, or the predicted runs are refused.
pub fn predicted_runs(
    name: &str,
    profile: &Profile,
    chunks: &SiteChunks,
    factors: SlowFactors,
    weight: Weight,
) -> Result<MeasuredProgram, Unpredicted> {
    let waiting = profile.waiting_by_site().ok_or(Unpredicted::NoTimes)?;
    let all_fast = processor_time(profile).0.max(1);
    let added = |waits| added_share(waits, factors) * all_fast as f64;
    let items = crate::items(profile, Value::Accesses, weight);
    let mut objects = Vec::new();
    for item in items.iter().filter(|item| item.site.is_placeable()) {
        let waits = waiting.get(&item.site).copied().unwrap_or_default();
        for piece in pieces(item, waits, chunks.blocks().get(&item.site)) {
            let whole = Object {
                name: object_name(item.site, None),
                size: piece.weight,
                added: added(piece.waits) as u64,
            };
            match &piece.place {
                Some(place) => objects.extend(cut(&whole, item.site, place, chunks)),
                None => objects.push(whole),
            }
        }
    }
    objects.retain(|object| object.size > Bytes::ZERO);
    let all_slow = objects
        .iter()
        .map(|object| object.added)
        .fold(all_fast, u64::saturating_add);
    let alone = |object: Object| MeasuredObject {
        name: object.name,
        size: object.size,
        alone: Nanos(all_slow - object.added),
    };
    let objects = objects.into_iter().map(alone).collect();
    MeasuredProgram::new(name, Nanos(all_fast), Nanos(all_slow), objects)
        .map_err(Unpredicted::Refused)
}

/// A site, a block of one or a chunk, with the nanoseconds that it adds when it is slow.
struct Object {
    name: String,
    size: Bytes,
    added: u64,
}

/// The chunks of a block: equal chunks have equal shares, so that none is worth more than the others by rounding.
fn cut(
    block: &Object,
    site: SiteId,
    place: &Range<Bytes>,
    chunks: &SiteChunks,
) -> impl Iterator<Item = Object> {
    let length = place.end.saturating_sub(place.start).0.max(1) as f64;
    chunks.cut(place).map(move |chunk| {
        let share = chunk.end.saturating_sub(chunk.start).0 as f64 / length;
        Object {
            name: object_name(site, Some(chunk.start)),
            size: Bytes((block.size.0 as f64 * share) as u64),
            added: (block.added as f64 * share) as u64,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{Unpredicted, predicted_runs};
    use crate::site_chunks::SiteChunks;
    use crate::waiting_profile::waiting_profile;
    use isotherm_model::movement::AddressRange;
    use isotherm_model::plan::Weight;
    use isotherm_model::profile::{Heat, Profile};
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::tier::SlowFactors;
    use isotherm_model::units::{Accesses, Bytes, Nanos};
    use isotherm_policy::sharing::MeasuredProgram;

    const FACTORS: SlowFactors = SlowFactors {
        latency: 3.0,
        bandwidth: 2.0,
    };

    fn predicted(profile: &Profile, chunks: &SiteChunks) -> Result<MeasuredProgram, Unpredicted> {
        predicted_runs("p", profile, chunks, FACTORS, Weight::PeakRss)
    }

    #[test]
    fn each_site_with_memory_saves_what_it_adds_when_it_is_slow() {
        let mut profile = waiting_profile();
        profile.sites[1].peak_rss = Bytes(2 << 20);
        profile.sites.push(Site::new(SiteId(13), SiteKind::Heap));
        let runs = predicted(&profile, &SiteChunks::whole_sites()).expect("times");
        assert_eq!(runs.all_fast(), Nanos(1_000_000_000));
        assert_eq!(runs.all_slow(), Nanos(1_900_000_000));
        let objects = runs.objects().iter();
        let objects: Vec<_> = objects
            .map(|object| (object.size, object.alone.0 / 1_000_000))
            .collect();
        assert_eq!(objects, [(Bytes(1 << 20), 1800), (Bytes(2 << 20), 1100)]);
    }

    #[test]
    fn the_chunks_of_a_block_share_its_bytes_and_its_time() {
        const CHUNK: u64 = 64 << 10;
        let mut profile = waiting_profile();
        profile.meta.chunk = Bytes(CHUNK);
        let whole = profile.heat.remove(1);
        let object = AddressRange {
            start: 0,
            bytes: Bytes(1 << 20),
        };
        profile.heat.extend((0..16).map(|chunk| Heat {
            address: chunk * CHUNK,
            object: Some(object.into()),
            accesses: Accesses(whole.accesses.0 / 16),
            ..whole
        }));
        let runs = predicted(&profile, &SiteChunks::of(&profile, Bytes(4 * CHUNK)));
        let runs = runs.expect("times");
        assert_eq!(runs.all_slow(), Nanos(1_900_000_000));
        let objects = runs.objects().iter();
        let objects: Vec<_> = objects
            .map(|object| (object.size.0 / CHUNK, object.alone.0 / 1_000_000))
            .collect();
        assert_eq!(
            objects,
            [(16, 1800), (4, 1700), (4, 1700), (4, 1700), (4, 1700)]
        );
    }

    #[test]
    fn a_profile_without_times_is_refused() {
        let mut profile = waiting_profile();
        profile.sources[0].name = "pebs".to_owned();
        let refused = predicted(&profile, &SiteChunks::whole_sites());
        assert_eq!(refused, Err(Unpredicted::NoTimes));
    }
}
