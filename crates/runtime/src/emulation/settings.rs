//! [`Settings`] is the part of the configuration that the emulations by page faults and by time ([`crate::delay`]) read: how the slow tier
//! is slowed, the sampling by page faults, the tiers, and whether requests of the observer (the `isotherm` process outside) are obeyed.

use isotherm_abi::config::{EmulationConfig, PageTrapConfig, TierRecord, TierRecordKind};

#[derive(Clone, Copy)]
pub(crate) struct Settings {
    /// How the slow tier is slowed.
    pub(crate) emulation: EmulationConfig,
    /// Sampling by page faults.
    pub(crate) trapping: PageTrapConfig,
    /// Fastest first.
    pub(crate) tiers: &'static [TierRecord],
    /// Whether the observer's requests are obeyed.
    pub(crate) online: bool,
}

impl Settings {
    /// Bytes of the emulated fast tier; [`u64::MAX`] where none is emulated.
    pub(crate) fn fast_bytes(&self) -> u64 {
        let is_fast = |tier: &&TierRecord| tier.kind == TierRecordKind::EmulatedFast as u32;
        let fast = self.tiers.iter().find(is_fast);
        fast.map_or(u64::MAX, |tier| tier.capacity_bytes)
    }
}
