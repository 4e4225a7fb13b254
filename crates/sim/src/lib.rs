//! The simulator: replays a trace or a recorded profile under epoch and site policies, at any capacity of fast memory, and models the time
//! and energy that each takes. Also generates traces ([`generate`]), and models the energy of a recorded run ([`profile_energy()`]). Pure:
//! no I/O, clock or threads.
//!
//! ```text
//! accesses --+
//!            +--> Workload --tally--> ranks --EpochPolicy--> fast pages --account--> Report
//! Profile ---+    (dense pages,       (one epoch)            (at its turn)
//!                  epochs)
//! ```
//!
//! [`simulate()`] is the main entry point: a [`SimulationRequest`] in, a [`SimulationReport`] out. A workload is counted once an epoch, and
//! every policy at every capacity is replayed on the same counts. Each result stands between two bounds: first come first allocated, and
//! the oracle, which knows the exact counts of the epoch to come.
//!
//! ```
//! use isotherm_model::units::{Bytes, Capacity};
//! use isotherm_sim::generate::{self, GeneratorSettings};
//! use isotherm_sim::{EpochLength, SimulationRequest, Workload, simulate};
//!
//! let settings = GeneratorSettings {
//!     footprint: Bytes(1 << 20),
//!     accesses: 100_000,
//!     ..GeneratorSettings::default()
//! };
//! let accesses = generate::by_name("zipf", settings).unwrap();
//! let workload = Workload::of_trace(accesses, Bytes(4096), EpochLength::Accesses(10_000)).unwrap();
//! let mut request = SimulationRequest::new(&workload);
//! request.capacities = vec![Capacity::Share(0.25)];
//! let report = simulate(&request).unwrap();
//! let at = &report.capacities[0];
//! assert!(at.oracle.hit_rate() >= at.first_touch.hit_rate());
//! ```
//!
//! Two tiers are modelled, fast and slow, as in every paper that Isotherm implements.
//!
//! Not part of this crate: reading traces and profiles (their own crates do), and the processor's caches (a trace holds the accesses that
//! reach memory).
//!
//! Modules are listed bottom-up: each uses only those above it.
#![forbid(unsafe_code)]

mod machine;
mod cache_mode;
mod residency;
mod monitor;
mod energy;
mod profile_energy;
mod workload;
pub mod generate;
mod report;
mod request;
mod rule;
mod run;
mod simulate;

pub use cache_mode::CACHE_MODE;
pub use energy::{
    DataLayout, DramPower, ENERGY_MODELS, EnergyModel, FlatPower, FlatTier, LinkedPower, PairPower,
    Picojoules, PlainPower, TierActivity, TierEnergy,
};
pub use machine::{LINE, Machine, ModelledTier};
pub use monitor::{Monitor, MonitorSource};
pub use profile_energy::{ProfileEnergy, TierJoules, profile_energy};
pub use report::{AtCapacity, PolicyResult, SimulationReport};
pub use request::{HALVINGS, SimulateError, SimulationRequest};
pub use simulate::{replay, simulate};
pub use workload::{EpochLength, Workload, WorkloadError};
