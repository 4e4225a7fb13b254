//! [`SlowSurge`] detects a surge of accesses to slow memory, a share of the samples that exceeds that of earlier epochs by more than
//! chance: evidence of a new phase, at which the daemon ends an epoch early.
//!
//! In a surge, other data is hot now and is slow, and time is lost until the next decision.
//!
//! ```text
//! earlier epochs   2 of 30 samples slow
//! a quarter epoch  7 of 8 slow           0.5 expected, 1.2 the deviation: a surge
//! ```

use isotherm_model::watch::Placed;

/// Deviations of the number of slow samples beyond which it is not chance.
const SURPRISE: f64 = 4.0;

/// Least rise of the share: hot data that moves on slowly is followed from epoch to epoch.
const RISE: f64 = 0.25;

/// Fewest samples by which the share of earlier epochs is known.
const KNOWN: f64 = 8.0;

/// The share of slow samples in earlier epochs, each of which counts half as much as the one after it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SlowSurge {
    samples: f64,
    slow: f64,
}

impl SlowSurge {
    /// Adds an epoch that ended.
    pub fn follow(&mut self, epoch: Placed) {
        self.samples = self.samples / 2.0 + epoch.samples as f64;
        self.slow = self.slow / 2.0 + slow(epoch);
    }

    /// True where the samples since the last epoch show a surge.
    #[must_use]
    pub fn is_shown_by(&self, now: Placed) -> bool {
        if self.samples < KNOWN {
            return false;
        }
        let share = self.slow / self.samples;
        let samples = now.samples as f64;
        let rise = slow(now) - samples * share;
        // The variance of a number of samples by their share; one is added, so that few samples prove nothing.
        let deviation = (samples * share * (1.0 - share) + 1.0).sqrt();
        rise > SURPRISE * deviation && rise > RISE * samples
    }
}

fn slow(placed: Placed) -> f64 {
    placed.samples.saturating_sub(placed.fast) as f64
}

#[cfg(test)]
mod tests {
    use super::SlowSurge;
    use isotherm_model::watch::Placed;

    const fn placed(samples: u64, slow: u64) -> Placed {
        Placed {
            samples,
            fast: samples - slow,
        }
    }

    fn after(epochs: &[(u64, u64)]) -> SlowSurge {
        let mut surge = SlowSurge::default();
        for &(samples, slow) in epochs {
            surge.follow(placed(samples, slow));
        }
        surge
    }

    fn shows(surge: &SlowSurge, samples: u64, slow: u64) -> bool {
        surge.is_shown_by(placed(samples, slow))
    }

    #[test]
    fn a_few_slow_samples_in_a_row_are_a_surge_where_few_were_slow() {
        let settled = after(&[(30, 2), (30, 1), (30, 3)]);
        assert!(shows(&settled, 8, 7));
        assert!(shows(&settled, 300, 150));
        assert!(!shows(&settled, 8, 3), "chance");
        assert!(!shows(&settled, 4, 4), "too few");
        assert!(
            !shows(&settled, 1_000_000, 200_000),
            "no phase, by its size"
        );
        assert!(!shows(&settled, 0, 0));
    }

    #[test]
    fn what_was_slow_before_is_none_and_nothing_is_known_at_first() {
        assert!(!shows(&after(&[(30, 28)]), 30, 30));
        assert!(!shows(&after(&[]), 30, 30));
        assert!(!shows(&after(&[(4, 0)]), 30, 30));
        // The epoch that a surge ended is soon the rule.
        let surged = after(&[(30, 2), (8, 7), (8, 7), (30, 28)]);
        assert!(!shows(&surged, 30, 28));
    }
}
