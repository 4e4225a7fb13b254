//! [`Payback`], our own epoch policy and the daemon's default, moves a page into the fast tier, in place of another or into free room, only
//! if the accesses that this is expected to gain save more time than the moves take ([`MoveCosts`]), and as long as History would have made
//! as many moves. Pages beyond the capacity leave in any case.
//!
//! History (TMP, table II) predicts the next count of a page by the last. This fails where counts
//! differ by chance, where hot pages do not stay hot, and where a move costs more than it gains.
//! Payback has an answer to each:
//!
//! - *Chance.* A page's counts are averaged until a count deviates more than chance explains
//!   ([`heat`]).
//! - *A new phase.* If the hot pages together lose their share of the hits, the mean of each begins again, and that of any other page at a
//!   smaller deviation ([`phase`]).
//! - *Change.* The share of heat that pages of one kind keep in the following epochs is learnt from
//!   all pages of the run. It gives the expected accesses of a page over a horizon ([`outlook`]).
//! - *Cost.* The accesses gained over the horizon must pay for the moves, which are no more than History would have made ([`budget`]).
//!
//! ```text
//! expected, 8 epochs   slow  n1 600   n2 90      fast  l1 10   l2 80
//! pairs                n1 with l1: wins 590      n2 with l2: wins 10
//! price of a pair      27 accesses (two pages at 2 us, 150 ns saved an access)
//! decision             n1 and l1 change places; n2 and l2 stay
//! ```

mod budget;
mod heat;
mod outlook;
mod phase;

use std::cmp::Reverse;

use isotherm_model::page::{EpochView, PageIndex};
use isotherm_model::paged::RefaultCosts;
use isotherm_model::port::EpochPolicy;
use isotherm_model::units::{Bytes, Nanos};

use super::hottest::Hottest;
use crate::PAGE;
use budget::Budget;
use heat::Heat;
use outlook::Outlook;

/// Expectations are stored in whole parts of an access, so that they can be ranked as counts are.
const PARTS: f64 = 256.0;

/// The cost of moves and their gain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveCosts {
    /// Time that one counted access saves when the fast tier serves it.
    pub saved: Nanos,
    /// Time that moving one page takes.
    pub moved_page: Nanos,
}

impl MoveCosts {
    /// DRAM beside CXL memory: 150 ns saved an access, 2 us a page (4 KiB copied at 2 GB/s).
    pub const TYPICAL: Self = Self {
        saved: Nanos(150),
        moved_page: Nanos(2_000),
    };

    /// Costs for a unit of this size that is paged out: a touched page comes back and leaves again later, and each move is half of that.
    #[must_use]
    pub fn of_refaults(costs: RefaultCosts, unit: Bytes) -> Self {
        let both = costs.out.0.saturating_add(costs.back.0);
        Self {
            saved: Nanos(both),
            moved_page: Nanos((unit.0 / PAGE).max(1).saturating_mul(both) / 2),
        }
    }

    /// True where the accesses gained, in [`PARTS`], save more time than the given number of moves
    /// take.
    fn pays(self, wins: u64, moves: u64) -> bool {
        let saved = wins as f64 / PARTS * self.saved.0 as f64;
        saved > moves as f64 * self.moved_page.0 as f64
    }
}

/// Makes the moves that pay for themselves, predicted by the heat that similar pages kept.
#[derive(Clone, Debug)]
pub struct Payback {
    costs: MoveCosts,
    pages: Vec<Heat>,
    outlook: Outlook,
    /// Accesses expected of each page over the horizon, in [`PARTS`].
    expected: Vec<u64>,
    hottest: Hottest,
    budget: Budget,
    /// Rank that one hit added in the last epoch; 0 before the first.
    hit: u64,
}

impl Payback {
    /// A policy without any observations.
    #[must_use]
    pub fn new(costs: MoveCosts) -> Self {
        Self {
            costs,
            pages: Vec::new(),
            outlook: Outlook::default(),
            expected: Vec::new(),
            hottest: Hottest::default(),
            budget: Budget::default(),
            hit: 0,
        }
    }

    /// Learns from the epoch that ended: how well each kind kept its promise, then the present promise of each page. All of it is counted
    /// in hits, because chance acts on hits.
    fn follow(&mut self, view: &EpochView<'_>) {
        self.count_in_hits_of(view.hit.max(1));
        let hit = self.hit as f64;
        let hits = || view.previous_ranks.iter().map(|&rank| rank as f64 / hit);
        self.outlook.learn(&self.pages, hits());
        let lost = phase::lost_by_pages_above(&self.pages, hits());
        for (page, hits) in self.pages.iter_mut().zip(hits()) {
            match lost {
                Some(mean) => page.follow_new_phase(hits as f32, page.mean() > mean),
                None => page.follow(hits as f32),
            }
        }
        let (mut new, mut promised) = (0_u32, 0.0);
        for page in self.pages.iter().filter(|page| page.is_new()) {
            new += 1;
            promised += page.promised();
        }
        for page in self.pages.iter_mut().filter(|page| page.is_new()) {
            page.lean(promised / f64::from(new));
        }
        self.expected.clear();
        // The cast saturates, and an expectation is never negative.
        let expected = |page| (self.outlook.expected(page) * hit * PARTS) as u64;
        self.expected.extend(self.pages.iter().map(expected));
    }

    /// Converts every mean and sum to hits of this rank. A sampler that slows down yields fewer
    /// hits, each of which represents more accesses; without the conversion every page would seem
    /// to have cooled.
    fn count_in_hits_of(&mut self, hit: u64) {
        if self.hit != hit && self.hit != 0 {
            let scale = self.hit as f64 / hit as f64;
            self.pages.iter_mut().for_each(|page| page.scale(scale));
            self.outlook.scale(scale);
        }
        self.hit = hit;
    }

    /// Reduces the request in `wanted` to the moves that pay. Every newcomer is paired with the
    /// free room or the page that it would replace, best with coldest, and one of the two is kept.
    fn pay(&mut self, view: &EpochView<'_>, wanted: &mut Vec<PageIndex>) {
        let expected = |page: &PageIndex| self.expected[page.at()];
        let is_fast = |page: &PageIndex| view.fast[page.at()];
        let mut newcomers: Vec<PageIndex> = wanted.extract_if(.., |page| !is_fast(page)).collect();
        let mut leaves = view.fast.to_vec();
        for page in wanted.iter() {
            leaves[page.at()] = false;
        }
        let held = view.fast.iter().filter(|fast| **fast).count();
        let all = (0..view.fast.len() as u32).map(PageIndex);
        let mut leavers: Vec<PageIndex> = all.filter(|page| leaves[page.at()]).collect();
        newcomers.sort_unstable_by_key(|page| (Reverse(expected(page)), *page));
        leavers.sort_unstable_by_key(|page| (expected(page), *page));
        let capacity = view.capacity as usize;
        let room = capacity.saturating_sub(held);
        // These pages leave in any case, so they cost the newcomers nothing.
        let excess = held.saturating_sub(capacity).min(leavers.len());
        let leavers = &leavers[excess..];
        for (i, newcomer) in newcomers.iter().enumerate() {
            let leaver = i.checked_sub(room).and_then(|i| leavers.get(i));
            let wins = expected(newcomer).saturating_sub(leaver.map_or(0, expected));
            let moves = 1 + u64::from(leaver.is_some());
            if self.costs.pays(wins, moves) && self.budget.pays(*newcomer, leaver.copied()) {
                wanted.push(*newcomer);
            } else {
                wanted.extend(leaver);
            }
        }
        let paired = newcomers.len().saturating_sub(room);
        let left = capacity.saturating_sub(wanted.len());
        wanted.extend(leavers.iter().skip(paired).rev().take(left));
    }
}

impl EpochPolicy for Payback {
    fn decide(&mut self, view: &EpochView<'_>, wanted: &mut Vec<PageIndex>) {
        self.pages.resize(view.previous_ranks.len(), Heat::UNSEEN);
        let pages = &self.pages;
        self.budget.grow(view, |page| pages[page].is_unseen());
        self.follow(view);
        self.hottest
            .choose(&self.expected, view.fast, view.capacity, wanted);
        self.pay(view, wanted);
        self.budget.note(wanted, view.fast);
    }
}

#[cfg(test)]
mod tests {
    use super::{MoveCosts, Payback};
    use crate::epoch::registry::decided;
    use isotherm_model::page::EpochView;
    use isotherm_model::port::EpochPolicy;
    use isotherm_model::units::Nanos;

    fn payback() -> Payback {
        Payback::new(MoveCosts::TYPICAL)
    }

    /// Runs epochs of ranks with room for one page of two; the first is fast at the start. Returns
    /// the fast page after each epoch.
    fn follows(policy: &mut Payback, epochs: &[[u64; 2]]) -> Vec<u32> {
        let mut fast = [true, false];
        epochs
            .iter()
            .map(|previous_ranks| {
                let wanted = decided(policy, previous_ranks, None, &fast, 1);
                assert_eq!(wanted.len(), 1);
                fast = [wanted[0] == 0, wanted[0] == 1];
                wanted[0]
            })
            .collect()
    }

    #[test]
    fn a_swap_that_does_not_pay_within_the_horizon_is_not_made() {
        // Two moves take 4 us. Half of a difference between new pages is trusted: eight epochs of 3
        // accesses more save 3.6 us, of 3.5 more 4.2 us.
        assert_eq!(follows(&mut payback(), &[[10, 16]]), [0]);
        assert_eq!(follows(&mut payback(), &[[10, 17]]), [1]);
    }

    #[test]
    fn a_sample_is_one_hit_whatever_it_stands_for_and_chance_is_in_hits() {
        // Three samples an epoch against one on average, and once one against four.
        let samples = [[3, 1], [4, 1], [2, 0], [3, 2], [1, 4]];
        let hit = 3_000;
        let ranks = samples.map(|epoch| epoch.map(|samples| samples * hit));
        let last = |hit| {
            let (mut policy, mut wanted) = (payback(), Vec::new());
            for previous_ranks in &ranks {
                let view = EpochView {
                    previous_ranks,
                    next_ranks: None,
                    fast: &[true, false],
                    capacity: 1,
                    hit,
                    loads: None,
                };
                policy.decide(&view, &mut wanted);
            }
            wanted[0].0
        };
        assert_eq!(last(hit), 0);
        assert_eq!(last(1), 1, "so many single accesses would be no chance");
    }

    #[test]
    fn free_room_costs_one_move() {
        // 2 us against eight epochs of 2 accesses, 2.4 us, or of one, 1.2 us.
        let mut policy = payback();
        let none = [false, false];
        decided(&mut policy, &[1, 2], None, &none, 0);
        assert_eq!(decided(&mut policy, &[1, 2], None, &none, 2), [1]);
    }

    #[test]
    fn a_change_of_phase_is_followed_at_once_in_either_direction() {
        let epochs = [[90, 1], [90, 1], [90, 1], [1, 90], [1, 90], [90, 1]];
        assert_eq!(follows(&mut payback(), &epochs), [0, 0, 0, 1, 1, 0]);
    }

    /// The fast pages of twelve, with room for six, before and after a change: for six epochs the first six have these hits, and then the others.
    fn around_a_change(hits: [u64; 6]) -> [Vec<bool>; 2] {
        let (hot, cold) = (hits.map(|hits| hits * 1_000), [0; 6]);
        let mut policy = payback();
        let mut fast = [[false; 6], [true; 6]].concat();
        let mut turn = |previous_ranks: &[u64]| {
            let view = EpochView {
                previous_ranks,
                next_ranks: None,
                fast: &fast,
                capacity: 6,
                hit: 1_000,
                loads: None,
            };
            let mut wanted = Vec::new();
            policy.decide(&view, &mut wanted);
            fast.fill(false);
            wanted.iter().for_each(|page| fast[page.at()] = true);
            fast.clone()
        };
        let first = [hot, cold].concat();
        (0..5).for_each(|_| drop(turn(&first)));
        [turn(&first), turn(&[cold, hot].concat())]
    }

    #[test]
    fn a_change_of_phase_is_followed_at_once_by_few_samples() {
        let (first, others) = ([[true; 6], [false; 6]], [[false; 6], [true; 6]]);
        let both = [first.concat(), others.concat()];
        // Three samples a page and epoch: no page alone has changed for sure.
        assert_eq!(around_a_change([3; 6]), both);
        // With one or two, no page alone has changed at all.
        assert_eq!(around_a_change([1, 2, 1, 2, 1, 1]), both);
    }

    #[test]
    fn hot_pages_take_the_room_of_pages_that_were_never_accessed() {
        // Four pages that filled the fast tier before the first epoch, and four hot ones on the slow one.
        let previous_ranks = [0, 0, 0, 0, 90, 90, 90, 90];
        let fast = [true, true, true, true, false, false, false, false];
        assert_eq!(
            decided(&mut payback(), &previous_ranks, None, &fast, 4),
            [4, 5, 6, 7]
        );
    }

    #[test]
    fn what_leaves_a_tier_that_shrank_is_not_paid_by_those_who_come() {
        let previous_ranks = [0, 0, 0, 0, 0, 0, 90, 90];
        let mut policy = payback();
        let full = [true, true, true, true, true, true, false, false];
        assert_eq!(
            decided(&mut policy, &previous_ranks, None, &full, 4),
            [0, 1, 6, 7]
        );
        // There was time only for the two pages that had to leave.
        let left = [true, true, false, false, true, true, false, false];
        assert_eq!(
            decided(&mut policy, &previous_ranks, None, &left, 4),
            [0, 1, 6, 7]
        );
    }

    #[test]
    fn a_sampler_that_slows_down_changes_little_of_what_is_expected() {
        // The same 3,000 accesses an epoch and page: three samples of a thousand, then mostly none of ten thousand.
        let decide = |slowed: bool| {
            let (mut policy, mut wanted) = (payback(), Vec::new());
            for epoch in 0..12_usize {
                let (previous_ranks, hit) = match epoch {
                    0..4 => ([0, 3_000, 3_000], 1_000),
                    _ if !slowed => ([0, 3_000, 3_000], 1_000),
                    _ => {
                        let sampled = |page| 10_000 * u64::from((epoch + page) % 3 == 0);
                        ([0, sampled(1), sampled(2)], 10_000)
                    }
                };
                let view = EpochView {
                    previous_ranks: &previous_ranks,
                    next_ranks: None,
                    fast: &[true, false, false],
                    capacity: 1,
                    hit,
                    loads: None,
                };
                policy.decide(&view, &mut wanted);
            }
            (policy.expected[1], policy.expected[2])
        };
        let (steady, slowed) = (decide(false), decide(true));
        for (steady, slowed) in [(steady.0, slowed.0), (steady.1, slowed.1)] {
            let kept = slowed as f64 / steady as f64;
            assert!((0.5..2.0).contains(&kept), "{slowed} of {steady} expected");
        }
    }

    #[test]
    fn noise_around_equal_means_moves_nothing() {
        let epochs: Vec<[u64; 2]> = (0..50_u64)
            .map(|i| [100 + i * 7 % 13, 100 + i * 5 % 13])
            .collect();
        let mut policy = payback();
        assert_eq!(follows(&mut policy, &epochs), [0; 50]);
    }

    #[test]
    fn pages_that_are_hot_for_one_epoch_are_soon_left_where_they_are() {
        // A scan over eight pages, one an epoch; page 0 is fast. History would move pages every
        // epoch.
        let mut policy = payback();
        let mut fast = [false; 8];
        fast[0] = true;
        let mut moves = [0; 2];
        for epoch in 0..64 {
            let mut previous_ranks = [0; 8];
            previous_ranks[epoch % 8] = 100;
            let wanted = decided(&mut policy, &previous_ranks, None, &fast, 1);
            moves[epoch / 32] += usize::from(!fast[wanted[0] as usize]);
            fast.fill(false);
            fast[wanted[0] as usize] = true;
        }
        assert!(moves[0] <= 20 && moves[1] == 0, "{moves:?} moves");
    }

    #[test]
    fn memory_that_is_no_faster_moves_nothing() {
        let costs = MoveCosts {
            saved: Nanos(0),
            ..MoveCosts::TYPICAL
        };
        assert_eq!(
            follows(&mut Payback::new(costs), &[[0, 1_000_000], [0, 1_000_000]]),
            [0, 0]
        );
    }

    #[test]
    fn a_fast_tier_that_shrank_keeps_its_hottest_pages() {
        let fast = [true, true, true, false];
        assert_eq!(
            decided(&mut payback(), &[5, 90, 50, 1], None, &fast, 2),
            [1, 2]
        );
    }
}
