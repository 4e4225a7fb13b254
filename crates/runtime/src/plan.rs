//! [`Sites`] looks up the placement of a site ([`Target`]) in the plan's tables by its hash, without a lock. [`Callers`] does so for the
//! direct caller of an allocation: where all of its contexts go to one tier, it yields that tier, so that later calls need no unwinding.
//!
//! A table is checked when it is made, and made of memory that never changes: every search in it ends, and
//! every tier and every split that it returns is one of the configuration's, so that it can be an index.

use isotherm_abi::config::{LEADING, PlanEntry, SPLIT, SPLITS_MAX, TELL_APART};

/// The placement of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// All of its data goes to this tier.
    Tier(u32),
    /// Its first memory goes to another tier than the rest: an index into the leading records ([`crate::leading_table`]).
    Leading(u32),
    /// Its objects are placed in parts: an index into the splits ([`crate::split_table`]).
    Split(u32),
}

/// The first arena number that stands for a split; those of arenas are lower.
pub(crate) const FIRST_SPLIT: u32 = 1 << 16;

// A context is cached with 20 bits for the number.
const _: () = assert!(FIRST_SPLIT + SPLITS_MAX <= 1 << 20);

impl Target {
    /// The split that an arena number stands for; `None` for the number of an arena.
    #[inline]
    pub(crate) const fn split_of_arena(number: u32) -> Option<u32> {
        number.checked_sub(FIRST_SPLIT)
    }

    const fn of_word(word: u32) -> Self {
        if word & SPLIT != 0 {
            Self::Split(word & !SPLIT)
        } else if word & LEADING != 0 {
            Self::Leading(word & !LEADING)
        } else {
            Self::Tier(word)
        }
    }
}

/// An open-addressed table of names with a word each.
#[derive(Clone, Copy, Debug)]
struct PlanTable(&'static [PlanEntry]);

impl PlanTable {
    /// `None` unless each word is one that `is_known`, and a search ends.
    fn checked(slots: &'static [PlanEntry], is_known: impl Fn(u32) -> bool) -> Option<Self> {
        let ends = slots.is_empty()
            || (slots.len().is_power_of_two() && slots.iter().any(|slot| slot.hash == 0));
        let known = |slot: &PlanEntry| slot.hash == 0 || is_known(slot.tier);
        (ends && slots.iter().all(known)).then_some(Self(slots))
    }

    /// The word of this name, if the table has it.
    fn word_of(&self, hash: u64) -> Option<u32> {
        let mask = self.0.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        loop {
            let entry = &self.0[slot];
            // First, because an empty slot's word was never checked.
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

/// The plan's sites.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sites(PlanTable);

impl Sites {
    /// The table. `None` unless each tier is below `tiers`, each leading record below `leading`, each split below `splits`, and a search
    /// ends.
    pub(crate) fn checked(
        slots: &'static [PlanEntry],
        tiers: usize,
        leading: usize,
        splits: usize,
    ) -> Option<Self> {
        let is_known = |word| match Target::of_word(word) {
            Target::Tier(tier) => (tier as usize) < tiers,
            Target::Leading(index) => (index as usize) < leading,
            Target::Split(index) => (index as usize) < splits,
        };
        PlanTable::checked(slots, is_known).map(Self)
    }

    /// The placement of the site with this name, if the plan names it.
    pub(crate) fn target_of(&self, hash: u64) -> Option<Target> {
        self.0.word_of(hash).map(Target::of_word)
    }
}

/// The direct callers of the plan's sites.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callers(PlanTable);

impl Callers {
    /// As [`Sites::checked`], without splits; an entry may also state that its contexts must be distinguished.
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
        let tier = self.0.word_of(hash).unwrap_or(default);
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
        let table = slots([(3, 7, 1), (0, 11, LEADING | 2), (1, 15, SPLIT | 3)]);
        let table = Sites::checked(table, 4, 3, 4).unwrap();
        assert_eq!(table.target_of(7), Some(Target::Tier(1)));
        assert_eq!(table.target_of(11), Some(Target::Leading(2)));
        assert_eq!(table.target_of(15), Some(Target::Split(3)));
        assert_eq!(table.target_of(19), None);
        assert_eq!(Sites::checked(&[], 0, 0, 0).unwrap().target_of(19), None);
    }

    #[test]
    fn a_table_with_a_tier_or_a_split_that_is_not_there_cannot_be_made() {
        let with = |word| slots([(3, 7, 1), (0, 11, word), (1, 15, 3)]);
        assert!(Sites::checked(with(2), 4, 0, 0).is_some());
        assert!(Sites::checked(with(SPLIT | 1), 4, 0, 2).is_some());
        assert!(Sites::checked(with(LEADING | 1), 4, 2, 0).is_some());
        for word in [4, SPLIT, LEADING, SPLIT | LEADING, TELL_APART] {
            assert!(Sites::checked(with(word), 4, 0, 0).is_none());
        }
        assert!(Sites::checked(with(SPLIT | 2), 4, 3, 2).is_none());
        assert!(Sites::checked(with(LEADING | 2), 4, 2, 3).is_none());
        assert!(Callers::checked(with(TELL_APART), 4).is_some());
        assert!(Callers::checked(with(4), 4).is_none());
        assert!(Callers::checked(with(SPLIT), 4).is_none());
        assert!(Callers::checked(with(LEADING), 4).is_none());
    }
}
