//! [`TierMeter`] finds, in each epoch, the load of two tiers in bytes a second, and from it the latencies of both (by their curves of
//! latency under load), for a policy that balances them. On memory nodes the load is the bytes that they serve, by counters of the memory
//! controllers and by samples; on emulated machines the bytes that programs ask for, by the counts of their runtimes ([`TierDemand`]).
//!
//! On memory nodes the memory controllers count the bytes of one tier, those of all programs ([`tier_traffic`]); the bytes of the other
//! tier follow from the samples: how many of the accesses of watched programs each tier served. A sample of the timer stands for a time,
//! in which memory of half the latency serves twice as many.
//!
//! ```text
//! counted   DRAM 30 GB in a second
//! samples   DRAM 600, CXL 400          600 / 100 ns against 400 / 200 ns: three accesses to one
//! loads     DRAM 30 GB/s, CXL 10 GB/s  --curves--> latencies under load
//! ```
//!
//! [`tier_traffic`]: isotherm_observe::counters::tier_traffic

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use isotherm_model::loaded_latency::LoadedLatency;
use isotherm_model::tier::{Tier, TierIndex, Tiers};
use isotherm_model::tier_loads::TierLoads;
use isotherm_model::units::Nanos;
use isotherm_model::watch::Observation;
use isotherm_observe::counters::tier_traffic::open_for_tier;
use isotherm_observe::counters::{CounterEvent, Counting};
use isotherm_observe::source::process_samples::SampleWorth;
use isotherm_observe::watch::watcher::Watcher;
use isotherm_pipeline::TierDemand;
use isotherm_sys::perf::PerfCounter;

use crate::config::Config;
use crate::machine_tiers::{MachineTiers, TierPlace};

/// Measures the loads of both tiers in each epoch.
pub(crate) enum TierMeter {
    /// On memory nodes.
    Nodes(NodeMeter),
    /// On emulated machines.
    Emulated(TierDemand),
}

impl TierMeter {
    /// The meter of a policy that balances the tiers; `None` for another policy.
    ///
    /// # Errors
    /// The latencies of the tiers under load or their bytes cannot be known, or nothing is to be moved.
    pub(crate) fn start(
        config: &Config,
        places: &MachineTiers,
        dry_run: bool,
    ) -> Result<Option<Self>> {
        if !config.balances() {
            return Ok(None);
        }
        if dry_run {
            bail!(
                "policy = \"balance\": each move answers what the move before it changed, and a dry run changes nothing; leave out --dry-run"
            );
        }
        Ok(Some(match places.place {
            TierPlace::Nodes => Self::Nodes(NodeMeter::start(config, places)?),
            TierPlace::Emulated => Self::Emulated(TierDemand::new(limited(&places.tiers)?)),
            TierPlace::Paged | TierPlace::Imagined => bail!(
                "policy = \"balance\": compares the latencies of two tiers under load, and programs do not wait for accesses to compressed memory, \
                 but for its pages; name memory nodes or an emulated machine in memory.tiers"
            ),
        }))
    }

    /// The loads in the epoch that ended with this observation, whose samples represent `worth` each. `None` where nothing was counted or
    /// too little was sampled.
    pub(crate) fn loads(
        &mut self,
        seen: &Observation,
        worth: Option<SampleWorth>,
        watcher: &mut Watcher,
    ) -> Option<TierLoads> {
        match self {
            Self::Nodes(nodes) => nodes.loads(seen, worth),
            Self::Emulated(demand) => demand.loads_of(watcher.take_emulated_use(), seen.span),
        }
    }
}

/// Latencies by load of an emulated machine whose bandwidths are limited.
fn limited(tiers: &Tiers) -> Result<[LoadedLatency; 2]> {
    match tiers.loaded_latencies() {
        Some(latencies) => Ok(latencies),
        None => bail!(
            "policy = \"balance\": compares the latencies of the tiers under load, and these have no limit of their bandwidth; write a tiers file of the \
             programs' machine: isotherm tiers --tiers emulated:lab,limit:5GiB/s,fast-limit:10GiB/s -o lab.toml; then memory.tiers = \"lab.toml\""
        ),
    }
}

/// Measures the loads of memory nodes.
pub(crate) struct NodeMeter {
    counting: Counting<PerfCounter>,
    traffic: CountedTraffic,
    division: TrafficDivision,
}

impl NodeMeter {
    fn start(config: &Config, places: &MachineTiers) -> Result<Self> {
        if config.samples().is_none() {
            bail!(
                "policy = \"balance\": samples tell how the accesses divide between the tiers; leave out sources.trace_samples = \"off\""
            );
        }
        let curves = curves(places)?;
        let open = &|event: &CounterEvent| event.open();
        let (counted, mut counting) =
            open_for_tier(Path::new("/"), &places.tiers, open).map_err(|why| {
                anyhow!("policy = \"balance\": the bytes of the tiers cannot be counted: {why}")
            })?;
        let begun = counting.begin();
        let begun = begun.context("policy = \"balance\": the memory controllers cannot be read")?;
        Ok(Self {
            traffic: CountedTraffic::since(begun),
            counting,
            division: TrafficDivision::new(counted, curves),
        })
    }

    fn loads(&mut self, seen: &Observation, worth: Option<SampleWorth>) -> Option<TierLoads> {
        let bytes_a_second = self.traffic.next(self.counting.value().ok(), seen.span)?;
        let placed = seen.placed.values();
        let [all, fast] = placed.fold([0_u64; 2], |[all, fast], one| {
            [
                all.saturating_add(one.samples),
                fast.saturating_add(one.fast),
            ]
        });
        let samples = [fast, all.saturating_sub(fast)];
        let is_time = matches!(worth, Some(SampleWorth::Time(_)));
        self.division.loads(bytes_a_second, samples, is_time)
    }
}

/// The bytes that the controllers counted, from one reading to the next.
#[derive(Clone, Copy, Debug)]
struct CountedTraffic {
    /// The count at the last reading.
    before: u64,
    /// Time since then.
    unread: Nanos,
}

impl CountedTraffic {
    const fn since(before: u64) -> Self {
        Self {
            before,
            unread: Nanos::ZERO,
        }
    }

    /// Bytes a second since the last reading, at the end of an epoch of this length. `None` where the count cannot be read now, as
    /// while another program has the counters, or went back: the bytes of this epoch are then among those of the next, or lost.
    fn next(&mut self, count: Option<u64>, span: Nanos) -> Option<u64> {
        self.unread = self.unread.saturating_add(span);
        let count = count?;
        let last = std::mem::replace(self, Self::since(count));
        let bytes = count.checked_sub(last.before)?;
        Some(a_second(bytes, last.unread))
    }
}

/// The measured latencies under load of the two tiers that memory moves between.
fn curves(places: &MachineTiers) -> Result<[LoadedLatency; 2]> {
    let curve = |tier: &Tier| LoadedLatency::through(tier.loaded.clone());
    let pair = places.tiers.all().iter().take(2);
    let known: Vec<LoadedLatency> = pair.filter_map(curve).collect();
    known.try_into().map_err(|_| {
        anyhow!(
            "policy = \"balance\": the latencies of the tiers under load are not known; measure them: isotherm tiers --measure -o tiers.toml; \
             then memory.tiers = \"tiers.toml\""
        )
    })
}

/// `bytes` in `span`, as bytes a second.
fn a_second(bytes: u64, span: Nanos) -> u64 {
    let bytes = u128::from(bytes) * 1_000_000_000 / u128::from(span.0.max(1));
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// Fewest samples that tell how the accesses divide.
const SAMPLES: u64 = 50;

/// Divides the traffic between the tiers.
#[derive(Clone, Debug)]
struct TrafficDivision {
    /// The tier whose bytes are counted: 0 for fast, 1 for slow memory.
    counted: usize,
    curves: [LoadedLatency; 2],
    /// Latencies in the last epoch, by which samples of the timer are weighed.
    latencies_ns: [f64; 2],
}

impl TrafficDivision {
    fn new(counted: TierIndex, curves: [LoadedLatency; 2]) -> Self {
        Self {
            counted: usize::from(counted != TierIndex::FASTEST),
            latencies_ns: curves.each_ref().map(|curve| curve.at(0)),
            curves,
        }
    }

    /// The loads of both tiers, given the bytes a second of the counted one and the samples of each; the samples stand for times or for accesses.
    fn loads(&mut self, counted: u64, samples: [u64; 2], is_time: bool) -> Option<TierLoads> {
        if samples[0].saturating_add(samples[1]) < SAMPLES || samples[self.counted] == 0 {
            return None;
        }
        let accesses = |tier: usize| match is_time {
            true => samples[tier] as f64 / self.latencies_ns[tier].max(1.0),
            false => samples[tier] as f64,
        };
        let other = accesses(1 - self.counted) / accesses(self.counted);
        let mut bytes = [counted; 2];
        // The cast saturates.
        bytes[1 - self.counted] = (counted as f64 * other) as u64;
        self.latencies_ns = [0, 1].map(|tier| self.curves[tier].at(bytes[tier]));
        Some(TierLoads {
            latencies_ns: self.latencies_ns,
            demand: bytes[0].saturating_add(bytes[1]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{CountedTraffic, TrafficDivision, a_second};
    use isotherm_model::loaded_latency::{LoadPoint, LoadedLatency};
    use isotherm_model::tier::TierIndex;
    use isotherm_model::tier_loads::TierLoads;
    use isotherm_model::units::Nanos;

    const GB: u64 = 1_000_000_000;

    /// DRAM of 100 ns, 300 ns at 40 GB/s; CXL memory of 200 ns, 600 ns at 20 GB/s.
    fn division(counted: u32) -> TrafficDivision {
        let curve = |points: [(u64, u64); 2]| {
            let point = |(bandwidth, latency)| LoadPoint {
                bandwidth: bandwidth * GB,
                latency: Nanos(latency),
            };
            LoadedLatency::through(points.map(point).to_vec()).expect("points")
        };
        let curves = [curve([(20, 100), (40, 300)]), curve([(10, 200), (20, 600)])];
        TrafficDivision::new(TierIndex(counted), curves)
    }

    #[test]
    fn the_bytes_of_the_other_tier_follow_from_the_samples() {
        let loads = |latencies_ns, demand| {
            Some(TierLoads {
                latencies_ns,
                demand,
            })
        };
        // Samples of accesses: three to one.
        let found = division(0).loads(30 * GB, [600, 200], false);
        assert_eq!(found, loads([200.0, 200.0], 40 * GB));
        let found = division(1).loads(10 * GB, [600, 200], false);
        assert_eq!(found, loads([200.0, 200.0], 40 * GB));
        // The same by time: an access to slow memory takes twice as long.
        let found = division(0).loads(30 * GB, [600, 400], true);
        assert_eq!(found, loads([200.0, 200.0], 40 * GB));
    }

    #[test]
    fn samples_of_time_are_weighed_by_the_latencies_of_the_epoch_before() {
        let mut division = division(0);
        division.loads(40 * GB, [600, 200], false);
        // 300 ns and, at 13.3 GB/s, 333 ns: as many samples are 0.9 times as many accesses.
        let found = division.loads(30 * GB, [500, 500], true).expect("loads");
        assert!(found.demand.abs_diff(57 * GB) < GB / 10, "{found:?}");
    }

    #[test]
    fn few_samples_or_none_of_the_counted_tier_tell_nothing() {
        assert_eq!(division(0).loads(30 * GB, [30, 10], false), None);
        assert_eq!(division(0).loads(30 * GB, [0, 400], false), None);
        let all_fast = division(0).loads(30 * GB, [400, 0], false);
        assert_eq!(all_fast.expect("loads").demand, 30 * GB);
    }

    #[test]
    fn bytes_of_an_epoch_that_could_not_be_read_are_those_of_two_epochs() {
        let second = Nanos(1_000_000_000);
        let mut traffic = CountedTraffic::since(5 * GB);
        assert_eq!(traffic.next(Some(7 * GB), second), Some(2 * GB));
        assert_eq!(traffic.next(None, second), None);
        assert_eq!(traffic.next(Some(11 * GB), second), Some(2 * GB));
        assert_eq!(traffic.next(Some(14 * GB), second), Some(3 * GB));
    }

    #[test]
    fn a_count_that_went_back_tells_nothing_of_its_epoch() {
        let second = Nanos(1_000_000_000);
        let mut traffic = CountedTraffic::since(5 * GB);
        assert_eq!(traffic.next(Some(GB), second), None);
        assert_eq!(traffic.next(Some(2 * GB), second), Some(GB));
    }

    #[test]
    fn a_rate_is_of_the_length_of_the_epoch() {
        assert_eq!(a_second(3 * GB, Nanos(500_000_000)), 6 * GB);
        assert_eq!(a_second(0, Nanos::ZERO), 0);
    }
}
