//! Tiers of DRAM ranks, with the power states of each (Cross-Layer, section 3.2).
//!
//! A tier has as many whole ranks as its capacity requires. Its data fills as few of them as
//! possible; these share the accesses evenly, and the others sleep.
//!
//! ```text
//! capacity 20 GiB   | rank 0: 8 GiB | rank 1: 8 GiB | rank 2: 8 GiB |
//! used      9 GiB    ################ ##                               ranks 0 and 1 share the
//!                                                                      accesses, rank 2 sleeps
//! ```

use isotherm_model::units::{Bytes, Nanos};
use isotherm_policy::energy::{Activity, DramRank, Residency, Thresholds};

use super::port::{EnergyModel, Picojoules, TierActivity};
use crate::machine::LINE;

/// Both tiers of the same kind of rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramPower {
    /// The ranks of both tiers.
    pub rank: DramRank,
    /// Idle times after which a rank enters each sleep state.
    pub thresholds: Thresholds,
}

impl DramPower {
    /// DDR4 with round thresholds.
    pub const DDR4: Self = Self {
        rank: DramRank::DDR4,
        thresholds: Thresholds::ROUND,
    };

    /// DDR5 with round thresholds.
    pub const DDR5: Self = Self {
        rank: DramRank::DDR5,
        thresholds: Thresholds::ROUND,
    };

    /// Background energy of one rank with the given accesses in a span, in nanojoules.
    fn background(&self, accesses: u64, span: Nanos) -> u128 {
        let activity = Activity {
            residency: Residency::evenly(accesses, span, &self.thresholds),
            ..Activity::default()
        };
        u128::from(self.rank.energy(&activity).background.0)
    }
}

impl EnergyModel for DramPower {
    fn words(&self) -> String {
        format!("ranks of {} {}", self.rank.chips, self.rank.chip.name)
    }

    /// Every access of the program opens a row; moved pages open one for each row of bytes.
    fn energy(&self, activity: &TierActivity) -> Picojoules {
        let size = self.rank.capacity().0.max(1);
        let lines = |bytes: Bytes| bytes.0 / LINE.0;
        let moved = activity.moved_in.saturating_add(activity.moved_out);
        let accesses = activity.reads.saturating_add(activity.writes);
        let all = accesses.saturating_add(lines(moved));
        let ranks = activity.capacity.0.div_ceil(size);
        // Moved data was read from some rank, even if no data is left.
        let busy = activity.used.0.div_ceil(size).max(u64::from(all > 0));
        let asleep = ranks.saturating_sub(busy);
        let bytes = |count: u64| Bytes(count.saturating_mul(LINE.0));
        let operations = self.rank.energy(&Activity {
            read: bytes(activity.reads).saturating_add(activity.moved_out),
            written: bytes(activity.writes).saturating_add(activity.moved_in),
            activations: accesses.saturating_add(moved.0.div_ceil(self.rank.row().0.max(1))),
            residency: Residency::default(),
        });
        let share = all.checked_div(busy).unwrap_or(0);
        let background = u128::from(busy) * self.background(share, activity.span)
            + u128::from(asleep) * self.background(0, activity.span);
        let nanojoules = background.saturating_add(operations.total().0.into());
        Picojoules(nanojoules.saturating_mul(1_000))
    }
}

#[cfg(test)]
mod tests {
    use super::{DramPower, EnergyModel, TierActivity};
    use isotherm_model::tier::TierIndex;
    use isotherm_model::units::{Bytes, Nanos};

    const GIB: u64 = 1 << 30;
    const IDLE: TierActivity = TierActivity {
        tier: TierIndex(0),
        capacity: Bytes(20 * GIB),
        used: Bytes(9 * GIB),
        span: Nanos(1_000_000_000),
        reads: 0,
        writes: 0,
        moved_out: Bytes(0),
        moved_in: Bytes(0),
    };

    fn joules(activity: TierActivity) -> f64 {
        DramPower::DDR4.energy(&activity).joules()
    }

    #[test]
    fn idle_ranks_are_soon_in_self_refresh_and_come_in_whole_ones() {
        // Three ranks at 8 * 30 mA * 1.2 V, but for a first millisecond in lighter states.
        let idle = joules(IDLE);
        assert!((idle - 3.0 * 0.288).abs() < 0.001, "{idle}");
        let none = TierActivity {
            capacity: Bytes(0),
            used: Bytes(0),
            ..IDLE
        };
        assert!(joules(none).abs() < 1e-12);
    }

    #[test]
    fn data_in_fewer_ranks_lets_the_others_sleep() {
        let busy = TierActivity {
            reads: 10_000_000,
            ..IDLE
        };
        let packed = TierActivity {
            used: Bytes(8 * GIB),
            ..busy
        };
        assert!(joules(packed) < joules(busy) - 0.1);
    }

    #[test]
    fn a_million_reads_of_one_rank_by_hand() {
        let activity = TierActivity {
            capacity: Bytes(8 * GIB),
            used: Bytes(8 * GIB),
            reads: 1_000_000,
            ..IDLE
        };
        // One read each microsecond: 100 ns at 595.2 mW, 900 ns at 508.8 mW; 64e6 bytes at 110.4 mW
        // over 2.4e9 a second; a million rows at 6031.104 pJ.
        let background = 0.1 * 0.5952 + 0.9 * 0.5088;
        let expected = background + 0.1104 * 64e6 / 2.4e9 + 6031.104e-6;
        assert!(
            (joules(activity) - expected).abs() < 1e-6,
            "{}",
            joules(activity)
        );
    }

    #[test]
    fn huge_numbers_saturate() {
        let all = TierActivity {
            capacity: Bytes(u64::MAX),
            used: Bytes(u64::MAX),
            span: Nanos(u64::MAX),
            reads: u64::MAX,
            writes: u64::MAX,
            moved_in: Bytes(u64::MAX),
            moved_out: Bytes(u64::MAX),
            ..IDLE
        };
        assert!(joules(all).is_finite());
    }
}
