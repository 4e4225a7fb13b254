//! [`sample_cost`] measures the time that one timer sample takes of the interrupted program: a thread that reads the clock in a loop is
//! sampled, and sees each sample as a gap between two readings; the cost is twice the median gap, for what caches lose. The daemon and an
//! optimization limit the sample rate by it, and `doctor` reports it; the daemon keeps measuring its own thread, in a
//! [`RunningSampleCost`].
//!
//! No other program can measure it, and it differs tenfold: an interrupt takes a microsecond or two where the processor
//! sets its timer itself, and twenty where a hypervisor does. A sample records its time, so the gap that contains this
//! time is the cost of the sample. Gaps without a sample have other causes. Comparing the run time of some work with and
//! without the timer is inaccurate on a busy machine: other programs make more difference.
//!
//! ```text
//! clock     | | | | | |            | | | | | |      | | | |
//! samples                 ^ 20 us                              the second gap: another interrupt
//! ```

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use isotherm_model::units::Nanos;
use isotherm_sys::perf::{PerfEventAttributes, Sampler};

use super::own_samples::{THIS_THREAD, samples};
use isotherm_model::port::Clock;

/// The cost before any measurement: that of a sample in a virtual machine whose hypervisor sets its
/// timers.
pub const GUESS: Nanos = Nanos(20_000);

/// The least and the most plausible cost of a sample. Less is indistinguishable from reading the clock; more
/// means that another program or the hypervisor took the processor.
const BELIEVED: [Nanos; 2] = [Nanos(1_000), Nanos(200_000)];

/// The program loses the same time again after the interrupt, whose code and data have evicted its cache lines.
/// Measured by the same work on memory with the timer and without: 22 us a sample, of which 11 in the interrupt.
const WITH_CACHES: u64 = 2;

/// Period of the timer during the trial, and the length of the trial: some forty samples.
const PERIOD: u64 = 250_000;
const TRIAL: Nanos = Nanos(10_000_000);

/// The shortest gap that is kept: several readings of the clock.
const GAP: Nanos = Nanos(500);

/// Number of clock readings, and of gaps, after which a measurement ends whatever the clock reads.
const READINGS: u32 = 1 << 20;
const GAPS: usize = 1 << 12;

/// The cost is the median of this number of samples.
const KEPT: usize = 15;

/// Gaps between readings of the clock, with their times.
#[derive(Clone, Debug, Default)]
pub struct Gaps(Vec<(Nanos, Nanos)>);

impl Gaps {
    /// Reads the clock for the given time.
    #[must_use]
    pub fn watch(clock: &dyn Clock, time: Nanos) -> Self {
        let mut gaps = Vec::new();
        let mut before = clock.now();
        let end = Nanos(before.0.saturating_add(time.0));
        for _ in 0..READINGS {
            let now = clock.now();
            if now.saturating_sub(before) >= GAP && gaps.len() < GAPS {
                gaps.push((before, now));
            }
            if now >= end {
                break;
            }
            before = now;
        }
        Self(gaps)
    }

    /// The cost of the sample taken at this time; None where this thread was not interrupted then.
    #[must_use]
    pub fn taken_by(&self, time_ns: u64) -> Option<Nanos> {
        let after = self.0.partition_point(|(_, end)| end.0 <= time_ns);
        let (begin, end) = self.0.get(after)?;
        (begin.0 <= time_ns).then(|| end.saturating_sub(*begin))
    }
}

/// A running median of the sample cost, which no single sample changes much.
#[derive(Clone, Debug)]
pub struct RunningSampleCost {
    guess: Nanos,
    newest: VecDeque<Nanos>,
}

impl RunningSampleCost {
    /// Starts with a guess, which counts until half of the kept number of samples were measured.
    #[must_use]
    pub fn new(guess: Nanos) -> Self {
        let guess = guess.clamp(BELIEVED[0], BELIEVED[1]);
        Self {
            guess,
            newest: VecDeque::new(),
        }
    }

    /// Adds the measured cost of one sample.
    pub fn add(&mut self, gap: Nanos) {
        let price = Nanos(gap.0.saturating_mul(WITH_CACHES));
        if self.newest.len() == KEPT {
            self.newest.pop_front();
        }
        self.newest.push_back(price.clamp(BELIEVED[0], BELIEVED[1]));
    }

    /// The current estimate of the cost of a sample.
    #[must_use]
    pub fn get(&self) -> Nanos {
        let missing = KEPT - self.newest.len();
        let guesses = std::iter::repeat_n(self.guess, missing);
        let mut prices: Vec<Nanos> = self.newest.iter().copied().chain(guesses).collect();
        prices.sort_unstable();
        prices[prices.len() / 2]
    }
}

/// Time that one sample takes of a program that works on memory, tried on this thread.
///
/// # Errors
/// The event cannot be opened, or delivers nothing.
pub fn sample_cost(clock: &dyn Clock) -> io::Result<Nanos> {
    let event = PerfEventAttributes {
        tasks: false,
        ..PerfEventAttributes::cpu_clock(PERIOD)
    };
    let cpus = isotherm_topology::cpu_list::online_cpus(Path::new("/"));
    let mut sampler = Sampler::open(&event, THIS_THREAD, &cpus, 0)?;
    sampler.enable()?;
    let gaps = Gaps::watch(clock, TRIAL);
    sampler.disable()?;
    let taken = samples(&mut sampler);
    let mut prices = taken
        .iter()
        .filter_map(|sample| gaps.taken_by(sample.time_ns));
    let Some(first) = prices.next() else {
        return Err(io::Error::other("the timer delivers no samples"));
    };
    let mut taken: Vec<Nanos> = prices.chain([first]).collect();
    taken.sort_unstable();
    let mut price = RunningSampleCost::new(GUESS);
    (0..KEPT).for_each(|_| price.add(taken[taken.len() / 2]));
    Ok(price.get())
}

#[cfg(test)]
mod tests {
    use super::{GUESS, Gaps, KEPT, RunningSampleCost, sample_cost};
    use crate::clock::MachineClock;
    use isotherm_model::port::Clock;
    use isotherm_model::units::Nanos;
    use std::cell::Cell;

    /// A clock that is read every 100 ns, except for an interrupt of 9 us at 5 us and one of 3 us at 20
    /// us.
    #[derive(Default)]
    struct Played(Cell<u64>);

    impl Clock for Played {
        fn now(&self) -> Nanos {
            let next = self.0.get() + 100;
            self.0.set(match next {
                5_000 => 14_000,
                20_000 => 23_000,
                _ => next,
            });
            Nanos(self.0.get())
        }

        fn busy(&self) -> Nanos {
            Nanos::ZERO
        }

        fn sleep(&self, _: Nanos) {}
    }

    #[test]
    fn a_sample_took_the_gap_in_which_it_was_taken_and_other_gaps_are_not_its() {
        let gaps = Gaps::watch(&Played::default(), Nanos(30_000));
        assert_eq!(gaps.taken_by(8_000), Some(Nanos(9_100)));
        assert_eq!(gaps.taken_by(21_000), Some(Nanos(3_100)));
        for apart in [0, 4_000, 15_000, 29_000, u64::MAX] {
            assert_eq!(gaps.taken_by(apart), None, "{apart}");
        }
    }

    #[test]
    fn a_clock_that_stands_still_is_not_watched_for_ever() {
        struct Still;
        impl Clock for Still {
            fn now(&self) -> Nanos {
                Nanos(7)
            }
            fn busy(&self) -> Nanos {
                Nanos::ZERO
            }
            fn sleep(&self, _: Nanos) {}
        }
        assert_eq!(Gaps::watch(&Still, Nanos(1)).taken_by(7), None);
    }

    #[test]
    fn the_price_follows_the_samples_and_no_few_of_them_move_it() {
        let mut price = RunningSampleCost::new(GUESS);
        assert_eq!(price.get(), GUESS);
        // The processor was taken away for 2 ms, as in half of the trials in a virtual machine.
        (0..KEPT / 2).for_each(|_| price.add(Nanos(2_000_000)));
        assert_eq!(price.get(), GUESS, "less than half of what is kept");
        (0..KEPT).for_each(|_| price.add(Nanos(4_000)));
        assert_eq!(price.get(), Nanos(8_000), "with what the caches lost");
        (0..KEPT).for_each(|_| price.add(Nanos(2_000_000)));
        assert_eq!(price.get(), Nanos(200_000), "no more is believed");
    }

    #[test]
    fn a_trial_on_this_machine_is_within_what_is_believed() {
        // A trial whose thread lost its processor has no sample.
        let mut trials = std::iter::repeat_with(|| sample_cost(&MachineClock)).take(100);
        match trials
            .find(Result::is_ok)
            .unwrap_or_else(|| sample_cost(&MachineClock))
        {
            Ok(price) => assert!((Nanos(1_000)..=Nanos(200_000)).contains(&price), "{price}"),
            Err(error) => isotherm_skip::skip!("no samples of the timer: {error}"),
        }
    }
}
