//! [`DramRank`] computes the energy of a DRAM rank (Cross-Layer, section 3.2): background power by its power state, and operation power by
//! its reads, writes and activations. It also computes the time that accesses wait for the rank to wake up.
//!
//! After Micron's technical notes on memory power (TN-40-07 for DDR4), per chip:
//!
//! ```text
//!     background   IDD of the state * VDD, plus refreshing but in self-refresh
//!     read         (IDD4R - IDD3N) * VDD while a burst runs: bytes / burst bandwidth
//!     write        (IDD4W - IDD3N) * VDD likewise
//!     activate     what IDD0 draws in a row cycle beyond standby with one bank open, times VDD
//! ```
//!
//! IDD3N is measured with all banks open and IDD0 with one. The usual formula takes IDD3N as the
//! standby within IDD0, which on DDR5 gives the activation of a row a negative cost. Here one open
//! bank costs its share, (IDD3N - IDD2N) / banks, beyond IDD2N.
//!
//! Currents are in microamperes and VDD in millivolts, so powers are whole nanowatts. Energies are
//! summed in nanowatt-picoseconds (10^-21 J) in 128 bits and rounded down to nanojoules at the end.

use isotherm_model::units::{Bytes, Nanojoules, Nanos, Nanowatts};

use super::dram_chip::{
    DDR4_2400_8GBIT, DDR5_4800_16GBIT, DramChip, HBM2_8GBIT, LPDDR4_3200_6GBIT,
};
use super::power_state::{PowerState, Residency};

/// Nanowatt-picoseconds in a nanojoule.
const PER_NANOJOULE: u128 = 1_000_000_000_000;
const PICOSECONDS_PER_NANOSECOND: u128 = 1_000;

/// Chips that are accessed together and sleep together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramRank {
    /// The chips of the rank.
    pub chip: DramChip,
    /// Number of chips: 8 of 8 pins for 64 bits of a DDR4 channel, 4 for 32 bits of a DDR5 one, and
    /// more with error correction.
    pub chips: u32,
}

/// The operations of a rank and its time in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Bytes read from all its chips together.
    pub read: Bytes,
    /// Bytes written to all its chips together.
    pub written: Bytes,
    /// Rows opened; equal to the accesses if each needs another row, fewer if rows are reused.
    pub activations: u64,
    /// Time in each power state.
    pub residency: Residency,
}

/// The energy of a rank by its cause, and the time that accesses waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DramEnergy {
    /// Standby, sleep, refresh, wake-up.
    pub background: Nanojoules,
    /// Opening rows.
    pub activate: Nanojoules,
    /// Reading.
    pub read: Nanojoules,
    /// Writing.
    pub write: Nanojoules,
    /// Total time that accesses waited for the rank to wake up.
    pub waited: Nanos,
}

impl DramEnergy {
    /// The sum of all energies.
    #[must_use]
    pub fn total(&self) -> Nanojoules {
        [self.background, self.activate, self.read, self.write]
            .into_iter()
            .sum()
    }
}

impl DramRank {
    /// The 64 data pins of a DDR4 channel, 8 GiB.
    pub const DDR4: Self = Self {
        chip: DDR4_2400_8GBIT,
        chips: 8,
    };
    /// The 32 data pins of a DDR5 channel, 8 GiB.
    pub const DDR5: Self = Self {
        chip: DDR5_4800_16GBIT,
        chips: 4,
    };

    /// The 64 data pins of four LPDDR4 channels that sleep together, 3 GiB.
    pub const LPDDR4: Self = Self {
        chip: LPDDR4_3200_6GBIT,
        chips: 4,
    };

    /// A channel of an HBM2 stack, 1 GiB, which sleeps by itself.
    pub const HBM2: Self = Self {
        chip: HBM2_8GBIT,
        chips: 1,
    };

    /// Capacity of the whole rank.
    #[must_use]
    pub const fn capacity(&self) -> Bytes {
        Bytes(self.chip.capacity.0.saturating_mul(self.chips as u64))
    }

    /// Bytes that an activation opens in all its chips.
    #[must_use]
    pub const fn row(&self) -> Bytes {
        Bytes(self.chip.row.0.saturating_mul(self.chips as u64))
    }

    /// Power of the whole rank in a state, without operations.
    #[must_use]
    pub fn background(&self, state: PowerState) -> Nanowatts {
        let chip = &self.chip;
        let current = match state {
            PowerState::ActiveStandby => chip.idd3n.saturating_add(chip.refresh),
            PowerState::PrechargeStandby => chip.idd2n.saturating_add(chip.refresh),
            PowerState::PowerDown => chip.idd2p.saturating_add(chip.refresh),
            PowerState::SelfRefresh => chip.idd6n,
        };
        Nanowatts(saturated(self.power(current) * u128::from(self.chips)))
    }

    /// The energy of an activity, and the wait time that it causes.
    #[must_use]
    pub fn energy(&self, activity: &Activity) -> DramEnergy {
        let chip = &self.chip;
        let residency = &activity.residency;
        let asleep = [
            (PowerState::PowerDown, chip.power_down_exit),
            (PowerState::SelfRefresh, chip.self_refresh_exit),
        ];
        let waits = asleep.map(|(state, exit)| {
            u128::from(residency.wakes(state)).saturating_mul(u128::from(exit))
        });
        let waited: u128 = waits.iter().sum();
        // Wake-up takes time in addition to the residency; the chip draws standby power in it.
        let waking = energy(self.background(PowerState::PrechargeStandby), waited);
        let states = PowerState::ALL.map(|state| {
            let picoseconds = u128::from(residency.time(state).0) * PICOSECONDS_PER_NANOSECOND;
            energy(self.background(state), picoseconds)
        });
        let background = states.into_iter().fold(waking, u128::saturating_add);
        DramEnergy {
            background: nanojoules(background),
            activate: nanojoules(
                self.activation()
                    .saturating_mul(activity.activations.into()),
            ),
            read: self.burst(chip.idd4r, activity.read),
            write: self.burst(chip.idd4w, activity.written),
            waited: Nanos(saturated(waited / PICOSECONDS_PER_NANOSECOND)),
        }
    }

    /// One chip's power at this current, in nanowatts.
    fn power(&self, microamperes: u32) -> u128 {
        u128::from(microamperes) * u128::from(self.chip.millivolts)
    }

    /// Energy to open and close a row in all chips, in nanowatt-picoseconds: IDD0 over tRC without
    /// the standby of closed banks over tRC and of the one open bank over tRAS.
    fn activation(&self) -> u128 {
        let chip = &self.chip;
        let banks = u128::from(chip.banks.max(1));
        let beyond_closed = self.power(chip.idd0.saturating_sub(chip.idd2n));
        let all_open = self.power(chip.idd3n.saturating_sub(chip.idd2n));
        let cycle = beyond_closed * u128::from(chip.row_cycle) * banks;
        let open = all_open * u128::from(chip.row_open);
        cycle.saturating_sub(open) / banks * u128::from(self.chips)
    }

    /// Energy of bursts at this current. Bytes are spread over the chips, so together their bursts
    /// take as long as all bytes take over the pins of one chip.
    fn burst(&self, microamperes: u32, bytes: Bytes) -> Nanojoules {
        let beyond_standby = self.power(microamperes.saturating_sub(self.chip.idd3n));
        let bandwidth = u128::from(self.chip.burst_bandwidth.max(1));
        // Nanowatts times seconds are nanojoules.
        Nanojoules(saturated(beyond_standby * u128::from(bytes.0) / bandwidth))
    }
}

fn energy(power: Nanowatts, picoseconds: u128) -> u128 {
    picoseconds.saturating_mul(u128::from(power.0))
}

fn nanojoules(nanowatt_picoseconds: u128) -> Nanojoules {
    Nanojoules(saturated(nanowatt_picoseconds / PER_NANOJOULE))
}

fn saturated(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::Thresholds;
    use super::{Activity, DramRank, PowerState, Residency};
    use isotherm_model::units::{Bytes, Nanojoules, Nanos};
    use proptest::prelude::*;

    const DDR4: DramRank = DramRank::DDR4;
    const DDR5: DramRank = DramRank::DDR5;
    const SECOND: Nanos = Nanos(1_000_000_000);

    fn thresholds(power_down: u64, self_refresh: Option<u64>) -> Thresholds {
        Thresholds::rising([Some(0), Some(power_down), self_refresh])
    }

    #[test]
    fn background_by_hand_is_current_times_voltage_times_chips() {
        let milliwatts =
            |rank: DramRank| PowerState::ALL.map(|state| rank.background(state).0 as f64 / 1e6);
        // (43 + 19) mA * 1.2 V * 8, (34 + 19), (25 + 19), 30.
        assert_eq!(milliwatts(DDR4), [595.2, 508.8, 422.4, 288.0]);
        // (142 + 13.993) mA * 1.1 V * 4, (92 + 13.993), (88 + 13.993), 102.
        assert_eq!(milliwatts(DDR5), [686.3692, 466.3692, 448.7692, 448.8]);
    }

    #[test]
    fn a_rank_that_refreshes_itself_takes_a_hundredth_of_lpddr4_s_active_power_and_half_of_hbm2_s()
    {
        let asleep = |rank: DramRank| {
            let active = rank.background(PowerState::ActiveStandby).0 as f64;
            rank.background(PowerState::SelfRefresh).0 as f64 / active
        };
        // 0.99 mA against 33.68 + 3.82, and 31 against 55 + 14.
        assert!(
            (asleep(DramRank::LPDDR4) - 0.0264).abs() < 0.0005,
            "{}",
            asleep(DramRank::LPDDR4)
        );
        assert!(
            (asleep(DramRank::HBM2) - 0.4493).abs() < 0.0005,
            "{}",
            asleep(DramRank::HBM2)
        );
        assert_eq!(DramRank::LPDDR4.capacity(), Bytes(3 << 30));
        assert_eq!(DramRank::HBM2.row(), Bytes(2048));
    }

    #[test]
    fn a_million_cache_lines_by_hand() {
        // 64 MB read: (135 - 43) mA * 1.2 V = 110.4 mW for 64e6 / 2.4e9 s = 26.67 ms: 2.944 mJ.
        // 32 MB written: (123 - 43) mA * 1.2 V = 96 mW for 13.33 ms: 1.28 mJ.
        // A million rows: 8 chips * 1.2 V * (14 mA * 46.16 ns - 9 mA / 16 * 32 ns) = 6031.104 pJ.
        // One second all in precharge standby: 508.8 mJ.
        let open = Thresholds::rising([Some(0), None, None]);
        let activity = Activity {
            read: Bytes(64_000_000),
            written: Bytes(32_000_000),
            activations: 1_000_000,
            residency: Residency::evenly(1_500_000, SECOND, &open),
        };
        let energy = DDR4.energy(&activity);
        assert_eq!(energy.read, Nanojoules(2_944_000));
        assert_eq!(energy.write, Nanojoules(1_280_000));
        assert_eq!(energy.activate, Nanojoules(6_031_104));
        assert_eq!(energy.background, Nanojoules(508_800_000));
        assert_eq!(energy.waited, Nanos(0));
        assert_eq!(energy.total(), Nanojoules(519_055_104));
    }

    #[test]
    fn opening_a_row_of_ddr5_costs_something_though_idd3n_is_above_idd0() {
        // 4 chips * 1.1 V * (11 mA * 48.224 ns - 50 mA / 32 * 32 ns) = 2114.0416 pJ.
        let activity = Activity {
            activations: 10_000_000,
            ..Activity::default()
        };
        assert_eq!(DDR5.energy(&activity).activate, Nanojoules(21_140_416));
    }

    #[test]
    fn sleeping_by_hand_with_its_wake_ups() {
        // 1000 accesses in a second, each 1 ms after the last: 10 us of precharge standby and
        // 990 us of power-down, then 6 ns to wake.
        let activity = Activity {
            residency: Residency::evenly(1_000, SECOND, &thresholds(10_000, None)),
            ..Activity::default()
        };
        let energy = DDR4.energy(&activity);
        // 508.8 mW * (10 ms + 6 us) + 422.4 mW * 990 ms.
        assert_eq!(energy.background, Nanojoules(5_091_052 + 418_176_000));
        assert_eq!(energy.waited, Nanos(6_000));
        // Into self-refresh after 100 us: 10 us, 90 us, 900 us, and 360 ns to wake.
        let deep = Activity {
            residency: Residency::evenly(1_000, SECOND, &thresholds(10_000, Some(100_000))),
            ..Activity::default()
        };
        let energy = DDR4.energy(&deep);
        // 508.8 mW * (10 ms + 360 us) + 422.4 mW * 90 ms + 288 mW * 900 ms.
        assert_eq!(
            energy.background,
            Nanojoules(5_271_168 + 38_016_000 + 259_200_000)
        );
        assert_eq!(energy.waited, Nanos(360_000));
    }

    #[test]
    fn gathering_hot_data_on_one_of_two_ranks_saves_energy_where_the_other_then_sleeps() {
        let steps = thresholds(10_000, Some(100_000));
        let cost = |accesses: u64| {
            let activity = Activity {
                read: Bytes(64 * accesses),
                activations: accesses,
                residency: Residency::evenly(accesses, SECOND, &steps),
                ..Activity::default()
            };
            DDR4.energy(&activity).total().0
        };
        let spread = 2 * cost(200_000);
        let gathered = cost(400_000) + cost(0);
        assert!(gathered * 10 < spread * 8, "{gathered} against {spread}");
    }

    proptest! {
        #[test]
        fn energy_grows_with_every_part_of_the_activity_and_never_overflows(
            read in any::<u64>(), written in any::<u64>(), activations in any::<u64>(),
            accesses in any::<u64>(), span in any::<u64>()
        ) {
            let activity = Activity {
                read: Bytes(read),
                written: Bytes(written),
                activations,
                residency: Residency::evenly(accesses, Nanos(span), &thresholds(300, Some(9_000))),
            };
            for rank in [DDR4, DDR5, DramRank { chips: u32::MAX, ..DDR5 }] {
                let full = rank.energy(&activity);
                let half = rank.energy(&Activity {
                    read: Bytes(read / 2),
                    written: Bytes(written / 2),
                    activations: activations / 2,
                    ..activity
                });
                prop_assert!(half.total() <= full.total());
                prop_assert!(full.background >= rank.energy(&Activity::default()).background);
            }
        }
    }
}
