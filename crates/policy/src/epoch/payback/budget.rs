//! `Budget` limits the moves that payback makes by choice, in all epochs so far, to the number of pages that History would have moved: at
//! each epoch it computes History's decision on the same ranks, from a placement that it keeps for History alone. Pages that leave because
//! they are beyond the capacity use no budget.
//!
//! Both begin at the same placement, so this holds regardless of payback's averages. A page that was wanted but
//! could not be moved uses no budget. If another program moved a page out, History would move it again; if it moved a page in, as a floor
//! does, History would find it there.

use isotherm_model::page::{EpochView, PageIndex};

use super::super::hottest::Hottest;

/// The moves that History would have made and payback has not.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    left: u64,
    hottest: Hottest,
    /// History's fast tier, and the number of pages in it.
    fast: Vec<bool>,
    held: u64,
    chosen: Vec<PageIndex>,
    /// Pages that were fast and were to stay fast.
    stays: Vec<PageIndex>,
    /// True for pages that were fast, or wanted, at the last decision.
    placed: Vec<bool>,
    /// Moves that were paid for, and whether each was to the fast tier.
    paid: Vec<(PageIndex, bool)>,
}

impl Budget {
    /// Adds the moves that History makes at this turn of an epoch. `is_new` is true for a page
    /// without an access before the epoch that ended. Such a page counts as placed where it is
    /// found, even without any access, so the pages that hot ones replace in a full tier are moves
    /// as well.
    pub(super) fn grow(&mut self, view: &EpochView<'_>, is_new: impl Fn(usize) -> bool) {
        self.fast.resize(view.previous_ranks.len(), false);
        let is_fast = |page: &PageIndex| view.fast.get(page.at()) == Some(&true);
        // Moves that were paid for but not made: refused, out of time, or left out with the rest of a huge page.
        let unmade = self.paid.drain(..);
        let unmade = unmade.filter(|(page, to_fast)| is_fast(page) != *to_fast);
        self.left = self.left.saturating_add(unmade.count() as u64);
        for page in self.stays.drain(..).filter(|page| !is_fast(page)) {
            if self.fast.get(page.at()) == Some(&true) {
                self.fast[page.at()] = false;
                self.held -= 1;
            }
        }
        for page in 0..view.previous_ranks.len() {
            let room = self.held < u64::from(view.capacity);
            let is_found = is_new(page) || self.placed.get(page) == Some(&false);
            if room && view.fast[page] && !self.fast[page] && is_found {
                self.fast[page] = true;
                self.held += 1;
            }
        }
        self.hottest.choose(
            view.previous_ranks,
            &self.fast,
            view.capacity,
            &mut self.chosen,
        );
        let is_slow = |page: &&PageIndex| !self.fast[page.at()];
        let promoted = self.chosen.iter().filter(is_slow).count() as u64;
        let chosen = self.chosen.len() as u64;
        let demoted = (self.held + promoted).saturating_sub(chosen);
        self.left = self.left.saturating_add(promoted + demoted);
        self.fast.fill(false);
        for page in &self.chosen {
            self.fast[page.at()] = true;
        }
        self.held = chosen;
    }

    /// Records the finally wanted pages, and which of them were already fast.
    pub(super) fn note(&mut self, wanted: &[PageIndex], fast: &[bool]) {
        self.placed.clear();
        self.placed.extend_from_slice(fast);
        for page in wanted {
            self.placed[page.at()] = true;
        }
        self.stays.clear();
        let stays = wanted.iter().filter(|page| fast[page.at()]);
        self.stays.extend(stays);
    }

    /// Pays for a page to enter and for the one that leaves; returns false if the budget is too
    /// small.
    pub(super) fn pays(&mut self, newcomer: PageIndex, leaver: Option<PageIndex>) -> bool {
        let moves = 1 + u64::from(leaver.is_some());
        if self.left < moves {
            return false;
        }
        self.left -= moves;
        self.paid.push((newcomer, true));
        self.paid.extend(leaver.map(|page| (page, false)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;
    use isotherm_model::page::{EpochView, PageIndex};

    fn grow(budget: &mut Budget, previous_ranks: &[u64], is_new: bool) {
        let view = EpochView {
            previous_ranks,
            next_ranks: None,
            fast: &[true, false, false],
            capacity: 1,
            hit: 1,
            loads: None,
        };
        budget.grow(&view, |_| is_new);
    }

    /// Pays for moves that [`grow`] then finds made: page 0 to the fast tier, page 1 from it.
    fn allows(budget: &mut Budget, moves: u64) -> bool {
        (0..moves / 2).all(|_| budget.pays(PageIndex(0), Some(PageIndex(1))))
            && (0..moves % 2).all(|_| budget.pays(PageIndex(0), None))
    }

    #[test]
    fn pages_that_were_slow_when_they_were_first_seen_may_be_moved() {
        let view = EpochView {
            previous_ranks: &[5, 3, 0],
            next_ranks: None,
            fast: &[false; 3],
            capacity: 2,
            hit: 1,
            loads: None,
        };
        let mut budget = Budget::default();
        budget.grow(&view, |_| true);
        assert!(allows(&mut budget, 2) && !allows(&mut budget, 1));
    }

    #[test]
    fn what_could_not_be_moved_may_be_moved_again() {
        let mut budget = Budget::default();
        // Page 1 is hot and slow, page 0 must make room for it, and neither ever moves.
        for _ in 0..3 {
            grow(&mut budget, &[0, 5], true);
            assert!(budget.pays(PageIndex(1), Some(PageIndex(0))));
            assert!(!budget.pays(PageIndex(1), None));
            budget.note(&[PageIndex(1)], &[true, false]);
        }
    }

    #[test]
    fn what_another_program_moved_in_may_be_exchanged() {
        let view = |fast| EpochView {
            previous_ranks: &[5, 3, 1],
            next_ranks: None,
            fast,
            capacity: 1,
            hit: 1,
            loads: None,
        };
        let mut budget = Budget::default();
        budget.grow(&view(&[true, false, false]), |_| true);
        budget.note(&[PageIndex(0)], &[true, false, false]);
        // A floor has put page 2 in the place of page 0.
        budget.grow(&view(&[false, false, true]), |_| false);
        assert!(budget.pays(PageIndex(0), Some(PageIndex(2))));
        assert!(!budget.pays(PageIndex(0), None));
    }

    #[test]
    fn what_history_would_have_moved_may_be_moved_once() {
        let mut budget = Budget::default();
        // Page 0 entered first, page 1 is hotter: one is demoted, one promoted.
        grow(&mut budget, &[1, 5, 2], true);
        assert!(allows(&mut budget, 2) && !allows(&mut budget, 1));
        grow(&mut budget, &[1, 5, 2], false);
        assert!(!allows(&mut budget, 1));
        grow(&mut budget, &[9, 5, 2], false);
        grow(&mut budget, &[9, 5, 20], false);
        assert!(allows(&mut budget, 4) && !allows(&mut budget, 1));
    }
}
