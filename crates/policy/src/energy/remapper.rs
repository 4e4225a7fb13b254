//! [`Remapper`] decides from samples of the bandwidth when to remap hot data to more or fewer devices (Cross-Layer, section 7.2), and when
//! to undo a remap that gained nothing (section 8.2.3 names this as future work). Where the devices lack room for the hot data, it adds
//! some at once.
//!
//! Bandwidth is sampled once a second. A remap costs 0.75 to 1.15 seconds a gigabyte, so it is made
//! only when two consecutive samples are in the range of the same other number of devices:
//!
//! ```text
//!     GB/s      8    11     9    11    11    14    14    14
//!     devices   1     1     1     1     2     2     3     3
//!     range     1     2     1     2     2     3     3     3
//!                     one         two: remap      two: remap
//! ```
//!
//! Near a bound, samples fall into one range and then into the next one, and never twice into the same. [`RemapSettings::nearest`] counts
//! samples on one side of the present range together, and moves to the nearest range among them: later samples show whether that is enough.
//!
//! A program that is itself the bottleneck (`sparse` with one thread in the paper) does not get
//! faster with more devices. So after a remap to more devices the remapper waits for the same
//! number of samples. If none exceeds the highest sample before by the least gain, the remap is
//! undone. It is not tried again until a higher bandwidth is observed, or until the bandwidth has
//! meanwhile fallen below half of it, which is another phase of the program.
//!
//! [`Remapper::require`] sets the fewest devices that have room for the hot data (section 8.2.3, with constrained capacity). Devices that
//! were added for room are given back like those for bandwidth.

use super::bandwidth_model::BandwidthModel;

/// The thresholds of the remapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemapSettings {
    /// Consecutive samples in one range before a remap; 0 counts as 1.
    pub consecutive: u32,
    /// Percentage by which bandwidth must rise to keep a remap to more devices; `None` keeps every
    /// remap, as the paper's implementation does.
    pub least_gain: Option<u32>,
    /// Whether samples in different ranges on one side of the present one count together, for the nearest of these ranges.
    pub nearest: bool,
}

impl RemapSettings {
    /// The paper's implementation: two samples in the same range, no undo.
    pub const PAPER: Self = Self {
        consecutive: 2,
        least_gain: None,
        nearest: false,
    };
}

impl Default for RemapSettings {
    /// Two samples on one side; a remap that gains less than 5 % is undone. The number is ours: it is above the
    /// variation of a steady program's bandwidth from second to second.
    fn default() -> Self {
        Self {
            consecutive: 2,
            least_gain: Some(5),
            nearest: true,
        }
    }
}

/// The action after a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remap {
    /// No action.
    Stay,
    /// Move hot data to another number of devices.
    To {
        /// Devices that hold the hot data.
        from: u32,
        /// Devices after the move.
        to: u32,
    },
    /// The last remap gained nothing: move back.
    Undo {
        /// Devices that hold the data.
        from: u32,
        /// Devices after the undo.
        to: u32,
    },
}

/// A remap to more devices whose effect is not measured yet.
#[derive(Clone, Copy, Debug)]
struct Trial {
    from: u32,
    before: u64,
    highest: u64,
    samples: u32,
}

/// Consecutive samples in one range.
#[derive(Clone, Copy, Debug)]
struct Streak {
    devices: u32,
    samples: u32,
    highest: u64,
}

/// Follows the bandwidth of one machine.
#[derive(Clone, Debug)]
pub struct Remapper {
    model: BandwidthModel,
    settings: RemapSettings,
    devices: u32,
    /// The fewest devices with room for the hot data.
    least: u32,
    streak: Streak,
    trial: Option<Trial>,
    /// The highest bandwidth at which more devices gained nothing.
    refused: Option<u64>,
}

impl Remapper {
    /// Starts with hot data on this many devices, limited to 1 up to the most of the model.
    #[must_use]
    pub fn new(model: BandwidthModel, settings: RemapSettings, devices: u32) -> Self {
        let devices = devices.clamp(1, model.most());
        let settings = RemapSettings {
            consecutive: settings.consecutive.max(1),
            ..settings
        };
        Self {
            model,
            settings,
            devices,
            least: 1,
            streak: Streak {
                devices,
                samples: 0,
                highest: 0,
            },
            trial: None,
            refused: None,
        }
    }

    /// Devices that hold the hot data now.
    #[must_use]
    pub const fn devices(&self) -> u32 {
        self.devices
    }

    /// Takes a sample of the machine's bandwidth, in bytes a second. The caller carries out the
    /// returned action before the next sample, and takes no sample while data moves.
    pub fn sample(&mut self, bandwidth: u64) -> Remap {
        self.extend_streak(bandwidth);
        if let Some(undo) = self.judge_trial(bandwidth) {
            return undo;
        }
        self.forget_refusal();
        let Streak {
            devices: to,
            samples,
            highest,
        } = self.streak;
        let is_refused = to > self.devices
            && self
                .refused
                .is_some_and(|refused| !self.is_gain(refused, highest));
        if self.trial.is_some()
            || to == self.devices
            || samples < self.settings.consecutive
            || is_refused
        {
            return Remap::Stay;
        }
        let from = self.devices;
        if to > from && self.settings.least_gain.is_some() {
            self.trial = Some(Trial {
                from,
                before: highest,
                highest: 0,
                samples: 0,
            });
        }
        self.move_to(to);
        Remap::To { from, to }
    }

    /// Sets the fewest devices that have room for the hot data, limited to 1 up to the most of the model. If it has fewer now, the data
    /// moves before the next sample, and a trial without a result yet is kept.
    pub fn require(&mut self, least: u32) -> Remap {
        self.least = least.clamp(1, self.model.most());
        if self.devices >= self.least {
            return Remap::Stay;
        }
        let (from, to) = (self.devices, self.least);
        self.trial = None;
        self.move_to(to);
        Remap::To { from, to }
    }

    fn extend_streak(&mut self, bandwidth: u64) {
        let range = self.model.devices(bandwidth).max(self.least);
        self.streak = match self.continued(range) {
            Some(devices) => Streak {
                devices,
                samples: self.streak.samples.saturating_add(1),
                highest: self.streak.highest.max(bandwidth),
            },
            None => Streak {
                devices: range,
                samples: 1,
                highest: bandwidth,
            },
        };
    }

    /// The range of the streak if a sample in `range` continues it; else `None`.
    fn continued(&self, range: u32) -> Option<u32> {
        let former = self.streak.devices;
        let (above, below) = (
            former.min(range) > self.devices,
            former.max(range) < self.devices,
        );
        match (self.settings.nearest, range == former) {
            (_, true) => Some(range),
            (true, false) if above => Some(former.min(range)),
            (true, false) if below => Some(former.max(range)),
            _ => None,
        }
    }

    /// Ends a trial once it has its samples: returns the undo if it gained nothing.
    fn judge_trial(&mut self, bandwidth: u64) -> Option<Remap> {
        let trial = self.trial.as_mut()?;
        trial.samples += 1;
        trial.highest = trial.highest.max(bandwidth);
        let trial = *trial;
        if trial.samples < self.settings.consecutive {
            return None;
        }
        self.trial = None;
        let (from, to) = (self.devices, trial.from.max(self.least));
        if self.is_gain(trial.before, trial.highest) || to >= from {
            return None;
        }
        self.refused = Some(trial.before.max(trial.highest));
        self.move_to(to);
        Some(Remap::Undo { from, to })
    }

    fn is_gain(&self, before: u64, after: u64) -> bool {
        let percent = self.settings.least_gain.unwrap_or(0);
        let wanted = u128::from(before) * (100 + u128::from(percent));
        u128::from(after) * 100 > wanted
    }

    /// A bandwidth below half of the refused one, for as many samples as a remap needs, is another
    /// phase of the program.
    fn forget_refusal(&mut self) {
        let is_low = |refused: u64| self.streak.highest < refused / 2;
        if self.streak.samples >= self.settings.consecutive && self.refused.is_some_and(is_low) {
            self.refused = None;
        }
    }

    /// Samples from before a move do not apply after it.
    fn move_to(&mut self, devices: u32) {
        self.devices = devices;
        self.streak = Streak {
            devices,
            samples: 0,
            highest: 0,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::Remap::{Stay, To, Undo};
    use super::{BandwidthModel, Remap, RemapSettings, Remapper};
    use proptest::prelude::*;

    /// The decisions for samples in tenths of a GB/s, with the paper's table.
    fn decisions(settings: RemapSettings, tenths: &[u64]) -> Vec<Remap> {
        let mut remapper = Remapper::new(BandwidthModel::paper(), settings, 1);
        let samples = tenths.iter();
        samples
            .map(|&tenths| remapper.sample(tenths * 100_000_000))
            .collect()
    }

    #[test]
    fn table_2_on_a_written_sequence_remaps_after_two_samples_in_a_row_in_the_same_new_range() {
        let to = |from, to| To { from, to };
        let written: [(u64, Remap); 17] = [
            (80, Stay),
            (110, Stay),     // one sample in the range of 2
            (90, Stay),      // back in 1
            (110, Stay),     // one again
            (124, to(1, 2)), // two in a row
            (115, Stay),
            (140, Stay),     // one in 3
            (200, Stay),     // one in 4: not the same range
            (200, to(2, 4)), // two in 4: straight there
            (380, Stay),
            (50, Stay),      // a lull
            (390, Stay),     // over
            (150, Stay),     // one in 3
            (163, to(4, 3)), // still in 3, by the sign in the table
            (164, Stay),     // one in 4
            (50, Stay),      // one in 1
            (60, to(3, 1)),  // two in 1
        ];
        let samples: Vec<u64> = written.iter().map(|(sample, _)| *sample).collect();
        let wanted: Vec<Remap> = written.iter().map(|(_, remap)| *remap).collect();
        assert_eq!(decisions(RemapSettings::PAPER, &samples), wanted);
    }

    #[test]
    fn hot_data_without_room_gets_devices_at_once_and_gives_them_back_after_two_samples() {
        let mut remapper = Remapper::new(BandwidthModel::paper(), RemapSettings::default(), 1);
        let low = 5_000_000_000;
        assert_eq!(remapper.require(3), To { from: 1, to: 3 });
        assert_eq!(remapper.require(2), Stay, "there is room");
        let samples = [low, low, low].map(|bandwidth| remapper.sample(bandwidth));
        assert_eq!(samples, [Stay, To { from: 3, to: 2 }, Stay]);
        assert_eq!(remapper.require(99), To { from: 2, to: 4 }, "all there are");
    }

    #[test]
    fn devices_that_the_hot_data_needs_for_its_size_are_no_trial_to_be_undone() {
        let mut remapper = Remapper::new(BandwidthModel::paper(), RemapSettings::default(), 1);
        let high = 11_000_000_000;
        let first = [high, high].map(|bandwidth| remapper.sample(bandwidth));
        assert_eq!(first, [Stay, To { from: 1, to: 2 }]);
        assert_eq!(remapper.require(2), Stay);
        let judged = [high, high].map(|bandwidth| remapper.sample(bandwidth));
        assert_eq!(judged, [Stay, Stay], "undone although the data needs both");
    }

    #[test]
    fn brief_spikes_never_remap_where_a_less_careful_remapper_would_each_time() {
        // lusearch in the paper: spikes of one sample.
        let spikes = [50, 300, 50, 300, 50, 300, 50];
        assert_eq!(decisions(RemapSettings::PAPER, &spikes), [Stay; 7]);
        let eager = RemapSettings {
            consecutive: 1,
            ..RemapSettings::PAPER
        };
        let remaps = decisions(eager, &spikes);
        assert_eq!(remaps.iter().filter(|remap| **remap != Stay).count(), 6);
    }

    #[test]
    fn samples_on_one_side_count_together_for_the_nearest_range() {
        let nearest = RemapSettings {
            nearest: true,
            ..RemapSettings::PAPER
        };
        // Ranges 2, 3, 2, 3 from 1: never twice the same one.
        let near_a_bound = [115, 135, 120, 135];
        assert_eq!(
            decisions(RemapSettings::PAPER, &near_a_bound),
            [Stay; 4],
            "the paper's"
        );
        let moved = [Stay, To { from: 1, to: 2 }, Stay, Stay];
        assert_eq!(decisions(nearest, &near_a_bound), moved);
        // Down from 4: ranges 2 and 3 bring it to 3.
        let down = [200, 200, 115, 135];
        let moved = [Stay, To { from: 1, to: 4 }, Stay, To { from: 4, to: 3 }];
        assert_eq!(decisions(nearest, &down), moved);
        // One sample on each side stays, as spikes do.
        assert_eq!(decisions(nearest, &[50, 300, 50, 300])[..], [Stay; 4]);
    }

    #[test]
    fn a_remap_that_does_not_raise_bandwidth_is_undone_and_not_tried_again_at_that_bandwidth() {
        // sparse with one thread in the paper: 10.8 GB/s on any number of devices.
        let sequence = [108, 108, 109, 108, 108, 108, 107, 108];
        let undone = [
            Stay,
            To { from: 1, to: 2 },
            Stay,
            Undo { from: 2, to: 1 },
            Stay,
            Stay,
            Stay,
            Stay,
        ];
        assert_eq!(decisions(RemapSettings::default(), &sequence), undone);
        // The paper's implementation keeps the remap.
        let kept = decisions(RemapSettings::PAPER, &sequence);
        assert_eq!(kept.iter().filter(|remap| **remap != Stay).count(), 1);
    }

    #[test]
    fn a_remap_that_raises_bandwidth_is_kept() {
        let sequence = [108, 108, 120, 118, 118, 118];
        let mut wanted = [Stay; 6];
        wanted[1] = To { from: 1, to: 2 };
        assert_eq!(decisions(RemapSettings::default(), &sequence), wanted);
    }

    #[test]
    fn a_higher_bandwidth_or_another_phase_ends_a_refusal() {
        let refused = [108, 108, 108, 108];
        let higher = [&refused[..], &[120, 120]].concat();
        assert_eq!(
            decisions(RemapSettings::default(), &higher)[5],
            To { from: 1, to: 2 }
        );
        let same = [&refused[..], &[60, 60, 108, 108]].concat();
        assert_eq!(decisions(RemapSettings::default(), &same)[7], Stay);
        let phase = [&refused[..], &[50, 50, 108, 108]].concat();
        assert_eq!(
            decisions(RemapSettings::default(), &phase)[7],
            To { from: 1, to: 2 }
        );
    }

    proptest! {
        #[test]
        fn devices_stay_in_range_moves_are_told_and_samples_in_the_own_range_move_nothing(
            samples in prop::collection::vec(0_u64..300, 0..80), start in 0_u32..9,
            consecutive in 0_u32..4, least_gain in prop::option::of(0_u32..20), nearest: bool
        ) {
            let settings = RemapSettings { consecutive, least_gain, nearest };
            let mut remapper = Remapper::new(BandwidthModel::paper(), settings, start);
            let mut devices = remapper.devices();
            for tenths in samples {
                let bandwidth = tenths * 100_000_000;
                let remap = remapper.sample(bandwidth);
                match remap {
                    Stay => {}
                    To { from, to } => {
                        prop_assert_eq!(from, devices);
                        let range = BandwidthModel::paper().devices(bandwidth);
                        prop_assert!(from != to && (nearest || to == range));
                        prop_assert!(from.min(range) <= to && to <= from.max(range));
                        devices = to;
                    }
                    Undo { from, to } => {
                        prop_assert_eq!(from, devices);
                        prop_assert!(to < from && least_gain.is_some());
                        devices = to;
                    }
                }
                prop_assert_eq!(remapper.devices(), devices);
                prop_assert!((1..=4).contains(&devices));
            }
        }
    }
}
