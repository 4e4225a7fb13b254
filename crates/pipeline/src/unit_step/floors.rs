//! Floors: fast memory that a group keeps whatever others do.
//!
//! The policy decides first and knows nothing of floors. Where it wants less of a group than the
//! group's *due*, more of the group is wanted, and the coldest of what is nobody's due gives way.
//! The due is the floor, or what the group has with any heat in the last epochs where that is less:
//! a floor is no right to keep cold data in fast memory. A cap wins.
//!
//! ```text
//! capacity 4, floor of b 2       hottest first
//! the policy wants               a1 a2 a3 b1
//! wanted                         a1 a2    b1 b2      b2 has some heat; a3 gives way
//! ```
//!
//! What the kernel moves as a whole is due and added as a whole, so that a group may have up to a huge page
//! more than its floor: a part of one would be taken back, and the floor broken by all of it. Where the tier
//! has no room to round all floors up, the huge pages that go beyond them give way first.
//!
//! What was added here is hidden from the policy in the next epoch, together with its room: the policy
//! would offer that room to others again and again.

use std::cmp::Reverse;

use isotherm_model::page::PageIndex;

use super::groups::Groups;
use super::huge_page_groups::HugePageGroups;
use super::index::Index;

/// What is due to each group, and what is kept for that alone.
#[derive(Clone, Debug, Default)]
pub(super) struct Floors {
    /// Units, by group.
    due: Vec<usize>,
    /// Units that were wanted in the epoch before only because they were due.
    lifted: Vec<PageIndex>,
}

/// Whether a unit is kept for a floor; what is more so stays longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    No,
    /// Of a huge page that goes beyond the floor.
    Rounding,
    Yes,
}

/// What is known of the units: lists by their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacementState<'a> {
    /// Heat, weighed by priorities.
    pub ranks: &'a [u64],
    /// Which units are fast.
    pub fast: &'a [bool],
    /// Which may be moved now.
    pub movable: &'a [bool],
    /// Which of them move together.
    pub grains: &'a HugePageGroups,
}

impl PlacementState<'_> {
    /// True where a unit is fast or can be, with all that move with it.
    fn may_be_fast(&self, page: PageIndex) -> bool {
        let mut together = self.grains.with(&page).iter();
        together.all(|page| self.fast[page.at()] || self.movable[page.at()])
    }
}

impl Floors {
    /// Learns what is due in this epoch.
    pub(super) fn begin(&mut self, groups: &Groups, index: &Index, fast: &[bool]) {
        let warm = groups.members(index.warm());
        let due = groups.bounds().iter().zip(warm);
        let due = due.map(|(bounds, warm)| bounds.floor.min(bounds.cap).min(warm.len()));
        self.due = due.collect();
        self.keep(fast);
    }

    /// Keeps what is fast still.
    pub(super) fn keep(&mut self, fast: &[bool]) {
        let is_fast = |page: &PageIndex| fast.get(page.at()) == Some(&true);
        self.lifted.retain(is_fast);
    }

    /// Forgets what was kept, because units have other numbers now.
    pub(super) fn forget(&mut self) {
        self.lifted.clear();
    }

    /// Units that are kept for a floor alone.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.lifted.len()
    }

    /// Hides from the policy what was kept for a floor alone. Returns how many units of room that takes.
    pub(super) fn hide(&self, ranks: &mut [u64], fast: &mut [bool]) -> usize {
        for page in &self.lifted {
            (ranks[page.at()], fast[page.at()]) = (0, false);
        }
        self.lifted.len()
    }

    /// Adds to what is wanted what is due and not wanted, and takes from it what finds no room then.
    /// What finds no room although it is due, in a tier that has become too small, is due no more.
    pub(super) fn lift(
        &mut self,
        groups: &Groups,
        index: &Index,
        standing: PlacementState<'_>,
        capacity: usize,
        wanted: &mut Vec<PageIndex>,
    ) {
        let mut is_wanted = marked(wanted, standing.ranks.len());
        standing.grains.make_whole(&mut is_wanted);
        wanted.retain(|page| is_wanted[page.at()]);
        let (lifted, due) = self.missing(groups, index, standing, wanted);
        wanted.extend(&lifted);
        is_wanted = marked(wanted, standing.ranks.len());
        // What floors no longer need stays for an epoch if there is room: the policy has not seen it.
        let mut released = std::mem::replace(&mut self.lifted, lifted);
        released.retain(|page| !is_wanted[page.at()]);
        let room = capacity.saturating_sub(wanted.len());
        wanted.extend(standing.grains.fitting(&released, room));
        if wanted.len() > capacity {
            let PlacementState { ranks, fast, .. } = standing;
            let key = |page: &PageIndex| (due[page.at()], fast[page.at()], ranks[page.at()]);
            wanted.sort_unstable_by_key(|page| (Reverse(key(page)), *page));
            *wanted = standing.grains.fitting(wanted, capacity);
            is_wanted = marked(wanted, standing.ranks.len());
        }
        let kept = groups.members(wanted.iter().copied());
        for (due, kept) in self.due.iter_mut().zip(kept) {
            *due = kept.len().min(*due);
        }
        self.lifted.retain(|page| is_wanted[page.at()]);
    }

    /// What is due beyond what is wanted, and how far each unit is due.
    fn missing(
        &self,
        groups: &Groups,
        index: &Index,
        standing: PlacementState<'_>,
        wanted: &[PageIndex],
    ) -> (Vec<PageIndex>, Vec<Due>) {
        let (ranks, fast, grains) = (standing.ranks, standing.fast, standing.grains);
        let mut is_wanted = marked(wanted, ranks.len());
        let others = index.warm().filter(|page| !is_wanted[page.at()]);
        let others = groups.members(others.filter(|page| standing.may_be_fast(*page)));
        let wanted = wanted.iter().copied();
        let wanted = groups.members(wanted.filter(|page| standing.may_be_fast(*page)));
        let (mut missing, mut due) = (Vec::new(), vec![Due::No; ranks.len()]);
        for ((mut wanted, mut others), units) in wanted.into_iter().zip(others).zip(&self.due) {
            wanted.sort_unstable_by_key(|page| (Reverse(ranks[page.at()]), *page));
            // What is fast already costs no move.
            let key = |page: &PageIndex| (fast[page.at()], ranks[page.at()]);
            others.sort_unstable_by_key(|page| (Reverse(key(page)), *page));
            let mut kept = wanted.len();
            wanted.truncate(*units);
            for page in others {
                if kept < *units && !is_wanted[page.at()] {
                    let together = grains.with(&page);
                    kept += together.len();
                    mark(&mut is_wanted, together);
                    missing.extend(together);
                    wanted.extend(together);
                }
            }
            mark_due(&mut due, &wanted, *units, grains);
        }
        (missing, due)
    }

    /// Fast units that each group may lose; below 0 where it has less than its due.
    pub(super) fn spare(&self, groups: &Groups, fast: &[bool]) -> Vec<i64> {
        let pages = (0..fast.len() as u32).map(PageIndex);
        let held = groups.members(pages.filter(|page| fast[page.at()]));
        let spare = held.into_iter().zip(&self.due);
        // No list is as long as 2^63.
        spare
            .map(|(held, due)| held.len() as i64 - *due as i64)
            .collect()
    }
}

/// Of so many units, which are in the list.
fn marked(pages: &[PageIndex], units: usize) -> Vec<bool> {
    let mut marked = vec![false; units];
    mark(&mut marked, pages);
    marked
}

fn mark<'a>(marked: &mut [bool], pages: impl IntoIterator<Item = &'a PageIndex>) {
    for page in pages {
        marked[page.at()] = true;
    }
}

/// Marks what a floor of so many units keeps, the best of it first.
fn mark_due(due: &mut [Due], kept: &[PageIndex], units: usize, grains: &HugePageGroups) {
    let mut marked = 0;
    for page in kept {
        if due[page.at()] == Due::No {
            let together = grains.with(page);
            marked += together.len();
            let how = if marked <= units {
                Due::Yes
            } else {
                Due::Rounding
            };
            together.iter().for_each(|page| due[page.at()] = how);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Floors, PlacementState};
    use crate::unit_step::groups::{Bounds, Groups, Priority};
    use crate::unit_step::huge_page_groups::HugePageGroups;
    use crate::unit_step::index::Index;
    use isotherm_model::batch::Process;
    use isotherm_model::page::PageIndex;
    use isotherm_model::units::Bytes;
    use isotherm_model::watch::{Unit, UnitResidency};

    /// Four units of the first group and four of the second, all warm but the last one.
    fn machine(floors: [usize; 2]) -> (Groups, Index) {
        let held = |number: u64| UnitResidency {
            unit: Unit {
                process: Process::default(),
                start: number * 4096,
            },
            resident: Bytes(4096),
            fast: Bytes(0),
            grain: Bytes(4096),
        };
        let mut index = Index::default();
        index.update(&(0..8).map(held).collect::<Vec<_>>(), 4096, false);
        index.warm_up(&[1, 1, 1, 1, 1, 1, 1, 0]);
        let bounds = floors.map(|floor| Bounds {
            cap: 3,
            floor,
            priority: Priority::NORMAL,
        });
        let of = (0..8).map(|number| Some(number / 4)).collect();
        (Groups::new(bounds.to_vec(), of), index)
    }

    const FAST: [bool; 8] = [false, false, false, false, true, false, false, false];

    /// What is wanted in the end, and what of it for floors alone.
    fn lifted(floors: [usize; 2], capacity: usize, wanted: &[u32]) -> (Vec<u32>, Vec<u32>) {
        let (groups, index) = machine(floors);
        let mut floors = Floors::default();
        floors.begin(&groups, &index, &FAST);
        let standing = PlacementState {
            ranks: &[9, 8, 7, 6, 1, 2, 3, 0],
            fast: &FAST,
            movable: &[true, true, true, true, true, false, true, true],
            grains: &HugePageGroups::default(),
        };
        let mut wanted: Vec<PageIndex> = wanted.iter().copied().map(PageIndex).collect();
        floors.lift(&groups, &index, standing, capacity, &mut wanted);
        wanted.sort_unstable();
        let numbers = |pages: &[PageIndex]| pages.iter().map(|page| page.0).collect();
        (numbers(&wanted), numbers(&floors.lifted))
    }

    #[test]
    fn what_is_due_comes_in_and_the_coldest_of_the_rest_gives_way() {
        // The fast unit first, then the hottest; neither what has no heat nor what cannot be moved.
        assert_eq!(lifted([0, 2], 3, &[0, 1, 2]), (vec![0, 4, 6], vec![4, 6]));
        assert_eq!(
            lifted([0, 3], 4, &[0, 1, 2]),
            (vec![0, 1, 4, 6], vec![4, 6])
        );
        // What the policy wants and cannot be moved keeps no promise.
        assert_eq!(lifted([0, 1], 4, &[0, 5]), (vec![0, 4, 5], vec![4]));
    }

    #[test]
    fn a_floor_that_the_policy_keeps_anyway_changes_nothing() {
        assert_eq!(lifted([2, 0], 3, &[0, 1, 6]), (vec![0, 1, 6], vec![]));
        assert_eq!(lifted([0, 0], 2, &[0, 1, 6]).1, [0; 0]);
    }

    #[test]
    fn in_a_tier_that_is_too_small_for_all_floors_the_fast_and_hottest_of_them_stay() {
        assert_eq!(lifted([3, 2], 2, &[0, 1, 2]), (vec![0, 4], vec![4]));
    }

    #[test]
    fn what_is_no_longer_due_stays_for_an_epoch_where_there_is_room() {
        let (groups, index) = machine([0, 1]);
        let mut floors = Floors {
            lifted: vec![PageIndex(4), PageIndex(6)],
            ..Floors::default()
        };
        floors.begin(&groups, &index, &FAST);
        let (mut ranks, mut shown) = ([9, 8, 7, 6, 1, 2, 3, 0], FAST);
        let standing = PlacementState {
            ranks: &ranks.clone(),
            fast: &FAST,
            movable: &[true; 8],
            grains: &HugePageGroups::default(),
        };
        assert_eq!(
            floors.hide(&mut ranks, &mut shown),
            1,
            "what is not fast has no room"
        );
        assert_eq!((ranks[4], shown[4]), (0, false));
        let mut wanted = vec![PageIndex(6)];
        floors.lift(&groups, &index, standing, 2, &mut wanted);
        assert_eq!(wanted, [PageIndex(6), PageIndex(4)]);
        assert_eq!(floors.lifted, [], "and is shown then");
    }
}
