//! [`Oracle`] is the epoch policy that fills the fast tier with the pages of highest rank (accesses) in the epoch that begins (TMP, table
//! II). A replay in the simulator knows these ranks: no placement that is fixed within an epoch serves more accesses of it, so the policy's
//! hit rate there is an upper bound for all others; its number of moves is no bound. In a run the ranks are a prediction from an earlier
//! recording, and prove no bound; without ranks no page moves.

use isotherm_model::page::{EpochView, PageIndex};
use isotherm_model::port::EpochPolicy;

use super::hottest::Hottest;

/// The hottest pages of the epoch that begins.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    hottest: Hottest,
}

impl EpochPolicy for Oracle {
    /// In a live run, without the next ranks, fast pages stay fast.
    fn decide(&mut self, view: &EpochView<'_>, wanted: &mut Vec<PageIndex>) {
        match view.next_ranks {
            Some(next_ranks) => self
                .hottest
                .choose(next_ranks, view.fast, view.capacity, wanted),
            None => super::first_come_first_allocated::stay(view, wanted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Oracle;
    use crate::epoch::registry::decided;

    #[test]
    fn the_hottest_of_the_epoch_that_begins_are_wanted_even_before_their_first_touch() {
        let fast = [true, true, false];
        let next_ranks = Some([1, 0, 9].as_slice());
        let mut oracle = Oracle::default();
        assert_eq!(
            decided(&mut oracle, &[9, 9, 0], next_ranks, &fast, 2),
            [0, 2]
        );
    }

    #[test]
    fn without_a_future_nothing_moves() {
        let fast = [true, false, true];
        let mut oracle = Oracle::default();
        assert_eq!(decided(&mut oracle, &[0, 9, 0], None, &fast, 2), [0, 2]);
    }
}
