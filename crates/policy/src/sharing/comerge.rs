//! CoMerge (section 4.2): the objects of all programs in one order, by co-benefit descending, so
//! that objects of sensitive programs come before those of insensitive ones. Among programs of one
//! sensitivity class it equals blind merge.
//!
//! All objects of a program of class none have co-benefit 0. They come last, by benefit, into the
//! remaining room.

use std::cmp::Reverse;

use isotherm_model::units::Bytes;

use super::colocation::{Colocation, SharedPlan};
use super::floor::FloorError;
use super::policy::SharingPolicy;
use super::whole_objects::{candidates, in_order, in_words_of_co_benefit};

/// One order by co-benefit.
#[derive(Clone, Copy, Debug, Default)]
pub struct CoMerge;

impl SharingPolicy for CoMerge {
    fn name(&self) -> &'static str {
        "comerge"
    }

    fn share(&self, colocation: &Colocation, capacity: Bytes) -> Result<SharedPlan, FloorError> {
        let mut order = candidates(colocation);
        // A stable sort: where both are equal the order of the names is kept.
        order.sort_by_key(|candidate| Reverse((candidate.co_benefit(), candidate.benefit())));
        Ok(in_order(
            self.name(),
            (&order, in_words_of_co_benefit),
            capacity,
        ))
    }
}
