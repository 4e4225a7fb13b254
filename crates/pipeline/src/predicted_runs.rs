//! The runs of one program that CoMerge measures (section 3.2), predicted from one recorded run: all data fast, all data slow, and each
//! site alone fast.
//!
//! ```text
//!     F            time of the recorded run, in which all data was fast
//!     S            F plus what each site adds when it is slow: the time waited for it, times the factor of the tiers less one
//!     site fast    S less what it adds
//! ```
//!
//! So the benefits of a program's sites sum to 1 at most. Measured ones may sum to more, because programs wait for several objects at once.

use std::fmt;

use isotherm_model::plan::{Value, Weight};
use isotherm_model::profile::Profile;
use isotherm_model::tier::SlowFactors;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_policy::sharing::{ColocationError, MeasuredObject, MeasuredProgram};

use crate::expected::{added_share, processor_time};

/// Why the runs of a program cannot be predicted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unpredicted {
    /// The profile does not say how long the program waited: no timer sampled it, or others did, too.
    NoTimes,
    /// The predicted runs are refused.
    Refused(ColocationError),
}

impl fmt::Display for Unpredicted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTimes => write!(
                f,
                "the profile does not say how long the program waited for its data; record it with --source timer"
            ),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unpredicted {}

/// The predicted runs of a program. Its objects are its sites, named by their ids; sites without memory are left out.
///
/// # Errors
/// A profile that does not tell times.
pub fn predicted_runs(
    name: &str,
    profile: &Profile,
    factors: SlowFactors,
    weight: Weight,
) -> Result<MeasuredProgram, Unpredicted> {
    let waiting = profile.waiting_by_site().ok_or(Unpredicted::NoTimes)?;
    let all_fast = processor_time(profile).0.max(1);
    let items = crate::items(profile, Value::Accesses, weight);
    let items: Vec<_> = items
        .iter()
        .filter(|item| item.site.is_placeable() && item.weight > Bytes::ZERO)
        .collect();
    let added = |site| {
        let share = waiting.get(site).copied().unwrap_or_default();
        (added_share(share, factors) * all_fast as f64) as u64
    };
    let all_slow = items
        .iter()
        .map(|item| added(&item.site))
        .fold(all_fast, u64::saturating_add);
    let objects = items.iter().map(|item| MeasuredObject {
        name: item.site.to_string(),
        size: item.weight,
        alone: Nanos(all_slow - added(&item.site)),
    });
    MeasuredProgram::new(name, Nanos(all_fast), Nanos(all_slow), objects.collect())
        .map_err(Unpredicted::Refused)
}

#[cfg(test)]
mod tests {
    use super::{Unpredicted, predicted_runs};
    use crate::waiting_profile::waiting_profile;
    use isotherm_model::plan::Weight;
    use isotherm_model::site::{Site, SiteId, SiteKind};
    use isotherm_model::tier::SlowFactors;
    use isotherm_model::units::{Bytes, Nanos};

    const FACTORS: SlowFactors = SlowFactors {
        latency: 3.0,
        bandwidth: 2.0,
    };

    #[test]
    fn each_site_with_memory_saves_what_it_adds_when_it_is_slow() {
        let mut profile = waiting_profile();
        profile.sites[1].peak_rss = Bytes(2 << 20);
        profile.sites.push(Site::new(SiteId(13), SiteKind::Heap));
        let runs = predicted_runs("p", &profile, FACTORS, Weight::PeakRss).expect("times");
        assert_eq!(runs.all_fast(), Nanos(1_000_000_000));
        assert_eq!(runs.all_slow(), Nanos(1_900_000_000));
        let objects = runs.objects().iter();
        let objects: Vec<_> = objects
            .map(|object| (object.size, object.alone.0 / 1_000_000))
            .collect();
        assert_eq!(objects, [(Bytes(1 << 20), 1800), (Bytes(2 << 20), 1100)]);
    }

    #[test]
    fn a_profile_without_times_is_refused() {
        let mut profile = waiting_profile();
        profile.sources[0].name = "pebs".to_owned();
        let refused = predicted_runs("p", &profile, FACTORS, Weight::PeakRss);
        assert_eq!(refused, Err(Unpredicted::NoTimes));
    }
}
