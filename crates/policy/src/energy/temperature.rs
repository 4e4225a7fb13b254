//! [`Temperatures`] finds which methods of a program are hot by sampled call stacks (Cross-Layer, section 7.1.2): those on top of one in
//! this or the former interval. During a run with `--remap`, allocation sites take the place of methods, sampled accesses that of stacks.
//!
//! A method becomes hot when it is sampled at the top of a stack. Time is divided into intervals; at the end of each, every method without
//! a sample in it becomes cold (section 8.2: every 0.1 s).
//!
//! ```text
//!     interval   0        1        2        3
//!     samples    |x       |        |      x |
//!     hot         ~~~~~~~~~~~~~~~~~         ~~~ ...      cold again at the end of interval 1
//! ```
//!
//! So a sample lasts through the interval after its own. The state is computed on query, and time is an argument.

use std::collections::BTreeMap;

use isotherm_model::units::Nanos;

use isotherm_model::colour::Colour;

/// The interval of the paper (section 8.2): 0.1 s.
pub const COOL_DOWN: Nanos = Nanos(100_000_000);

/// A method of the program, numbered by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodId(pub u64);

/// The time of the last sample of each method. All are cold at first.
#[derive(Clone, Debug)]
pub struct Temperatures {
    interval: u64,
    methods: BTreeMap<MethodId, u64>,
}

impl Temperatures {
    /// Temperatures that cool at the end of intervals of this length, counted from time 0; a length
    /// of 0 counts as 1 ns.
    #[must_use]
    pub const fn new(interval: Nanos) -> Self {
        let interval = if interval.0 == 0 { 1 } else { interval.0 };
        Self {
            interval,
            methods: BTreeMap::new(),
        }
    }

    /// Records that a method was at the top of a stack at this time. Samples may come out of order.
    pub fn sample(&mut self, method: MethodId, at: Nanos) {
        let interval = at.0 / self.interval;
        let last = self.methods.entry(method).or_insert(interval);
        *last = interval.max(*last);
    }

    /// The colour of a method at this time.
    #[must_use]
    pub fn method(&self, method: MethodId, at: Nanos) -> Colour {
        let now = at.0 / self.interval;
        match self.methods.get(&method) {
            Some(last) if now.saturating_sub(*last) <= 1 => Colour::Hot,
            _ => Colour::Cold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COOL_DOWN, MethodId, Temperatures};
    use isotherm_model::colour::Colour::{Cold, Hot};
    use isotherm_model::units::Nanos;

    const INNER: MethodId = MethodId(1);
    const OUTER: MethodId = MethodId(2);

    fn at(milliseconds: u64) -> Nanos {
        Nanos(milliseconds * 1_000_000)
    }

    #[test]
    fn a_method_is_cold_until_it_is_sampled() {
        let mut temperatures = Temperatures::new(COOL_DOWN);
        assert_eq!(temperatures.method(INNER, at(0)), Cold);
        temperatures.sample(INNER, at(5));
        assert_eq!(temperatures.method(INNER, at(5)), Hot);
        assert_eq!(temperatures.method(OUTER, at(5)), Cold);
    }

    #[test]
    fn what_is_not_sampled_in_a_whole_interval_is_cold_at_its_end() {
        let mut temperatures = Temperatures::new(COOL_DOWN);
        temperatures.sample(INNER, at(5));
        for (milliseconds, colour) in [(99, Hot), (100, Hot), (199, Hot), (200, Cold)] {
            assert_eq!(
                temperatures.method(INNER, at(milliseconds)),
                colour,
                "{milliseconds}"
            );
        }
        temperatures.sample(INNER, at(350));
        assert_eq!(temperatures.method(INNER, at(499)), Hot);
        assert_eq!(temperatures.method(INNER, at(500)), Cold);
    }

    #[test]
    fn a_late_sample_does_not_cool_what_a_newer_one_made_hot() {
        let mut temperatures = Temperatures::new(COOL_DOWN);
        temperatures.sample(INNER, at(450));
        temperatures.sample(INNER, at(5));
        assert_eq!(temperatures.method(INNER, at(500)), Hot);
    }

    #[test]
    fn an_interval_of_nothing_and_the_last_moment_there_is_are_fine() {
        let mut temperatures = Temperatures::new(Nanos(0));
        temperatures.sample(INNER, Nanos(u64::MAX));
        assert_eq!(temperatures.method(INNER, Nanos(u64::MAX)), Hot);
        assert_eq!(temperatures.method(OUTER, Nanos(u64::MAX)), Cold);
    }
}
