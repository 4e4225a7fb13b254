//! `CountReading` is a reading of an event's count; `since` scales the count since an earlier one up for time without a counter.
//!
//! ```text
//! enabled  |=====|=====|=====|      time in which the event was to count
//! ran      |==   |=====|     |      time in which it had a counter
//!           x 5/2   x 1   error     each interval is scaled by its own times
//! ```
//!
//! Scaling the whole count by the whole times would change what earlier intervals counted, so that the result could fall.

/// The kernel's numbers of an event since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CountReading {
    /// The count.
    pub count: u64,
    /// Nanoseconds in which it was to be counted.
    pub enabled: u64,
    /// Nanoseconds in which it was counted.
    pub ran: u64,
}

impl CountReading {
    /// What was counted since an earlier reading, as if the event had had a counter all the time; `None` where it had none.
    pub(super) fn since(self, earlier: Self) -> Option<u64> {
        let count = self.count.saturating_sub(earlier.count);
        let enabled = self.enabled.saturating_sub(earlier.enabled);
        let ran = self.ran.saturating_sub(earlier.ran);
        match (enabled, ran) {
            (0, _) => Some(count),
            (_, 0) => None,
            (enabled, ran) if ran >= enabled => Some(count),
            (enabled, ran) => {
                let all = u128::from(count) * u128::from(enabled) / u128::from(ran);
                Some(u64::try_from(all).unwrap_or(u64::MAX))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::CountReading;

    fn reading(count: u64, enabled: u64, ran: u64) -> CountReading {
        CountReading {
            count,
            enabled,
            ran,
        }
    }

    #[test]
    fn a_counter_that_others_had_for_a_while_counts_for_the_whole_time() {
        let from_start =
            |count, enabled, ran| reading(count, enabled, ran).since(CountReading::default());
        assert_eq!(from_start(7, 0, 0), Some(7));
        assert_eq!(from_start(7, 10, 10), Some(7));
        assert_eq!(from_start(7, 30, 10), Some(21));
        assert_eq!(from_start(u64::MAX, 30, 10), Some(u64::MAX));
        assert_eq!(from_start(0, 10, 0), None, "it never ran");
    }

    #[test]
    fn an_interval_is_scaled_by_its_own_times() {
        // The first half had the counter for a tenth of the time. Scaled as a whole, 1,000 would become 183.
        let half = reading(100, 1_000, 100);
        assert_eq!(half.since(CountReading::default()), Some(1_000));
        assert_eq!(reading(101, 2_000, 1_100).since(half), Some(1));
        assert_eq!(reading(105, 2_000, 350).since(half), Some(20));
        assert_eq!(reading(100, 2_000, 100).since(half), None, "others had it");
    }
}
