//! `points` measures the latency of memory at five loads, from none to the most that the processors of a node can read, each with the bytes
//! a second that were read: one thread follows a chain of dependent loads, as for idle memory, and threads on the other processors of the
//! node read a part of the memory of their own each, with pauses that set the load.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use isotherm_model::loaded_latency::LoadPoint;
use isotherm_sys::affinity;

use super::chase;
use super::stream;

/// Shares of the time in which the other threads read, in percent: from no load to the most that they can.
pub(super) const LOADS: [u32; 5] = [0, 25, 50, 75, 100];

/// Words that a thread reads without a pause: 64 KiB, some microseconds.
const BURST: usize = (64 << 10) / size_of::<u64>();

/// The latency at each load of [`LOADS`], with the bytes a second of all threads. The memory holds a chain in its first half,
/// made by [`chase::line_up`]. None where there is no processor for a load.
///
/// # Errors
/// A thread cannot be pinned.
pub(super) fn points(words: &[u64], cpus: &[u32], span: Duration) -> io::Result<Vec<LoadPoint>> {
    let Some((first, others)) = cpus.split_first().filter(|(_, others)| !others.is_empty()) else {
        return Ok(Vec::new());
    };
    let (chain, loaded) = words.split_at(words.len() / 2);
    let at = |load: &u32| point(chain, loaded, (*first, others), *load, span);
    LOADS.iter().map(at).collect()
}

fn point(
    chain: &[u64],
    loaded: &[u64],
    (first, others): (u32, &[u32]),
    load: u32,
    span: Duration,
) -> io::Result<LoadPoint> {
    let (ended, bytes) = (AtomicBool::new(false), AtomicU64::new(0));
    let part = loaded.len().div_ceil(others.len()).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = std::iter::zip(others, loaded.chunks(part))
            .map(|(cpu, part)| {
                let (ended, bytes) = (&ended, &bytes);
                scope.spawn(move || {
                    affinity::pin(*cpu)?;
                    read_with_pauses(part, load, ended, bytes);
                    Ok::<(), io::Error>(())
                })
            })
            .collect();
        let start = Instant::now();
        let latency = chase::latency(chain, first, span);
        let elapsed = start.elapsed().as_secs_f64().max(f64::MIN_POSITIVE);
        let read = bytes.load(Ordering::Relaxed);
        ended.store(true, Ordering::Relaxed);
        for thread in threads {
            let pinned = thread.join();
            pinned.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        let latency = latency?;
        let chased = LINE_BYTES / (latency.0.max(1) as f64 / 1e9);
        Ok(LoadPoint {
            bandwidth: (read as f64 / elapsed + chased) as u64,
            latency,
        })
    })
}

/// Bytes of a dependent load.
const LINE_BYTES: f64 = 64.0;

/// Reads bursts until the end, and rests after each so that reading takes this share of the time, in percent.
fn read_with_pauses(part: &[u64], load: u32, ended: &AtomicBool, bytes: &AtomicU64) {
    while !ended.load(Ordering::Relaxed) {
        for burst in part.chunks(BURST) {
            let start = Instant::now();
            if load > 0 {
                let read = stream::sum(black_box(burst)) as u64;
                bytes.fetch_add(read, Ordering::Relaxed);
            }
            let worked = start.elapsed();
            let pause = (worked * (100 - load)).checked_div(load);
            let end = start + worked + pause.unwrap_or(IDLE);
            while Instant::now() < end && !ended.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            if ended.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// Rest of a thread without any load: it keeps its processor awake, as a thread with a load does.
const IDLE: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::{LINE_BYTES, LOADS, chase, points, read_with_pauses};
    use isotherm_sys::affinity;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::Duration;

    #[test]
    fn the_latency_is_measured_at_each_load_and_nothing_without_a_processor_for_a_load() {
        let cpus = affinity::allowed().unwrap();
        let mut words = vec![0; 1 << 16];
        let half = words.len() / 2;
        chase::line_up(&mut words[..half]);
        let span = Duration::from_millis(2);
        assert!(points(&words, &cpus[..1], span).unwrap().is_empty());
        if cpus.len() == 1 {
            return;
        }
        let found = points(&words, &cpus, span).unwrap();
        assert_eq!(found.len(), LOADS.len());
        let chased = found
            .iter()
            .map(|it| (LINE_BYTES / (it.latency.0 as f64 / 1e9)) as u64);
        for (at, (point, chased)) in std::iter::zip(&found, chased).enumerate() {
            assert!(point.latency.0 > 0, "{found:?}");
            if at == 0 {
                assert_eq!(point.bandwidth, chased, "{found:?}");
            } else {
                assert!(point.bandwidth >= chased, "{found:?}");
            }
        }
        assert!(points(&words, &[cpus[0], 1 << 20], span).is_err());
    }

    /// Waits for what the readers read, not for a time: a loaded machine may start them late.
    #[test]
    fn readers_read_at_each_load_but_none() {
        let words = vec![1; 1 << 16];
        for load in LOADS {
            let (ended, bytes) = (AtomicBool::new(load == 0), AtomicU64::new(0));
            std::thread::scope(|scope| {
                scope.spawn(|| read_with_pauses(&words, load, &ended, &bytes));
                while load > 0 && bytes.load(Ordering::Relaxed) == 0 {
                    std::thread::yield_now();
                }
                ended.store(true, Ordering::Relaxed);
            });
            assert_eq!(bytes.into_inner() > 0, load > 0, "{load}");
        }
    }
}
