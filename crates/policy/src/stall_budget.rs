//! [`StallBudget`] is an account of the time that a program may yet lose to memory that is paged out. Each epoch adds a share of its time
//! and subtracts the time for which the program waited for pages that came back; once it is empty, only what exceeds a memory limit leaves.
//! It also estimates the share of the units that leave which will soon return.
//!
//! Memory that leaves now may come back soon, so a unit that leaves is charged with the time of its return times the share of units that
//! lately returned soon.
//!
//! ```text
//! share 2 %, epoch 100 ms        adds 2 ms
//! 200 pages came back, 8 us each takes 1.6 ms
//! balance                        20.4 ms
//! a unit of 512 pages            4.1 ms if it returns; 1 of 10 lately did: charged 0.41 ms; 49 units may leave
//! ```

use isotherm_model::units::Nanos;

/// Time whose share an account has at its start: what a run of a second may lose.
const CREDIT_SECONDS: f64 = 1.0;
/// Time whose share an account holds at most, so that a long quiet time is not followed by a long slow one.
const SAVED_SECONDS_AT_MOST: f64 = 5.0;
/// Units that left, and of these units that returned soon, as assumed at the start.
const ASSUMED: (f64, f64) = (10.0, 1.0);
/// The least share of soon returns that is expected: however few returned, a change of phase can bring all units back.
const LEAST_RISK: f64 = 0.01;
/// Factor by which earlier counts are multiplied in each epoch.
const REMEMBERED: f64 = 0.98;

/// The account of one program, or of all that share a budget.
#[derive(Clone, Debug, PartialEq)]
pub struct StallBudget {
    /// Share of the time that may be lost, above 0; at 1 and above all time may be lost.
    share: f64,
    /// Balance in nanoseconds.
    saved: f64,
    /// Units that left, and of these units that returned soon; old ones count less.
    left: f64,
    returned: f64,
}

impl StallBudget {
    /// An account with the credit of a second.
    #[must_use]
    pub fn new(share: f64) -> Self {
        Self {
            share,
            saved: share * CREDIT_SECONDS * 1e9,
            left: 0.0,
            returned: 0.0,
        }
    }

    /// True where any loss is accepted.
    #[must_use]
    pub fn is_unlimited(&self) -> bool {
        self.share >= 1.0
    }

    /// Ends an epoch of this length, in which the program waited for this time.
    pub fn spend(&mut self, span: Nanos, stalled: Nanos) {
        let most = self.share * SAVED_SECONDS_AT_MOST * 1e9;
        // Debts are kept in full: they are repaid by time in which nothing leaves.
        self.saved = (self.saved + self.share * span.0 as f64 - stalled.0 as f64).min(most);
        self.left *= REMEMBERED;
        self.returned *= REMEMBERED;
    }

    /// Records units that left, and units that returned so soon that it was a mistake.
    pub fn learn(&mut self, left: u64, returned: u64) {
        self.left += left as f64;
        self.returned += returned as f64;
    }

    /// Share of the units that leave now that are expected to return soon.
    #[must_use]
    pub fn risk(&self) -> f64 {
        let (left, returned) = ASSUMED;
        ((self.returned + returned) / (self.left + left)).clamp(LEAST_RISK, 1.0)
    }

    /// Time that may yet be lost: zero in debt, and the maximum where any loss is accepted.
    #[must_use]
    pub fn available(&self) -> Nanos {
        if self.is_unlimited() {
            return Nanos(u64::MAX);
        }
        // The cast saturates at zero.
        Nanos(self.saved as u64)
    }

    /// True where the program has waited longer than it may.
    #[must_use]
    pub fn is_overdrawn(&self) -> bool {
        !self.is_unlimited() && self.saved < 0.0
    }
}

#[cfg(test)]
mod tests {
    use isotherm_model::units::Nanos;
    use proptest::prelude::*;

    use super::StallBudget;

    const EPOCH: Nanos = Nanos(100_000_000);
    const BACK: Nanos = Nanos(4_096_000);

    /// Units that may leave, as long as each takes `BACK` to come back as a whole.
    fn units(budget: &StallBudget) -> u64 {
        (budget.available().0 as f64 / (budget.risk() * BACK.0 as f64)) as u64
    }

    #[test]
    fn an_account_begins_with_the_share_of_a_second_and_a_debt_allows_nothing() {
        let mut budget = StallBudget::new(0.02);
        assert_eq!(units(&budget), 48, "20 ms, of which one takes 0.41");
        budget.spend(EPOCH, Nanos(30_000_000));
        assert_eq!(units(&budget), 0);
        assert!(budget.is_overdrawn());
        for _ in 0..4 {
            budget.spend(EPOCH, Nanos::ZERO);
        }
        assert!(!budget.is_overdrawn(), "8 ms debt, 2 ms an epoch");
    }

    #[test]
    fn mistakes_make_what_leaves_next_expensive_and_are_forgotten() {
        let mut budget = StallBudget::new(0.02);
        let before = units(&budget);
        budget.learn(20, 20);
        assert!(units(&budget) * 6 < before, "{}", budget.risk());
        for _ in 0..300 {
            budget.spend(EPOCH, Nanos::ZERO);
        }
        assert!((budget.risk() - 0.1).abs() < 0.01);
        budget.learn(1000, 0);
        assert!(budget.risk() <= 0.01);
    }

    #[test]
    fn a_share_of_everything_is_no_limit() {
        let mut budget = StallBudget::new(1.0);
        budget.spend(EPOCH, Nanos(u64::MAX));
        assert_eq!(budget.available(), Nanos(u64::MAX));
        assert!(!budget.is_overdrawn());
    }

    proptest! {
        /// Whatever returns: what leaves is charged, so the loss stays within the share of the time, the credit, and one round of units
        /// that all return although few were expected to.
        #[test]
        fn the_loss_keeps_to_the_share(
            share in 0.005_f64..0.2,
            returns in proptest::collection::vec(0.0_f64..=1.0, 100..400),
        ) {
            let mut budget = StallBudget::new(share);
            let (mut lost, mut worst, mut out) = (0.0, 0.0_f64, 0_u64);
            let epochs = returns.len() as f64;
            for part in returns {
                let returned = (out as f64 * part) as u64;
                out -= returned;
                let stalled = returned * BACK.0;
                lost += stalled as f64;
                budget.learn(0, returned);
                budget.spend(EPOCH, Nanos(stalled));
                let leaves = if budget.is_overdrawn() { 0 } else { units(&budget) };
                budget.learn(leaves, 0);
                out += leaves;
                worst = worst.max((out * BACK.0) as f64);
            }
            let allowed = share * (epochs * EPOCH.0 as f64 + 1e9) + worst;
            prop_assert!(lost <= allowed, "{} of {}", lost, allowed);
        }
    }
}
