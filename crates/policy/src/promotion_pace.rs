//! [`PromotionControl`] computes the settings of the kernel's own promotion (NUMA balancing), which the daemon writes, from epoch to epoch,
//! by the share of slow accesses, the bytes that moved and the hint faults: the scan period of slow memory, the limit of the rate, and the
//! hot threshold, which is the time within which an unmapped page must be touched to be promoted.
//!
//! The kernel unmaps slow memory in rounds and promotes a page that is touched within the *hot threshold*. It ranks nothing: a threshold
//! that is too long promotes pages that a scan passes, one that is too short misses hot pages, and the right one depends on the program.
//! Two figures of each epoch show which it is:
//!
//! | slow share of the accesses | promoted and demoted | it is | answer |
//! |---|---|---|---|
//! | high | little | hungry: too short | twice the threshold, twice the rate, twice as many rounds |
//! | high | much promoted, little demoted | still filling | twice as many rounds |
//! | high | much both ways | thrashing: too long | half the threshold, half the rate, half as many rounds |
//! | high, and was low | any | a new phase | the first threshold and the shortest period; until the fast tier was exchanged once, nothing is thrashing |
//! | low | any | settled | half as many rounds, down to one in 400 ms |
//!
//! The cost of the rounds bounds all this: each unmapped page that is touched is a fault of the program. If the faults of an epoch that
//! promote nothing exceed the budget, the period is four times as long. A fault that promotes is the price of the move, which the rate
//! limits: it must not slow the rounds down while a new phase is being promoted.
//!
//! The kernel's clock ticks every few milliseconds, so it cannot distinguish pages that are touched more often than that. For these the
//! rate decides: the kernel moves little, and the daemon's own ranks do the rest.
//!
//! As shipped, the kernel has a threshold of a second and unmaps 256 MiB at a time, at most once a second and at least once a minute.

use isotherm_model::units::{Bytes, Nanos, portion};

use crate::PAGE;

/// The settings of the kernel's promotion that follow the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromotionPace {
    /// Milliseconds between two parts of a round.
    pub period_ms: u64,
    /// Milliseconds within which a page must be touched to be hot.
    pub threshold_ms: u64,
    /// The limit of promotion is the configured rate over this: 1, 2, 4 ... 64.
    pub rate_divisor: u64,
}

/// Shortest and longest period: the kernel itself allows no shorter one for 256 MiB at a time, and with the longest a new phase is still
/// detected within two seconds.
const PERIODS_MS: [u64; 2] = [100, 1_600];

/// Longest period for settled programs: a thread adopts a shorter period only after the round for which it waits, so this time is lost in a
/// new phase. Longer periods are for rounds that cost too much, or that promote too much.
const SETTLED_MS: u64 = 400;

/// Shortest and longest threshold: a tick of the kernel's clock, and the default of the kernel.
const THRESHOLDS_MS: [u64; 2] = [4, 1_000];

/// Largest divisor of the rate.
const DIVISOR: u64 = 64;

/// The first threshold: a page of 4 KiB that is touched ten times a second, or a huge page with a touch of each of its pages in a minute.
const FIRST_THRESHOLD_MS: u64 = 100;

/// Share of slow accesses from which an epoch is hungry or thrashing, and the rise that is a new phase, in thousandths.
const HIGH: u64 = 60;
const NEW_PHASE: u64 = 200;

/// Fewest samples by which a share is judged: epochs are added up until they have as many.
const SAMPLES: u64 = 12;

/// Bytes count as *much* from this part of the fast tier in a second, one in this number.
const MUCH: u64 = 16;

/// Time that one hint fault costs a program: a zap and a minor fault, 1.7 us measured, and as much for lost cache lines.
const FAULT: Nanos = Nanos(3_400);

/// The observations of the promotion in one epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromotionEpoch {
    /// Length of the epoch.
    pub span: Nanos,
    /// Accesses observed, by samples.
    pub accesses: u64,
    /// Accesses to slow memory.
    pub slow: u64,
    /// Hint faults of all programs.
    pub faults: u64,
    /// Bytes that the kernel promoted.
    pub promoted: Bytes,
    /// Bytes demoted, by the kernel and by others.
    pub demoted: Bytes,
    /// Bytes of the fast tier that programs may use.
    pub fast: Bytes,
    /// Time of programs that hint faults may take in a second, in millionths.
    pub budget_ppm: u64,
}

impl PromotionEpoch {
    /// The sum of both epochs.
    const fn and(self, other: &Self) -> Self {
        Self {
            span: Nanos(self.span.0.saturating_add(other.span.0)),
            accesses: self.accesses.saturating_add(other.accesses),
            slow: self.slow.saturating_add(other.slow),
            faults: self.faults.saturating_add(other.faults),
            promoted: Bytes(self.promoted.0.saturating_add(other.promoted.0)),
            demoted: Bytes(self.demoted.0.saturating_add(other.demoted.0)),
            fast: other.fast,
            budget_ppm: other.budget_ppm,
        }
    }
}

/// Follows the promotion from epoch to epoch.
#[derive(Clone, Copy, Debug)]
pub struct PromotionControl {
    pace: PromotionPace,
    /// Slow share when it was judged last, in thousandths.
    slow_before: Option<u64>,
    /// The sum of the epochs since then.
    sum: PromotionEpoch,
    /// Bytes promoted since the start or the last new phase.
    exchanged: Bytes,
}

impl Default for PromotionControl {
    fn default() -> Self {
        Self {
            pace: PromotionPace {
                period_ms: PERIODS_MS[0],
                threshold_ms: FIRST_THRESHOLD_MS,
                rate_divisor: 1,
            },
            slow_before: None,
            sum: PromotionEpoch::default(),
            exchanged: Bytes::ZERO,
        }
    }
}

impl PromotionControl {
    /// The pace now.
    #[must_use]
    pub const fn pace(&self) -> PromotionPace {
        self.pace
    }

    /// Follows an epoch; returns the pace of the next one.
    pub fn follow(&mut self, epoch: &PromotionEpoch) -> PromotionPace {
        self.sum = self.sum.and(epoch);
        if self.sum.accesses >= SAMPLES {
            let sum = std::mem::take(&mut self.sum);
            self.judge(&sum);
        }
        // Each factor is below 2^64, so that the products fit 128 bits.
        let idle = epoch.faults.saturating_sub(epoch.promoted.0 / PAGE);
        let cost = u128::from(idle) * u128::from(FAULT.0) * 1_000_000;
        if cost > u128::from(epoch.span.0) * u128::from(epoch.budget_ppm) {
            self.pace.period_ms = self.pace.period_ms.saturating_mul(4);
        }
        self.pace.period_ms = self.pace.period_ms.clamp(PERIODS_MS[0], PERIODS_MS[1]);
        self.pace.threshold_ms = self
            .pace
            .threshold_ms
            .clamp(THRESHOLDS_MS[0], THRESHOLDS_MS[1]);
        self.pace.rate_divisor = self.pace.rate_divisor.clamp(1, DIVISOR);
        self.pace
    }

    fn judge(&mut self, epoch: &PromotionEpoch) {
        let slow = epoch.slow.saturating_mul(1_000) / epoch.accesses.max(1);
        let before = self.slow_before.replace(slow).unwrap_or(slow);
        self.exchanged = Bytes(self.exchanged.0.saturating_add(epoch.promoted.0));
        let pace = &mut self.pace;
        if slow < HIGH {
            let rarer = pace.period_ms.saturating_mul(2).min(SETTLED_MS);
            pace.period_ms = pace.period_ms.max(rarer);
            return;
        }
        if slow >= before.saturating_add(NEW_PHASE) {
            *pace = Self::default().pace;
            self.exchanged = Bytes::ZERO;
            return;
        }
        let much = much(epoch);
        match (epoch.promoted >= much, epoch.demoted >= much) {
            (true, true) if self.exchanged > epoch.fast => {
                pace.threshold_ms /= 2;
                pace.period_ms = pace.period_ms.saturating_mul(2);
                pace.rate_divisor *= 2;
            }
            (false, _) => {
                pace.threshold_ms = pace.threshold_ms.saturating_mul(2);
                pace.period_ms /= 2;
                pace.rate_divisor /= 2;
            }
            (true, _) => pace.period_ms /= 2,
        }
    }
}

/// Bytes moved in an epoch that count as much for its fast tier.
fn much(epoch: &PromotionEpoch) -> Bytes {
    Bytes(portion(epoch.fast.0 / MUCH, epoch.span.0, 1_000_000_000).max(1))
}

#[cfg(test)]
mod tests {
    use super::{
        FIRST_THRESHOLD_MS, PAGE, PERIODS_MS, PromotionControl, PromotionEpoch, PromotionPace,
        SETTLED_MS, THRESHOLDS_MS,
    };
    use isotherm_model::units::{Bytes, Nanos};
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    /// An epoch of a second with 100 samples, of a fast tier of 160 MiB: 10 MiB are much.
    fn epoch(slow: u64, promoted: u64, demoted: u64) -> PromotionEpoch {
        PromotionEpoch {
            span: Nanos(1_000_000_000),
            accesses: 100,
            slow,
            faults: 10,
            promoted: Bytes(promoted * MIB),
            demoted: Bytes(demoted * MIB),
            fast: Bytes(160 * MIB),
            budget_ppm: 10_000,
        }
    }

    fn after(epochs: &[PromotionEpoch]) -> PromotionPace {
        let mut control = PromotionControl::default();
        epochs.iter().for_each(|epoch| {
            control.follow(epoch);
        });
        control.pace()
    }

    #[test]
    fn a_scan_that_is_promoted_and_demoted_shortens_the_threshold() {
        // The first 160 MiB fill the fast tier with what is hot now.
        let exchange = [epoch(40, 20, 20); 8];
        assert_eq!(after(&exchange), PromotionControl::default().pace());
        let pace = after(&[&exchange[..], &[epoch(40, 20, 20); 3]].concat());
        assert_eq!(pace.threshold_ms, FIRST_THRESHOLD_MS / 8);
        assert_eq!((pace.rate_divisor, pace.period_ms), (8, 8 * PERIODS_MS[0]));
        assert_eq!(
            after(&[epoch(40, 20, 20); 40]).threshold_ms,
            THRESHOLDS_MS[0]
        );
    }

    #[test]
    fn hot_memory_that_stays_slow_lengthens_the_threshold() {
        assert_eq!(
            after(&[epoch(50, 0, 0)]).threshold_ms,
            2 * FIRST_THRESHOLD_MS
        );
        assert_eq!(after(&[epoch(50, 0, 0); 40]).threshold_ms, THRESHOLDS_MS[1]);
        // While it is being promoted, nothing is wrong.
        assert_eq!(after(&[epoch(50, 20, 0)]).threshold_ms, FIRST_THRESHOLD_MS);
    }

    #[test]
    fn settled_programs_are_looked_at_less_often_and_a_new_phase_at_once() {
        let calm = [epoch(1, 0, 0); 9];
        assert_eq!(after(&calm).period_ms, SETTLED_MS);
        let mut epochs = calm.to_vec();
        epochs.push(epoch(80, 0, 0));
        let pace = after(&epochs);
        assert_eq!(pace, PromotionControl::default().pace());
    }

    #[test]
    fn faults_that_cost_more_than_the_budget_make_rounds_rarer() {
        // 10,000 faults take 34 ms of a second: 3.4 %.
        let expensive = PromotionEpoch {
            faults: 10_000,
            ..epoch(50, 20, 0)
        };
        assert!(after(&[expensive; 2]).period_ms > PERIODS_MS[0]);
        let allowed = PromotionEpoch {
            budget_ppm: 50_000,
            ..expensive
        };
        assert_eq!(after(&[allowed; 2]).period_ms, PERIODS_MS[0]);
    }

    #[test]
    fn faults_that_promote_are_the_price_of_the_move() {
        let all = PromotionEpoch {
            faults: 20 * MIB / PAGE,
            budget_ppm: 1_000,
            ..epoch(50, 20, 0)
        };
        assert_eq!(after(&[all; 2]).period_ms, PERIODS_MS[0]);
        let none = PromotionEpoch {
            promoted: Bytes(0),
            ..all
        };
        assert!(after(&[none]).period_ms > PERIODS_MS[0]);
    }

    #[test]
    fn few_samples_change_nothing_until_there_are_more() {
        let few = PromotionEpoch {
            accesses: 5,
            slow: 5,
            ..epoch(5, 0, 0)
        };
        assert_eq!(after(&[few; 2]), PromotionControl::default().pace());
        assert_eq!(after(&[few; 3]).threshold_ms, 2 * FIRST_THRESHOLD_MS);
    }

    proptest! {
        #[test]
        fn every_pace_is_within_its_limits(
            epochs in prop::collection::vec(
                (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>()), 1..40
            )
        ) {
            let mut control = PromotionControl::default();
            for (span, accesses, slow, faults, promoted, demoted, budget_ppm) in epochs {
                let pace = control.follow(&PromotionEpoch {
                    span: Nanos(span),
                    accesses,
                    slow,
                    faults,
                    promoted: Bytes(promoted),
                    demoted: Bytes(demoted),
                    fast: Bytes(span),
                    budget_ppm,
                });
                prop_assert!((PERIODS_MS[0]..=PERIODS_MS[1]).contains(&pace.period_ms));
                prop_assert!((THRESHOLDS_MS[0]..=THRESHOLDS_MS[1]).contains(&pace.threshold_ms));
                prop_assert!((1..=64).contains(&pace.rate_divisor));
            }
        }
    }
}
