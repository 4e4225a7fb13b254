//! `Floors` keeps for each control group the fast memory that its floor guarantees, regardless of other groups, as far as the group has
//! that much memory with any heat. A newcomer's fair share is such a floor.
//!
//! The policy decides first and ignores floors. If it wants less of a group than the group's *due*, more of the group is added, and the
//! coldest units that are not due are dropped. The due is the floor, or the group's memory with any heat in the last epochs if that is
//! less: a floor does not keep cold data in fast memory. A cap has precedence.
//!
//! ```text
//! capacity 4, floor of b 2       hottest first
//! the policy wants               a1 a2 a3 b1
//! wanted                         a1 a2    b1 b2      b2 has some heat; a3 gives way
//! ```
//!
//! Dues are bytes: a unit at the edge of a mapping counts with the bytes that it has.
//!
//! Units that the kernel moves as a whole are due and added as a whole, so a group may have up to a
//! huge page more than its floor: demoting one part demotes all of it, and breaks the floor. If the
//! tier has no room to round all floors up, the huge pages beyond the floors are dropped first.
//!
//! The fair share of a newcomer is a floor, too, but of lower priority: in a tier without room for all, the floors of the settings are kept
//! first, rounded up. A newcomer's is rounded down.
//!
//! In the next epoch the added units and their room are hidden from the policy. Otherwise it would
//! offer that room to other groups again and again.

use std::cmp::Reverse;

use isotherm_model::page::PageIndex;

use super::caps;
use super::groups::Groups;
use super::huge_page_groups::HugePageGroups;
use super::index::Index;

/// The units that are due to each group, and the units that are kept only for a floor.
#[derive(Clone, Debug, Default)]
pub(super) struct Floors {
    /// Bytes due, by group.
    due: Vec<u64>,
    /// Units that were wanted in the epoch before only because they were due.
    lifted: Vec<PageIndex>,
}

/// Whether a unit is kept for a floor, in ascending priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    No,
    /// Within the fair share of a newcomer.
    FairShare,
    /// Part of a huge page that extends beyond the floor.
    Rounding,
    Yes,
}

/// The state of the units: lists indexed by their number.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacementState<'a> {
    /// Heat, weighted by priorities.
    pub ranks: &'a [u64],
    /// True for units that are fast.
    pub fast: &'a [bool],
    /// True for units that may be moved now.
    pub movable: &'a [bool],
    /// The huge pages, whose units move together.
    pub grains: &'a HugePageGroups,
}

impl PlacementState<'_> {
    /// True if a unit is fast or can be, with all units that move with it.
    fn may_be_fast(&self, page: PageIndex) -> bool {
        let mut together = self.grains.with(&page).iter();
        together.all(|page| self.fast[page.at()] || self.movable[page.at()])
    }
}

impl Floors {
    /// Computes the units due in this epoch.
    pub(super) fn begin(&mut self, groups: &Groups, index: &Index, fast: &[bool]) {
        let warm = groups.members(index.warm());
        let due = groups.bounds().iter().zip(warm);
        let due = due.map(|(bounds, warm)| bounds.floor.min(index.resident_of(&warm)));
        self.due = due.collect();
        self.keep(fast);
    }

    /// Drops lifted units that are no longer fast.
    pub(super) fn keep(&mut self, fast: &[bool]) {
        let is_fast = |page: &PageIndex| fast.get(page.at()) == Some(&true);
        self.lifted.retain(is_fast);
    }

    /// Number of units that are kept only for a floor.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.lifted.len()
    }

    /// Hides from the policy the units that are kept only for a floor. Returns the units of room
    /// that they use.
    pub(super) fn hide(&self, ranks: &mut [u64], fast: &mut [bool]) -> usize {
        for page in &self.lifted {
            (ranks[page.at()], fast[page.at()]) = (0, false);
        }
        self.lifted.len()
    }

    /// Adds the due units that are not wanted, and removes wanted ones that then have no room or are beyond a cap. Due
    /// units without room, in a tier that has become too small, lose their due.
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
        // Units that floors no longer need stay for an epoch if there is room: the policy has not
        // ranked them yet.
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
        // A cap has precedence: what it cuts is not due.
        caps::cut(groups, standing.ranks, standing.fast, wanted);
        let kept = groups.members(wanted.iter().copied());
        for (due, kept) in self.due.iter_mut().zip(kept) {
            *due = index.resident_of(&kept).min(*due);
        }
        self.lifted.retain(|page| is_wanted[page.at()]);
    }

    /// The due units that are not wanted, and the degree to which each unit is due.
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
        let lists = wanted.into_iter().zip(others);
        for ((mut wanted, mut others), (bytes, bounds)) in
            lists.zip(self.due.iter().zip(groups.bounds()))
        {
            let is_newcomer = bounds.is_newcomer;
            wanted.sort_unstable_by_key(|page| (Reverse(ranks[page.at()]), *page));
            // Units that are already fast cost no move.
            let key = |page: &PageIndex| (fast[page.at()], ranks[page.at()]);
            others.sort_unstable_by_key(|page| (Reverse(key(page)), *page));
            let (mut kept, mut units) = (index.resident_of(&wanted), wanted.len());
            for page in others {
                let together = grains.with(&page);
                let more = index.resident_of(together);
                let fits = kept < *bytes
                    && units + together.len() <= bounds.cap
                    && (!is_newcomer || kept + more <= *bytes);
                if fits && !is_wanted[page.at()] {
                    (kept, units) = (kept + more, units + together.len());
                    mark(&mut is_wanted, together);
                    missing.extend(together);
                    wanted.extend(together);
                }
            }
            mark_due(&mut due, &wanted, (*bytes, is_newcomer), (index, grains));
        }
        (missing, due)
    }

    /// Fast bytes that each group may lose; below 0 if it has less than its due.
    pub(super) fn spare(&self, groups: &Groups, index: &Index) -> Vec<i64> {
        let pages = (0..index.known().len() as u32).map(PageIndex);
        let held = groups.members(pages).into_iter().zip(&self.due);
        // No machine has 2^63 bytes.
        held.map(|(held, due)| index.sum(&held, |known| known.fast) as i64 - *due as i64)
            .collect()
    }
}

/// A list of flags for the given number of units: true for those in `pages`.
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

/// Marks the units that a floor of these bytes keeps, the best first. The last of them may have more bytes than are left of the floor; if
/// it is a huge page of several units, it extends beyond the floor.
fn mark_due(
    due: &mut [Due],
    kept: &[PageIndex],
    (bytes, is_newcomer): (u64, bool),
    (index, grains): (&Index, &HugePageGroups),
) {
    let (within, beyond) = match is_newcomer {
        true => (Due::FairShare, Due::No),
        false => (Due::Yes, Due::Rounding),
    };
    let mut marked = 0;
    for page in kept {
        if marked >= bytes {
            break;
        }
        if due[page.at()] == Due::No {
            let together = grains.with(page);
            marked += index.resident_of(together);
            let is_within = marked <= bytes || (together.len() == 1 && !is_newcomer);
            let how = if is_within { within } else { beyond };
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

    /// Four units of the first group and four of the second, all warm except the last.
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
            floor: floor as u64 * 4096,
            priority: Priority::NORMAL,
            is_newcomer: false,
        });
        let of = (0..8).map(|number| Some(number / 4)).collect();
        (Groups::new(bounds.to_vec(), of), index)
    }

    const FAST: [bool; 8] = [false, false, false, false, true, false, false, false];

    /// The units wanted in the end, and those wanted only for floors.
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
        // The fast unit first, then the hottest; cold and unmovable units are not lifted.
        assert_eq!(lifted([0, 2], 3, &[0, 1, 2]), (vec![0, 4, 6], vec![4, 6]));
        assert_eq!(
            lifted([0, 3], 4, &[0, 1, 2]),
            (vec![0, 1, 4, 6], vec![4, 6])
        );
        // A wanted unit that cannot be moved does not fulfil a floor.
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
