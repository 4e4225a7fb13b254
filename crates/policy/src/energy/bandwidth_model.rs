//! [`BandwidthModel`] gives the fewest memory devices on which hot data is not slowed at a given bandwidth, that of hot and cold data
//! together (Cross-Layer, section 7.2): by the paper's table 2, by given bounds, or fitted to runs of a load on the machine ([`LoadRun`]).
//!
//! Fewer devices cost less energy, but the channels of too few devices slow the hot data. So a load
//! with adjustable bandwidth runs on the machine once with each number of devices. The fewest
//! devices that do not slow it are recommended for that bandwidth and lower ones.
//!
//! ```text
//!     devices  1  |  2  |  3  |  4
//!     GB/s       10.1  12.5  16.3         table 2, the authors' machine with four DIMMs
//! ```

use isotherm_model::units::portion;

use std::collections::BTreeMap;

/// Bandwidths above which more devices are needed, in bytes a second.
///
/// The table prints `<10.1`, `10.1-12.5`, `12.5-16.3`, `>16.3`. By these signs the first bound
/// belongs to the range above it and the last to the range below. A bound between two middle ranges
/// is printed in both; here it belongs to the one with more devices, and so does a single bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BandwidthModel {
    bounds: Vec<u64>,
}

/// One run of the variable load with its hot data on a given number of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadRun {
    /// Devices that held the hot data, at least 1.
    pub devices: u32,
    /// Setting of the load: runs of one setting are compared with each other.
    pub load: u32,
    /// Bandwidth of the machine during the run, in bytes a second.
    pub bandwidth: u64,
    /// Work that the load completed, in any unit; more is better.
    pub work: u64,
}

/// The reason why there is no model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BandwidthModelError {
    /// There is no run.
    #[error("there is no run of the load; measure some first")]
    NoRuns,
    /// Nothing was measured in any run, so no load can be compared with another.
    #[error("every run of the load has a {quantity} of 0; measure its {quantity}, and fit again")]
    NotMeasured {
        /// The column of the runs that is 0 in every run.
        quantity: &'static str,
    },
    /// A bound is lower than the one before it.
    #[error(
        "the bound of {bound} B/s comes after {before} B/s; give the bounds from the lowest to the highest"
    )]
    Falling {
        /// The bound before.
        before: u64,
        /// The lower one.
        bound: u64,
    },
    /// A run reports zero devices for the hot data.
    #[error("a run of load {load} has its hot data on 0 devices; it must be on 1 at least")]
    NoDevices {
        /// The setting of the load.
        load: u32,
    },
    /// There is no run of this load with this number of devices.
    #[error(
        "there is no run of load {load} with a device count of {devices}; run each load with each count"
    )]
    Missing {
        /// The setting of the load.
        load: u32,
        /// The number of devices.
        devices: u32,
    },
    /// There are two runs of this load with this number of devices.
    #[error(
        "there are two runs of load {load} with a device count of {devices}; give one, or their mean"
    )]
    Twice {
        /// The setting of the load.
        load: u32,
        /// The number of devices.
        devices: u32,
    },
}

impl BandwidthModel {
    /// A model for one device more than there are bounds. Between equal bounds a number of devices
    /// is never recommended.
    ///
    /// # Errors
    /// A bound lower than the one before it.
    pub fn new(bounds: Vec<u64>) -> Result<Self, BandwidthModelError> {
        if let Some(pair) = bounds.windows(2).find(|pair| pair[1] < pair[0]) {
            return Err(BandwidthModelError::Falling {
                before: pair[0],
                bound: pair[1],
            });
        }
        Ok(Self { bounds })
    }

    /// Table 2 of the paper: its machine with four DIMMs, each on a channel of its own.
    #[must_use]
    pub fn paper() -> Self {
        let bounds = vec![10_100_000_000, 12_500_000_000, 16_300_000_000];
        Self { bounds }
    }

    /// A model from runs on a machine: every load with every number of devices from 1 to the
    /// highest of any run. A number of devices slows a load if the load completes less work than
    /// with all devices, by more than `tolerance` percent.
    ///
    /// The bound above a number is the lowest bandwidth that a slowed load has *with that number*, less the tolerance: this bandwidth is
    /// measured when the model is queried. With all devices a slowed load has more, which too few devices never reach, so that it would
    /// stay on them. Without the tolerance half of the samples of a load that fills its devices would be below the bound.
    ///
    /// ```text
    ///     load, by its bandwidth with all devices     3    6   11   15   20
    ///     with one device                             3    6  9.6  9.8  9.9
    ///     slowed by it                                          x    x    x      bound: 5 % below 9.6
    /// ```
    ///
    /// Where noise slows a load and not a greater one, the loads are divided so that the fewest are on the wrong side.
    ///
    /// # Errors
    /// No runs, runs without devices, only runs without bandwidth or without work, a load that lacks a number of devices or has one twice.
    pub fn fitted(runs: &[LoadRun], tolerance: u32) -> Result<Self, BandwidthModelError> {
        let most = runs.iter().map(|run| run.devices).max();
        let most = most.ok_or(BandwidthModelError::NoRuns)?;
        check_measured(runs)?;
        let mut by_load = BTreeMap::<u32, BTreeMap<u32, LoadRun>>::new();
        for run in runs {
            let LoadRun { devices, load, .. } = *run;
            if devices == 0 {
                return Err(BandwidthModelError::NoDevices { load });
            }
            if by_load
                .entry(load)
                .or_default()
                .insert(devices, *run)
                .is_some()
            {
                return Err(BandwidthModelError::Twice { load, devices });
            }
        }
        let run = |load: u32, devices: u32| {
            let found = by_load.get(&load).and_then(|runs| runs.get(&devices));
            found.ok_or(BandwidthModelError::Missing { load, devices })
        };
        let mut bounds = Vec::new();
        let mut below = 0;
        for devices in 1..most {
            let loads = by_load.keys().map(|&load| {
                let (few, all) = (run(load, devices)?, run(load, most)?);
                Ok(ComparedLoad::new(few, all, tolerance))
            });
            let bound = bound(
                loads.collect::<Result<_, BandwidthModelError>>()?,
                tolerance,
            );
            // More devices sustain at least as much; a measurement that shows less is noise.
            below = bound.max(below);
            bounds.push(below);
        }
        Ok(Self { bounds })
    }

    /// The bandwidths above which one device more is needed, in bytes a second, from the lowest.
    #[must_use]
    pub fn bounds(&self) -> &[u64] {
        &self.bounds
    }

    /// The most devices of the model.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.bounds.len() as u32 + 1
    }

    /// Devices for hot data at this bandwidth, in bytes a second: from 1 to [`Self::most`].
    #[must_use]
    pub fn devices(&self, bandwidth: u64) -> u32 {
        let last = self.bounds.len().saturating_sub(1);
        let is_passed = |(index, bound): (usize, &u64)| {
            let is_last_of_several = last > 0 && index == last;
            bandwidth > *bound || bandwidth == *bound && !is_last_of_several
        };
        let passed = self
            .bounds
            .iter()
            .enumerate()
            .filter(|bound| is_passed(*bound));
        passed.count() as u32 + 1
    }
}

/// Refuses runs without a measurement: no load would count as slowed, so one device would be enough at any bandwidth.
fn check_measured(runs: &[LoadRun]) -> Result<(), BandwidthModelError> {
    let quantity = if runs.iter().all(|run| run.bandwidth == 0) {
        "bandwidth"
    } else if runs.iter().all(|run| run.work == 0) {
        "work"
    } else {
        return Ok(());
    };
    Err(BandwidthModelError::NotMeasured { quantity })
}

/// A load with some devices and with all of them.
#[derive(Clone, Copy, Debug)]
struct ComparedLoad {
    /// Bandwidth with all devices, which the load asks for.
    asked: u64,
    /// Bandwidth with the fewer devices.
    got: u64,
    is_slowed: bool,
}

impl ComparedLoad {
    fn new(few: &LoadRun, all: &LoadRun, tolerance: u32) -> Self {
        let kept = u128::from(few.work) * 100;
        let wanted = u128::from(all.work) * u128::from(100_u32.saturating_sub(tolerance));
        Self {
            asked: all.bandwidth,
            got: few.bandwidth,
            is_slowed: kept < wanted,
        }
    }
}

/// The lowest bandwidth of a slowed load in the part of the loads that counts as slowed, less this percentage; the highest possible number
/// if that part has none.
fn bound(mut loads: Vec<ComparedLoad>, tolerance: u32) -> u64 {
    loads.sort_by_key(|load| load.asked);
    let wrong = |first: usize| {
        let (below, above) = loads.split_at(first);
        let slowed = below.iter().filter(|load| load.is_slowed).count();
        slowed + above.iter().filter(|load| !load.is_slowed).count()
    };
    // Of equally good divisions the first is used: too many devices cost energy, too few cost time.
    let first = (0..=loads.len()).min_by_key(|first| wrong(*first));
    let slowed = loads.iter().skip(first.unwrap_or(0));
    let slowed = slowed.filter(|load| load.is_slowed);
    let lowest = slowed.map(|load| load.got).min();
    lowest.map_or(u64::MAX, |lowest| {
        portion(lowest, 100_u32.saturating_sub(tolerance).into(), 100)
    })
}

#[cfg(test)]
mod tests {
    use super::{BandwidthModel, BandwidthModelError, LoadRun};

    /// Tenths of a GB/s, the digits of table 2.
    const TENTH: u64 = 100_000_000;

    #[test]
    fn table_2_ranges_to_devices_with_each_bound_on_the_side_that_its_sign_says() {
        let model = BandwidthModel::paper();
        let devices = |tenths: u64| model.devices(tenths * TENTH);
        assert_eq!([devices(0), devices(50), devices(100)], [1, 1, 1]);
        assert_eq!([devices(101), devices(110), devices(124)], [2, 2, 2]);
        assert_eq!([devices(125), devices(140), devices(163)], [3, 3, 3]);
        assert_eq!([devices(164), devices(400), devices(10_000)], [4, 4, 4]);
        // The bounds are exact to the byte.
        assert_eq!(model.devices(101 * TENTH - 1), 1);
        assert_eq!(model.devices(163 * TENTH + 1), 4);
        assert_eq!(model.most(), 4);
    }

    #[test]
    fn one_device_has_no_bounds_and_a_single_bound_belongs_to_more_devices() {
        let one = BandwidthModel::new(vec![]).unwrap();
        assert_eq!((one.devices(u64::MAX), one.most()), (1, 1));
        let two = BandwidthModel::new(vec![10]).unwrap();
        assert_eq!([9, 10, 11].map(|b| two.devices(b)), [1, 2, 2]);
    }

    fn run(devices: u32, load: u32, bandwidth: u64, work: u64) -> LoadRun {
        LoadRun {
            devices,
            load,
            bandwidth,
            work,
        }
    }

    #[test]
    fn a_fitted_bound_is_just_below_the_lowest_bandwidth_that_a_load_has_on_the_devices_that_slow_it()
     {
        // Loads of 500, 1,100 and 2,000 with all three devices. One device slows the second by 9 %, two
        // slow the third by half.
        let runs = [
            run(1, 0, 500, 100),
            run(2, 0, 500, 100),
            run(3, 0, 500, 100),
            run(1, 1, 900, 200),
            run(2, 1, 1_100, 219),
            run(3, 1, 1_100, 220),
            run(1, 2, 1_000, 200),
            run(2, 2, 1_200, 250),
            run(3, 2, 2_000, 500),
        ];
        let model = BandwidthModel::fitted(&runs, 1).unwrap();
        assert_eq!(model, BandwidthModel::new(vec![891, 1_188]).unwrap());
        // With a tolerance of 10 % one device suffices for the second load.
        let model = BandwidthModel::fitted(&runs, 10).unwrap();
        assert_eq!(model, BandwidthModel::new(vec![900, 1_080]).unwrap());
    }

    /// By the bandwidth with all devices no load of one device would ever be seen to need two.
    #[test]
    fn a_load_that_one_device_slows_is_told_by_its_bandwidth_on_it() {
        let runs = [run(1, 0, 100, 50), run(2, 0, 200, 100)];
        let model = BandwidthModel::fitted(&runs, 5).unwrap();
        assert_eq!([94, 95, 200].map(|rate| model.devices(rate)), [1, 2, 2]);
    }

    #[test]
    fn a_load_that_noise_slows_or_spares_moves_no_bound() {
        let fitted = |slowed: &[u32]| {
            let loads = 0..8_u32;
            let one = |load: u32| {
                let (asked, is_slowed) = (u64::from(load) * 10, slowed.contains(&load));
                let got = if is_slowed { asked.min(38) } else { asked };
                [
                    run(1, load, got, if is_slowed { 50 } else { 100 }),
                    run(2, load, asked, 100),
                ]
            };
            let runs: Vec<_> = loads.flat_map(one).collect();
            BandwidthModel::fitted(&runs, 5).unwrap().bounds()[0]
        };
        assert_eq!(fitted(&[4, 5, 6, 7]), 36);
        assert_eq!(fitted(&[1, 4, 5, 6, 7]), 36);
        assert_eq!(fitted(&[4, 5, 7]), 36);
        assert_eq!(fitted(&[1]), u64::MAX);
    }

    #[test]
    fn where_no_load_is_slowed_one_device_is_enough() {
        let runs = [run(1, 0, 5, 100), run(2, 0, 5, 100)];
        let model = BandwidthModel::fitted(&runs, 0).unwrap();
        assert_eq!(model.devices(1 << 40), 1);
    }

    #[test]
    fn runs_of_which_none_has_a_bandwidth_or_none_has_work_are_refused() {
        let fitted = |bandwidth, work| {
            let runs = [run(1, 0, bandwidth, work), run(2, 0, bandwidth, work)];
            BandwidthModel::fitted(&runs, 5).map_err(|error| error.to_string())
        };
        for (bandwidth, work, quantity) in [(0, 5, "bandwidth"), (5, 0, "work")] {
            let said = fitted(bandwidth, work).unwrap_err();
            let all = format!("every run of the load has a {quantity} of 0");
            assert!(said.starts_with(&all), "{said}");
        }
        assert!(fitted(5, 5).is_ok());
        // A load that asks for nothing is one among others.
        let idle = [run(1, 0, 0, 5), run(2, 0, 0, 5)];
        let busy = [run(1, 1, 100, 50), run(2, 1, 200, 100)];
        assert!(BandwidthModel::fitted(&[idle, busy].concat(), 5).is_ok());
    }

    #[test]
    fn runs_that_are_missing_double_or_without_devices_and_falling_bounds_are_refused() {
        let fitted = |runs: &[LoadRun]| BandwidthModel::fitted(runs, 0).unwrap_err();
        assert_eq!(fitted(&[]), BandwidthModelError::NoRuns);
        let missing = fitted(&[run(2, 7, 5, 1)]);
        assert_eq!(
            missing.to_string(),
            "there is no run of load 7 with a device count of 1; run each load with each count"
        );
        assert!(matches!(
            fitted(&[run(1, 7, 5, 1), run(1, 7, 5, 1)]),
            BandwidthModelError::Twice { .. }
        ));
        assert_eq!(
            fitted(&[run(0, 7, 5, 1)]),
            BandwidthModelError::NoDevices { load: 7 }
        );
        assert!(matches!(
            BandwidthModel::new(vec![5, 4]),
            Err(BandwidthModelError::Falling { .. })
        ));
    }
}
