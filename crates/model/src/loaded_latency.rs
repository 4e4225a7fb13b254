//! [`LoadedLatency`] is a curve through points: the latency of a tier's memory by the load on it, for the policies that balance tiers.
//!
//! ```text
//! latency                  /     beyond the last point: every access waits for those before it, so the
//!    |                   /       latency is in proportion to the demand
//!    |               __x
//!    |       ___x---             between two points: a straight line
//!    | x----
//!    +-------------------- bytes a second
//! ```

use crate::units::Nanos;

/// The latency of a load while the memory serves this bandwidth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadPoint {
    /// Bytes a second.
    pub bandwidth: u64,
    /// Latency.
    pub latency: Nanos,
}

/// A curve of latency by load: at least one point; the bandwidth rises from point to point, and the latency does not fall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedLatency(Vec<LoadPoint>);

impl LoadedLatency {
    /// The curve through these points, in any order. A latency that falls under a higher load is noise, and so is a bandwidth that falls
    /// back: a point gets the highest latency up to its bandwidth. `None` without a point that has a bandwidth and a latency.
    #[must_use]
    pub fn through(mut points: Vec<LoadPoint>) -> Option<Self> {
        points.retain(|point| point.bandwidth > 0 && point.latency > Nanos::ZERO);
        points.sort_by_key(|point| (point.bandwidth, point.latency));
        let mut highest = Nanos::ZERO;
        for point in &mut points {
            highest = highest.max(point.latency);
            point.latency = highest;
        }
        points.reverse();
        // Keeps one point for each bandwidth: the first of the reversed list, which has the highest latency.
        points.dedup_by_key(|point| point.bandwidth);
        points.reverse();
        (!points.is_empty()).then_some(Self(points))
    }

    /// The latency in nanoseconds under a demand in bytes a second.
    #[must_use]
    pub fn at(&self, demand: u64) -> f64 {
        let after = self.0.partition_point(|point| point.bandwidth < demand);
        let before = after.checked_sub(1).and_then(|at| self.0.get(at));
        let latency = |point: &LoadPoint| point.latency.0 as f64;
        match (before, self.0.get(after)) {
            (Some(low), Some(high)) => {
                let way = (demand - low.bandwidth) as f64 / (high.bandwidth - low.bandwidth) as f64;
                latency(low) + way * (latency(high) - latency(low))
            }
            (Some(last), None) => latency(last) * (demand as f64 / last.bandwidth as f64),
            (None, Some(first)) => latency(first),
            (None, None) => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LoadPoint, LoadedLatency};
    use crate::units::Nanos;

    fn through(points: &[(u64, u64)]) -> Option<LoadedLatency> {
        let point = |&(bandwidth, latency)| LoadPoint {
            bandwidth,
            latency: Nanos(latency),
        };
        LoadedLatency::through(points.iter().map(point).collect())
    }

    #[test]
    fn latency_is_idle_below_the_first_point_between_points_in_between_and_beyond_in_proportion() {
        let curve = through(&[(10, 100), (30, 200)]).expect("a curve");
        for (demand, latency) in [
            (0, 100.0),
            (10, 100.0),
            (20, 150.0),
            (30, 200.0),
            (60, 400.0),
        ] {
            let found = curve.at(demand);
            assert!((found - latency).abs() < 1e-9, "{demand}: {found}");
        }
    }

    #[test]
    fn noise_of_a_measurement_never_lets_the_latency_fall() {
        let noisy = through(&[(30, 190), (10, 100), (20, 210), (30, 150), (0, 90), (5, 0)]);
        assert_eq!(noisy, through(&[(10, 100), (20, 210), (30, 210)]));
        assert_eq!(through(&[(0, 100), (7, 0)]), None);
    }
}
