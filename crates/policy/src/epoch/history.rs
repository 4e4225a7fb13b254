//! [`History`] is the epoch policy that fills the fast tier with the pages of highest rank (accesses) in the epoch before (TMP, table II).
//!
//! It assumes that hot pages stay hot for one more epoch. Noise costs it only moves: ranks that
//! differ by chance reorder the pages every epoch, and each reordering moves pages.

use isotherm_model::page::{EpochView, PageIndex};
use isotherm_model::port::EpochPolicy;

use super::hottest::Hottest;

/// The hottest pages of the epoch that ended.
#[derive(Clone, Debug, Default)]
pub struct History {
    hottest: Hottest,
}

impl EpochPolicy for History {
    fn decide(&mut self, view: &EpochView<'_>, wanted: &mut Vec<PageIndex>) {
        self.hottest
            .choose(view.previous_ranks, view.fast, view.capacity, wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::History;
    use crate::epoch::registry::decided;

    #[test]
    fn the_hottest_of_the_epoch_that_ended_are_wanted_whatever_comes() {
        let wanted = decided(
            &mut History::default(),
            &[4, 0, 9, 5],
            Some(&[9, 9, 0, 0]),
            &[true, true, false, false],
            2,
        );
        assert_eq!(wanted, [2, 3]);
    }

    #[test]
    fn a_page_that_cooled_stays_while_nobody_needs_its_room() {
        let fast = [true, true, false];
        assert_eq!(
            decided(&mut History::default(), &[0, 1, 1], None, &fast, 3),
            [0, 1, 2]
        );
        assert_eq!(
            decided(&mut History::default(), &[0, 1, 1], None, &fast, 2),
            [1, 2]
        );
    }
}
