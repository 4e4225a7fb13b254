//! `RateChange` decides when the wanted sampling rate of the daemon's timer takes the place of the present one. Each change reopens all
//! perf events, so a rate near the wanted one is kept, and a new rate stays for some seconds.

/// A rate is kept while the wanted rate differs from it by at most `1 / FITS` of it.
const FITS: u32 = 4;

/// Seconds for which a rate stays.
const STAYS: u32 = 8;

/// Seconds for which a rate stays that is at most half or at least twice the wanted one: the first measured costs of a sample, in a program
/// that starts, are often far off.
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
