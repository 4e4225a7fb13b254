//! [`DeviceCount`] computes how many memory devices hot data needs by bandwidth and by size (Cross-Layer, sections 7.1.2, 7.2, 8.2.3).
//!
//! ```text
//! bytes served --> remapper, once a second --> devices by bandwidth --+
//!                                                                     +--> devices
//! bytes of hot data --> capacity of a device --> devices by size -----+
//! ```

use isotherm_model::batch::{Batch, Count};
use isotherm_model::units::{Bytes, Nanos, portion};
use isotherm_policy::energy::{BandwidthModel, COOL_DOWN, Remap, RemapSettings, Remapper};

use crate::tier_demand::SERVED;

/// Time between two samples of the bandwidth (section 7.2).
pub const BANDWIDTH_INTERVAL: Nanos = Nanos(1_000_000_000);

/// An epoch that ends this much before a second counts as its end: epochs end a little early and late.
const EARLY: Nanos = Nanos(COOL_DOWN.0 / 2);

/// Counts devices for the hot data of one run.
#[derive(Debug)]
pub struct DeviceCount {
    remapper: Remapper,
    /// Bytes of hot data for which a device has room.
    capacity: Option<Bytes>,
    /// The most hot data of an epoch since the last sample of the bandwidth.
    most_hot: Bytes,
    /// Time and bytes at the last sample of the bandwidth.
    sampled: (Nanos, u64),
    /// Time from which an epoch ends with the next sample.
    due: Nanos,
}

/// The changes that an epoch caused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceDecision {
    /// The sample of the bandwidth and the remapper's decision by it; `None` between two samples.
    pub sample: Option<RemapSample>,
    /// The devices that were added for hot data that had no room.
    pub added: Option<AddedDevices>,
}

/// Devices that were added because hot data filled those that it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedDevices {
    /// Time of the run.
    pub at: Nanos,
    /// Hot data in memory.
    pub hot: Bytes,
    /// Devices that held it.
    pub from: u32,
    /// Devices for it from now on.
    pub to: u32,
}

/// A sample of the bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapSample {
    /// Time of the run.
    pub at: Nanos,
    /// Bytes a second.
    pub bandwidth: u64,
    /// Devices for hot data.
    pub remap: Remap,
}

impl DeviceCount {
    /// Hot data begins on one device. A device has room for `capacity` bytes of it (Cross-Layer, section 8.2.3: a quarter of the program's
    /// largest resident set); `None` is unlimited room.
    #[must_use]
    pub fn new(model: BandwidthModel, settings: RemapSettings, capacity: Option<Bytes>) -> Self {
        Self {
            remapper: Remapper::new(model, settings, 1),
            capacity,
            most_hot: Bytes::ZERO,
            sampled: (Nanos::ZERO, 0),
            due: BANDWIDTH_INTERVAL,
        }
    }

    /// Devices that hold hot data.
    #[must_use]
    pub const fn devices(&self) -> u32 {
        self.remapper.devices()
    }

    /// Decides after an epoch, which ends at this time of the run with this much hot data in memory.
    pub fn decide(&mut self, now: Nanos, batch: &Batch, hot: Bytes) -> DeviceDecision {
        DeviceDecision {
            added: self.add_devices(now, hot),
            sample: self.sample_bandwidth(now, batch),
        }
    }

    /// Samples the bandwidth in the first epoch that ends in a new second of the run. Seconds are counted from its start: counted from
    /// the sample before, epochs that are a little shorter or longer than planned would add up to a sample every other second.
    fn sample_bandwidth(&mut self, now: Nanos, batch: &Batch) -> Option<RemapSample> {
        let served = SERVED.map(|name| Count::total(&batch.counts, name));
        let bytes = served[0].saturating_add(served[1]);
        let (since, before) = self.sampled;
        let span = now.saturating_sub(since);
        if now.saturating_add(EARLY) < self.due {
            return None;
        }
        self.due = next_second(now.saturating_add(EARLY));
        self.sampled = (now, bytes);
        self.most_hot = Bytes::ZERO;
        // The counts of a process that ended stay in the sum.
        let bandwidth = portion(bytes.saturating_sub(before), 1_000_000_000, span.0);
        Some(RemapSample {
            at: now,
            bandwidth,
            remap: self.remapper.sample(bandwidth),
        })
    }

    /// Adds the devices that hot data needs for its size.
    ///
    /// Data that was hot in one epoch keeps its room until the next sample: data that was not sampled for 0.1 s counts as cold but often is
    /// hot again in the next epoch, while giving back a device costs a second a gigabyte.
    fn add_devices(&mut self, now: Nanos, hot: Bytes) -> Option<AddedDevices> {
        self.most_hot = self.most_hot.max(hot);
        let least = self.most_hot.0.div_ceil(self.capacity?.0.max(1));
        let least = u32::try_from(least).unwrap_or(u32::MAX);
        match self.remapper.require(least) {
            Remap::To { from, to } => Some(AddedDevices {
                at: now,
                hot,
                from,
                to,
            }),
            Remap::Stay | Remap::Undo { .. } => None,
        }
    }
}

/// The second of the run after this time.
const fn next_second(now: Nanos) -> Nanos {
    Nanos(
        (now.0 / BANDWIDTH_INTERVAL.0)
            .saturating_add(1)
            .saturating_mul(BANDWIDTH_INTERVAL.0),
    )
}

#[cfg(test)]
mod tests {
    use super::{DeviceCount, SERVED};
    use isotherm_model::batch::{Batch, Count};
    use isotherm_model::units::{Bytes, Nanos};
    use isotherm_policy::energy::{BandwidthModel, RemapSettings};

    /// The times at which the bandwidth is sampled, in milliseconds, in epochs of these lengths.
    fn sampled_at(spans: impl IntoIterator<Item = u64>) -> Vec<u64> {
        let model = BandwidthModel::new(vec![1_000_000_000]).expect("rising");
        let mut count = DeviceCount::new(model, RemapSettings::default(), None);
        let mut now = Nanos::ZERO;
        let mut sampled = |milliseconds: u64| {
            now = now.saturating_add(Nanos(milliseconds * 1_000_000));
            let served = |name: &&str| Count::of_run(*name, now.0);
            let batch = Batch {
                counts: SERVED.iter().map(served).collect(),
                ..Batch::default()
            };
            count.decide(now, &batch, Bytes::ZERO).sample
        };
        let samples = spans.into_iter().filter_map(&mut sampled);
        samples.map(|sample| sample.at.0 / 1_000_000).collect()
    }

    #[test]
    fn hot_data_that_fills_a_device_gets_further_ones_and_gives_them_back_after_two_samples() {
        let model = BandwidthModel::new(vec![1_000, 2_000]).expect("rising");
        let mut count = DeviceCount::new(model, RemapSettings::default(), Some(Bytes(100)));
        let mut devices = |second: u64, hot: u64| {
            let now = Nanos(second * 1_000_000_000);
            let added = count.decide(now, &Batch::default(), Bytes(hot)).added;
            (count.devices(), added.map(|added| (added.from, added.to)))
        };
        assert_eq!(devices(1, 100), (1, None));
        assert_eq!(devices(2, 101), (2, Some((1, 2))));
        assert_eq!(devices(3, 1_000), (3, Some((2, 3))), "the model has three");
        assert_eq!(devices(4, 100), (3, None));
        assert_eq!(devices(5, 100), (1, None));
    }

    #[test]
    fn an_epoch_without_samples_of_hot_data_does_not_give_back_its_devices() {
        let model = BandwidthModel::new(vec![1_000]).expect("rising");
        let mut count = DeviceCount::new(model, RemapSettings::default(), Some(Bytes(100)));
        let mut devices = |tenth: u64, hot: u64| {
            let now = Nanos(tenth * 100_000_000);
            count.decide(now, &Batch::default(), Bytes(hot));
            count.devices()
        };
        // Cold in each epoch that ends with a sample of the bandwidth, and in the one before.
        let is_gap = |tenth: u64| matches!(tenth % 10, 0 | 9);
        for tenth in 1..=40 {
            assert_eq!(
                devices(tenth, if is_gap(tenth) { 0 } else { 150 }),
                2,
                "{tenth}"
            );
        }
        // Cold for two seconds.
        let given_back = (41..=70).find(|tenth| devices(*tenth, 0) == 1);
        assert_eq!(given_back, Some(60));
    }

    #[test]
    fn epochs_that_end_early_or_late_do_not_delay_the_samples() {
        assert_eq!(sampled_at([999; 4]), [999, 1_998, 2_997, 3_996]);
        assert_eq!(sampled_at([1_003; 4]), [1_003, 2_006, 3_009, 4_012]);
        assert_eq!(sampled_at([103; 40]), [1_030, 1_957, 2_987, 4_017]);
        assert_eq!(sampled_at([400, 400, 400, 900, 100]), [1_200, 2_100]);
        // An epoch of some seconds is one sample.
        assert_eq!(sampled_at([3_700, 100, 200, 100]), [3_700, 4_000]);
    }
}
