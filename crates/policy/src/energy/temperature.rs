//! Temperatures of methods and classes from sampled call stacks (Cross-Layer, section 7.1.2).
//!
//! A method becomes hot when it is sampled at the top of a stack, and so do the classes that its
//! code may access. Time is divided into intervals; at the end of each, every method and class
//! without a sample in it becomes cold (section 8.2: every 0.1 s). A new object is hot if its
//! method or its class is.
//!
//! ```text
//!     interval   0        1        2        3
//!     samples    |x       |        |      x |
//!     hot         ~~~~~~~~~~~~~~~~~         ~~~ ...      cold again at the end of interval 1
//! ```
//!
//! So a sample lasts through the interval after its own. The state is computed on query; no code
//! has to run at the end of an interval, and time is an argument.

use std::collections::{BTreeMap, BTreeSet};

use isotherm_model::units::Nanos;

use isotherm_model::colour::Colour;

/// The interval of the paper (section 8.2): 0.1 s.
pub const COOL_DOWN: Nanos = Nanos(100_000_000);

/// A method of the program, numbered by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MethodId(pub u64);

/// A class of the program, numbered by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u64);

/// The last sample of each method and class. All are cold at first.
#[derive(Clone, Debug)]
pub struct Temperatures {
    interval: u64,
    accessed: BTreeMap<MethodId, BTreeSet<ClassId>>,
    methods: BTreeMap<MethodId, u64>,
    classes: BTreeMap<ClassId, u64>,
}

impl Temperatures {
    /// Temperatures that cool at the end of intervals of this length, counted from time 0; a length
    /// of 0 counts as 1 ns.
    #[must_use]
    pub const fn new(interval: Nanos) -> Self {
        let interval = if interval.0 == 0 { 1 } else { interval.0 };
        Self {
            interval,
            accessed: BTreeMap::new(),
            methods: BTreeMap::new(),
            classes: BTreeMap::new(),
        }
    }

    /// Records the classes that the code of a method may access, in place of its earlier classes.
    pub fn compiled(&mut self, method: MethodId, classes: impl IntoIterator<Item = ClassId>) {
        self.accessed.insert(method, classes.into_iter().collect());
    }

    /// Records that a method was at the top of a stack at this time. Samples may come out of order.
    pub fn sample(&mut self, method: MethodId, at: Nanos) {
        let interval = at.0 / self.interval;
        let note = |last: &mut u64| *last = interval.max(*last);
        note(self.methods.entry(method).or_insert(interval));
        for class in self.accessed.get(&method).into_iter().flatten() {
            note(self.classes.entry(*class).or_insert(interval));
        }
    }

    /// The colour of a method at this time.
    #[must_use]
    pub fn method(&self, method: MethodId, at: Nanos) -> Colour {
        self.colour(self.methods.get(&method), at)
    }

    /// The colour of a class at this time. Objects that survive a collection get it again.
    #[must_use]
    pub fn class(&self, class: ClassId, at: Nanos) -> Colour {
        self.colour(self.classes.get(&class), at)
    }

    /// The colour at this time of an object of this class that this method allocates.
    #[must_use]
    pub fn object(&self, method: MethodId, class: ClassId, at: Nanos) -> Colour {
        let colours = [self.method(method, at), self.class(class, at)];
        if colours.contains(&Colour::Hot) {
            Colour::Hot
        } else {
            Colour::Cold
        }
    }

    fn colour(&self, last: Option<&u64>, at: Nanos) -> Colour {
        let now = at.0 / self.interval;
        match last {
            Some(last) if now.saturating_sub(*last) <= 1 => Colour::Hot,
            _ => Colour::Cold,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{COOL_DOWN, ClassId, MethodId, Temperatures};
    use isotherm_model::colour::Colour::{Cold, Hot};
    use isotherm_model::units::Nanos;

    const INNER: MethodId = MethodId(1);
    const OUTER: MethodId = MethodId(2);
    const MATRIX: ClassId = ClassId(10);
    const LOG: ClassId = ClassId(11);

    fn at(milliseconds: u64) -> Nanos {
        Nanos(milliseconds * 1_000_000)
    }

    fn program() -> Temperatures {
        let mut temperatures = Temperatures::new(COOL_DOWN);
        temperatures.compiled(INNER, [MATRIX]);
        temperatures.compiled(OUTER, [LOG]);
        temperatures
    }

    #[test]
    fn all_is_cold_until_it_is_sampled_and_then_its_classes_are_hot_with_it() {
        let mut temperatures = program();
        assert_eq!(temperatures.object(INNER, MATRIX, at(0)), Cold);
        temperatures.sample(INNER, at(5));
        assert_eq!(temperatures.method(INNER, at(5)), Hot);
        assert_eq!(temperatures.class(MATRIX, at(5)), Hot);
        assert_eq!(temperatures.method(OUTER, at(5)), Cold);
        assert_eq!(temperatures.class(LOG, at(5)), Cold);
    }

    #[test]
    fn what_is_not_sampled_in_a_whole_interval_is_cold_at_its_end() {
        let mut temperatures = program();
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
    fn an_object_is_hot_where_its_method_or_its_class_is() {
        let mut temperatures = program();
        temperatures.sample(INNER, at(0));
        assert_eq!(temperatures.object(INNER, LOG, at(1)), Hot);
        assert_eq!(temperatures.object(OUTER, MATRIX, at(1)), Hot);
        assert_eq!(temperatures.object(OUTER, LOG, at(1)), Cold);
    }

    #[test]
    fn a_late_sample_does_not_cool_what_a_newer_one_made_hot() {
        let mut temperatures = program();
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
