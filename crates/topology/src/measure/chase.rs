//! Measures memory latency by pointer chasing: each load's address is the result of the load before
//! it, so no processor can start a load before the last one has ended, and the order is random, so
//! that no prefetcher can predict it.

use std::hint::black_box;
use std::time::{Duration, Instant};

use isotherm_model::units::Nanos;
use isotherm_sys::affinity;

/// Words of a cache line, of which only the first is read.
const LINE: usize = 64 / size_of::<u64>();
/// Loads between two clock readings: half a millisecond, less than a time slice of the scheduler,
/// so that on a busy machine most batches are not interrupted and the median ignores the others.
const BATCH: usize = 1 << 12;
/// Any constant: the same memory is always walked in the same order.
const SEED: u64 = 0x150_7e42;

/// Joins the lines of the memory into one cycle in random order (Sattolo's shuffle).
pub(super) fn line_up(words: &mut [u64]) {
    let lines = words.len() / LINE;
    for line in 0..lines {
        words[line * LINE] = (line * LINE) as u64;
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    for line in (1..lines).rev() {
        words.swap(line * LINE, random.usize(..line) * LINE);
    }
}

/// The median time of a load, over batches of loads for `span`, on this processor.
///
/// # Errors
/// The thread cannot be pinned.
pub(super) fn latency(words: &[u64], cpu: u32, span: Duration) -> std::io::Result<Nanos> {
    let chased = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            affinity::pin(cpu)?;
            Ok(median_of_batches(words, span))
        });
        thread.join()
    });
    // The thread only reads memory; if it panics, that panic is passed on.
    chased.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn median_of_batches(words: &[u64], span: Duration) -> Nanos {
    let mut at = 0;
    let mut batches = Vec::new();
    let start = Instant::now();
    while batches.is_empty() || start.elapsed() < span {
        let batch = Instant::now();
        at = black_box(follow(words, at, BATCH));
        batches.push(batch.elapsed());
    }
    batches.sort_unstable();
    let median = batches[batches.len() / 2].as_nanos() as f64 / BATCH as f64;
    Nanos(median.round() as u64)
}

/// Follows the chain for the given number of loads.
#[inline(never)]
fn follow(words: &[u64], mut at: usize, loads: usize) -> usize {
    for _ in 0..loads {
        at = words[at] as usize;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::{LINE, follow, latency, line_up};
    use std::time::Duration;

    #[test]
    fn the_chain_visits_every_line_once_and_comes_back() {
        for lines in [1, 2, 3, 1000] {
            let mut words = vec![0; lines * LINE + 3];
            line_up(&mut words);
            let mut seen = vec![false; lines];
            let mut at = 0;
            for _ in 0..lines {
                assert!(!std::mem::replace(&mut seen[at / LINE], true), "{at} twice");
                at = follow(&words, at, 1);
            }
            assert_eq!((at, seen.contains(&false)), (0, false));
        }
    }

    #[test]
    fn a_processor_that_is_not_there_is_an_error() {
        let words = vec![0; LINE];
        assert!(latency(&words, 1 << 20, Duration::ZERO).is_err());
    }
}
