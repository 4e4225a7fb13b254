//! `WaitEstimates` judges what a program waited for at each sample (caches or no memory at all, memory latency, or bandwidth), for sources
//! that cannot see the caches, such as the timer: by an estimate of the share that caches of a given size serve, and by the streams of each
//! thread. Without a cache size, every sample counts as one of latency.
//!
//! ```text
//! samples of a process, in time order --+--> CacheEstimate --> share served --+--> caches, latency, or bandwidth
//! samples of a thread, in time order ---+--> Streams --> pattern -------------+
//! ```
//!
//! Counts are whole numbers. A sample of which the caches served a share is counted whole, as served or as beyond, in
//! proportion to that share.

use std::collections::HashMap;

use isotherm_cache_estimate::{AccessPattern, CacheEstimate, Streams};
use isotherm_model::batch::Process;
use isotherm_model::units::Bytes;

/// Samples of the window: at 1 kHz, two seconds of a thread. Takes 80 KiB for each process.
const WINDOW: usize = 2048;

/// Most processes with an estimate of their own. With more, those without samples in an epoch are forgotten, and
/// then samples of other processes count as beyond the caches.
const PROCESSES_AT_MOST: usize = 256;

/// Most threads of a process whose streams are known. With more, all of them are forgotten.
const THREADS_AT_MOST: usize = 1024;

/// A sample of a source that cannot see the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlindSample {
    pub(crate) process: Process,
    pub(crate) thread: u32,
    pub(crate) time_ns: u64,
    /// The sampled instruction.
    pub(crate) instruction: u64,
    pub(crate) address: u64,
    /// Whether the sample was taken behind an access, and not before one.
    pub(crate) is_behind_access: bool,
}

/// What a program waited for at a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitedFor {
    /// The caches, or no memory at all: memory of another tier would be no faster.
    Caches,
    /// The latency of the memory.
    Latency,
    /// The bandwidth of the memory, in a stream.
    Bandwidth,
}

/// The estimates of the processes that are sampled.
#[derive(Debug)]
pub(crate) struct WaitEstimates {
    /// Bytes of cache of each process; zero for no estimate.
    cache: Bytes,
    estimates: HashMap<Process, Estimate>,
    /// Position in the sequence by which shares become whole counts.
    turn: u32,
}

#[derive(Debug)]
struct Estimate {
    window: Box<CacheEstimate<WINDOW>>,
    threads: HashMap<u32, Streams>,
    /// Samples of this epoch.
    fresh: u64,
}

impl WaitEstimates {
    /// Estimates for processes that have this much cache each; with none, every sample is beyond it.
    pub(crate) fn new(cache: Bytes) -> Self {
        Self {
            cache,
            estimates: HashMap::new(),
            turn: 0,
        }
    }

    /// What each of the samples of an epoch, given in the order of time, waited for. A sample is judged by the samples before and after
    /// it; where these are too few to judge by, it counts as beyond the caches. Processes without samples may be forgotten.
    pub(crate) fn judge(&mut self, samples: &[BlindSample]) -> Vec<WaitedFor> {
        let mut waits = vec![WaitedFor::Latency; samples.len()];
        if self.cache == Bytes::ZERO {
            return waits;
        }
        let mut by_process = HashMap::<Process, Vec<usize>>::new();
        for (number, sample) in samples.iter().enumerate() {
            by_process.entry(sample.process).or_default().push(number);
        }
        // In an order of their own, so that equal runs give equal counts.
        let mut by_process: Vec<_> = by_process.into_iter().collect();
        by_process.sort_unstable_by_key(|(process, _)| *process);
        for (process, numbers) in by_process {
            let turn = &mut self.turn;
            let Some(estimate) = estimate(&mut self.estimates, process, self.cache) else {
                continue;
            };
            let all = numbers.iter().map(|number| &samples[*number]);
            let beyond: Vec<WaitedFor> = all.map(|it| estimate.beyond_caches(it)).collect();
            for (place, number) in numbers.iter().enumerate() {
                estimate.window.observe(samples[*number].address);
                if let Some(earlier) = place.checked_sub(WINDOW / 2) {
                    let share = estimate.window.served_before(WINDOW / 2);
                    waits[numbers[earlier]] = waited(beyond[earlier], share, turn);
                }
            }
            estimate.fresh += numbers.len() as u64;
            let rest = numbers.len().saturating_sub(WINDOW / 2);
            for (age, place) in (rest..numbers.len()).rev().enumerate() {
                let share = estimate.window.served_before(age);
                waits[numbers[place]] = waited(beyond[place], share, turn);
            }
        }
        if self.estimates.len() >= PROCESSES_AT_MOST / 2 {
            self.estimates.retain(|_, estimate| estimate.fresh > 0);
        }
        self.estimates
            .values_mut()
            .for_each(|estimate| estimate.fresh = 0);
        waits
    }
}

fn estimate(
    estimates: &mut HashMap<Process, Estimate>,
    process: Process,
    cache: Bytes,
) -> Option<&mut Estimate> {
    if estimates.len() >= PROCESSES_AT_MOST && !estimates.contains_key(&process) {
        return None;
    }
    Some(estimates.entry(process).or_insert_with(|| Estimate {
        window: Box::new(CacheEstimate::new(cache.0)),
        threads: HashMap::new(),
        fresh: 0,
    }))
}

impl Estimate {
    /// What a sample waited for if the caches served nothing of it.
    fn beyond_caches(&mut self, sample: &BlindSample) -> WaitedFor {
        if self.threads.len() >= THREADS_AT_MOST && !self.threads.contains_key(&sample.thread) {
            self.threads.clear();
        }
        let streams = self.threads.entry(sample.thread).or_default();
        let pattern = streams.note(sample.instruction, sample.address, sample.time_ns);
        match pattern {
            _ if !pattern.waits(sample.is_behind_access) => WaitedFor::Caches,
            AccessPattern::Scattered => WaitedFor::Latency,
            AccessPattern::Stream | AccessPattern::LimitedStream => WaitedFor::Bandwidth,
        }
    }
}

/// What a sample waited for: `beyond` is the answer if the caches served nothing of it, `share` the share that they served, where
/// known.
fn waited(beyond: WaitedFor, share: Option<f32>, turn: &mut u32) -> WaitedFor {
    match share {
        None if beyond == WaitedFor::Caches => WaitedFor::Latency,
        Some(share) if is_served(share, turn) => WaitedFor::Caches,
        _ => beyond,
    }
}

/// Whether a sample counts as served: true for its share of all samples. The sequence of multiples of the golden ratio
/// spreads these evenly over any part of the samples (Weyl).
fn is_served(share: f32, turn: &mut u32) -> bool {
    *turn = turn.wrapping_add(0x9e37_79b9);
    f64::from(*turn) < f64::from(share) * f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{BlindSample, WINDOW, WaitEstimates, WaitedFor};
    use isotherm_model::batch::Process;
    use isotherm_model::units::Bytes;

    const CACHE: Bytes = Bytes(1 << 20);

    fn process(pid: u32) -> Process {
        Process { pid, image: 0 }
    }

    /// A sample behind an access, some milliseconds after the start.
    fn sample(pid: u32, address: u64, ms: usize) -> BlindSample {
        BlindSample {
            process: process(pid),
            thread: pid,
            time_ns: ms as u64 * 1_000_000,
            instruction: 0x400,
            address,
            is_behind_access: true,
        }
    }

    /// Samples of a process at random over `pages` pages from `begin` on.
    fn random(pid: u32, begin: u64, pages: u64, count: usize) -> Vec<BlindSample> {
        let mut random = fastrand::Rng::with_seed(7);
        let mut address = || (begin + random.u64(..pages)) * 4096 + random.u64(..4096);
        (0..count).map(|ms| sample(pid, address(), ms)).collect()
    }

    fn share(waits: &[WaitedFor], of: WaitedFor) -> f64 {
        waits.iter().filter(|waited| **waited == of).count() as f64 / waits.len() as f64
    }

    #[test]
    fn a_set_that_fits_is_served_and_one_that_does_not_is_beyond() {
        let mut waits = WaitEstimates::new(CACHE);
        let (small, large) = (random(1, 0, 64, 1000), random(2, 0, 1 << 14, 1000));
        let mixed: Vec<_> = small
            .iter()
            .zip(&large)
            .flat_map(|(a, b)| [*a, *b])
            .collect();
        let judged = waits.judge(&mixed);
        let of = |pid: u32| -> f64 {
            let both = mixed.iter().zip(&judged);
            let of_pid: Vec<_> = both
                .filter(|(sample, _)| sample.process.pid == pid)
                .map(|(_, waited)| *waited)
                .collect();
            share(&of_pid, WaitedFor::Caches)
        };
        assert!(of(1) > 0.97, "{}", of(1));
        assert!(of(2) < 0.07, "{}", of(2));
    }

    #[test]
    fn hot_pages_are_served_beside_a_stream_of_others() {
        let mut waits = WaitEstimates::new(CACHE);
        let hot = random(1, 0, 64, 4 * WINDOW);
        // By another instruction, as fast as the memory delivers.
        let stream = (0..4 * WINDOW).map(|ms| BlindSample {
            instruction: 0x500,
            ..sample(1, (1 << 32) + ms as u64 * 5_000_000, ms)
        });
        let mixed: Vec<_> = hot
            .into_iter()
            .zip(stream)
            .flat_map(|(a, b)| [a, b])
            .collect();
        let judged = waits.judge(&mixed);
        let (hot, stream): (Vec<_>, Vec<_>) = judged.chunks(2).map(|two| (two[0], two[1])).unzip();
        assert!(share(&hot, WaitedFor::Caches) > 0.9, "{hot:?}");
        assert!(share(&stream, WaitedFor::Bandwidth) > 0.9, "{stream:?}");
    }

    #[test]
    fn a_sample_before_its_access_waited_for_none_of_the_memory() {
        let before = |sample| BlindSample {
            is_behind_access: false,
            ..sample
        };
        let all: Vec<_> = random(1, 0, 1 << 14, 1000)
            .into_iter()
            .map(before)
            .collect();
        let judged = WaitEstimates::new(CACHE).judge(&all);
        assert!(share(&judged, WaitedFor::Caches) > 0.8, "{judged:?}");
    }

    #[test]
    fn few_samples_count_as_beyond_and_so_do_all_without_a_cache() {
        let few = random(1, 0, 4, 8);
        let judged = WaitEstimates::new(Bytes(64 << 20)).judge(&few);
        assert_eq!(share(&judged, WaitedFor::Caches), 0.0);
        let many = random(1, 0, 4, 3000);
        let judged = WaitEstimates::new(Bytes::ZERO).judge(&many);
        assert_eq!(judged, vec![WaitedFor::Latency; many.len()]);
    }

    #[test]
    fn processes_that_are_no_longer_sampled_are_forgotten() {
        let mut waits = WaitEstimates::new(CACHE);
        for pid in 0..1000 {
            waits.judge(&random(pid, 0, 4, 200));
        }
        assert!(waits.estimates.len() <= super::PROCESSES_AT_MOST);
        let judged = waits.judge(&random(5000, 0, 4, 200));
        let served = share(&judged, WaitedFor::Caches);
        assert!(served > 0.9, "{served}: there is room for a new one");
    }
}
