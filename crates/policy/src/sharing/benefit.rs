//! [`Benefit`] is the part of a program's gain from fast memory that one object brings when it alone is fast (CoMerge, section 3.2), or the
//! co-benefit, which is weighted by the program's sensitivity (section 4.2). The paper's sharing policies order objects by it, and
//! `isotherm sensitivity` reports it.
//!
//! With S and F the times with all data slow and fast, and t the time with only this object fast:
//!
//! ```text
//!     benefit = (t - S) / (F - S)        co-benefit = factor of the sensitivity class * benefit
//!
//!     F                      t                        S     time
//!     |----------------------|------------------------|
//!                            |<------- saved -------->|     benefit = saved / (S - F)
//! ```
//!
//! The benefits of one program need not add up to 1 (STREAM's add up to 1.38) and are not
//! normalised.

use std::cmp::Ordering;

use super::colocation::{MeasuredObject, MeasuredProgram};

/// A benefit or co-benefit as an exact fraction. The paper orders objects by values that differ in
/// the third digit, so no value is rounded before the comparison.
#[derive(Clone, Copy, Debug)]
pub struct Benefit {
    /// Time saved, times the factor.
    saved: i128,
    /// S - F, above 0.
    whole: i128,
}

impl Benefit {
    /// The benefit of this object of this program. It is 0 if all fast is no faster than all slow,
    /// negative if the object made the program slower, and may exceed 1.
    #[must_use]
    pub fn of(program: &MeasuredProgram, object: &MeasuredObject) -> Self {
        let all_slow = i128::from(program.all_slow().0);
        let whole = all_slow - i128::from(program.all_fast().0);
        if whole <= 0 {
            return Self { saved: 0, whole: 1 };
        }
        Self {
            saved: all_slow - i128::from(object.alone.0),
            whole,
        }
    }

    /// The co-benefit: the benefit times the factor of the program's sensitivity class. It is 0 for
    /// a program that does not suffer from slow memory.
    #[must_use]
    pub fn co_benefit(program: &MeasuredProgram, object: &MeasuredObject) -> Self {
        let benefit = Self::of(program, object);
        Self {
            saved: benefit.saved * i128::from(program.class().factor()),
            ..benefit
        }
    }

    /// The co-benefit by the formula that the paper prints: the factor is S / F without its fraction, which has no upper limit and is 1 for
    /// class none. The paper's own table has [`Benefit::co_benefit`].
    #[must_use]
    pub fn printed_co_benefit(program: &MeasuredProgram, object: &MeasuredObject) -> Self {
        let benefit = Self::of(program, object);
        Self {
            saved: benefit.saved * i128::from(program.printed_factor()),
            ..benefit
        }
    }

    /// The fraction as a number, for people and for models.
    #[must_use]
    pub fn value(self) -> f64 {
        self.saved as f64 / self.whole as f64
    }

    /// True where the object made its program slower.
    #[must_use]
    pub const fn is_harm(self) -> bool {
        self.saved < 0
    }
}

impl Ord for Benefit {
    /// Compares exactly: times and printed factors are at most 2^60, so what is saved is at most 2^120. A cross product of that would not fit
    /// 128 bits, so the integer parts are compared first, and then the remainders, which are less than 2^60.
    fn cmp(&self, other: &Self) -> Ordering {
        let parts = |it: &Self| (it.saved.div_euclid(it.whole), it.saved.rem_euclid(it.whole));
        let ((ours, our_rest), (theirs, their_rest)) = (parts(self), parts(other));
        let rests = || (our_rest * other.whole).cmp(&(their_rest * self.whole));
        ours.cmp(&theirs).then_with(rests)
    }
}

impl PartialOrd for Benefit {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Benefit {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Benefit {}

#[cfg(test)]
mod tests {
    use super::Benefit;
    use crate::sharing::colocation::{LONGEST_RUN, MeasuredObject, MeasuredProgram};
    use isotherm_model::units::{Bytes, Nanos};

    fn benefit(fast: u64, slow: u64, alone: u64) -> Benefit {
        let object = MeasuredObject {
            name: "o".to_owned(),
            size: Bytes(1),
            alone: Nanos(alone),
        };
        let program =
            MeasuredProgram::new("p", Nanos(fast), Nanos(slow), vec![object.clone()]).unwrap();
        Benefit::of(&program, &object)
    }

    #[test]
    fn a_benefit_is_the_share_of_the_gap_that_the_object_closes() {
        assert!((benefit(20, 100, 100).value() - 0.0).abs() < 1e-12);
        assert!((benefit(20, 100, 20).value() - 1.0).abs() < 1e-12);
        assert!((benefit(20, 100, 80).value() - 0.25).abs() < 1e-12);
        assert!(benefit(20, 100, 101).is_harm());
        assert!(benefit(20, 100, 10) > benefit(20, 100, 20));
    }

    #[test]
    fn a_program_that_gains_nothing_from_fast_memory_has_no_benefit() {
        assert_eq!(benefit(100, 100, 50), benefit(20, 100, 100));
        assert_eq!(benefit(120, 100, 50), benefit(20, 100, 100));
    }

    #[test]
    fn the_printed_co_benefit_has_a_factor_of_one_for_class_none_and_none_above() {
        for (slow, co_benefit, printed) in [(110, 0.0, 0.5), (250, 1.0, 1.0), (700, 1.5, 3.5)] {
            let object = MeasuredObject {
                name: "o".to_owned(),
                size: Bytes(1),
                alone: Nanos(u64::midpoint(100, slow)),
            };
            let program =
                MeasuredProgram::new("p", Nanos(100), Nanos(slow), vec![object.clone()]).unwrap();
            let by_class = Benefit::co_benefit(&program, &object).value();
            let by_formula = Benefit::printed_co_benefit(&program, &object).value();
            assert!((by_class - co_benefit).abs() < 1e-12, "{slow}: {by_class}");
            assert!((by_formula - printed).abs() < 1e-12, "{slow}: {by_formula}");
        }
    }

    #[test]
    fn equal_fractions_are_equal_and_the_longest_times_do_not_overflow() {
        assert_eq!(benefit(20, 100, 60), benefit(1, 3, 2));
        let longest = LONGEST_RUN.0;
        assert!(benefit(1, longest, 1) > benefit(1, longest, 2));
        let printed = |alone| {
            let object = MeasuredObject {
                name: "o".to_owned(),
                size: Bytes(1),
                alone: Nanos(alone),
            };
            let program =
                MeasuredProgram::new("p", Nanos(1), LONGEST_RUN, vec![object.clone()]).unwrap();
            Benefit::printed_co_benefit(&program, &object)
        };
        assert!(printed(1) > printed(2));
        assert!(printed(longest - 1) > printed(longest));
        assert_eq!(printed(longest), benefit(20, 100, 100));
    }
}
