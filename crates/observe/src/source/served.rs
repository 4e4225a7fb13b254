//! Which samples the caches served, for sources that cannot see them.
//!
//! ```text
//! samples of a process, in time order --> CacheEstimate --> share served --> served, or beyond the caches
//! ```
//!
//! Counts are whole numbers. A sample of which the caches served a share is counted whole, as served or as beyond, in
//! proportion to that share.

use std::collections::HashMap;

use isotherm_cache_estimate::CacheEstimate;
use isotherm_model::batch::Process;
use isotherm_model::units::Bytes;

/// Samples of the window: at 1 kHz, two seconds of a thread. Takes 80 KiB for each process.
const WINDOW: usize = 2048;

/// Most processes with an estimate of their own. With more, those without samples in an epoch are forgotten, and
/// then samples of other processes count as beyond the caches.
const PROCESSES_AT_MOST: usize = 256;

/// The estimates of the processes that are sampled.
#[derive(Debug)]
pub(crate) struct ServedByCaches {
    /// Bytes of cache of each process; zero for no estimate.
    cache: Bytes,
    estimates: HashMap<Process, Estimate>,
    /// Position in the sequence by which shares become whole counts.
    turn: u32,
}

#[derive(Debug)]
struct Estimate {
    window: Box<CacheEstimate<WINDOW>>,
    /// Samples since the last end of an epoch.
    fresh: u64,
}

impl ServedByCaches {
    /// Estimates for processes that have this much cache each; with none, every sample is beyond it.
    pub(crate) fn new(cache: Bytes) -> Self {
        Self {
            cache,
            estimates: HashMap::new(),
            turn: 0,
        }
    }

    /// True for each of the samples, given in the order of time, that the caches served. A sample is judged by those
    /// before and after it; what the samples of a process cannot tell yet counts as beyond the caches.
    pub(crate) fn judge(&mut self, samples: &[(Process, u64)]) -> Vec<bool> {
        let mut served = vec![false; samples.len()];
        if self.cache == Bytes::ZERO {
            return served;
        }
        let mut by_process = HashMap::<Process, Vec<usize>>::new();
        for (number, (process, _)) in samples.iter().enumerate() {
            by_process.entry(*process).or_default().push(number);
        }
        // In an order of their own, so that equal runs give equal counts.
        let mut by_process: Vec<_> = by_process.into_iter().collect();
        by_process.sort_unstable_by_key(|(process, _)| *process);
        for (process, numbers) in by_process {
            let turn = &mut self.turn;
            let Some(estimate) = estimate(&mut self.estimates, process, self.cache) else {
                continue;
            };
            for (place, number) in numbers.iter().enumerate() {
                estimate.window.observe(samples[*number].1);
                if let Some(earlier) = place.checked_sub(WINDOW / 2) {
                    let share = estimate.window.served_before(WINDOW / 2);
                    served[numbers[earlier]] = is_served(share, turn);
                }
            }
            estimate.fresh += numbers.len() as u64;
            let rest = numbers.len().saturating_sub(WINDOW / 2);
            for (age, number) in numbers[rest..].iter().rev().enumerate() {
                served[*number] = is_served(estimate.window.served_before(age), turn);
            }
        }
        served
    }

    /// Ends an epoch: processes without samples may be forgotten.
    pub(crate) fn end_epoch(&mut self) {
        if self.estimates.len() >= PROCESSES_AT_MOST / 2 {
            self.estimates.retain(|_, estimate| estimate.fresh > 0);
        }
        self.estimates
            .values_mut()
            .for_each(|estimate| estimate.fresh = 0);
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
        fresh: 0,
    }))
}

/// Whether a sample counts as served: true for its share of all samples. The sequence of multiples of the golden ratio
/// spreads these evenly over any part of the samples (Weyl).
fn is_served(share: Option<f32>, turn: &mut u32) -> bool {
    *turn = turn.wrapping_add(0x9e37_79b9);
    f64::from(*turn) < f64::from(share.unwrap_or(0.0)) * f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{ServedByCaches, WINDOW};
    use isotherm_model::batch::Process;
    use isotherm_model::units::Bytes;

    const CACHE: Bytes = Bytes(1 << 20);

    fn process(pid: u32) -> Process {
        Process { pid, image: 0 }
    }

    /// Samples of a process at random over `pages` pages from `begin` on.
    fn random(pid: u32, begin: u64, pages: u64, count: usize) -> Vec<(Process, u64)> {
        let mut random = fastrand::Rng::with_seed(7);
        let mut sample = || {
            (
                process(pid),
                (begin + random.u64(..pages)) * 4096 + random.u64(..4096),
            )
        };
        (0..count).map(|_| sample()).collect()
    }

    fn share(served: &[bool]) -> f64 {
        served.iter().filter(|served| **served).count() as f64 / served.len() as f64
    }

    #[test]
    fn a_set_that_fits_is_served_and_one_that_does_not_is_beyond() {
        let mut served = ServedByCaches::new(CACHE);
        let (small, large) = (random(1, 0, 64, 1000), random(2, 0, 1 << 14, 1000));
        let mixed: Vec<_> = small
            .iter()
            .zip(&large)
            .flat_map(|(a, b)| [*a, *b])
            .collect();
        let judged = served.judge(&mixed);
        let of = |pid: u32| -> Vec<bool> {
            let both = mixed.iter().zip(&judged);
            both.filter(|((process, _), _)| process.pid == pid)
                .map(|(_, served)| *served)
                .collect()
        };
        assert!(share(&of(1)) > 0.97, "{}", share(&of(1)));
        assert!(share(&of(2)) < 0.07, "{}", share(&of(2)));
    }

    #[test]
    fn hot_pages_are_served_beside_a_stream_of_others() {
        let mut served = ServedByCaches::new(CACHE);
        let hot = random(1, 0, 64, 4 * WINDOW);
        let stream = (0..4 * WINDOW as u64).map(|page| (process(1), (1000 + page) * 4096));
        let mixed: Vec<_> = hot
            .into_iter()
            .zip(stream)
            .flat_map(|(a, b)| [a, b])
            .collect();
        let judged = served.judge(&mixed);
        let (hot, stream): (Vec<_>, Vec<_>) = judged.chunks(2).map(|two| (two[0], two[1])).unzip();
        assert!(share(&hot) > 0.9, "{}", share(&hot));
        assert!(share(&stream) < 0.1, "{}", share(&stream));
    }

    #[test]
    fn few_samples_count_as_beyond_and_so_do_all_without_a_cache() {
        let few = random(1, 0, 4, 8);
        assert_eq!(ServedByCaches::new(Bytes(64 << 20)).judge(&few), [false; 8]);
        let many = random(1, 0, 4, 3000);
        let judged = ServedByCaches::new(Bytes::ZERO).judge(&many);
        assert!(!judged.contains(&true) && judged.len() == many.len());
    }

    #[test]
    fn processes_that_are_no_longer_sampled_are_forgotten() {
        let mut served = ServedByCaches::new(CACHE);
        for pid in 0..1000 {
            served.judge(&random(pid, 0, 4, 200));
            served.end_epoch();
        }
        assert!(served.estimates.len() <= super::PROCESSES_AT_MOST);
        let judged = served.judge(&random(5000, 0, 4, 200));
        assert!(share(&judged) > 0.9, "there is room for a new one");
    }
}
