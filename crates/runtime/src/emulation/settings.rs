//! [`Settings`] is the part of the configuration that the emulations by page faults and by time ([`crate::delay`]) read: how the slow tier
//! is slowed, the sampling by page faults, the tiers, and whether requests of the observer (the `isotherm` process outside) are obeyed.

use isotherm_abi::config::{EmulationConfig, PageTrapConfig, TierRecord};

/// What the configuration says about this part.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// How the slow tier is slowed.
    pub(crate) emulation: EmulationConfig,
    /// Sampling by page faults.
    pub(crate) trapping: PageTrapConfig,
    /// Fastest first.
    pub(crate) tiers: &'a [TierRecord],
    /// Whether the observer's requests are obeyed.
    pub(crate) online: bool,
}
