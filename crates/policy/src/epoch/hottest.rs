//! `Hottest` selects the pages of highest rank (observed or expected accesses) that fit, without sorting; for History, Oracle and payback.

use isotherm_model::page::PageIndex;

/// Chooses pages by rank; keeps its list between epochs to avoid allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hottest {
    candidates: Vec<(u64, u32)>,
}

impl Hottest {
    /// Writes the `capacity` pages of highest rank into `chosen`. Of two with the same rank the
    /// page that is already fast comes first, so that no page moves without a reason, then the page
    /// touched first. A page of rank 0 is chosen only if it is fast and its room is not needed.
    ///
    /// With ranks 5, 3, 3, 0, 0, the third and fourth page fast, and room for three: the first,
    /// the third and the second.
    pub(crate) fn choose(
        &mut self,
        ranks: &[u64],
        fast: &[bool],
        capacity: u32,
        chosen: &mut Vec<PageIndex>,
    ) {
        // The key is the rank and, in the lowest bit, whether the page is fast. Ranks from 2^63 on would tie; no rank is that high.
        let key = |rank: u64, fast: bool| rank.min(u64::MAX >> 1) << 1 | u64::from(fast);
        self.candidates.clear();
        self.candidates.extend(
            ranks
                .iter()
                .zip(fast)
                .zip(0_u32..)
                .map(|((&rank, &fast), page)| (key(rank, fast), !page))
                .filter(|&(key, _)| key > 0),
        );
        let capacity = capacity as usize;
        if capacity < self.candidates.len() {
            if capacity > 0 {
                self.candidates
                    .select_nth_unstable_by(capacity - 1, |a, b| b.cmp(a));
            }
            self.candidates.truncate(capacity);
        }
        chosen.clear();
        chosen.extend(self.candidates.iter().map(|&(_, page)| PageIndex(!page)));
    }
}

#[cfg(test)]
mod tests {
    use super::Hottest;
    use proptest::prelude::*;

    fn chosen(ranks: &[u64], fast: &[bool], capacity: u32) -> Vec<u32> {
        let mut chosen = Vec::new();
        Hottest::default().choose(ranks, fast, capacity, &mut chosen);
        let mut pages: Vec<u32> = chosen.iter().map(|page| page.0).collect();
        pages.sort_unstable();
        pages
    }

    #[test]
    fn of_equal_ranks_the_fast_page_stays_and_then_the_older_comes() {
        let ranks = [5, 3, 3, 0, 0];
        let fast = [false, false, true, true, false];
        assert_eq!(chosen(&ranks, &fast, 2), [0, 2]);
        assert_eq!(chosen(&ranks, &fast, 3), [0, 1, 2]);
        assert_eq!(chosen(&ranks, &fast, 5), [0, 1, 2, 3]);
        assert_eq!(chosen(&ranks, &fast, 0), [0_u32; 0]);
    }

    proptest! {
        #[test]
        fn selection_chooses_what_sorting_would(
            pages in prop::collection::vec((0_u64..6, any::<bool>()), 0..40), capacity in 0_u32..45
        ) {
            let (ranks, fast): (Vec<u64>, Vec<bool>) = pages.iter().copied().unzip();
            let mut order: Vec<usize> = (0..pages.len())
                .filter(|&i| ranks[i] > 0 || fast[i])
                .collect();
            order.sort_by_key(|&i| (std::cmp::Reverse((ranks[i], fast[i])), i));
            order.truncate(capacity as usize);
            order.sort_unstable();
            let expected: Vec<u32> = order.into_iter().map(|i| i as u32).collect();
            prop_assert_eq!(chosen(&ranks, &fast, capacity), expected);
        }
    }
}
