//! Payback, ours: a page moves only where the move pays for itself.
//!
//! History (TMP, table II) takes the last epoch's count of a page for its next. Four things keep that from being right
//! or cheap, and each is answered here:
//!
//! - *Chance.* Two moving averages of each page's rank, a quick and a slow one, keep noise from
//!   deciding; when they part by more than chance explains, both start anew, so that a change of phase
//!   is followed at once ([`averages`]).
//! - *Change.* What a page of its kind (what last happened to it, how many epochs ago) kept of its heat in the
//!   epochs that followed is learnt from all pages of the run, and gives the accesses to expect of
//!   it over the horizon ([`persistence`]). A scan teaches that what rose will be gone at once; a
//!   window that slides, that what rose long ago will be gone soon.
//! - *Cost.* A promotion is judged by the lower of the two averages, the demotion that makes its
//!   room by the higher. The pair is made where the accesses it wins over the horizon save more
//!   time than its moves take, and where it cannot wait.
//! - *The rest.* No more pages are moved than History would have moved by now ([`budget`]).
//!
//! ```text
//! wish     the pages of most accesses expected that fit
//! pairs    best newcomer with coldest leaver, second with second, ...
//!          newcomer 40 quick, 32 slow   leaver 3 quick, 5 slow   wins (32 - 5) accesses an epoch
//! ```

mod averages;
mod budget;
mod persistence;

use isotherm_model::page::{EpochView, PageIndex};
use isotherm_model::port::EpochPolicy;
use isotherm_model::units::Nanos;

use super::hottest::Hottest;
use averages::{Averages, Trend};
use budget::Budget;
use persistence::{HORIZON, Persistence};

/// What moves cost and what they bring.
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

    /// True where the newcomer pays for its move and for the leaver's, if there is one, within the horizon, and
    /// earns its part of the price in the next epoch already: a move that can wait, waits.
    fn pays(self, newcomer: &Candidate, leaver: Option<&Candidate>) -> bool {
        let (next, horizon, moves) = leaver.map_or((0.0, 0.0, 1.0), |l| (l.next, l.horizon, 2.0));
        let price = moves * self.moved_page.0 as f64;
        let saved = self.saved.0 as f64;
        (newcomer.horizon - horizon) * saved > price
            && (newcomer.next - next) * saved > price / HORIZON as f64
    }
}

/// Moves what pays for itself, by two moving averages.
#[derive(Clone, Debug)]
pub struct Payback {
    costs: MoveCosts,
    pages: Vec<Averages>,
    persistence: Persistence,
    /// Accesses expected of each page over the horizon, in 256ths.
    expected: Vec<u64>,
    hottest: Hottest,
    budget: Budget,
    newcomers: Vec<Candidate>,
    leavers: Vec<Candidate>,
}

/// A page that may move.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    page: PageIndex,
    /// Accesses expected in the next epoch.
    next: f64,
    /// Accesses expected over the horizon.
    horizon: f64,
}

impl Payback {
    /// A policy that has seen nothing yet.
    #[must_use]
    pub fn new(costs: MoveCosts) -> Self {
        Self {
            costs,
            pages: Vec::new(),
            persistence: Persistence::default(),
            expected: Vec::new(),
            hottest: Hottest::default(),
            budget: Budget::default(),
            newcomers: Vec::new(),
            leavers: Vec::new(),
        }
    }

    /// Learns from the epoch that ended: first how well each page kept what was expected of it,
    /// then its new averages.
    fn follow(&mut self, ended: &[u64]) {
        self.persistence.begin();
        for (page, &rank) in self.pages.iter_mut().zip(ended) {
            if let Some(trend) = page.trend() {
                self.persistence.note(trend, page.slow(), rank);
            }
            page.follow(rank);
        }
        self.persistence.settle();
    }

    /// Accesses to expect of every page over the horizon.
    fn expect(&mut self) {
        let persistence = &self.persistence;
        self.expected.clear();
        // The cast saturates, and an expectation is never negative.
        self.expected.extend(self.pages.iter().map(|page| {
            page.trend().map_or(0, |trend| {
                (persistence.horizon(trend, page.slow()) * 256.0) as u64
            })
        }));
    }

    /// Turns the wish in `wanted` into what pays: every newcomer is paired with the room or the page
    /// that it would take, and one of the two is kept.
    fn pay(&mut self, view: &EpochView<'_>, wanted: &mut Vec<PageIndex>) {
        self.pair(view, wanted);
        let is_fast = |page: &PageIndex| view.fast[page.at()];
        let fast = view.fast.iter().filter(|fast| **fast).count();
        let room = (view.capacity as usize).saturating_sub(fast);
        wanted.retain(is_fast);
        for (i, newcomer) in self.newcomers.iter().enumerate() {
            let leaver = i.checked_sub(room).and_then(|i| self.leavers.get(i));
            let pays = self.costs.pays(newcomer, leaver);
            let moves = 1 + u64::from(leaver.is_some());
            if pays && self.budget.allows(moves) {
                wanted.push(newcomer.page);
            } else if let Some(leaver) = leaver {
                wanted.push(leaver.page);
            }
        }
        let paired = self.newcomers.len().saturating_sub(room);
        let unpaired = self.leavers.iter().skip(paired).rev();
        let left = (view.capacity as usize).saturating_sub(wanted.len());
        wanted.extend(unpaired.take(left).map(|leaver| leaver.page));
    }

    /// The wish's newcomers, most expected first, and the pages that it would make leave, least
    /// expected first; ties by page.
    fn pair(&mut self, view: &EpochView<'_>, wish: &[PageIndex]) {
        self.newcomers.clear();
        self.leavers.clear();
        let mut stays = view.fast.to_vec();
        for &page in wish {
            if stays[page.at()] {
                stays[page.at()] = false;
            } else {
                self.newcomers.push(self.candidate(page, Averages::low));
            }
        }
        for (page, _) in (0_u32..).zip(&stays).filter(|(_, leaves)| **leaves) {
            self.leavers
                .push(self.candidate(PageIndex(page), Averages::high));
        }
        self.newcomers
            .sort_unstable_by(|a, b| b.horizon.total_cmp(&a.horizon).then(a.page.cmp(&b.page)));
        self.leavers
            .sort_unstable_by(|a, b| a.horizon.total_cmp(&b.horizon).then(a.page.cmp(&b.page)));
    }

    /// A page by one of its averages.
    fn candidate(&self, page: PageIndex, heat: fn(&Averages) -> f64) -> Candidate {
        let seen = &self.pages[page.at()];
        let heat = heat(seen);
        let expected = |ahead: fn(&Persistence, Trend, f64) -> f64| {
            seen.trend()
                .map_or(0.0, |trend| ahead(&self.persistence, trend, heat))
        };
        Candidate {
            page,
            next: expected(Persistence::next),
            horizon: expected(Persistence::horizon),
        }
    }
}

impl EpochPolicy for Payback {
    fn name(&self) -> &'static str {
        "payback"
    }

    fn decide(&mut self, view: &EpochView<'_>, wanted: &mut Vec<PageIndex>) {
        self.pages.resize(view.ended.len(), Averages::UNSEEN);
        let pages = &self.pages;
        self.budget.grow(view, |page| pages[page].trend().is_none());
        self.follow(view.ended);
        self.expect();
        self.hottest
            .choose(&self.expected, view.fast, view.capacity, wanted);
        self.pay(view, wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::{MoveCosts, Payback};
    use crate::epoch::registry::decided;
    use isotherm_model::units::Nanos;

    fn payback() -> Payback {
        Payback::new(MoveCosts::TYPICAL)
    }

    /// Runs epochs of ranks with room for one page of two, of which the first is fast at the start;
    /// the page that is fast after each.
    fn follows(policy: &mut Payback, epochs: &[[u64; 2]]) -> Vec<u32> {
        let mut fast = [true, false];
        epochs
            .iter()
            .map(|ended| {
                let wanted = decided(policy, ended, None, &fast, 1);
                assert_eq!(wanted.len(), 1);
                fast = [wanted[0] == 0, wanted[0] == 1];
                wanted[0]
            })
            .collect()
    }

    #[test]
    fn a_swap_that_does_not_pay_within_the_horizon_is_not_made() {
        // Two moves take 4 us; eight epochs of 3 accesses more save 3.6 us, of 4 more 4.8 us.
        assert_eq!(follows(&mut payback(), &[[10, 13]]), [0]);
        assert_eq!(follows(&mut payback(), &[[10, 14]]), [1]);
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
        // A scan over eight pages, one an epoch; page 0 is fast. History would move every epoch.
        let mut policy = payback();
        let mut fast = [false; 8];
        fast[0] = true;
        let mut moves = 0;
        for epoch in 0..64 {
            let mut ended = [0; 8];
            ended[epoch % 8] = 100;
            let wanted = decided(&mut policy, &ended, None, &fast, 1);
            moves += usize::from(!fast[wanted[0] as usize]);
            fast.fill(false);
            fast[wanted[0] as usize] = true;
        }
        assert!(moves <= 2, "{moves} moves");
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
