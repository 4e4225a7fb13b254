//! [`SimulationRequest`] is the input of a simulation: workload, machine, energy model, capacities, policies and their observations, and
//! the number of memory devices. [`SimulateError`] says why a simulation was not made.

use std::fmt;

use isotherm_model::units::{Bytes, Capacity};
use isotherm_policy::{ATMEM, epoch};

use crate::cache_mode::CACHE_MODE;
use crate::energy::{EnergyModel, FlatPower};
use crate::machine::Machine;
use crate::monitor::{Monitor, MonitorSource};
use crate::workload::Workload;

/// The default shares of the footprint: 1/2 to 1/128. TMP, section VI-C, uses those from 1/8 on.
pub const HALVINGS: [Capacity; 7] = [
    Capacity::Share(0.5),
    Capacity::Share(0.25),
    Capacity::Share(0.125),
    Capacity::Share(0.0625),
    Capacity::Share(0.031_25),
    Capacity::Share(0.015_625),
    Capacity::Share(0.007_812_5),
];

/// The input of a simulation.
#[derive(Clone)]
pub struct SimulationRequest<'a> {
    /// The accesses to replay.
    pub workload: &'a Workload,
    /// The time of accesses and moves.
    pub machine: Machine,
    /// The energy of accesses and moves.
    pub energy: &'a dyn EnergyModel,
    /// Capacities of the fast tier; shares are of the workload's footprint.
    pub capacities: Vec<Capacity>,
    /// Names of epoch policies, `cache-mode`, and names of site policies and `atmem` if the workload has sites; some
    /// take a parameter after `=`.
    pub policies: Vec<String>,
    /// The observations that epoch policies receive.
    pub monitor: Monitor,
    /// Accesses that one counted access represents, at least 1: times, energy and the worth of a
    /// move are computed for this number.
    pub accesses_per_count: u64,
    /// Equal memory devices of both tiers together, of which each is one rank; `None` for as many ranks as the capacities need.
    /// The footprint fills them all.
    pub devices: Option<u32>,
}

impl fmt::Debug for SimulationRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:?}", self.policies, self.capacities)
    }
}

/// Policies that are replayed only where they are named. Most are bounds: either each result already stands between them, or, as
/// the fractional one, they bound a plan and mean little for a run. The cold set adds fast memory instead of keeping to its
/// capacity, and a balance differs from other policies only where a tier is overloaded.
const ON_REQUEST: [&str; 8] = [
    "cold-set",
    "balance",
    "oracle",
    "first-come-first-allocated",
    "first-touch",
    "all-fast",
    "all-slow",
    "fractional",
];

impl<'a> SimulationRequest<'a> {
    /// Every policy that can be replayed and is not already a bound, from 1/2 to 1/128 of the
    /// footprint, on DRAM beside CXL memory, by exact counts. Callers change the fields as needed.
    #[must_use]
    pub fn new(workload: &'a Workload) -> Self {
        let is_on_request = |name: &&str| ON_REQUEST.contains(name);
        let epoch_policies = epoch::names().filter(|name| !is_on_request(name));
        let site_policies = isotherm_policy::names()
            .chain([ATMEM])
            .filter(|name| !is_on_request(name))
            .filter(|_| workload.has_sites());
        Self {
            workload,
            machine: Machine::CXL,
            energy: &FlatPower::ROUND,
            capacities: HALVINGS.to_vec(),
            policies: epoch_policies
                .chain(site_policies)
                .chain([CACHE_MODE])
                .map(str::to_owned)
                .collect(),
            monitor: Monitor::default(),
            accesses_per_count: 1,
            devices: None,
        }
    }
}

impl SimulationRequest<'_> {
    /// Bytes of one device, where their number is given.
    pub(crate) fn device(&self) -> Option<Bytes> {
        let footprint = self.workload.bytes().0;
        let of = |devices: u32| Bytes(footprint.div_ceil(u64::from(devices.max(1))));
        self.devices.map(of)
    }

    /// Capacities of a fast tier of `fast_pages` pages and of the slow tier. Given devices belong to one tier or the other as a whole;
    /// without devices, the slow tier holds all data.
    pub(crate) fn tiers_of(&self, fast_pages: u32) -> (Bytes, Bytes) {
        let fast = Bytes(u64::from(fast_pages).saturating_mul(self.workload.page().0));
        let (Some(devices), Some(device)) = (self.devices, self.device()) else {
            return (fast, self.workload.bytes());
        };
        // Capacities are whole pages, rounded down, so the nearest number is meant.
        let size = device.0.max(1);
        let nearest = (fast.0.saturating_add(size / 2) / size).clamp(1, u64::from(devices));
        let of = |devices: u64| Bytes(device.0.saturating_mul(devices));
        (of(nearest), of(u64::from(devices) - nearest))
    }

    /// The machine, with pages as large as the workload's.
    pub(crate) fn machine(&self) -> Machine {
        self.machine.with_pages_of(self.workload.page())
    }
}

/// Why no simulation was made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// The list of capacities is empty.
    #[error("no capacity was named; name one, such as 25%")]
    NoCapacity,
    /// No policy has this name.
    #[error("no policy is named \"{0}\"; there are {known}", known = known_policies())]
    UnknownPolicy(String),
    /// A parameter of a policy is malformed or out of range, or the profile cannot be divided into
    /// chunks.
    #[error("{0}")]
    Parameter(String),
    /// This policy places sites or parts of them, and the workload has none.
    #[error(
        "{0} places allocation sites, and a trace names none; simulate a recorded profile, or choose \
         from {known}",
        known = epoch::names().collect::<Vec<_>>().join(", ")
    )]
    NeedsSites(String),
    /// This source needs the order of accesses, which the workload does not hold.
    #[error(
        "the source \"{}\" needs the order of accesses, which a profile does not keep; use \"exact\" or \
         simulate a trace",
        .0.word()
    )]
    NeedsTrace(MonitorSource),
}

fn known_policies() -> String {
    let known = epoch::names().chain(isotherm_policy::names());
    known
        .chain([ATMEM, CACHE_MODE])
        .collect::<Vec<_>>()
        .join(", ")
}
