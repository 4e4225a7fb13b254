//! CoMerge (section 4.2): the objects of all programs in one order, by co-benefit descending, so
//! that objects of sensitive programs come before those of insensitive ones. Among programs of one
//! sensitivity class it equals blind merge.
//!
//! All objects of a program of class none have co-benefit 0. They come last, by benefit, into the
//! remaining room.

use std::cmp::Reverse;

use isotherm_model::units::Bytes;

use super::benefit::Benefit;
use super::colocation::{Colocation, MeasuredObject, MeasuredProgram, SharedPlan};
use super::floor::FloorError;
use super::policy::SharingPolicy;
use super::whole_objects::{
    Worth, candidates, in_order, in_words_of_co_benefit, in_words_of_printed_co_benefit,
};

/// One order by co-benefit, as the paper's tables 2 and 3 have it: no factor is above 3.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoMerge;

impl SharingPolicy for CoMerge {
    fn name(&self) -> &'static str {
        "comerge"
    }

    fn share(&self, colocation: &Colocation, capacity: Bytes) -> Result<SharedPlan, FloorError> {
        let by = (
            Benefit::co_benefit as CoBenefit,
            in_words_of_co_benefit as Worth,
        );
        Ok(by_co_benefit(self.name(), colocation, by, capacity))
    }
}

/// One order by co-benefit, as the paper's formula has it: the factor is S / F without its fraction. The order differs from that of
/// [`CoMerge`] where a program takes four times as long all slow or longer, and where it is of class none, whose factor is 1 here.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoMergePrinted;

impl SharingPolicy for CoMergePrinted {
    fn name(&self) -> &'static str {
        "comerge-printed"
    }

    fn share(&self, colocation: &Colocation, capacity: Bytes) -> Result<SharedPlan, FloorError> {
        let by = (
            Benefit::printed_co_benefit as CoBenefit,
            in_words_of_printed_co_benefit as Worth,
        );
        Ok(by_co_benefit(self.name(), colocation, by, capacity))
    }
}

/// A co-benefit of an object.
type CoBenefit = fn(&MeasuredProgram, &MeasuredObject) -> Benefit;

/// One order by this co-benefit.
fn by_co_benefit(
    policy: &str,
    colocation: &Colocation,
    (co_benefit, worth): (CoBenefit, Worth),
    capacity: Bytes,
) -> SharedPlan {
    let mut order = candidates(colocation);
    // A stable sort: where both are equal the order of the names is kept.
    order.sort_by_key(|candidate| {
        let co_benefit = co_benefit(candidate.program, candidate.object);
        Reverse((co_benefit, candidate.benefit()))
    });
    in_order(policy, (&order, worth), capacity)
}
