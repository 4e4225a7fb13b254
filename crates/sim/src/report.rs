//! [`SimulationReport`] holds the results of a simulation: at each capacity those of every policy, of the bounds (first come first
//! allocated and the oracle) and, with memory devices, of the interleaved baseline; and once the modelled times with all data in the fast
//! tier and with all data in the slow one.

use isotherm_model::footprint::Footprint;
use isotherm_model::units::{Bytes, Nanos};
use isotherm_model::words::share;

use crate::energy::Picojoules;
use crate::monitor::MonitorSource;

/// One policy at one capacity of fast memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyResult {
    /// Name of the policy.
    pub policy: String,
    /// All accesses.
    pub accesses: u64,
    /// Accesses that the fast tier served.
    pub hits: u64,
    /// Modelled time of all accesses and moves.
    pub time: Nanos,
    /// Modelled energy of both tiers.
    pub energy: Picojoules,
    /// Bytes moved between the tiers, in both directions.
    pub moved: Bytes,
    /// The most bytes of fast memory that held data at one time.
    pub fast_used: Bytes,
}

impl PolicyResult {
    /// Share of the accesses that the fast tier served, 0 to 1.
    #[must_use]
    pub fn hit_rate(&self) -> f64 {
        share(self.hits, self.accesses)
    }
}

/// Every policy at one capacity of fast memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AtCapacity {
    /// The capacity as requested.
    pub fast: Bytes,
    /// The whole pages that it holds.
    pub pages: u32,
    /// The lower bound: first come first allocated.
    pub first_touch: PolicyResult,
    /// The upper bound of the hit rate: the oracle, with exact counts for every source.
    pub oracle: PolicyResult,
    /// All pages interleaved over the given devices of both tiers, as a machine without a plan does; `None` without given devices, or for
    /// a power model without devices.
    pub interleaved: Option<PolicyResult>,
    /// The requested policies, in that order.
    pub policies: Vec<PolicyResult>,
}

/// All results of a simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationReport {
    /// Size of a page.
    pub page: Bytes,
    /// The footprint, of which capacities are shares.
    pub footprint: Footprint,
    /// Number of epochs.
    pub epochs: usize,
    /// Replayed accesses, weighted by their source.
    pub accesses: u64,
    /// Accesses that were left out because no site allocated their memory.
    pub left_out: u64,
    /// The sources that the policies observe.
    pub source: MonitorSource,
    /// Modelled time with all data in the fast tier.
    pub all_fast: Nanos,
    /// Modelled time with all data in the slow tier.
    pub all_slow: Nanos,
    /// Results by capacity, in the order of the request.
    pub capacities: Vec<AtCapacity>,
}
