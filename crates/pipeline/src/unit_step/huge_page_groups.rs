//! `HugePageGroups` holds the units that the kernel moves together, those in one huge page: they share its heat, are all wanted in the fast
//! tier or none, and are moved in one action.
//!
//! The kernel moves a huge page as a whole, for any address in it. If units are smaller and are
//! decided one by one, a hot unit enters the fast tier and a cold one leaves it in turn, and the
//! whole page moves back and forth.

use std::collections::BTreeSet;

use isotherm_model::page::PageIndex;

use super::index::{Index, UnitState};

/// The units that are in huge pages larger than a unit, by huge page.
#[derive(Clone, Debug, Default)]
pub(super) struct HugePageGroups {
    grains: Vec<Vec<PageIndex>>,
    /// The huge page of a unit, by number of the unit. Empty if there are no huge pages.
    of: Vec<Option<u32>>,
}

impl HugePageGroups {
    /// Finds the huge pages of all existing units.
    pub(super) fn find(index: &Index, unit_bytes: u64) -> Self {
        let is_part = |known: &UnitState| known.grain > unit_bytes;
        let mut found = Self::default();
        // If units are as large as a huge page, the default, the walk through the index is skipped.
        if !index.known().iter().any(is_part) {
            return found;
        }
        found.of.resize(index.known().len(), None);
        let mut last = None;
        for (unit, page) in index.all() {
            let known = &index.known()[page.at()];
            if !is_part(known) {
                continue;
            }
            let grain = known.grain;
            let whole = Some((unit.process, grain, unit.start / grain));
            if last != whole {
                found.grains.push(Vec::new());
                last = whole;
            }
            // There are no more huge pages than units, whose numbers have 32 bits.
            found.of[page.at()] = u32::try_from(found.grains.len() - 1).ok();
            if let Some(members) = found.grains.last_mut() {
                members.push(page);
            }
        }
        found
    }

    /// The units that move with this one, including itself.
    pub(super) fn with<'a>(&'a self, page: &'a PageIndex) -> &'a [PageIndex] {
        let number = self.of.get(page.at()).copied().flatten();
        let members = number.and_then(|number| self.grains.get(number as usize));
        members.map_or(std::slice::from_ref(page), Vec::as_slice)
    }

    /// True for one unit of each group that moves together; it represents the group.
    pub(super) fn is_first(&self, page: PageIndex) -> bool {
        self.with(&page).first() == Some(&page)
    }

    /// A sum over the units that move with this one, such as their resident bytes.
    pub(super) fn sum(
        &self,
        index: &Index,
        page: PageIndex,
        of: impl Fn(&UnitState) -> u64,
    ) -> u64 {
        index.sum(self.with(&page), of)
    }

    /// Gives the units of a huge page equal parts of its rank, rounded up: an observed access never
    /// becomes a rank of zero.
    pub(super) fn level(&self, ranks: &mut [u64]) {
        for members in &self.grains {
            let ranked = members.iter().map(|member| ranks[member.at()]);
            let sum = ranked.fold(0, u64::saturating_add);
            let part = sum.div_ceil(members.len() as u64);
            for member in members {
                ranks[member.at()] = part;
            }
        }
    }

    /// The units that find room, from units in the order of preference, each with all units that
    /// move with it.
    pub(super) fn fitting(&self, pages: &[PageIndex], mut room: usize) -> Vec<PageIndex> {
        if self.grains.is_empty() {
            return pages.iter().copied().take(room).collect();
        }
        let (mut met, mut fitting) = (BTreeSet::new(), Vec::new());
        for page in pages {
            let together = self.with(page);
            if met.insert(together.first()) && together.len() <= room {
                room -= together.len();
                fitting.extend(together);
            }
        }
        fitting
    }

    /// Drops huge pages of which only a part is wanted.
    pub(super) fn make_whole(&self, wanted: &mut [bool]) {
        for members in &self.grains {
            let whole = members.iter().all(|member| wanted[member.at()]);
            for member in members {
                wanted[member.at()] = whole;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HugePageGroups;
    use crate::unit_step::index::Index;
    use isotherm_model::batch::Process;
    use isotherm_model::page::PageIndex;
    use isotherm_model::units::Bytes;
    use isotherm_model::watch::{Unit, UnitResidency};

    const UNIT: u64 = 4096;

    /// Units 0 to 9: 0 and 1 small, 2 to 5 in one page, 6 and 7 in the next, of which two are gone.
    fn index() -> Index {
        let held = |number: u64| UnitResidency {
            unit: Unit {
                process: Process::default(),
                start: number * UNIT,
            },
            resident: Bytes(UNIT),
            fast: Bytes(0),
            grain: Bytes(if number < 4 { UNIT } else { 4 * UNIT }),
        };
        let mut index = Index::default();
        let numbers = [2, 3, 4, 5, 6, 7, 8, 9];
        index.update(&numbers.map(held), UNIT, false);
        index
    }

    #[test]
    fn units_of_one_huge_page_share_its_heat_and_are_all_wanted_or_none() {
        let grains = HugePageGroups::find(&index(), UNIT);
        let numbers = |page| -> Vec<u32> {
            let page = PageIndex(page);
            grains.with(&page).iter().map(|member| member.0).collect()
        };
        assert_eq!(numbers(1), [1]);
        assert_eq!(numbers(4), [2, 3, 4, 5]);
        assert_eq!(numbers(7), [6, 7]);
        let first: Vec<bool> = (0..8)
            .map(|page| grains.is_first(PageIndex(page)))
            .collect();
        assert_eq!(first, [true, true, true, false, false, false, true, false]);
        let wanted = [4, 2, 7, 1, 0].map(PageIndex);
        let fitting = |room| grains.fitting(&wanted, room);
        assert_eq!(fitting(5), [2, 3, 4, 5, 1].map(PageIndex));
        assert_eq!(
            fitting(3),
            [6, 7, 1].map(PageIndex),
            "not a part of the first"
        );
        let mut ranks = [7, 0, 0, 9, 0, 0, 0, 1];
        grains.level(&mut ranks);
        assert_eq!(ranks, [7, 0, 3, 3, 3, 3, 1, 1]);
        let mut wanted = [true, false, true, true, true, false, true, true];
        grains.make_whole(&mut wanted);
        assert_eq!(
            wanted,
            [true, false, false, false, false, false, true, true]
        );
        assert_eq!(
            grains.sum(&index(), PageIndex(5), |known| known.resident),
            4 * UNIT
        );
    }

    #[test]
    fn units_as_large_as_a_huge_page_stand_for_themselves() {
        let grains = HugePageGroups::find(&index(), 4 * UNIT);
        let page = PageIndex(4);
        assert_eq!(grains.with(&page), [page]);
    }
}
