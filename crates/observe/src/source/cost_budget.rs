//! [`CostBudget`] keeps a source within its budget, a share of one processor's time: a source that costs more is slowed, down to a 64th of
//! its speed. [`rest_after`] gives the pause and [`affordable_hz`] the sample rate that keep to a budget.
//!
//! A source has an *interval*: 1 at full speed, 2 at half, and so on. After each epoch its cost is
//! compared with its part of the budget. An excess slows it at once; it speeds up only when it uses
//! less than a third of its part, so that twice its speed keeps to the budget and it does not oscillate.
//!
//! The cost of samples to the programs is not part of the source's own cost: it limits the sample
//! rate.

use isotherm_model::units::Nanos;

/// The largest interval: a source that is too expensive even at a 64th of its speed stays there.
const SLOWEST: u32 = 64;

/// The interval of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostBudget {
    interval: u32,
    /// Epochs in which the source could run, since it last ran.
    turn: u32,
    /// Part of one processor's time that the source may use, in millionths.
    budget_ppm: u64,
    spent: Nanos,
    /// Part of one processor's time that it used in the last span, in millionths.
    used_ppm: u64,
}

impl CostBudget {
    /// Full speed, with this many millionths of one processor's time (10,000 are 1 %).
    #[must_use]
    pub const fn new(budget_ppm: u64) -> Self {
        Self {
            interval: 1,
            turn: 0,
            budget_ppm,
            spent: Nanos::ZERO,
            used_ppm: 0,
        }
    }

    /// 1 for full speed, 2 for half, up to 64.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.interval
    }

    /// Counts an epoch in which the source could run. Where it is due, returns the number of epochs
    /// that the run stands for, at least 1.
    pub fn due(&mut self) -> Option<u32> {
        self.turn += 1;
        (self.turn >= self.interval).then(|| std::mem::take(&mut self.turn))
    }

    /// True if `runs` runs of the source would keep to the budget, at their cost in the last span, in which it ran `ran` times.
    #[must_use]
    pub fn affords(self, runs: u32, ran: u32) -> bool {
        let each = self.used_ppm / u64::from(ran.max(1));
        each.saturating_mul(runs.into()) <= self.budget_ppm
    }

    /// Changes the budget.
    pub const fn set(&mut self, budget_ppm: u64) {
        self.budget_ppm = budget_ppm;
    }

    /// Takes the total cost of the source, and the length of the last part. Returns true where the
    /// interval changed.
    pub fn learn(&mut self, spent: Nanos, span: Nanos) -> bool {
        let used = spent.saturating_sub(std::mem::replace(&mut self.spent, spent));
        // Parts per million of a span: both factors are below 2^64, so the product fits 128 bits.
        let allowed = u128::from(span.0) * u128::from(self.budget_ppm) / 1_000_000;
        let used_ppm = u128::from(used.0) * 1_000_000 / u128::from(span.0.max(1));
        self.used_ppm = u64::try_from(used_ppm).unwrap_or(u64::MAX);
        let before = self.interval;
        if u128::from(used.0) > allowed {
            self.interval = (self.interval * 2).min(SLOWEST);
        } else if u128::from(used.0) * 3 < allowed {
            self.interval = (self.interval / 2).max(1);
        }
        self.interval != before
    }
}

/// The time for which work of this cost rests, so that it takes at most this many millionths of the time.
#[must_use]
pub fn rest_after(cost: Nanos, budget_ppm: u64) -> Nanos {
    let rest = u128::from(cost.0) * 1_000_000 / u128::from(budget_ppm.max(1));
    Nanos(u64::try_from(rest).unwrap_or(u64::MAX))
}

/// Samples a second that take at most this many millionths of a processor's time where each takes `price`;
/// at least 1. An unknown price, or one too small to measure, sets no limit.
#[must_use]
pub fn affordable_hz(budget_ppm: u64, price: Option<Nanos>) -> u32 {
    let nanos_a_second = budget_ppm.saturating_mul(1_000);
    let samples = price.and_then(|price| nanos_a_second.checked_div(price.0));
    samples.map_or(u32::MAX, |samples| {
        u32::try_from(samples).unwrap_or(u32::MAX).max(1)
    })
}

#[cfg(test)]
mod tests {
    use super::{CostBudget, affordable_hz, rest_after};
    use isotherm_model::units::Nanos;

    #[test]
    fn a_dear_source_is_slowed_at_once_and_let_on_only_well_below_the_budget() {
        let second = Nanos(1_000_000_000);
        let mut interval = CostBudget::new(10_000);
        assert!(!interval.learn(Nanos(10_000_000), second), "just 1 %");
        assert!(interval.learn(Nanos(30_000_000), second), "2 %");
        assert_eq!(interval.get(), 2);
        assert!(
            !interval.learn(Nanos(38_000_000), second),
            "0.8 %: as it is"
        );
        assert!(interval.learn(Nanos(40_000_000), second), "0.2 %");
        assert_eq!(interval.get(), 1);
        for _ in 0..20 {
            interval.learn(Nanos(u64::MAX), Nanos(1));
            interval.spent = Nanos::ZERO;
        }
        assert_eq!(interval.get(), 64);
    }

    #[test]
    fn more_runs_are_affordable_where_their_cost_together_is() {
        let mut budget = CostBudget::new(10_000);
        budget.learn(Nanos(3_000_000), Nanos(1_000_000_000));
        assert!(budget.affords(3, 1) && !budget.affords(4, 1));
        assert!(budget.affords(4, 2), "two runs took this");
    }

    #[test]
    fn work_rests_until_it_keeps_to_its_share() {
        assert_eq!(rest_after(Nanos(1_000_000), 20_000), Nanos(50_000_000));
        assert_eq!(rest_after(Nanos(u64::MAX), 1), Nanos(u64::MAX));
        assert_eq!(rest_after(Nanos(7), 0), Nanos(7_000_000));
    }

    #[test]
    fn samples_cost_what_may_be_spent_and_there_is_always_one() {
        let affordable = |budget, price| affordable_hz(budget, Some(Nanos(price)));
        assert_eq!(affordable(10_000, 20_000), 500);
        assert_eq!(affordable(10_000, 1), 10_000_000);
        assert_eq!(affordable(0, 20_000), 1);
        assert_eq!(affordable(10_000, 0), u32::MAX);
        assert_eq!(affordable(u64::MAX, 1), u32::MAX);
        assert_eq!(affordable_hz(10_000, None), u32::MAX);
    }

    #[test]
    fn a_source_at_a_quarter_of_its_speed_is_due_in_every_fourth_epoch() {
        let mut interval = CostBudget::new(1);
        let due = |interval: &mut CostBudget| (0..8).map(|_| interval.due()).collect::<Vec<_>>();
        assert_eq!(due(&mut interval), [Some(1); 8]);
        interval.learn(Nanos(1000), Nanos(1));
        interval.learn(Nanos(2000), Nanos(1));
        let quarter = [None, None, None, Some(4)];
        assert_eq!(due(&mut interval), [quarter, quarter].concat());
    }
}
