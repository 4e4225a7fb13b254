//! [`Residency`] tracks the pages in the fast tier during a replay: it takes the pages that a policy chooses and counts the moves, and
//! admits new pages while there is room.

use std::ops::Range;

use isotherm_model::page::PageIndex;

/// The pages of the fast tier, as a list and as a mark for each page. Never more than its capacity.
#[derive(Clone, Debug)]
pub(crate) struct Residency {
    pages: Vec<PageIndex>,
    fast: Vec<bool>,
    /// A list that only `adopt` uses; all false between its calls.
    before: Vec<bool>,
    capacity: u32,
    most: usize,
}

/// Pages moved at the turn of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moves {
    /// From slow to fast.
    pub(crate) promoted: u64,
    /// From fast to slow.
    pub(crate) demoted: u64,
}

impl Residency {
    /// An empty fast tier for `capacity` of `pages` pages.
    pub(crate) fn new(pages: usize, capacity: u32) -> Self {
        Self {
            pages: Vec::new(),
            fast: vec![false; pages],
            before: vec![false; pages],
            capacity,
            most: 0,
        }
    }

    /// Makes these pages the fast ones. Pages from `known` on do not exist yet: they are allocated
    /// fast when they are touched, which needs no move. Pages that do not fit, do not exist or are
    /// named twice are ignored, for every policy.
    pub(crate) fn adopt(&mut self, wanted: &[PageIndex], known: u32) -> Moves {
        std::mem::swap(&mut self.fast, &mut self.before);
        let old = std::mem::take(&mut self.pages);
        let mut kept = 0;
        let mut promoted = 0;
        for &page in wanted {
            let is_new = self.fast.get(page.at()) == Some(&false);
            if !is_new || self.is_full() {
                continue;
            }
            self.fast[page.at()] = true;
            self.pages.push(page);
            if self.before[page.at()] {
                kept += 1;
            } else if page.0 < known {
                promoted += 1;
            }
        }
        for page in &old {
            self.before[page.at()] = false;
        }
        self.most = self.most.max(self.pages.len());
        Moves {
            promoted,
            demoted: (old.len() - kept) as u64,
        }
    }

    /// Pages that are touched for the first time enter while there is room, in that order, if
    /// `may_enter` is true for them.
    pub(crate) fn allocate(&mut self, new: Range<u32>, may_enter: impl Fn(PageIndex) -> bool) {
        for page in new.map(PageIndex) {
            if self.is_full() {
                break;
            }
            if !self.fast[page.at()] && may_enter(page) {
                self.fast[page.at()] = true;
                self.pages.push(page);
            }
        }
        self.most = self.most.max(self.pages.len());
    }

    fn is_full(&self) -> bool {
        self.pages.len() >= self.capacity as usize
    }

    /// Most pages that it may hold.
    pub(crate) const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// The fast pages, in no particular order.
    pub(crate) fn pages(&self) -> &[PageIndex] {
        &self.pages
    }

    /// For each page, whether it is fast.
    pub(crate) fn marks(&self) -> &[bool] {
        &self.fast
    }

    /// The most pages that it held at any time.
    pub(crate) const fn most(&self) -> usize {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::{Moves, Residency};
    use isotherm_model::page::PageIndex;

    fn pages(list: &[u32]) -> Vec<PageIndex> {
        list.iter().copied().map(PageIndex).collect()
    }

    #[test]
    fn new_pages_enter_in_order_while_there_is_room_and_where_they_may() {
        let mut fast = Residency::new(6, 3);
        fast.allocate(0..2, |page| page.0 != 0);
        fast.allocate(2..6, |_| true);
        assert_eq!(fast.pages(), pages(&[1, 2, 3]));
        assert_eq!(fast.most(), 3);
    }

    #[test]
    fn what_is_adopted_is_counted_by_what_it_moves() {
        let mut fast = Residency::new(6, 3);
        fast.allocate(0..3, |_| true);
        let moves = fast.adopt(&pages(&[2, 3, 4]), 4);
        // Page 4 does not exist yet, so it is not moved; pages 0 and 1 are.
        assert_eq!(
            moves,
            Moves {
                promoted: 1,
                demoted: 2
            }
        );
        assert_eq!(fast.marks(), [false, false, true, true, true, false]);
        assert_eq!(fast.adopt(&pages(&[2, 3, 4]), 6), Moves::default());
    }

    #[test]
    fn a_policy_that_asks_for_too_much_twice_or_for_nothing_there_is_gets_what_fits() {
        let mut fast = Residency::new(4, 2);
        let moves = fast.adopt(&pages(&[1, 1, 9, 3, 0]), 4);
        assert_eq!(
            moves,
            Moves {
                promoted: 2,
                demoted: 0
            }
        );
        assert_eq!(fast.pages(), pages(&[1, 3]));
    }
}
