//! The plan's tables: the tier of a site's name and of a direct caller's, without a lock.
//!
//! A table is checked when it is made, and made of memory that never changes: every search in it ends, and
//! every tier that it returns is one of the configuration's, so that it can be an index.

use isotherm_abi::config::{PlanEntry, TELL_APART};

/// Names with their tiers, an open-addressed table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanTable(&'static [PlanEntry]);

impl PlanTable {
    /// A table of sites. `None` unless each tier is below `tiers` and a search ends.
    pub(crate) fn of_sites(slots: &'static [PlanEntry], tiers: usize) -> Option<Self> {
        Self::checked(slots, |tier| (tier as usize) < tiers)
    }

    fn checked(slots: &'static [PlanEntry], is_tier: impl Fn(u32) -> bool) -> Option<Self> {
        let ends = slots.is_empty()
            || (slots.len().is_power_of_two() && slots.iter().any(|slot| slot.hash == 0));
        let known = |slot: &PlanEntry| slot.hash == 0 || is_tier(slot.tier);
        (ends && slots.iter().all(known)).then_some(Self(slots))
    }

    /// Tier of the site with this name, if the plan names it.
    pub(crate) fn tier_of(&self, hash: u64) -> Option<u32> {
        let mask = self.0.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        loop {
            let entry = &self.0[slot];
            // First, because an empty slot's tier was never checked.
            if entry.hash == 0 {
                return None;
            }
            if entry.hash == hash {
                return Some(entry.tier);
            }
            slot = (slot + 1) & mask;
        }
    }
}

/// The direct callers of the plan's sites.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callers(PlanTable);

impl Callers {
    /// As [`PlanTable::of_sites`]; an entry may also state that its contexts must be distinguished.
    pub(crate) fn checked(slots: &'static [PlanEntry], tiers: usize) -> Option<Self> {
        let is_tier = |tier| tier == TELL_APART || (tier as usize) < tiers;
        PlanTable::checked(slots, is_tier).map(Self)
    }

    /// Tier of everything that the direct caller with this name allocates, if its contexts need not be
    /// distinguished. A caller that a plan with callers does not know has no site in it outside the default
    /// tier.
    pub(crate) fn tier_of(&self, hash: u64, default: u32) -> Option<u32> {
        if self.0.0.is_empty() {
            return None;
        }
        let tier = self.0.tier_of(hash).unwrap_or(default);
        (tier != TELL_APART).then_some(tier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(of: [(usize, u64, u32); 3]) -> &'static [PlanEntry] {
        let entries = Box::leak(Box::new([PlanEntry::default(); 4]));
        for (slot, hash, tier) in of {
            entries[slot] = PlanEntry {
                hash,
                tier,
                reserved: 0,
            };
        }
        entries
    }

    #[test]
    fn a_name_is_found_past_others_that_took_its_slot() {
        let table = slots([(3, 7, 1), (0, 11, 2), (1, 15, 3)]);
        let table = PlanTable::of_sites(table, 4).unwrap();
        assert_eq!(table.tier_of(7), Some(1));
        assert_eq!(table.tier_of(15), Some(3));
        assert_eq!(table.tier_of(19), None);
        assert_eq!(PlanTable::of_sites(&[], 0).unwrap().tier_of(19), None);
    }

    #[test]
    fn a_table_with_a_tier_that_is_not_there_cannot_be_made() {
        let with = |tier| slots([(3, 7, 1), (0, 11, tier), (1, 15, 3)]);
        assert!(PlanTable::of_sites(with(2), 4).is_some());
        for tier in [4, TELL_APART] {
            assert!(PlanTable::of_sites(with(tier), 4).is_none());
        }
        assert!(Callers::checked(with(TELL_APART), 4).is_some());
        assert!(Callers::checked(with(4), 4).is_none());
    }
}
