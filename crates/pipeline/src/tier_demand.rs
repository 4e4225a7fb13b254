//! [`TierDemand`] computes what programs ask of both tiers of an emulated machine, and the latencies under that load, from the counts of
//! its runtime, for policies that balance the tiers.
//!
//! The bytes that a saturated memory serves do not show how much more the program would access. So the load is what the program *asks for*:
//! the bytes that it would access if no memory kept it waiting, as in plans by the bandwidths of sites.
//!
//! ```text
//! processor time   1.0 s, of which 0.6 s are delays of the emulation
//! bytes served     fast 400 MB, slow 100 MB
//! asked for        fast 1 GB,   slow 250 MB        400 MB in 0.4 s of work
//! ```

use isotherm_model::batch::{Batch, Count};
use isotherm_model::loaded_latency::LoadedLatency;
use isotherm_model::tier_loads::{EmulatedUse, TierLoads};
use isotherm_model::units::{Bytes, Nanos};

/// Names of the counts of the bytes that the fast and the slow memory served.
pub(crate) const SERVED: [&str; 2] = ["bytes_served_fast", "bytes_served_slow"];

/// Names of the counts of processor time and of the part of it that the emulation took.
const USED: &str = "cpu_ns";
const DELAYED: &str = "delay_ns";

/// The most by which demand can exceed the served bytes: where over 99 % of the time is waiting, the rest is too little to measure.
const MOST_TIMES: u64 = 100;

/// Follows what the programs ask of both tiers.
#[derive(Clone, Debug)]
pub struct TierDemand {
    /// Latencies of fast and of slow memory by their loads.
    curves: [LoadedLatency; 2],
    /// The use at the end of the last epoch, since the start of the run.
    before: EmulatedUse,
}

impl TierDemand {
    /// Follows a run that has not begun, on tiers with these latencies.
    #[must_use]
    pub fn new(curves: [LoadedLatency; 2]) -> Self {
        Self {
            curves,
            before: EmulatedUse::default(),
        }
    }

    /// The loads in the epoch of this batch, which follows that of the last call. `None` where no memory was accessed in it.
    pub fn loads(&mut self, batch: &Batch) -> Option<TierLoads> {
        let now = since_start(batch);
        let before = std::mem::replace(&mut self.before, now);
        self.loads_of(now.since(before), batch.span)
    }

    /// The loads in an epoch of this length. `None` where no memory was accessed in it.
    #[must_use]
    pub fn loads_of(&self, used: EmulatedUse, span: Nanos) -> Option<TierLoads> {
        let demand = used.served.map(|bytes| asked(used, bytes, span));
        let is_busy = demand.iter().any(|bytes| *bytes > 0);
        let [fast, slow] = &self.curves;
        is_busy.then(|| TierLoads {
            latencies_ns: [fast.at(demand[0]), slow.at(demand[1])],
            demand: demand[0].saturating_add(demand[1]),
        })
    }
}

/// The times and bytes served since the start of the run.
fn since_start(batch: &Batch) -> EmulatedUse {
    let sum = |name| Count::total(&batch.counts, name);
    EmulatedUse {
        served: SERVED.map(|name| Bytes(sum(name))),
        used: Nanos(sum(USED)),
        delayed: Nanos(sum(DELAYED)),
    }
}

/// Bytes a second that were asked for, given those that were served in an epoch of this length.
fn asked(used: EmulatedUse, served: Bytes, span: Nanos) -> u64 {
    let worked = used.used.saturating_sub(used.delayed).0;
    let worked = worked.max(used.used.0 / MOST_TIMES).max(1);
    // 2^40 bytes, as many nanoseconds and 10^9 are less than 2^111 together.
    let asked = u128::from(served.0).saturating_mul(u128::from(used.used.0.max(worked)));
    let asked = asked.saturating_mul(1_000_000_000) / u128::from(worked);
    u64::try_from(asked / u128::from(span.0.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{DELAYED, SERVED, TierDemand, USED};
    use isotherm_model::batch::{Batch, Count};
    use isotherm_model::loaded_latency::{LoadPoint, LoadedLatency};
    use isotherm_model::units::Nanos;

    const MB: u64 = 1_000_000;
    const MS: u64 = 1_000_000;

    /// Fast memory of 100 ns and 500 MB/s, slow memory of 200 ns and 1 GB/s.
    fn demand() -> TierDemand {
        let curve = |latency, bandwidth| {
            let latency = Nanos(latency);
            LoadedLatency::through(vec![LoadPoint { bandwidth, latency }]).expect("a point")
        };
        TierDemand::new([curve(100, 500 * MB), curve(200, 1_000 * MB)])
    }

    /// An epoch of a second, at whose end these are the counts: bytes of each tier, and milliseconds used and delayed.
    fn batch(served: [u64; 2], used: u64, delayed: u64) -> Batch {
        let values = [served[0] * MB, served[1] * MB, used * MS, delayed * MS];
        let names = [SERVED[0], SERVED[1], USED, DELAYED];
        let count = |(name, value): (&str, u64)| Count::of_run(name, value);
        Batch {
            span: Nanos(1_000 * MS),
            counts: names.into_iter().zip(values).map(count).collect(),
            ..Batch::default()
        }
    }

    #[test]
    fn a_program_asks_for_what_it_would_access_without_delays() {
        let mut demand = demand();
        let loads = demand.loads(&batch([400, 100], 1_000, 600)).expect("loads");
        assert_eq!(loads.demand, 1_250 * MB);
        assert_eq!(loads.latencies_ns, [200.0, 200.0], "1 GB/s and 250 MB/s");
    }

    #[test]
    fn each_epoch_counts_by_itself_and_processes_add_up() {
        let mut demand = demand();
        demand.loads(&batch([400, 100], 1_000, 600));
        let mut next = batch([600, 100], 1_500, 600);
        assert_eq!(demand.loads(&next).expect("loads").demand, 200 * MB);
        let other = batch([100, 300], 500, 0).counts;
        next.counts.extend(other);
        assert_eq!(demand.loads(&next).expect("loads").demand, 400 * MB);
        assert_eq!(demand.loads(&next), None, "no access");
    }

    #[test]
    fn a_program_that_only_waits_asks_for_a_hundred_times_as_much_at_most() {
        for delayed in [1_000, 5_000] {
            let loads = demand().loads(&batch([1, 0], 1_000, delayed));
            assert_eq!(loads.expect("loads").demand, 100 * MB);
        }
        let idle = demand().loads(&batch([1, 0], 0, 5)).expect("loads");
        assert_eq!(idle.demand, MB);
    }
}
