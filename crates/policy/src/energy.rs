//! Saves DRAM energy: finds cold data and the fewest devices for hot data, so that the other devices sleep (Cross-Layer, Olson et al., TACO
//! 2018), chooses memory nodes to empty, and models the energy of DRAM.
//!
//! ```text
//!     profile --- cold_set ---------> which sites are cold          (offline, section 7.1.1)
//!     stacks  --- Temperatures -----> which methods are cold         (online, section 7.1.2)
//!     counters -- Remapper ---------> how many devices hold hot data (section 7.2)
//!     accesses -- DramRank ---------> energy of each rank           (section 3.2)
//!     nodes ----- NodeSleep --------> which memory nodes are empty  (the daemon, for all programs)
//! ```
//!
//! A *colour* is a label for the expected use of data (`isotherm_model::colour`); the placement gives it a meaning. A *device*
//! holds the data of a colour; it is a DIMM in the paper. A *rank* is the smallest part of a device
//! that sleeps by itself.

mod bandwidth_model;
mod cold_set;
mod dram_chip;
mod dram_power;
mod power_state;
mod node_sleep;
mod packing;
mod remapper;
mod temperature;

pub use bandwidth_model::{BandwidthModel, BandwidthModelError, LoadRun};
pub use cold_set::{AccessShare, AccessShareError, ColdSet, ColdSetPolicy, cold_set};
pub use dram_chip::{DDR4_2400_8GBIT, DDR5_4800_16GBIT, DramChip, HBM2_8GBIT, LPDDR4_3200_6GBIT};
pub use dram_power::{Activity, DramEnergy, DramRank};
pub use node_sleep::{AwakeNode, NodeChange, NodeSleep};
pub use packing::{DeviceSet, Packing, PackingLimit};
pub use power_state::{PowerState, Residency, Thresholds};
pub use remapper::{Remap, RemapSettings, Remapper};
pub use temperature::{COOL_DOWN, MethodId, Temperatures};
