//! [`PagedConfig`] holds the settings of a [`PagedStep`](super::PagedStep), [`PagedLimits`] its limits in one epoch. [`SavingRule`] chooses
//! what is paged out below the limits: units whose probes stayed out, as far as the budget of lost time allows, or the least recently used
//! units, while the program waits for less than the budget's share of its time (TMO).

use std::collections::BTreeMap;

use isotherm_model::paged::RefaultCosts;
use isotherm_model::units::Bytes;

use crate::unit_step::GroupLimit;

/// The rule by which memory below the limits is paged out.
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
    /// Share of the time that may be lost; at 1 and above there is no budget.
    pub slowdown: f64,
    /// The rule by which memory leaves under the budget.
    pub rule: SavingRule,
    /// True if no data really moves.
    pub modelled: bool,
}

/// Limits that may change from epoch to epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagedLimits {
    /// Bytes that stay in memory whatever the budget allows: at most the rest leaves.
    pub keep: Bytes,
    /// Most bytes that may be in memory: the rest leaves, whatever it costs.
    pub most: Bytes,
    /// Bytes that may be moved in one epoch.
    pub moves: Bytes,
    /// Limits of control groups, as in [`StepLimits`](crate::StepLimits).
    pub groups: BTreeMap<String, GroupLimit>,
    /// Epochs for which a new process keeps a fair share of memory.
    pub fair_start: u32,
}
