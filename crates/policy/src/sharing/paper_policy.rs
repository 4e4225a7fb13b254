//! [`PaperPolicy`] holds the policies of CoMerge's paper (sections 4.1 and 4.2), which place whole objects: by benefit in a part of the
//! tier for each program, or in one order of all objects.

use std::cmp::Reverse;

use isotherm_model::units::{Bytes, portion};

use super::benefit::Benefit;
use super::colocation::{Colocation, MeasuredProgram, SharedPlan};
use super::floor::FloorError;
use super::policy::SharingPolicy;
use super::whole_objects::{
    BENEFIT, Candidate, Measure, by_program, candidates, in_order, in_parts,
};

isotherm_model::variant_words! {
    /// The paper's policies, in its order (table 4), and the last one again by the formula that the paper prints.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PaperPolicy {
        /// Each of N programs gets a part of capacity / N, rounded down, and fills it with whole objects by benefit.
        ///
        /// ```text
        ///     |---- C/3 ----|---- C/3 ----|---- C/3 ----|
        ///     | nuclide, ene| parts       | c           |     zones and a do not fit their part
        /// ```
        EqualSplit = "equal-split",
        /// Each program gets a part of the capacity in proportion to the bytes of its objects, rounded down, and fills it with whole objects
        /// by benefit.
        ProportionalSplit = "proportional-split",
        /// The programs take turns, the one with the most bytes first, and each offers its next object by benefit. Objects enter the tier in
        /// this order.
        ///
        /// ```text
        ///     STREAM   c     a     b              order: c, zones, nuclide, a, parts, energy, b
        ///     CLOMP    zones parts
        ///     XSBench  nuclide energy
        ///              turn 1  2     3
        /// ```
        FairMerge = "fair-merge",
        /// The objects of all programs in one order, by benefit descending, regardless of their program.
        BlindMerge = "blind-merge",
        /// The objects of all programs in one order, by co-benefit descending, so that objects of sensitive programs come before those of
        /// insensitive ones. Among programs of one sensitivity class it equals blind merge. All objects of a program of class none have
        /// co-benefit 0. They come last, by benefit, into the remaining room.
        ///
        /// No factor is above 3, as in the paper's tables 2 and 3.
        CoMerge = "comerge",
        /// One order by co-benefit, by the paper's formula: the factor is S / F without its fraction. The order differs from that of
        /// CoMerge where a program takes four times as long all slow or longer, and where it is of class none, whose factor is 1 here.
        CoMergePrinted = "comerge-printed",
    }
}

impl SharingPolicy for PaperPolicy {
    fn name(&self) -> &'static str {
        self.word()
    }

    fn share(&self, colocation: &Colocation, capacity: Bytes) -> Result<SharedPlan, FloorError> {
        let merge = |measure| in_order(&merged(colocation, measure), measure, capacity);
        let grants = match self {
            Self::EqualSplit => {
                let programs = colocation.programs().len() as u64;
                let part = Bytes(capacity.0.checked_div(programs).unwrap_or(0));
                in_parts(colocation, |_| part)
            }
            Self::ProportionalSplit => {
                let all = colocation.footprint();
                in_parts(colocation, |program| {
                    proportional_part(capacity, program, all)
                })
            }
            Self::FairMerge => in_order(&in_turns(colocation), BENEFIT, capacity),
            Self::BlindMerge => merge(BENEFIT),
            Self::CoMerge => merge(("co-benefit", Benefit::co_benefit)),
            Self::CoMergePrinted => merge(("printed co-benefit", Benefit::printed_co_benefit)),
        };
        Ok(SharedPlan {
            policy: self.name().to_owned(),
            capacity,
            grants,
        })
    }
}

/// capacity * footprint of the program / footprint of all, rounded down: the parts together never
/// exceed the capacity, and each program loses its own fraction of a byte.
fn proportional_part(capacity: Bytes, program: &MeasuredProgram, all: Bytes) -> Bytes {
    Bytes(portion(capacity.0, program.footprint().0, all.0))
}

/// The objects of all programs in one order by this measure. Objects with the same measure are ordered by benefit, then by name.
fn merged(colocation: &Colocation, (_, measure): Measure) -> Vec<Candidate<'_>> {
    let mut order = candidates(colocation);
    order.sort_by_key(|candidate| {
        let measured = measure(candidate.program, candidate.object);
        Reverse((measured, candidate.benefit()))
    });
    order
}

/// The objects in the order in which the programs, taking turns, offer them.
fn in_turns(colocation: &Colocation) -> Vec<Candidate<'_>> {
    let mut lists = by_program(colocation);
    // A stable sort: programs of the same footprint keep the order of their names.
    lists.sort_by_key(|list| Reverse(list.iter().map(|it| it.object.size).sum::<Bytes>()));
    let turns = lists.iter().map(Vec::len).max().unwrap_or(0);
    (0..turns)
        .flat_map(|turn| lists.iter().filter_map(move |list| list.get(turn)))
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::proportional_part;
    use crate::sharing::colocation::{MeasuredObject, MeasuredProgram};
    use isotherm_model::units::{Bytes, Nanos};

    #[test]
    fn the_parts_are_the_printed_ones_of_the_coral_programs() {
        // CoMerge, section 4.1: 731, 1097 and 1172 MB of 3 GB, rounded by the paper to nearest.
        let parts = [(1000_u64, 731_350_560_u64), (1500, 1_097_025_841)];
        for (megabytes, wanted) in [parts[0], parts[1], (1602, 1_171_623_598)] {
            let object = MeasuredObject {
                name: "all".to_owned(),
                size: Bytes(megabytes * 1_000_000),
                alone: Nanos(1),
            };
            let program = MeasuredProgram::new("p", Nanos(1), Nanos(2), vec![object]).unwrap();
            let part = proportional_part(Bytes(3_000_000_000), &program, Bytes(4_102_000_000));
            assert_eq!(part, Bytes(wanted));
        }
    }
}
