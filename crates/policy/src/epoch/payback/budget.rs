//! The budget of moves: as many pages as History would have moved by now.
//!
//! History runs in the shadow, on the same ranks and from the same beginnings. Whatever the
//! averages promise, no more is moved than it would have moved. Where a page is not fast although it was wanted so,
//! because it could not be moved, nothing was used up; where somebody else moved it out, History would move it anew.

use isotherm_model::page::{EpochView, PageIndex};

use super::super::hottest::Hottest;

/// What History would have moved and we did not.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget {
    left: u64,
    hottest: Hottest,
    /// History's fast tier, and how many pages it holds.
    fast: Vec<bool>,
    held: u64,
    chosen: Vec<PageIndex>,
    /// What was wanted fast in the end, and whether it was so already.
    wanted: Vec<(PageIndex, bool)>,
}

impl Budget {
    /// Adds what History moves at this turn of an epoch. `is_new` says of a page that it was not
    /// accessed before the epoch that ended; such pages are where they are found, which is in the fast
    /// tier while that had room, but for programs that ran before anybody looked.
    pub(super) fn grow(&mut self, view: &EpochView<'_>, is_new: impl Fn(usize) -> bool) {
        self.fast.resize(view.ended.len(), false);
        for (page, was_fast) in self.wanted.drain(..) {
            if view.fast.get(page.at()) == Some(&true) {
                continue;
            }
            if !was_fast {
                // It was paid for and is not there: refused, or left out with the rest of a huge page.
                self.left = self.left.saturating_add(1);
            } else if self.fast.get(page.at()) == Some(&true) {
                self.fast[page.at()] = false;
                self.held -= 1;
            }
        }
        for (page, &rank) in view.ended.iter().enumerate() {
            let room = self.held < u64::from(view.capacity);
            if rank > 0 && room && view.fast[page] && is_new(page) {
                self.fast[page] = true;
                self.held += 1;
            }
        }
        self.hottest
            .choose(view.ended, &self.fast, view.capacity, &mut self.chosen);
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

    /// Notes what is wanted fast in the end.
    pub(super) fn note(&mut self, wanted: &[PageIndex], fast: &[bool]) {
        self.wanted.clear();
        let noted = wanted.iter().map(|page| (*page, fast[page.at()]));
        self.wanted.extend(noted);
    }

    /// Takes moves from the budget, or says that they are too many.
    pub(super) const fn allows(&mut self, moves: u64) -> bool {
        if self.left < moves {
            return false;
        }
        self.left -= moves;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Budget;
    use isotherm_model::page::{EpochView, PageIndex};

    fn grow(budget: &mut Budget, ended: &[u64], is_new: bool) {
        let view = EpochView {
            ended,
            coming: None,
            fast: &[true, false, false],
            capacity: 1,
            hit: 1,
        };
        budget.grow(&view, |_| is_new);
    }

    #[test]
    fn pages_that_were_slow_when_they_were_first_seen_may_be_moved() {
        let view = EpochView {
            ended: &[5, 3, 0],
            coming: None,
            fast: &[false; 3],
            capacity: 2,
            hit: 1,
        };
        let mut budget = Budget::default();
        budget.grow(&view, |_| true);
        assert!(budget.allows(2) && !budget.allows(1));
    }

    #[test]
    fn what_could_not_be_moved_may_be_moved_again() {
        let mut budget = Budget::default();
        let view = EpochView {
            ended: &[5],
            coming: None,
            fast: &[false],
            capacity: 1,
            hit: 1,
        };
        for _ in 0..3 {
            budget.grow(&view, |_| false);
            assert!(budget.allows(1) && !budget.allows(1));
            budget.note(&[PageIndex(0)], view.fast);
        }
    }

    #[test]
    fn what_history_would_have_moved_may_be_moved_once() {
        let mut budget = Budget::default();
        // Page 0 entered first, page 1 is hotter: one is demoted, one promoted.
        grow(&mut budget, &[1, 5, 2], true);
        assert!(budget.allows(2) && !budget.allows(1));
        grow(&mut budget, &[1, 5, 2], false);
        assert!(!budget.allows(1));
        grow(&mut budget, &[9, 5, 2], false);
        grow(&mut budget, &[9, 5, 20], false);
        assert!(budget.allows(3) && !budget.allows(2) && budget.allows(1));
    }
}
