//! [`DramPower`] models the energy of a tier that consists of DRAM ranks of one kind (DDR4, DDR5, LPDDR4 or HBM2), each with its power
//! states, and the time that accesses wait for a rank to wake up (Cross-Layer, section 3.2).
//!
//! A tier has as many whole ranks as its capacity requires. Its data fills as few of them as
//! possible; these share the accesses evenly, and the others sleep.
//!
//! ```text
//! capacity 20 GiB   | rank 0: 8 GiB | rank 1: 8 GiB | rank 2: 8 GiB |
//! used      9 GiB    ################ ##                               ranks 0 and 1 share the
//!                                                                      accesses, rank 2 sleeps
//! ```
//!
//! Where a number of devices is given, each counts as one rank whatever it holds, and interleaved data keeps all of them busy:
//!
//! ```text
//! packed        | ######## | ##       |          |          |
//! interleaved   | ###      | ###      | ##       | ##       |
//! ```

use isotherm_model::units::{Bytes, Nanos};
use isotherm_policy::energy::{Activity, DramRank, Residency, Thresholds};

use super::port::{EnergyModel, Picojoules, TierActivity, TierEnergy};
use crate::machine::LINE;

/// Both tiers consist of the same kind of rank, which enters its sleep states after idle times in round numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramPower(DramRank);

impl DramPower {
    /// Ranks of DDR4.
    pub const DDR4: Self = Self(DramRank::DDR4);
    /// Ranks of DDR5.
    pub const DDR5: Self = Self(DramRank::DDR5);
    /// Ranks of LPDDR4.
    pub const LPDDR4: Self = Self(DramRank::LPDDR4);
    /// Ranks of HBM2.
    pub const HBM2: Self = Self(DramRank::HBM2);

    /// Background energy of one rank with the given accesses in a span, in nanojoules, and the time they waited.
    fn background(&self, accesses: u64, span: Nanos) -> (u128, Nanos) {
        let activity = Activity {
            residency: Residency::evenly(accesses, span, &Thresholds::ROUND),
            ..Activity::default()
        };
        let energy = self.0.energy(&activity);
        (u128::from(energy.background.0), energy.waited)
    }

    /// Bytes of a device: the given ones, or the capacity of a rank.
    fn device(&self, given: Option<Bytes>) -> u64 {
        given.unwrap_or_else(|| self.0.capacity()).0.max(1)
    }
}

impl EnergyModel for DramPower {
    fn words(&self) -> String {
        format!("ranks of {} {}", self.0.chips, self.0.chip.name)
    }

    fn devices(&self, capacity: Bytes, device: Option<Bytes>) -> Option<u64> {
        Some(capacity.0.div_ceil(self.device(device)))
    }

    /// Every access of the program opens a row; moved pages open one for each row of bytes.
    fn energy(&self, activity: &TierActivity) -> TierEnergy {
        let size = self.device(activity.layout.device);
        let lines = |bytes: Bytes| bytes.0 / LINE.0;
        let moved = activity.moved_in.saturating_add(activity.moved_out);
        let accesses = activity.reads.saturating_add(activity.writes);
        let all = accesses.saturating_add(lines(moved));
        let ranks = activity.capacity.0.div_ceil(size);
        let holding = match activity.layout.is_interleaved {
            true => ranks,
            false => activity.used.0.div_ceil(size).min(ranks),
        };
        // Moved data was read from some rank, even if no data is left.
        let busy = holding.max(u64::from(all > 0));
        let asleep = ranks.saturating_sub(busy);
        let bytes = |count: u64| Bytes(count.saturating_mul(LINE.0));
        let operations = self.0.energy(&Activity {
            read: bytes(activity.reads).saturating_add(activity.moved_out),
            written: bytes(activity.writes).saturating_add(activity.moved_in),
            activations: accesses.saturating_add(moved.0.div_ceil(self.0.row().0.max(1))),
            residency: Residency::default(),
        });
        let share = all.checked_div(busy).unwrap_or(0);
        let (awake, waited) = self.background(share, activity.span);
        let (sleeping, _) = self.background(0, activity.span);
        let background = u128::from(busy) * awake + u128::from(asleep) * sleeping;
        let nanojoules = background.saturating_add(operations.total().0.into());
        TierEnergy {
            energy: Picojoules(nanojoules.saturating_mul(1_000)),
            waited: Nanos(waited.0.saturating_mul(busy)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DramPower, EnergyModel, TierActivity};
    use crate::energy::DataLayout;
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
        layout: DataLayout::PACKED,
    };

    fn joules(activity: TierActivity) -> f64 {
        DramPower::DDR4.energy(&activity).energy.joules()
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
    fn interleaved_data_keeps_all_devices_awake_and_packed_data_as_few_as_it_needs() {
        let four = TierActivity {
            capacity: Bytes(4 << 20),
            used: Bytes(1 << 20),
            reads: 4_000_000,
            layout: DataLayout {
                device: Some(Bytes(1 << 20)),
                is_interleaved: true,
            },
            ..IDLE
        };
        let packed = TierActivity {
            layout: DataLayout {
                is_interleaved: false,
                ..four.layout
            },
            ..four
        };
        // A read each microsecond and rank, against one each 250 ns of one rank and three in self-refresh. The operations cost
        // the same.
        let operations = 4.0 * (0.1104 * 64e6 / 2.4e9 + 6031.104e-6);
        let interleaved = 4.0 * (0.1 * 0.5952 + 0.9 * 0.5088) + operations;
        let one_awake = 0.4 * 0.5952 + 0.6 * 0.5088 + operations;
        assert!(
            (joules(four) - interleaved).abs() < 1e-6,
            "{}",
            joules(four)
        );
        let asleep = joules(packed) - one_awake;
        assert!((asleep - 3.0 * 0.288).abs() < 0.003, "{asleep}");
        assert_eq!(
            DramPower::DDR4.devices(four.capacity, four.layout.device),
            Some(4)
        );
    }

    #[test]
    fn wake_ups_are_time() {
        let rare = TierActivity {
            capacity: Bytes(8 * GIB),
            used: Bytes(8 * GIB),
            reads: 1_000,
            ..IDLE
        };
        // A read each millisecond finds the rank in power-down, at the threshold of self-refresh: 6 ns each.
        assert_eq!(DramPower::DDR4.energy(&rare).waited, Nanos(6_000));
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
