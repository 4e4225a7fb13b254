//! Settings and limits of the step.

use std::collections::BTreeMap;

use isotherm_model::paged::RefaultCosts;
use isotherm_model::units::Bytes;

use crate::unit_step::GroupLimit;

/// Settings of the step.
#[derive(Clone, Debug)]
pub struct PagedConfig {
    /// Size of a unit; a multiple of the page size.
    pub unit: Bytes,
    /// Size of the kernel's pages.
    pub page: Bytes,
    /// Measured costs of a page of 4 KiB.
    pub costs: RefaultCosts,
    /// Share of the time that may be lost; from 1 on there is no budget.
    pub slowdown: f64,
    /// True if no data really moves.
    pub modelled: bool,
}

/// Limits that may change from epoch to epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct PagedLimits {
    /// Bytes that stay in memory whatever the budget allows: no more than the rest leaves.
    pub keep: Bytes,
    /// Bytes that may stay in memory: the rest leaves, whatever it costs.
    pub most: Bytes,
    /// Bytes that may be moved in one epoch.
    pub moves: Bytes,
    /// Share of the units that are touched as a whole in which a sample falls.
    pub seen_share: f64,
    /// Limits of control groups, as of [`StepLimits`].
    pub groups: BTreeMap<String, GroupLimit>,
    /// Epochs for which a new process keeps a fair share of memory.
    pub fair_start: u32,
}
