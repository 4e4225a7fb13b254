//! [`measured_runs`] computes the run times of one program that CoMerge's policies need (section 3.2: all data fast, all data slow, each
//! object alone fast) from timed runs. Predictions give the times of sites that no timed run had alone in fast memory, and divide those of
//! timed sites among their chunks; without them, untimed sites save nothing.
//!
//! ```text
//!     F, S         medians of the timed runs with all data fast, and slow
//!     site fast    the median where it was timed; else S less the part of S - F that the site saves of the predicted gap
//!     chunk fast   S less the part of what its site saves that is the chunk's by the prediction
//! ```
//!
//! A site that was not timed keeps the share of the gap that its prediction gives it, so that it compares with the timed ones as it
//! compares with their predictions. The rest of the measured gap is not divided among the untimed sites: benefits need not sum to 1, and a
//! site that hardly waits would get all that two large ones save only together.

use std::collections::BTreeMap;

use isotherm_model::plan::{Item, Value, Weight};
use isotherm_model::profile::Profile;
use isotherm_model::sensitivity_runs::{FastData, SensitivityRuns};
use isotherm_model::site::SiteId;
use isotherm_model::tier::SlowFactors;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_policy::sharing::{Benefit, ColocationError, MeasuredObject, MeasuredProgram};

use crate::predicted_runs::predicted_runs;
use crate::site_chunks::{SiteChunks, object_name, site_of_object};

/// The runs of a program, and which of them were timed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasuredRuns {
    /// The runs, with sites or chunks of them as objects.
    pub runs: MeasuredProgram,
    /// False where its objects are whole sites, because no prediction tells chunks apart.
    pub has_chunks: bool,
    /// Number of its sites with memory.
    pub sites: usize,
    /// Number of sites that were alone fast in a timed run.
    pub timed_sites: usize,
    /// Number of the other sites without a prediction; they are assumed to save nothing.
    pub unknown_sites: usize,
}

/// The runs of a program from its timed ones, made on tiers with these factors; `None` if no run had all data fast or no run all data slow.
///
/// # Errors
/// A time or an object that [`MeasuredProgram`] refuses.
pub fn measured_runs(
    name: &str,
    (profile, chunks): (&Profile, &SiteChunks),
    timed: &SensitivityRuns,
    factors: Option<SlowFactors>,
    weight: Weight,
) -> Result<Option<MeasuredRuns>, ColocationError> {
    let medians = timed
        .median(FastData::All)
        .zip(timed.median(FastData::Nothing));
    let Some((all_fast, all_slow)) = medians else {
        return Ok(None);
    };
    let predicted =
        factors.and_then(|factors| predicted_runs(name, profile, chunks, factors, weight).ok());
    // The share of the predicted gap that an object saves alone, 0 to 1.
    let share = |object: &MeasuredObject| {
        let benefit = predicted.as_ref().map(|it| Benefit::of(it, object));
        benefit.map_or(0.0, Benefit::value)
    };
    let mut of_site = BTreeMap::<SiteId, Vec<MeasuredObject>>::new();
    let objects = match &predicted {
        Some(predicted) => predicted.objects().to_vec(),
        None => whole_sites(profile, weight, all_slow),
    };
    for object in objects {
        if let Some(site) = site_of_object(&object.name) {
            of_site.entry(site).or_default().push(object);
        }
    }
    let gap = all_slow.saturating_sub(all_fast);
    let (mut alone, mut timed_sites) = (Vec::new(), 0);
    for (site, objects) in &of_site {
        let of_site = timed.median(FastData::Site(*site));
        timed_sites += usize::from(of_site.is_some());
        match (of_site, objects.as_slice()) {
            (Some(time), [whole]) => alone.push(timed_alone(whole, time)),
            (Some(time), chunks) => alone.extend(divided(chunks, share, all_slow, time)),
            (None, objects) => alone.extend(objects.iter().map(|object| {
                // A gap of more than 2^53 ns is rounded in floating point.
                let saved = Nanos((gap.0 as f64 * share(object)) as u64).min(gap);
                timed_alone(object, all_slow.saturating_sub(saved))
            })),
        }
    }
    let unknown_sites = match predicted {
        Some(_) => 0,
        None => of_site.len() - timed_sites,
    };
    Ok(Some(MeasuredRuns {
        runs: MeasuredProgram::new(name, all_fast, all_slow, alone)?,
        has_chunks: predicted.is_some(),
        sites: of_site.len(),
        timed_sites,
        unknown_sites,
    }))
}

/// The object with the time of the run in which it alone is fast.
fn timed_alone(object: &MeasuredObject, alone: Nanos) -> MeasuredObject {
    MeasuredObject {
        alone,
        ..object.clone()
    }
}

/// The sites with memory, none of which saves anything alone.
fn whole_sites(profile: &Profile, weight: Weight, all_slow: Nanos) -> Vec<MeasuredObject> {
    let items = crate::items(profile, Value::Accesses, weight);
    let items = items
        .iter()
        .filter(|item| item.site.is_placeable() && item.weight > Bytes::ZERO);
    let object = |item: &Item| MeasuredObject {
        name: object_name(item.site, None),
        size: item.weight,
        alone: all_slow,
    };
    items.map(object).collect()
}

/// The chunks of a site whose run alone in fast memory takes this time: each saves its part of what the site saves, or loses, by their
/// shares of the predicted gap, and by their sizes where these are zero.
fn divided(
    chunks: &[MeasuredObject],
    share: impl Fn(&MeasuredObject) -> f64,
    all_slow: Nanos,
    time: Nanos,
) -> Vec<MeasuredObject> {
    let shares: f64 = chunks.iter().map(&share).sum();
    let sizes: Bytes = chunks.iter().map(|chunk| chunk.size).sum();
    let saved = all_slow.0 as f64 - time.0 as f64;
    let chunks = chunks.iter();
    let alone = |chunk: &MeasuredObject| {
        let part = match shares > 0.0 {
            true => share(chunk) / shares,
            false => chunk.size.0 as f64 / sizes.0.max(1) as f64,
        };
        let alone = all_slow.0 as f64 - saved * part;
        timed_alone(chunk, Nanos((alone.round() as u64).max(1)))
    };
    chunks.map(alone).collect()
}

#[cfg(test)]
mod tests {
    use super::{MeasuredRuns, measured_runs};
    use crate::site_chunks::SiteChunks;
    use crate::waiting_profile::waiting_profile;
    use isotherm_model::movement::AddressRange;
    use isotherm_model::plan::Weight;
    use isotherm_model::profile::{Heat, Profile};
    use isotherm_model::sensitivity_runs::{FastData, SensitivityRun, SensitivityRuns, TierPair};
    use isotherm_model::site::SiteId;
    use isotherm_model::tier::SlowFactors;
    use isotherm_model::units::{Accesses, Bytes, Nanos};

    const FACTORS: SlowFactors = SlowFactors {
        latency: 3.0,
        bandwidth: 2.0,
    };

    fn timed(seconds: &[(FastData, u64)]) -> SensitivityRuns {
        let run = |(fast, seconds): &(FastData, u64)| SensitivityRun {
            fast: *fast,
            round: 0,
            time: Nanos(seconds * 1_000_000_000),
        };
        SensitivityRuns {
            tiers: TierPair::from_text(String::new()),
            runs: seconds.iter().map(run).collect(),
        }
    }

    fn measured(
        profile: &Profile,
        chunks: &SiteChunks,
        runs: &SensitivityRuns,
        factors: Option<SlowFactors>,
    ) -> Option<MeasuredRuns> {
        let data = (profile, chunks);
        measured_runs("p", data, runs, factors, Weight::PeakRss).expect("times")
    }

    /// Whole seconds with each object alone fast.
    fn seconds(made: &MeasuredRuns) -> Vec<u64> {
        let objects = made.runs.objects().iter();
        let nanos = objects.map(|object| object.alone.0 as f64);
        nanos.map(|nanos| (nanos / 1e9).round() as u64).collect()
    }

    const BOUNDS: [(FastData, u64); 2] = [(FastData::All, 10), (FastData::Nothing, 100)];

    #[test]
    fn a_site_that_was_not_timed_has_its_predicted_share_of_the_measured_gap() {
        let profile = waiting_profile();
        let [first, second] = [0, 1].map(|at| FastData::Site(profile.sites[at].id));
        let alone = |runs: &SensitivityRuns, factors| {
            let made = measured(&profile, &SiteChunks::whole_sites(), runs, factors);
            let made = made.expect("both bounds");
            assert_eq!(made.sites, 2);
            (seconds(&made), made.timed_sites, made.unknown_sites)
        };
        // Predicted: of 0.9 s between all fast and all slow the first saves 0.1, the second 0.8.
        let bounds = timed(&BOUNDS);
        assert_eq!(alone(&bounds, Some(FACTORS)), (vec![90, 20], 0, 0));
        let one = timed(&[&BOUNDS[..], &[(second, 40)]].concat());
        assert_eq!(alone(&one, Some(FACTORS)), (vec![90, 40], 1, 0));
        assert_eq!(alone(&one, None), (vec![100, 40], 1, 1));
        let none = timed(&[(first, 40)]);
        let made = measured(&profile, &SiteChunks::whole_sites(), &none, Some(FACTORS));
        assert_eq!(made, None);
    }

    #[test]
    fn chunks_divide_what_their_site_saves_or_loses() {
        const CHUNK: u64 = 64 << 10;
        let mut profile = waiting_profile();
        profile.meta.chunk = Bytes(CHUNK);
        let second = FastData::Site(profile.sites[1].id);
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
        let chunks = SiteChunks::of(&profile, Bytes(4 * CHUNK));
        let with = |time| timed(&[&BOUNDS[..], &[(second, time)]].concat());
        let saves = measured(&profile, &chunks, &with(40), Some(FACTORS)).expect("bounds");
        assert_eq!(seconds(&saves), [90, 85, 85, 85, 85]);
        let counts = (saves.has_chunks, saves.sites, saves.timed_sites);
        assert_eq!(counts, (true, 2, 1));
        let loses = measured(&profile, &chunks, &with(120), Some(FACTORS)).expect("bounds");
        assert_eq!(seconds(&loses), [90, 105, 105, 105, 105]);
        let unpredicted = measured(&profile, &chunks, &with(40), None).expect("bounds");
        assert_eq!(seconds(&unpredicted), [100, 40]);
        assert!(!unpredicted.has_chunks);
    }

    #[test]
    fn a_program_that_is_no_faster_with_fast_memory_gains_nothing_by_it() {
        let profile = waiting_profile();
        let site = FastData::Site(SiteId(999));
        let runs = timed(&[(FastData::All, 11), (FastData::Nothing, 10), (site, 1)]);
        let made = measured(&profile, &SiteChunks::whole_sites(), &runs, Some(FACTORS));
        let made = made.expect("both bounds");
        assert_eq!(seconds(&made), [10, 10]);
        assert_eq!(made.timed_sites, 0, "the site is not of this profile");
    }
}
