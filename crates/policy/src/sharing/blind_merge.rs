//! Blind merge (CoMerge, section 4.2): the objects of all programs in one order, by benefit
//! descending, regardless of their program.

use std::cmp::Reverse;

use isotherm_model::units::Bytes;

use super::colocation::{Colocation, SharedPlan};
use super::floor::FloorError;
use super::policy::SharingPolicy;
use super::whole_objects::{candidates, in_order, in_words_of_benefit};

/// One order by benefit.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlindMerge;

impl SharingPolicy for BlindMerge {
    fn name(&self) -> &'static str {
        "blind-merge"
    }

    fn share(&self, colocation: &Colocation, capacity: Bytes) -> Result<SharedPlan, FloorError> {
        let mut order = candidates(colocation);
        // A stable sort: equal benefits keep the order of the names.
        order.sort_by_key(|candidate| Reverse(candidate.benefit()));
        Ok(in_order(
            self.name(),
            (&order, in_words_of_benefit),
            capacity,
        ))
    }
}
