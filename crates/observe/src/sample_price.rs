//! What a sample of the timer takes of the program that it interrupts, tried on this machine.
//!
//! Nobody outside of the program can see it, and it differs tenfold: an interrupt is a microsecond or two
//! where the processor sets its timer itself, and twenty where a hypervisor does, half of them for what the
//! caches lost. So the same work on memory is done with the timer and without, in turn, and the quickest
//! rounds of both are compared: whatever else the machine does only adds to a round.

use std::io;
use std::path::Path;

use isotherm_model::units::Nanos;
use isotherm_sys::perf::{Event, Sampler};

use crate::clock::Clock;
use crate::probe::{THIS_THREAD, WORKED_ON, samples};

/// Period of the timer while it is tried: some ten samples a round.
const PERIOD: u64 = 250_000;

/// Rounds of each kind.
const ROUNDS: usize = 10;

/// Updates of memory in a round: some 2 ms.
const UPDATES: u64 = 1 << 20;

/// A round of work, and the samples that interrupted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    took: Nanos,
    samples: u64,
}

/// Time that one sample takes of a program that works on memory.
///
/// # Errors
/// The event cannot be opened, or delivers nothing.
pub fn sample_price(clock: &dyn Clock) -> io::Result<Nanos> {
    let event = Event {
        tasks: false,
        ..Event::cpu_clock(PERIOD)
    };
    let cpus = crate::list::online_cpus(Path::new("/"));
    let mut sampler = Sampler::open(&event, THIS_THREAD, &cpus, 0)?;
    let mut memory = vec![1_u64; WORKED_ON / size_of::<u64>()];
    let (mut alone, mut sampled) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        sampler.disable()?;
        alone.push(round(clock, &mut memory, &mut sampler));
        sampler.enable()?;
        sampled.push(round(clock, &mut memory, &mut sampler));
    }
    sampler.disable()?;
    price(&alone, &sampled).ok_or_else(|| io::Error::other("the timer delivers no samples"))
}

fn round(clock: &dyn Clock, memory: &mut [u64], sampler: &mut Sampler) -> Round {
    let begin = clock.now();
    update(memory);
    let took = clock.now().saturating_sub(begin);
    let samples = samples(sampler).len() as u64;
    Round { took, samples }
}

/// Adds to words here and there, as a table is updated: by Knuth's congruential generator.
fn update(memory: &mut [u64]) {
    let mut random = 1_u64;
    for _ in 0..UPDATES {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let at = (random >> 32) as usize % memory.len();
        memory[at] = memory[at].wrapping_add(random);
    }
    std::hint::black_box(memory);
}

/// What a sample takes by the quickest round of each kind; None where no round was sampled. A round with few
/// samples would say more of the machine's noise than of them.
fn price(alone: &[Round], sampled: &[Round]) -> Option<Nanos> {
    let alone = alone.iter().map(|round| round.took).min()?;
    let most = sampled.iter().map(|round| round.samples).max()?;
    let enough = |round: &&Round| round.samples > 0 && round.samples >= most / 2;
    let sampled = sampled.iter().filter(enough);
    let quickest = sampled.min_by_key(|round| round.took)?;
    Some(Nanos(
        quickest.took.saturating_sub(alone).0 / quickest.samples,
    ))
}

#[cfg(test)]
mod tests {
    use super::{Round, price, sample_price};
    use crate::clock::Clock;
    use isotherm_model::units::Nanos;
    use std::cell::Cell;

    const fn round(took: u64, samples: u64) -> Round {
        let took = Nanos(took);
        Round { took, samples }
    }

    #[test]
    fn rounds_that_others_disturbed_do_not_count() {
        let alone = [round(2_900_000, 0), round(2_000_000, 0)];
        let sampled = [
            round(5_000_000, 9),
            round(2_180_000, 9),
            round(2_100_000, 1),
        ];
        assert_eq!(price(&alone, &sampled), Some(Nanos(20_000)));
    }

    #[test]
    fn a_price_is_never_below_nothing_and_none_without_samples() {
        let alone = [round(2_000_000, 0)];
        assert_eq!(price(&alone, &[round(1_900_000, 8)]), Some(Nanos::ZERO));
        assert_eq!(price(&alone, &[round(1_900_000, 0)]), None);
        assert_eq!(price(&alone, &[]), None);
    }

    /// A clock by which a round with the timer takes a millisecond more than one without.
    #[derive(Default)]
    struct Played(Cell<u64>);

    impl Clock for Played {
        fn now(&self) -> Nanos {
            let asked = self.0.get();
            self.0.set(asked + 1);
            // Each round asks twice, and every other one is sampled: 0, 1, 1, 3, 3, 4, 4, 6 ... ms.
            Nanos((asked / 4 * 3 + [0, 1, 1, 3][asked as usize % 4]) * 1_000_000)
        }

        fn busy(&self) -> Nanos {
            Nanos::ZERO
        }

        fn sleep(&self, _: Nanos) {}
    }

    #[test]
    fn what_rounds_with_the_timer_take_longer_is_the_price_of_its_samples() {
        match sample_price(&Played::default()) {
            Ok(price) => assert!(
                (Nanos(1)..=Nanos(1_000_000)).contains(&price),
                "a millisecond by the samples of a round: {price}"
            ),
            Err(error) => isotherm_skip::skip!("no samples of the timer: {error}"),
        }
    }
}
