//! When the timer of samples takes another rate: a change opens all events anew, so small ones and frequent ones are not made.

/// A rate stays while the wanted one differs by no more than one part in this number.
const FITS: u32 = 4;

/// Seconds for which a rate stays.
const STAYS: u32 = 8;

/// The same of a rate that is half or twice as high as the wanted one: the first prices of a sample, of a program that starts, are often far off.
const FAR_STAYS: u32 = 2;

/// The seconds since the rate was changed.
#[derive(Clone, Copy, Debug)]
pub(super) struct RateChange {
    since: u32,
}

impl Default for RateChange {
    /// The first change is due at once.
    fn default() -> Self {
        Self { since: STAYS }
    }
}

impl RateChange {
    /// Counts a second. True where the wanted rate takes the place of this one now.
    pub(super) const fn is_due(&mut self, hz: u32, wanted: u32) -> bool {
        self.since = self.since.saturating_add(1);
        let is_near = wanted.abs_diff(hz) <= hz / FITS;
        let is_far = wanted / 2 >= hz || hz / 2 >= wanted;
        let is_due = !is_near && self.since >= if is_far { FAR_STAYS } else { STAYS };
        if is_due {
            self.since = 0;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::RateChange;

    #[test]
    fn a_rate_that_is_near_stays_and_one_that_is_far_off_does_not_stay_long() {
        let mut change = RateChange::default();
        assert!(!change.is_due(100, 125) && !change.is_due(100, 75));
        assert!(change.is_due(100, 150), "the first one");
        let due = |change: &mut RateChange, wanted| (1..20).find(|_| change.is_due(100, wanted));
        assert_eq!(due(&mut change, 150), Some(8));
        assert_eq!(due(&mut change, 200), Some(2));
        assert_eq!(due(&mut change, 50), Some(2));
        assert_eq!(due(&mut change, 110), None);
    }
}
