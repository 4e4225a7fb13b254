//! Sums over a run.

use isotherm_model::count_unit::CountUnit;
use isotherm_model::profile::Profile;
use isotherm_model::units::Capacity;
use serde::Serialize;

use crate::capacity_curve::CapacityCurve;
use crate::words::share;

/// The share of the footprint that the headline speaks of.
pub const HOT_SHARE: f64 = 0.25;

/// Sums over the run. Shares of accesses are of `accesses`, shares of capacity of
/// `footprint_bytes`.
#[derive(Clone, Debug, Serialize)]
pub struct SummaryTotals {
    /// What the fields named `accesses` count: `accesses`, `misses`, `time waiting for memory`.
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
    /// Number of placeable sites.
    pub sites: usize,
    /// The share of the footprint that the headline speaks of: 0.25.
    pub hot_capacity_share: f64,
    /// The same in bytes.
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
        Self {
            counted: profile.counted(),
            footprint_bytes: footprint.0,
            peak_rss_sum_bytes: curve.bytes().0,
            accesses: curve.accesses().0,
            unattributed_accesses,
            sites,
            hot_capacity_share: HOT_SHARE,
            hot_capacity_bytes: hot.0,
            hot_accesses_share: curve.share_at(hot),
        }
    }

    /// Share of all accesses seen that fell on no site.
    #[must_use]
    pub fn unattributed_share(&self) -> f64 {
        let all = self.accesses.saturating_add(self.unattributed_accesses);
        share(self.unattributed_accesses, all)
    }
}
