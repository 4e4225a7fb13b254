//! Proportional split (CoMerge, section 4.1): each program gets a part of the capacity in
//! proportion to the bytes of its objects, rounded down, and fills it with whole objects by benefit.

use isotherm_model::units::Bytes;

use super::colocation::{Colocation, MeasuredProgram, SharedPlan};
use super::floor::FloorError;
use super::policy::SharingPolicy;
use super::whole_objects::in_parts;

/// Gives every program a part in proportion to its footprint.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProportionalSplit;

/// capacity * footprint of the program / footprint of all, rounded down: the parts together never
/// exceed the capacity, and each program loses its own fraction of a byte.
fn part(capacity: Bytes, program: &MeasuredProgram, all: Bytes) -> Bytes {
    let product = u128::from(capacity.0) * u128::from(program.footprint().0);
    let part = product.checked_div(u128::from(all.0)).unwrap_or(0);
    // A part of the capacity, so it fits 64 bits.
    Bytes(part as u64)
}

impl SharingPolicy for ProportionalSplit {
    fn name(&self) -> &'static str {
        "proportional-split"
    }

    fn share(&self, colocation: &Colocation, capacity: Bytes) -> Result<SharedPlan, FloorError> {
        let all = colocation.footprint();
        let plan = in_parts(self.name(), colocation, capacity, |program| {
            part(capacity, program, all)
        });
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::part;
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
            let part = part(Bytes(3_000_000_000), &program, Bytes(4_102_000_000));
            assert_eq!(part, Bytes(wanted));
        }
    }
}
