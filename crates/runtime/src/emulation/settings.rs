//! The settings of the emulated pair and of the sampling.

use isotherm_abi::config::{EmulationConfig, PageTrapConfig, TierRecord};

/// What the configuration says about this part.
#[derive(Clone, Copy)]
pub(crate) struct Settings<'a> {
    /// How the slow tier is slowed.
    pub(crate) emulation: EmulationConfig,
    /// Protected-chunk sampling.
    pub(crate) trapping: PageTrapConfig,
    /// Fastest first.
    pub(crate) tiers: &'a [TierRecord],
    /// Whether the observer's requests are obeyed.
    pub(crate) online: bool,
}
