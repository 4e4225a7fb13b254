//! Fair merge (CoMerge, section 4.2): the programs take turns, the one with the most bytes first,
//! and each offers its next object by benefit. Objects enter the tier in this order.
//!
//! ```text
//!     STREAM   c     a     b              order: c, zones, nuclide, a, parts, energy, b
//!     CLOMP    zones parts
//!     XSBench  nuclide energy
//!              turn 1  2     3
//! ```

use std::cmp::Reverse;

use isotherm_model::units::Bytes;

use super::colocation::{Colocation, SharedPlan};
use super::floor::FloorError;
use super::policy::SharingPolicy;
use super::whole_objects::{Candidate, by_program, in_order, in_words_of_benefit};

/// Programs take turns.
#[derive(Clone, Copy, Debug, Default)]
pub struct FairMerge;

impl SharingPolicy for FairMerge {
    fn name(&self) -> &'static str {
        "fair-merge"
    }

    fn share(&self, colocation: &Colocation, capacity: Bytes) -> Result<SharedPlan, FloorError> {
        let mut lists = by_program(colocation);
        // A stable sort: programs of the same footprint keep the order of their names.
        lists.sort_by_key(|list| Reverse(footprint(list)));
        let turns = lists.iter().map(Vec::len).max().unwrap_or(0);
        let order: Vec<Candidate<'_>> = (0..turns)
            .flat_map(|turn| lists.iter().filter_map(move |list| list.get(turn)))
            .copied()
            .collect();
        Ok(in_order(
            self.name(),
            (&order, in_words_of_benefit),
            capacity,
        ))
    }
}

fn footprint(list: &[Candidate<'_>]) -> Bytes {
    list.iter().map(|candidate| candidate.object.size).sum()
}
