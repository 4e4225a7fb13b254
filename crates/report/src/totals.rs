//! [`SummaryTotals`] holds the sums over a run that a report shows, and the share of accesses to the hottest quarter of the footprint.

use isotherm_model::count_unit::CountUnit;
use isotherm_model::profile::Profile;
use isotherm_model::site::SiteId;
use isotherm_model::units::{Bytes, Capacity};
use serde::Serialize;

use crate::capacity_curve::CapacityCurve;
use crate::words::{percent, share};

/// The share of the footprint that the headline speaks of.
pub const HOT_SHARE: f64 = 0.25;

/// Sums over the run. Shares of accesses are of `accesses`, shares of capacity of
/// `footprint_bytes`.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryTotals {
    /// Unit of the fields named `accesses`: `accesses`, `misses`, `time waiting for memory`.
    #[serde(serialize_with = "crate::words::noun")]
    pub counted: CountUnit,
    /// The footprint: [`isotherm_model::footprint::Footprint`].
    pub footprint_bytes: u64,
    /// Peak RSS of the sites added up; more than the footprint where they peak at different times.
    pub peak_rss_sum_bytes: u64,
    /// Accesses to data of placeable sites.
    pub accesses: u64,
    /// Accesses to stacks, program data, libraries and files, which are not placed by site.
    pub unattributed_accesses: u64,
    /// Accesses beside `accesses` that the caches served, by an estimate; they are in no share.
    pub served_by_caches: u64,
    /// Accesses beside `unattributed_accesses` that the caches served.
    pub unattributed_served_by_caches: u64,
    /// Bytes of cache that the estimate assumed; none where no source needed one.
    pub assumed_cache_bytes: Option<u64>,
    /// Number of placeable sites.
    pub sites: usize,
    /// The share of the footprint that the headline speaks of: 0.25.
    pub hot_capacity_share: f64,
    /// This share in bytes.
    pub hot_capacity_bytes: u64,
    /// Share of the accesses that the hottest data of that size takes.
    pub hot_accesses_share: f64,
}

impl SummaryTotals {
    pub(crate) fn new(
        profile: &Profile,
        sites: usize,
        curve: &CapacityCurve,
        unattributed_accesses: u64,
    ) -> Self {
        let footprint = profile.footprint().0;
        let hot = Capacity::Share(HOT_SHARE).of(footprint);
        let by_caches = profile.served_by_site();
        let placeable = by_caches.iter().filter(|(site, _)| site.is_placeable());
        let served = placeable.map(|(_, served)| served.0);
        let unattributed_served = by_caches.get(&SiteId::UNATTRIBUTED);
        Self {
            counted: profile.counted(),
            footprint_bytes: footprint.0,
            peak_rss_sum_bytes: curve.bytes().0,
            accesses: curve.accesses().0,
            unattributed_accesses,
            served_by_caches: served.fold(0, u64::saturating_add),
            unattributed_served_by_caches: unattributed_served.map_or(0, |served| served.0),
            assumed_cache_bytes: profile.meta.cache.map(|cache| cache.0),
            sites,
            hot_capacity_share: HOT_SHARE,
            hot_capacity_bytes: hot.0,
            hot_accesses_share: curve.share_at(hot),
        }
    }

    /// The part that the caches served, in a sentence; none where no cache was assumed.
    #[must_use]
    pub fn served_in_words(&self) -> Option<String> {
        let cache = Bytes(self.assumed_cache_bytes?);
        let served = self
            .served_by_caches
            .saturating_add(self.unattributed_served_by_caches);
        let beyond = self.accesses.saturating_add(self.unattributed_accesses);
        let all = served.saturating_add(beyond);
        (all > 0).then(|| {
            format!(
                "The caches served {} of all {} seen, by an estimate for {cache} of cache (--cache); every other figure is of \
                 the rest, which waited for memory beyond them.",
                percent(share(served, all)),
                self.counted.units()
            )
        })
    }

    /// Share of all accesses seen that fell on no site.
    #[must_use]
    pub fn unattributed_share(&self) -> f64 {
        let all = self.accesses.saturating_add(self.unattributed_accesses);
        share(self.unattributed_accesses, all)
    }
}
