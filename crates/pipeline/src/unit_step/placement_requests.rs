//! `PlacementRequests` joins the units that should be fast, by the policy with caps and floors applied, with the step's state of the units,
//! and lists the candidates for promotion and demotion. The moves of the epoch are chosen from these.

use isotherm_model::page::PageIndex;

use super::groups::Groups;
use super::huge_page_groups::HugePageGroups;
use super::index::{Index, UnitState};

/// The wanted state, by number of the unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacementRequests<'a> {
    /// The units.
    pub index: &'a Index,
    /// Their heat.
    pub ranks: &'a [u64],
    /// True for units that should be fast.
    pub wanted: &'a [bool],
    /// True for units that may be moved.
    pub movable: &'a [bool],
    /// The control groups of the units.
    pub groups: &'a Groups,
    /// Units that move together.
    pub grains: &'a HugePageGroups,
}

impl PlacementRequests<'_> {
    /// Resident bytes of a unit and those that move with it; [`Self::fast`] gives the fast part.
    pub(super) fn resident(&self, page: PageIndex) -> u64 {
        self.sum(page, |known| known.resident)
    }

    pub(super) fn fast(&self, page: PageIndex) -> u64 {
        self.sum(page, |known| known.fast)
    }

    fn sum(&self, page: PageIndex, of: impl Fn(&UnitState) -> u64) -> u64 {
        self.grains.sum(self.index, page, of)
    }

    fn is_movable(&self, page: PageIndex) -> bool {
        let mut members = self.grains.with(&page).iter();
        members.all(|member| self.movable[member.at()])
    }

    /// True where most bytes of a unit and of those that move with it are in the fast tier.
    pub(super) fn is_fast(&self, page: PageIndex) -> bool {
        self.fast(page) > self.resident(page) / 2
    }

    /// Units that should enter, those of groups below their floors first, of newcomers below their
    /// fair share next, and then the hottest; and units that should leave, coldest first, with those of which a smaller part is fast.
    /// Where groups have bounds these stay, as their bytes count toward floors.
    pub(super) fn lists(&self, spare: &[i64]) -> [Vec<PageIndex>; 2] {
        let rank = |page: &PageIndex| self.ranks[page.at()];
        let below = |page: &PageIndex| {
            let group = self.groups.of(*page);
            let below = group.filter(|group| spare[*group] < 0);
            below.map(|group| !self.groups.bounds()[group].is_newcomer)
        };
        let (mut promotions, mut demotions) = (Vec::new(), Vec::new());
        for (known, number) in self.index.known().iter().zip(0_u32..) {
            let page = PageIndex(number);
            if known.unit.is_none() || !self.grains.is_first(page) {
                continue;
            }
            let wanted = self.wanted[page.at()];
            let stays = match wanted {
                true => self.is_fast(page),
                false if self.groups.bounds().is_empty() => self.fast(page) == 0,
                false => !self.is_fast(page),
            };
            if stays || !self.is_movable(page) {
                continue;
            }
            let list = if wanted {
                &mut promotions
            } else {
                &mut demotions
            };
            list.push(page);
        }
        promotions
            .sort_unstable_by_key(|page| (std::cmp::Reverse((below(page), rank(page))), *page));
        demotions.sort_unstable_by_key(|page| (rank(page), *page));
        [promotions, demotions]
    }
}
