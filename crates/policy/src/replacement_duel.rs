//! [`ReplacementDuel`] chooses the order in which memory is paged out under a memory limit without a stall budget: the kernel's (least
//! recently used), or that of measured reuse. If the program waits long for pages that come back, the other order is tried for three
//! windows of 250 ms, and kept if it then waits more than a tenth less for its work: set dueling (Qureshi et al., Adaptive Insertion
//! Policies, ISCA 2007), but one order after the other in time.
//!
//! To page out the least recently used pages is right for most programs, and the kernel knows them by the page. For a scan of more than
//! fits it is the worst order: each page leaves just before it is needed. No measure of one order shows the cost of the other.
//!
//! ```text
//! lost    24 %   25 %   26 %   25 %  |  40 %   31 %   9 %  9 %   8 %
//! order   kernel ................... |  reuse: tried, kept ....
//!                eight windows       |  not counted at first: memory changes places
//! ```

use std::collections::VecDeque;

use isotherm_model::units::Nanos;

/// Time over which a loss is measured.
const WINDOW: Nanos = Nanos(250_000_000);
/// The other order is tried if the program waits for this share of its time, for this number of windows: a change of phase or a garbage
/// collection takes less. By the kernel's order, which costs this process least, in each window; by reuse on average.
const LEAST_LOSS: f64 = 0.05;
const WINDOWS: usize = 8;
/// Windows after a change of the order that do not count: memory changes places.
const CHANGES: u32 = 2;
/// Waiting for a piece of work by the other order over that by the present one, up to which the other one is kept.
const BETTER: f64 = 0.9;
/// Windows after a trial until the next one; doubled after each further trial, up to this number of doublings.
const NEXT_TRIAL: u32 = 8;
const DOUBLED_AT_MOST: u32 = 5;
/// Growth of the loss after a trial that makes its result worthless: the program now does something else.
const CHANGED: f64 = 2.0;

/// The order in which memory leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplacementOrder {
    /// The kernel's order: the least recently used pages leave first.
    LeastRecent,
    /// Units whose pages are not needed for the longest time leave first, by measured reuse.
    #[default]
    Reuse,
}

impl ReplacementOrder {
    const fn other(self) -> Self {
        match self {
            Self::LeastRecent => Self::Reuse,
            Self::Reuse => Self::LeastRecent,
        }
    }
}

/// The work and the waiting of a program in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramTime {
    /// The length of the span.
    pub span: Nanos,
    /// Processor time of its own code, of all its threads.
    pub worked: Nanos,
    /// Time for which its threads waited for pages that came back.
    pub waited: Nanos,
}

impl ProgramTime {
    fn add(&mut self, other: Self) {
        self.span = self.span.saturating_add(other.span);
        self.worked = self.worked.saturating_add(other.worked);
        self.waited = self.waited.saturating_add(other.waited);
    }

    /// The share of its time for which the program waited, from 0 to 1: of its threads' time, so a program that rests loses nothing.
    fn loss(&self) -> f64 {
        let all = self.worked.saturating_add(self.waited);
        self.waited.0 as f64 / all.0.max(1) as f64
    }
}

/// The state of the present order.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// The order is kept.
    Settled,
    /// The order has just replaced an order with this loss. This number of windows is still ignored, because the program now waits for the
    /// change itself.
    Changing(f64, u32),
    /// The order is measured against that loss.
    Trial(f64),
}

/// The present order, and the losses so far.
#[derive(Clone, Debug)]
pub struct ReplacementDuel {
    order: ReplacementOrder,
    phase: Phase,
    window: ProgramTime,
    /// The losses of the last windows.
    losses: VecDeque<f64>,
    /// Windows until the next trial may begin.
    rests: u32,
    trials: u32,
    /// The loss of the order that the last trial chose.
    chosen: f64,
}

impl Default for ReplacementDuel {
    fn default() -> Self {
        Self {
            order: ReplacementOrder::LeastRecent,
            phase: Phase::Settled,
            window: ProgramTime::default(),
            losses: VecDeque::new(),
            rests: 0,
            trials: 0,
            chosen: 1.0,
        }
    }
}

impl ReplacementDuel {
    /// The present order.
    #[must_use]
    pub const fn order(&self) -> ReplacementOrder {
        self.order
    }

    /// True while an order is tried.
    #[must_use]
    pub const fn is_trial(&self) -> bool {
        !matches!(self.phase, Phase::Settled)
    }

    /// Adds the time since the last call; returns the order from now on.
    pub fn follow(&mut self, time: ProgramTime) -> ReplacementOrder {
        self.window.add(time);
        if self.window.span >= WINDOW {
            let loss = std::mem::take(&mut self.window).loss();
            self.end_window(loss);
        }
        self.order
    }

    fn end_window(&mut self, loss: f64) {
        match self.phase {
            Phase::Changing(before, 1) => self.phase = Phase::Trial(before),
            Phase::Changing(before, left) => self.phase = Phase::Changing(before, left - 1),
            Phase::Trial(before) => self.end_trial(loss, before),
            Phase::Settled => self.settled(loss),
        }
    }

    fn settled(&mut self, loss: f64) {
        if self.trials > 0 && loss > self.chosen * CHANGED {
            (self.trials, self.rests) = (0, 0);
        }
        self.rests = self.rests.saturating_sub(1);
        if self.losses.len() == WINDOWS {
            self.losses.pop_front();
        }
        self.losses.push_back(loss);
        let sum: f64 = self.losses.iter().sum();
        let mean = sum / self.losses.len() as f64;
        let is_lossy = match self.order {
            ReplacementOrder::LeastRecent => self.losses.iter().all(|loss| *loss >= LEAST_LOSS),
            ReplacementOrder::Reuse => mean >= LEAST_LOSS,
        };
        if is_lossy && self.losses.len() == WINDOWS && self.rests == 0 {
            self.losses.clear();
            self.order = self.order.other();
            self.phase = Phase::Changing(mean, CHANGES);
        }
    }

    fn end_trial(&mut self, loss: f64, before: f64) {
        let is_better = for_work(loss) < for_work(before) * BETTER;
        if !is_better {
            self.order = self.order.other();
        }
        self.chosen = if is_better { loss } else { before };
        self.rests = NEXT_TRIAL << self.trials.min(DOUBLED_AT_MOST);
        self.trials = self.trials.saturating_add(1);
        self.phase = Phase::Settled;
    }
}

/// The time waited for a unit of time worked.
fn for_work(loss: f64) -> f64 {
    loss / (1.0 - loss).max(f64::EPSILON)
}

#[cfg(test)]
mod tests {
    use isotherm_model::units::Nanos;
    use proptest::prelude::*;

    use super::{
        CHANGES, NEXT_TRIAL, ProgramTime, ReplacementDuel, ReplacementOrder, WINDOW, WINDOWS,
    };

    /// Windows until the first trial.
    const FIRST: u32 = WINDOWS as u32;

    /// A window of one thread, with this share of it waited.
    fn window(loss: f64) -> ProgramTime {
        let waited = (loss * WINDOW.0 as f64) as u64;
        ProgramTime {
            span: WINDOW,
            worked: Nanos(WINDOW.0 - waited),
            waited: Nanos(waited),
        }
    }

    /// The windows of each order, of a program with these losses by the kernel's order and by reuse.
    fn run(duel: &mut ReplacementDuel, windows: u32, (kernel, reuse): (f64, f64)) -> (u32, u32) {
        let mut counts = (0, 0);
        for _ in 0..windows {
            let loss = match duel.order() {
                ReplacementOrder::LeastRecent => kernel,
                ReplacementOrder::Reuse => reuse,
            };
            match duel.follow(window(loss)) {
                ReplacementOrder::LeastRecent => counts.0 += 1,
                ReplacementOrder::Reuse => counts.1 += 1,
            }
        }
        counts
    }

    #[test]
    fn a_program_that_hardly_waits_keeps_the_kernels_order() {
        let mut duel = ReplacementDuel::default();
        assert_eq!(run(&mut duel, 100, (0.04, 0.0)), (100, 0));
        let resting = ProgramTime {
            span: WINDOW,
            ..ProgramTime::default()
        };
        assert_eq!(duel.follow(resting), ReplacementOrder::LeastRecent);
    }

    #[test]
    fn the_better_order_is_found_after_some_windows_and_kept() {
        let mut duel = ReplacementDuel::default();
        assert_eq!(run(&mut duel, FIRST - 1, (0.5, 0.04)), (FIRST - 1, 0));
        assert_eq!(run(&mut duel, 100, (0.5, 0.04)), (0, 100));
    }

    #[test]
    fn bursts_of_waiting_change_no_order() {
        let mut duel = ReplacementDuel::default();
        for _ in 0..20 {
            assert_eq!(run(&mut duel, FIRST - 1, (0.6, 0.0)).1, 0);
            assert_eq!(run(&mut duel, 1, (0.01, 0.0)).1, 0);
        }
    }

    #[test]
    fn a_worse_order_is_tried_for_some_windows_and_ever_more_rarely() {
        let mut duel = ReplacementDuel::default();
        let (_, first) = run(&mut duel, FIRST + NEXT_TRIAL, (0.2, 0.5));
        assert_eq!(first, CHANGES + 1);
        let (kernel, reuse) = run(&mut duel, 400, (0.2, 0.5));
        assert!(reuse <= 6 * (CHANGES + 1), "{kernel} {reuse}");
    }

    #[test]
    fn an_order_that_was_better_for_a_while_is_left_again() {
        let mut duel = ReplacementDuel::default();
        run(&mut duel, FIRST + CHANGES + 1, (0.4, 0.2));
        assert_eq!(duel.order(), ReplacementOrder::Reuse);
        run(&mut duel, 2 * FIRST + CHANGES + 1, (0.0, 0.2));
        assert_eq!(duel.order(), ReplacementOrder::LeastRecent);
    }

    #[test]
    fn a_program_that_loses_twice_as_much_is_tried_again_at_once() {
        let mut duel = ReplacementDuel::default();
        run(&mut duel, FIRST + CHANGES + 1, (0.2, 0.5));
        assert_eq!(duel.order(), ReplacementOrder::LeastRecent);
        run(&mut duel, FIRST + CHANGES + 1, (0.6, 0.3));
        assert_eq!(duel.order(), ReplacementOrder::Reuse);
    }

    proptest! {
        /// Whatever both orders cost: a long run loses little more than by the better of them.
        #[test]
        fn the_loss_is_near_that_of_the_better_order(kernel in 0.0_f64..1.0, reuse in 0.0_f64..1.0) {
            let mut duel = ReplacementDuel::default();
            let (by_kernel, by_reuse) = run(&mut duel, 400, (kernel, reuse));
            let lost = f64::from(by_kernel) * kernel + f64::from(by_reuse) * reuse;
            let least = 400.0 * kernel.min(reuse).max(super::LEAST_LOSS);
            prop_assert!(lost <= least / super::BETTER + 20.0, "{} of {}", lost, least);
        }
    }
}
