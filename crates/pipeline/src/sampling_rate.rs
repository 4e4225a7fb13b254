//! [`sampling_rate`] chooses the timer's rate for a profile that is taken within a run, by `--optimize-after` or at the program's request:
//! as high as its data needs, up to the limits of its cost. [`at_highest_rate`] makes counts of different rates comparable.
//!
//! ```text
//! resident bytes --> chunks of 64 KiB --> 4 samples each --+
//! time of the profile, threads that run -------------------+--> samples a second of each thread --+
//! cost of a sample: 5 % of each thread's time --------------------------------------------------+--> one of the timer's rates
//! samples a second of all threads, which one observer reads ------------------------------------+
//! ```
//!
//! Data that needs fewer samples than the usual rate takes is sampled at the usual rate: it may grow while it is profiled.

use isotherm_model::batch::{OBJECT_AT_LEAST, ObservedAccess};
use isotherm_model::units::{Bytes, Nanos};

/// The rate of a run whose user names none, in samples a second of each thread's processor time.
pub const USUAL_HZ: u32 = 1000;
/// The other rates that a profile may have.
pub const OTHER_HZ: [u32; 3] = [250, 2000, HIGHEST_HZ];
/// The highest rate, a multiple of the others.
const HIGHEST_HZ: u32 = 4000;

/// Samples of a chunk on average: fewer prove nothing.
pub(crate) const SAMPLES_PER_CHUNK: u64 = 4;
/// Bytes of a chunk for which a rate is chosen; where the samples allow, chunks are smaller.
const PLANNED_CHUNK: Bytes = OBJECT_AT_LEAST;
/// The part of each thread's time that its samples may take, in millionths.
const COST_PPM: u64 = 50_000;
/// Samples a second of all threads together.
const ALL_HZ_AT_MOST: u64 = 64_000;

/// The facts that determine the rate of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplingNeed {
    /// Resident bytes of the data that is profiled.
    pub resident: Bytes,
    /// Threads that run at a time.
    pub threads: u64,
    /// How long the profile is expected to take.
    pub time: Nanos,
    /// Time that one sample takes of its thread.
    pub sample_cost: Nanos,
}

/// The lowest of these rates, in samples a second of each thread, that gives the data its samples in the time and keeps to the limits of
/// cost; else the highest that keeps to them, or the lowest of all where none does. `None` without rates.
#[must_use]
pub fn sampling_rate(need: &SamplingNeed, rates: &[u32]) -> Option<u32> {
    let wanted = wanted_hz(need).max(USUAL_HZ.into());
    let limit = most_hz(need);
    let allowed = || rates.iter().copied().filter(|hz| u64::from(*hz) <= limit);
    let enough = allowed().filter(|hz| u64::from(*hz) >= wanted).min();
    enough
        .or_else(|| allowed().max())
        .or_else(|| rates.iter().copied().min())
}

/// Samples a second of each thread that give each planned chunk its samples in the time.
fn wanted_hz(need: &SamplingNeed) -> u64 {
    let chunks = need.resident.0.div_ceil(PLANNED_CHUNK.0);
    let samples = u128::from(chunks) * u128::from(SAMPLES_PER_CHUNK) * 1_000_000_000;
    let time = u128::from(need.time.0.max(1)) * u128::from(need.threads.max(1));
    u64::try_from(samples.div_ceil(time)).unwrap_or(u64::MAX)
}

/// Samples a second of each thread that the limits of cost allow.
fn most_hz(need: &SamplingNeed) -> u64 {
    let nanos_a_second = COST_PPM * 1_000;
    let of_thread = nanos_a_second / need.sample_cost.0.max(1);
    of_thread.min(ALL_HZ_AT_MOST / need.threads.max(1))
}

/// Converts the counts of accesses to those at the highest rate, so that accesses sampled at different rates compare: at half of it a
/// sample counts twice. Accesses of sources without a rate stay as they are.
#[must_use]
pub fn at_highest_rate(accesses: &[ObservedAccess]) -> Vec<ObservedAccess> {
    let of_access = |access: &ObservedAccess| {
        let times = HIGHEST_HZ.checked_div(access.sampled_hz);
        let weight = u64::from(times.unwrap_or(1).max(1));
        ObservedAccess {
            count: access.count.saturating_mul(weight),
            streamed: access.streamed.saturating_mul(weight),
            served: access.served.saturating_mul(weight),
            ..*access
        }
    };
    accesses.iter().map(of_access).collect()
}

#[cfg(test)]
mod tests {
    use super::{
        ALL_HZ_AT_MOST, COST_PPM, HIGHEST_HZ, OTHER_HZ, SamplingNeed, USUAL_HZ, at_highest_rate,
        sampling_rate,
    };
    use isotherm_model::batch::{ObservedAccess, Process};
    use isotherm_model::source_kind::SourceKind;
    use isotherm_model::units::{Bytes, Nanos};
    use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, proptest};

    fn rates() -> Vec<u32> {
        [&[USUAL_HZ], &OTHER_HZ[..]].concat()
    }

    fn need(mebibytes: u64, threads: u64, cost_us: u64) -> SamplingNeed {
        SamplingNeed {
            resident: Bytes(mebibytes << 20),
            threads,
            time: Nanos(1_000_000_000),
            sample_cost: Nanos(cost_us * 1_000),
        }
    }

    fn hz(need: SamplingNeed) -> u32 {
        sampling_rate(&need, &rates()).expect("there are rates")
    }

    #[test]
    fn large_data_is_sampled_more_often_as_far_as_a_sample_is_cheap() {
        // 16 chunks of a mebibyte, four samples each: 64 a second.
        assert_eq!(hz(need(0, 1, 5)), 1000);
        assert_eq!(hz(need(15, 1, 5)), 1000);
        assert_eq!(hz(need(31, 1, 5)), 2000);
        assert_eq!(hz(need(4096, 1, 5)), 4000);
        assert_eq!(hz(need(4096, 1, 20)), 2000, "4 % of the time");
        assert_eq!(hz(need(4096, 1, 50)), 1000, "5 %");
        assert_eq!(hz(need(4096, 1, 51)), 250);
        assert_eq!(hz(need(0, 1, 200)), 250);
    }

    #[test]
    fn threads_share_the_samples() {
        assert_eq!(hz(need(60, 1, 5)), 4000);
        assert_eq!(hz(need(60, 2, 5)), 2000);
        assert_eq!(hz(need(60, 4, 5)), 1000);
        assert_eq!(hz(need(1 << 20, 16, 5)), 4000);
        assert_eq!(hz(need(1 << 20, 17, 5)), 2000, "64,000 a second of all");
        assert_eq!(hz(need(1 << 20, 65, 5)), 250);
        assert_eq!(hz(need(1 << 20, 1 << 40, 5)), 250, "the lowest");
    }

    #[test]
    fn a_longer_profile_needs_fewer_samples_a_second() {
        let in_four = |seconds: u64| SamplingNeed {
            time: Nanos(seconds * 1_000_000_000),
            ..need(60, 1, 5)
        };
        assert_eq!(hz(in_four(2)), 2000);
        assert_eq!(hz(in_four(4)), 1000);
        assert_eq!(sampling_rate(&in_four(4), &[]), None);
    }

    fn access(source: SourceKind, sampled_hz: u32) -> ObservedAccess {
        let place = (Process::default(), 4096);
        ObservedAccess {
            streamed: 2,
            served: 1,
            sampled_hz,
            ..ObservedAccess::at(place, source, (3, source.unit(false)))
        }
    }

    fn counts(access: &ObservedAccess) -> [u64; 3] {
        [access.count, access.streamed, access.served]
    }

    #[test]
    fn counts_of_all_rates_compare() {
        for hz in rates() {
            let weight = u64::from(HIGHEST_HZ / hz);
            assert_eq!(weight * u64::from(hz), HIGHEST_HZ.into(), "{hz}");
            let weighted = at_highest_rate(&[access(SourceKind::Timer, hz)]);
            let found: Vec<_> = weighted.iter().map(counts).collect();
            assert_eq!(found, [[3, 2, 1].map(|count| count * weight)]);
        }
    }

    #[test]
    fn each_access_of_a_batch_counts_by_its_own_rate_and_those_without_one_stay() {
        let batch = [
            access(SourceKind::Timer, 4000),
            access(SourceKind::PageFaults, 0),
            access(SourceKind::Timer, 1000),
            access(SourceKind::Pebs, 0),
        ];
        let weighted = at_highest_rate(&batch);
        let found: Vec<_> = weighted.iter().map(|access| access.count).collect();
        assert_eq!(found, [3, 3, 12, 3]);
    }

    fn any_need() -> impl Strategy<Value = SamplingNeed> {
        let cost = proptest::prop_oneof![Just(0), 1_000..200_000_u64, any::<u64>()];
        let numbers = (any::<u64>(), any::<u64>(), any::<u64>(), cost);
        let shifts = (0..64_u32, 0..64_u32, 0..64_u32);
        (numbers, shifts).prop_map(|((resident, threads, time, cost), shifts)| SamplingNeed {
            resident: Bytes(resident >> shifts.0),
            threads: threads >> shifts.1,
            time: Nanos(time >> shifts.2),
            sample_cost: Nanos(cost),
        })
    }

    proptest! {
        #[test]
        fn a_rate_is_one_of_those_and_keeps_to_the_limits_unless_it_is_the_lowest(need in any_need()) {
            let hz = hz(need);
            prop_assert!(rates().contains(&hz));
            let cost_ppm = u128::from(hz) * u128::from(need.sample_cost.0) / 1_000;
            let all = u128::from(hz) * u128::from(need.threads);
            let keeps = cost_ppm <= u128::from(COST_PPM) && all <= u128::from(ALL_HZ_AT_MOST);
            prop_assert!(keeps || hz == 250, "{need:?}: {hz}");
        }

        #[test]
        fn more_bytes_take_no_lower_rate_and_more_threads_no_higher_one(need in any_need(), more in any::<u64>()) {
            let larger = SamplingNeed { resident: Bytes(need.resident.0.saturating_add(more)), ..need };
            prop_assert!(hz(larger) >= hz(need));
            let wider = SamplingNeed { threads: need.threads.saturating_add(more), ..need };
            prop_assert!(hz(wider) <= hz(need));
            let costlier = SamplingNeed { sample_cost: Nanos(need.sample_cost.0.saturating_add(more)), ..need };
            prop_assert!(hz(costlier) <= hz(need));
            let longer = SamplingNeed { time: Nanos(need.time.0.saturating_add(more)), ..need };
            prop_assert!(hz(longer) <= hz(need));
            let mut reversed = rates();
            reversed.reverse();
            prop_assert_eq!(sampling_rate(&need, &reversed), Some(hz(need)));
        }
    }
}
