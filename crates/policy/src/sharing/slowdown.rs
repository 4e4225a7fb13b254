//! [`slowdowns`] computes the slowdown of each program under a shared plan, its time over that with all data fast, by a model from the
//! times of each program alone: all fast, all slow, and with each object fast by itself. The parts of the model, such as the gain of a
//! program, are also those by which [`LeastSlowdown`](super::LeastSlowdown) chooses.
//!
//! An object that is fast in part gains that part of its benefit, and a program is never faster
//! than with all its data fast:
//!
//! ```text
//!     gain     = min(1, sum over objects of benefit * fast bytes / size)
//!     slowdown = (S - (S - F) * gain) / F
//!
//!     slowdown  S/F |.
//!                   |  .           each object a straight line, its slope benefit / size
//!                   |     .
//!                 1 |        -------------   the floor of the model: all fast
//!                   +--------------------- fast bytes, by slope
//! ```
//!
//! The model agrees with every measured run: all slow, each object alone, and all fast if the
//! benefits sum to 1 or more. If they sum to less it is pessimistic about the last bytes, because
//! no run measures objects together. It ignores the effect of programs on each other's bandwidth. A
//! harmful object gains nothing.

use std::collections::BTreeMap;

use isotherm_model::units::Bytes;

use super::benefit::Benefit;
use super::colocation::{Colocation, MeasuredObject, MeasuredProgram, SharedPlan};

/// Fast bytes of every object, by program and object in the order of the colocation.
pub(super) type Allotment = Vec<Vec<Bytes>>;

/// The benefit of the object if all of it is fast; at least 0.
pub(super) fn useful_benefit(program: &MeasuredProgram, object: &MeasuredObject) -> f64 {
    Benefit::of(program, object).value().max(0.0)
}

/// The part of the most that fast memory can gain the program, from 0 to 1. It is 1 for a program
/// without a gain from fast memory: it is as fast as it can be.
pub(super) fn gain(program: &MeasuredProgram, fast: &[Bytes]) -> f64 {
    if program.all_slow() <= program.all_fast() {
        return 1.0;
    }
    let part = |(object, fast): (&MeasuredObject, &Bytes)| {
        useful_benefit(program, object) * (fast.0 as f64 / object.size.0 as f64)
    };
    let sum: f64 = program.objects().iter().zip(fast).map(part).sum();
    sum.min(1.0)
}

/// The slowdown that disappears when the gain rises from 0 to 1.
pub(super) fn avoidable(program: &MeasuredProgram) -> f64 {
    let gap = program.all_slow().saturating_sub(program.all_fast());
    gap.0 as f64 / program.all_fast().0 as f64
}

/// The sum of the slowdowns. Programs count equally, regardless of their run time.
pub(super) fn summed(colocation: &Colocation, fast: &Allotment) -> f64 {
    each(colocation, fast).iter().sum()
}

fn each(colocation: &Colocation, fast: &Allotment) -> Vec<f64> {
    let programs = colocation.programs().iter().zip(fast);
    programs
        .map(|(program, fast)| program.slowdown() - avoidable(program) * gain(program, fast))
        .collect()
}

/// The fast bytes of a plan. Objects that it does not name are slow, and none is fast beyond its
/// size.
pub(super) fn allotment(colocation: &Colocation, plan: &SharedPlan) -> Allotment {
    let granted: BTreeMap<(&str, &str), Bytes> = plan
        .grants
        .iter()
        .map(|grant| ((grant.program.as_str(), grant.object.as_str()), grant.fast))
        .collect();
    let fast = |program: &MeasuredProgram, object: &MeasuredObject| {
        let granted = granted.get(&(program.name(), object.name.as_str()));
        granted.copied().unwrap_or(Bytes::ZERO).min(object.size)
    };
    let of_program = |program: &MeasuredProgram| {
        let objects = program.objects().iter();
        objects.map(|object| fast(program, object)).collect()
    };
    colocation.programs().iter().map(of_program).collect()
}

/// The slowdown of each program, by name, under a plan: its time divided by its time with all data
/// fast.
#[must_use]
pub fn slowdowns(colocation: &Colocation, plan: &SharedPlan) -> Vec<f64> {
    each(colocation, &allotment(colocation, plan))
}

/// The sum of the slowdowns of all programs.
#[must_use]
pub fn summed_slowdown(colocation: &Colocation, plan: &SharedPlan) -> f64 {
    summed(colocation, &allotment(colocation, plan))
}

#[cfg(test)]
mod tests {
    use super::{avoidable, gain, summed};
    use crate::sharing::colocation::{Colocation, MeasuredObject, MeasuredProgram};
    use isotherm_model::units::{Bytes, Nanos};

    fn program(fast: u64, slow: u64, alone: &[u64]) -> MeasuredProgram {
        let object = |(i, &alone): (usize, &u64)| MeasuredObject {
            name: format!("o{i}"),
            size: Bytes(100),
            alone: Nanos(alone),
        };
        let objects = alone.iter().enumerate().map(object).collect();
        MeasuredProgram::new("p", Nanos(fast), Nanos(slow), objects).unwrap()
    }

    #[test]
    fn half_an_object_brings_half_its_benefit_and_all_fast_is_the_best_there_is() {
        let p = program(20, 100, &[60, 40]);
        assert!((gain(&p, &[Bytes(50), Bytes(0)]) - 0.25).abs() < 1e-12);
        assert!((gain(&p, &[Bytes(100), Bytes(0)]) - 0.5).abs() < 1e-12);
        assert!((gain(&p, &[Bytes(100), Bytes(100)]) - 1.0).abs() < 1e-12);
        assert!((avoidable(&p) - 4.0).abs() < 1e-12);
        let alone = Colocation::new(vec![p]).unwrap();
        assert!((summed(&alone, &vec![vec![Bytes(0); 2]]) - 5.0).abs() < 1e-12);
        assert!((summed(&alone, &vec![vec![Bytes(100); 2]]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_harmful_object_brings_nothing_and_a_program_that_is_slower_fast_has_all_it_can_have() {
        let p = program(20, 100, &[120]);
        assert!(gain(&p, &[Bytes(100)]).abs() < 1e-12);
        let p = program(100, 90, &[80]);
        assert!((gain(&p, &[Bytes(0)]) - 1.0).abs() < 1e-12);
        assert!(avoidable(&p).abs() < 1e-12);
    }
}
