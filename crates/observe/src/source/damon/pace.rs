//! `Pace` decides for the two sources of DAMON when regions are read and how fast the kernel's threads (kdamonds) check them, by the cost
//! of both.

use isotherm_model::units::Nanos;

use crate::source::cost_budget::CostBudget;

/// The pace of a source with a reader thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    interval: CostBudget,
    /// `is_due` was called in this epoch.
    asked: bool,
    /// Time since the last turn, against which the cost is compared.
    span: Nanos,
    /// A reading is due in this epoch.
    due: bool,
}

impl Pace {
    /// Full speed, with this many millionths of one processor's time.
    pub(super) const fn new(budget_ppm: u64) -> Self {
        Self {
            interval: CostBudget::new(budget_ppm),
            asked: false,
            span: Nanos::ZERO,
            due: false,
        }
    }

    /// The slowdown against full speed: 1 is full speed.
    pub(super) const fn interval(&self) -> u32 {
        self.interval.get()
    }

    /// Changes the budget.
    pub(super) const fn set_budget(&mut self, budget_ppm: u64) {
        self.interval.set(budget_ppm);
    }

    /// True once in each epoch in which a reading is due: every n-th epoch at a slowdown of n.
    pub(super) fn is_due(&mut self) -> bool {
        if std::mem::replace(&mut self.asked, true) {
            return false;
        }
        self.due = self.interval.due().is_some();
        self.due
    }

    /// Ends an epoch of this length. If a reading was due in it, the interval adapts to the total cost; the result is
    /// the new interval if it changed.
    pub(super) fn end_epoch(&mut self, cost: Nanos, span: Nanos) -> Option<u32> {
        self.asked = false;
        self.span += span;
        if !std::mem::take(&mut self.due) {
            return None;
        }
        let span = std::mem::replace(&mut self.span, Nanos::ZERO);
        self.interval.learn(cost, span).then(|| self.interval.get())
    }
}

#[cfg(test)]
mod tests {
    use super::Pace;
    use isotherm_model::units::Nanos;

    const SECOND: Nanos = Nanos(1_000_000_000);

    #[test]
    fn a_source_at_half_speed_is_due_once_in_two_epochs_and_learns_by_both() {
        let mut pace = Pace::new(10_000);
        assert!(pace.is_due() && !pace.is_due(), "once an epoch");
        assert_eq!(pace.end_epoch(Nanos(30_000_000), SECOND), Some(2));
        assert!(!pace.is_due());
        assert_eq!(pace.end_epoch(Nanos(48_000_000), SECOND), None);
        assert!(pace.is_due());
        // 18 ms in two seconds are 0.9 %.
        assert_eq!(pace.end_epoch(Nanos(48_000_000), SECOND), None);
        assert_eq!(pace.interval(), 2);
    }
}
