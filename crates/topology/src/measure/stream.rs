//! Measures the bandwidth of reading, writing and a triad (`a = b + 3 c`) by threads that each go through a part of the memory of their
//! own, over and over.
//!
//! The kernels are McCalpin's STREAM in integers: the traffic is the same, and a factor of three
//! takes no multiplication. [`std::hint::black_box`] keeps the compiler from removing passes with
//! unused results.

use std::hint::black_box;
use std::io;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use isotherm_sys::affinity;
use isotherm_sys::clock::thread_ns;

use super::pair::{Rates, TRIALS};

/// Words between two clock readings: 4 MiB.
const BLOCK: usize = (4 << 20) / size_of::<u64>();

/// A kernel: processes a block and returns its traffic in bytes.
type Kernel = fn(&mut [u64]) -> usize;

/// The result of a trial.
#[derive(Clone, Copy, Debug, Default)]
struct Trial {
    /// Bytes a second of all threads together.
    rate: f64,
    /// Share of the time for which the threads had a processor.
    ran: f64,
}

/// Read, write and triad of one thread on each of these processors, the best of [`TRIALS`] each;
/// and the least share of a best trial's time for which its threads had a processor.
///
/// # Errors
/// A thread cannot be pinned.
pub(super) fn rates(words: &mut [u64], cpus: &[u32], trial: Duration) -> io::Result<(Rates, f64)> {
    let mut best = |kernel: Kernel| -> io::Result<Trial> {
        let mut best = Trial::default();
        for _ in 0..TRIALS {
            let found = all_threads(words, cpus, trial, kernel)?;
            if found.rate > best.rate {
                best = found;
            }
        }
        Ok(best)
    };
    let [read, write, triad] = [best(read)?, best(write)?, best(triad)?];
    let rates = Rates {
        threads: u32::try_from(cpus.len()).unwrap_or(u32::MAX),
        read: read.rate as u64,
        write: write.rate as u64,
        triad: triad.rate as u64,
    };
    Ok((rates, read.ran.min(write.ran).min(triad.ran)))
}

/// A trial of all threads at the same time.
fn all_threads(
    words: &mut [u64],
    cpus: &[u32],
    trial: Duration,
    kernel: Kernel,
) -> io::Result<Trial> {
    let part = words.len().div_ceil(cpus.len().max(1)).max(1);
    // One part fewer than threads where there are too few words.
    let start = Barrier::new(words.len().div_ceil(part));
    let trials: Vec<io::Result<Trial>> = std::thread::scope(|scope| {
        let threads: Vec<_> = cpus
            .iter()
            .zip(words.chunks_mut(part))
            .map(|(cpu, part)| {
                let start = &start;
                scope.spawn(move || {
                    let pinned = affinity::pin(*cpu);
                    // A thread that could not be pinned still joins: the others wait for it.
                    start.wait();
                    pinned.map(|()| one_thread(part, trial, kernel))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                let ended = thread.join();
                ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    let trials: Vec<Trial> = trials.into_iter().collect::<io::Result<_>>()?;
    let ran: f64 = trials.iter().map(|trial| trial.ran).sum();
    Ok(Trial {
        rate: trials.iter().map(|trial| trial.rate).sum(),
        ran: ran / trials.len().max(1) as f64,
    })
}

/// Runs one thread over its part, block by block, until the time has passed.
fn one_thread(part: &mut [u64], trial: Duration, kernel: Kernel) -> Trial {
    let (start, ran_ns) = (Instant::now(), thread_ns());
    let mut bytes = 0.0;
    loop {
        for block in part.chunks_mut(BLOCK) {
            bytes += kernel(black_box(block)) as f64;
            let elapsed = start.elapsed();
            if elapsed >= trial {
                let seconds = elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
                return Trial {
                    rate: bytes / seconds,
                    ran: thread_ns().saturating_sub(ran_ns) as f64 / 1e9 / seconds,
                };
            }
        }
    }
}

#[inline(never)]
fn read(block: &mut [u64]) -> usize {
    sum(block)
}

/// Reads a block; returns its bytes.
#[inline(never)]
pub(super) fn sum(block: &[u64]) -> usize {
    // Eight sums, so that no addition depends on the one before.
    let mut sums = [0_u64; 8];
    let (chunks, rest) = block.as_chunks::<8>();
    for chunk in chunks {
        for (sum, word) in sums.iter_mut().zip(chunk) {
            *sum = sum.wrapping_add(*word);
        }
    }
    black_box((sums, rest));
    size_of_val(block)
}

#[inline(never)]
fn write(block: &mut [u64]) -> usize {
    block.fill(black_box(7));
    black_box(&mut *block);
    size_of_val(block)
}

/// The three arrays are thirds of a block, which begin at different offsets in their pages: at
/// equal offsets loads would wait for stores with a false dependency (4 KiB aliasing), and the
/// figure would be that of the processor.
#[inline(never)]
fn triad(block: &mut [u64]) -> usize {
    let third = block.len() / 3;
    let (a, rest) = block.split_at_mut(third);
    let (b, c) = rest.split_at(third);
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        *a = b.wrapping_add(c.wrapping_mul(3));
    }
    black_box(a);
    3 * third * size_of::<u64>()
}

#[cfg(test)]
mod tests {
    use super::{all_threads, rates, read, triad, write};
    use isotherm_sys::affinity;
    use std::time::Duration;

    #[test]
    fn the_kernels_do_their_work_and_count_what_passed() {
        let mut block: Vec<u64> = (0..32).collect();
        assert_eq!(read(&mut block), 32 * 8);
        assert_eq!(triad(&mut block), 30 * 8);
        let expected: Vec<u64> = (0..10).map(|i| (i + 10) + 3 * (i + 20)).collect();
        assert_eq!(block[..10], expected);
        assert_eq!(write(&mut block), 32 * 8);
        assert_eq!(block, [7; 32]);
    }

    #[test]
    fn every_thread_takes_its_part_and_the_rates_are_told_for_all() {
        let cpus = affinity::allowed().unwrap();
        let mut words = vec![0; 1 << 12];
        let trial = Duration::from_millis(1);
        let (rates, ran) = rates(&mut words, &cpus, trial).unwrap();
        assert_eq!(rates.threads as usize, cpus.len());
        assert!(
            rates.read > 0 && rates.write > 0 && rates.triad > 0,
            "{rates:?}"
        );
        assert!(ran > 0.0, "{ran}");
        assert!(all_threads(&mut words, &cpus, trial, write).unwrap().rate > 0.0);
        let reached = words.iter().filter(|word| **word == 7).count();
        assert_eq!(reached, words.len(), "no thread's part was left out");
        assert!(all_threads(&mut words, &[1 << 20], trial, read).is_err());
    }
}
