//! The plan's tables: the tier of a site's name and of a direct caller's, without a lock.

use isotherm_abi::config::{PlanEntry, TELL_APART};

use crate::config::Config;

/// Tier of the site with this name, if the plan names it.
///
/// The table has an empty slot ([`crate::config`] refuses others), so the search ends.
pub(crate) fn tier_of(entries: &[PlanEntry], hash: u64) -> Option<u32> {
    let mask = entries.len().checked_sub(1)?;
    let mut slot = hash as usize & mask;
    loop {
        let entry = &entries[slot];
        if entry.hash == hash {
            return Some(entry.tier);
        }
        if entry.hash == 0 {
            return None;
        }
        slot = (slot + 1) & mask;
    }
}

/// Tier of the site with this name, or the default.
pub(crate) fn tier_or_default(config: &Config, hash: u64) -> u32 {
    tier_of(config.entries, hash).unwrap_or(config.default_tier)
}

/// Tier of whatever the direct caller with this name allocates, if its contexts need not be told
/// apart. A caller that a plan with callers does not know has no site in it.
pub(crate) fn tier_of_caller(config: &Config, hash: u64) -> Option<u32> {
    if config.callers.is_empty() {
        return None;
    }
    let tier = tier_of(config.callers, hash).unwrap_or(config.default_tier);
    (tier != TELL_APART).then_some(tier)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_past_others_that_took_its_slot() {
        let mut entries = [PlanEntry::default(); 4];
        for (slot, hash, tier) in [(3, 7, 1), (0, 11, 2), (1, 15, 3)] {
            entries[slot] = PlanEntry {
                hash,
                tier,
                reserved: 0,
            };
        }
        assert_eq!(tier_of(&entries, 7), Some(1));
        assert_eq!(tier_of(&entries, 15), Some(3));
        assert_eq!(tier_of(&entries, 19), None);
        assert_eq!(tier_of(&[], 19), None);
    }
}
