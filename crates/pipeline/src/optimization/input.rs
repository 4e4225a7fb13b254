//! [`OptimizationInput`] holds the data on which an optimization is based, such as counts and hints; [`ChunkChoice`] its rule of choice.

use std::collections::BTreeMap;

use isotherm_model::batch::{AllocatedObject, Extent, Process};
use isotherm_model::port::SitePolicy;
use isotherm_model::units::Bytes;
use isotherm_model::watch::ResidentRun;
use isotherm_policy::chunks::ChunkParameters;

use super::hints::HeatHints;
use crate::access_counts::AccessCounts;

/// The rule by which chunks are chosen.
pub enum ChunkChoice {
    /// Chooses by ATMem's selection.
    Selection(ChunkParameters),
    /// Chooses by a policy, among regions and among the parts of regions with uneven heat.
    Policy(Box<dyn SitePolicy>),
}

/// The data on which a decision is based.
#[derive(Clone, Copy)]
pub struct OptimizationInput<'a> {
    /// The data objects of all processes; objects that were freed may be among them.
    pub objects: &'a [AllocatedObject],
    /// The extents of all processes.
    pub extents: &'a [Extent],
    /// The resident pages of each process that the decision is for, by address.
    pub resident: &'a BTreeMap<Process, Vec<ResidentRun>>,
    /// The sampled accesses.
    pub counts: &'a AccessCounts,
    /// The hints of the processes about their memory.
    pub hints: &'a HeatHints,
    /// Bytes of the fast tier that these processes may use.
    pub capacity: Bytes,
}
