//! `lost_by_pages_above` detects a new phase of the programs for payback: the share of all hits that falls on the hot pages together is
//! lower than before, by more than chance explains and by at least a quarter of all hits. It returns the mean above which a page counted
//! as hot; payback restarts the mean of each such page that has fewer hits now. Where hot pages have many hits, each is tested alone.
//!
//! A page with three hits an epoch that has none is no surprise: this happens in one epoch of twenty. Twelve such pages without any hit are
//! a surprise. So the pages that were hot, those with more than half of the mean of all accessed pages, are tested together: their share of
//! the hits in this epoch, against their share before.
//!
//! ```text
//! means        3 3 3 3 3 3   0.2 0.2 0.2 0.2 ..       hot pages: 0.9 of 20 hits expected
//! this epoch   0 1 0 0 0 0   3   4   2   5   ..       0.05: a new phase
//! ```

use super::heat::Heat;

/// Deviations of the number of hits on the hot pages beyond which it is not chance.
const SURPRISE: f64 = 4.0;

/// Least fall of their share, as a part of all hits, in a new phase: hot data that moves on slowly is followed page by page.
const FALL: f64 = 0.25;

/// Most hits of a hot page in an epoch, on average. With more, a page that changes is soon detected by itself, and an epoch in the middle
/// of which a phase begins is no reason to drop the averages of all pages.
const FEW: f64 = 8.0;

/// If the pages that were hot have lost their share of the hits, the mean above which a page counted as hot.
pub(super) fn lost_by_pages_above(pages: &[Heat], hits: impl Iterator<Item = f64>) -> Option<f64> {
    let accessed = pages.iter().filter(|page| !page.is_unseen());
    let (count, all) = accessed.fold((0.0, 0.0), |(count, sum), page| {
        (count + 1.0, sum + page.mean())
    });
    if all <= 0.0 {
        return None;
    }
    let least = all / count / 2.0;
    let (mut hot, mut hot_before, mut hot_now, mut now) = (0.0, 0.0, 0.0, 0.0);
    for (page, hits) in pages.iter().zip(hits) {
        let is_hot = page.mean() > least;
        hot += f64::from(u8::from(is_hot));
        hot_before += if is_hot { page.mean() } else { 0.0 };
        hot_now += if is_hot { hits } else { 0.0 };
        now += hits;
    }
    let share = hot_before / all;
    // The variance of a number of hits by its share; one is added, so that few hits prove nothing.
    let deviation = (now * share * (1.0 - share) + 1.0).sqrt();
    let fall = now * share - hot_now;
    let is_new = fall > SURPRISE * deviation && fall > FALL * now && hot_before < FEW * hot;
    is_new.then_some(least)
}

#[cfg(test)]
mod tests {
    use super::lost_by_pages_above;
    use crate::epoch::payback::heat::Heat;

    /// Pages after five epochs of these hits.
    fn pages(hits: &[f32]) -> Vec<Heat> {
        let page = |hits: &f32| {
            let mut page = Heat::UNSEEN;
            (0..5).for_each(|_| page.follow(*hits));
            page
        };
        hits.iter().map(page).collect()
    }

    fn changed(before: &[f32], now: &[f32]) -> bool {
        lost_by_pages_above(&pages(before), now.iter().map(|hits| f64::from(*hits))).is_some()
    }

    #[test]
    fn hot_pages_that_lose_their_hits_together_are_a_new_phase() {
        let before = [[3.0; 6], [0.2; 6]].concat();
        let swapped = [[0.0; 6], [3.0; 6]].concat();
        assert!(changed(&before, &swapped));
        // No page of them has lost more than chance takes of one.
        let mut one = pages(&before).swap_remove(0);
        one.follow(0.0);
        assert!(one.promised() > 2.0);
    }

    #[test]
    fn chance_a_quiet_epoch_and_slow_change_are_none() {
        let before = [[3.0; 6], [0.2; 6]].concat();
        assert!(!changed(
            &before,
            &[5.0, 2.0, 0.0, 4.0, 3.0, 2.0, 1.0, 0.0, 2.0, 0.0, 1.0, 0.0]
        ));
        assert!(!changed(&before, &[0.0; 12]));
        assert!(!changed(
            &before,
            &[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0]
        ));
        // One of six hot pages moves on, with counts that leave no doubt.
        let window = [[900.0; 6], [0.0; 6]].concat();
        let mut moved = window.clone();
        (moved[0], moved[6]) = (0.0, 900.0);
        assert!(!changed(&window, &moved));
        assert!(!changed(&[0.0; 12], &before), "nothing was hot");
        // With many hits each page shows it by itself.
        let many = [[90.0; 6], [0.2; 6]].concat();
        let swapped = [[0.0; 6], [90.0; 6]].concat();
        assert!(!changed(&many, &swapped));
    }
}
