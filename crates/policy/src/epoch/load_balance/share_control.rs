//! `ShareControl` computes the steps of `LoadBalance` by Colloid's search (SOSP 2024): how much more or less of all heat fast memory is to
//! serve next ([`Shift`]), at most halfway to a share at which the order of the latencies was the reverse, until they are equal.
//!
//! The equal point lies between the largest share at which fast memory was the faster one and the smallest at which it was the slower one,
//! and the next share is halfway. A bound that the latencies contradict is dropped, and so are both when the load changes.
//!
//! ```text
//! share  0                                   1
//! 1      |-------------------------------[slow]     fast memory is the slower: down, by a quarter at most
//! 2      |---------------[slow]                     still the slower
//! 3      |--[fast]                                  now the faster: up, to halfway between the two
//! 4      |-------[=]                                equal within 10 %: it stays
//! ```

use isotherm_model::tier_loads::TierLoads;

/// Latencies count as equal where the higher one is at most this share above the lower one: samples of an epoch are no more precise.
pub(super) const BAND: f64 = 0.1;

/// Largest step, as a share of all heat: taken where one latency is twice the other or more, and in proportion below that.
const MOST: f64 = 0.25;

/// Shares that are closer than this count as equal: if two bounds come so close, one is wrong because the program has changed.
const NARROWEST: f64 = 0.01;

/// The part by which a demand must rise above the earlier one to count as another load, or the earlier one must exceed it where it falls.
const OTHER_LOAD: f64 = 0.25;

/// The requested change of the share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shift {
    /// The latencies are equal.
    Stay,
    /// Fast memory is to serve a larger share of all heat.
    More {
        /// The step.
        by: f64,
        /// The share must stay below this.
        below: f64,
    },
    /// Fast memory is to serve a smaller share of all heat.
    Less {
        /// The step.
        by: f64,
        /// The share must stay above this.
        above: f64,
    },
}

/// The search for the share at which the latencies are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ShareControl {
    /// Share at which fast memory was the faster one under this load.
    faster_at: Option<f64>,
    /// Share at which fast memory was the slower one under this load.
    slower_at: Option<f64>,
    /// The load, in bytes a second.
    demand: u64,
}

impl ShareControl {
    /// The next step, given the share that fast memory serves and the latencies that follow from it.
    pub(super) fn next(&mut self, share: f64, loads: TierLoads) -> Shift {
        self.follow(loads.demand);
        let [fast, slow] = loads.latencies_ns;
        let (lower, higher) = (fast.min(slow), fast.max(slow));
        if lower <= 0.0 || higher <= lower * (1.0 + BAND) {
            return Shift::Stay;
        }
        let step = MOST * (higher / lower - 1.0).min(1.0);
        if fast < slow {
            self.faster_at = Some(share);
            self.slower_at = self.slower_at.filter(|it| *it >= share + NARROWEST);
            let halfway = self.slower_at.map(|it| (it - share) / 2.0);
            Shift::More {
                by: halfway.map_or(step, |halfway| halfway.min(step)),
                below: self
                    .slower_at
                    .map_or(f64::INFINITY, |it| it - NARROWEST / 2.0),
            }
        } else {
            self.slower_at = Some(share);
            self.faster_at = self.faster_at.filter(|it| *it <= share - NARROWEST);
            let halfway = self.faster_at.map(|it| (share - it) / 2.0);
            Shift::Less {
                by: halfway.map_or(step, |halfway| halfway.min(step)),
                above: self
                    .faster_at
                    .map_or(f64::NEG_INFINITY, |it| it + NARROWEST / 2.0),
            }
        }
    }

    /// Drops both bounds if the load differs from the one under which they were found.
    fn follow(&mut self, demand: u64) {
        let (less, more) = (demand.min(self.demand), demand.max(self.demand));
        if more as f64 > less as f64 * (1.0 + OTHER_LOAD) {
            *self = Self {
                demand,
                ..Self::default()
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ShareControl, Shift};
    use isotherm_model::tier_loads::TierLoads;

    fn loads(fast: f64, slow: f64, demand: u64) -> TierLoads {
        TierLoads {
            latencies_ns: [fast, slow],
            demand,
        }
    }

    fn by(shift: Shift) -> f64 {
        match shift {
            Shift::Stay => 0.0,
            Shift::More { by, .. } => by,
            Shift::Less { by, .. } => -by,
        }
    }

    fn assert_by(shift: Shift, wanted: f64) {
        assert!((by(shift) - wanted).abs() < 1e-9, "{shift:?}");
    }

    #[test]
    fn the_step_is_bounded_and_in_proportion_to_the_difference() {
        let step = |fast, slow| ShareControl::default().next(0.5, loads(fast, slow, 1_000));
        assert_by(step(900.0, 100.0), -0.25);
        assert_by(step(100.0, 200.0), 0.25);
        assert_by(step(100.0, 140.0), 0.1);
        assert_eq!(step(100.0, 109.0), Shift::Stay);
        assert_eq!(step(109.0, 100.0), Shift::Stay);
        assert_eq!(step(0.0, 100.0), Shift::Stay, "nothing is known");
    }

    #[test]
    fn the_next_share_is_halfway_between_two_that_were_wrong() {
        let mut control = ShareControl::default();
        assert_by(control.next(0.8, loads(900.0, 100.0, 1_000)), -0.25);
        let up = control.next(0.4, loads(100.0, 900.0, 1_000));
        assert_by(up, 0.2);
        assert!(matches!(up, Shift::More { below, .. } if below < 0.8));
        let down = control.next(0.6, loads(900.0, 100.0, 1_000));
        assert_by(down, -0.1);
        assert!(matches!(down, Shift::Less { above, .. } if above > 0.4));
    }

    #[test]
    fn a_bound_that_the_latencies_contradict_is_forgotten() {
        let mut control = ShareControl::default();
        control.next(0.8, loads(900.0, 100.0, 1_000));
        let up = control.next(0.795, loads(100.0, 900.0, 1_000));
        assert_eq!(
            up,
            Shift::More {
                by: 0.25,
                below: f64::INFINITY
            }
        );
    }

    #[test]
    fn both_bounds_are_forgotten_under_another_load() {
        for demand in [1_300, 700] {
            let mut control = ShareControl::default();
            control.next(0.42, loads(900.0, 100.0, 1_000));
            assert_by(control.next(0.4, loads(100.0, 900.0, 1_100)), 0.01);
            assert_by(control.next(0.4, loads(100.0, 900.0, demand)), 0.25);
        }
    }
}
