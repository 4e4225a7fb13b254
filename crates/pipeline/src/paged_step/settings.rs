//! Settings and limits of the step.

use std::collections::BTreeMap;

use isotherm_model::paged::RefaultCosts;
use isotherm_model::units::Bytes;

use crate::unit_step::GroupLimit;

/// The rule by which memory leaves that no limit forces out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SavingRule {
    /// Units whose probes stayed out, as far as the budget of lost time allows.
    #[default]
    Probes,
    /// The least recently used units, until the program waits for the budget's share of its time: TMO's rule.
    Pressure,
}

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
    /// What leaves under the budget.
    pub rule: SavingRule,
    /// True if no data really moves.
    pub modelled: bool,
}

/// Limits that may change from epoch to epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagedLimits {
    /// Bytes that stay in memory whatever the budget allows: no more than the rest leaves.
    pub keep: Bytes,
    /// Bytes that may stay in memory: the rest leaves, whatever it costs.
    pub most: Bytes,
    /// Bytes that may be moved in one epoch.
    pub moves: Bytes,
    /// Limits of control groups, as of [`StepLimits`](crate::StepLimits).
    pub groups: BTreeMap<String, GroupLimit>,
    /// Epochs for which a new process keeps a fair share of memory.
    pub fair_start: u32,
}
