//! Equal split (CoMerge, section 4.1): each of N programs gets a part of capacity / N, rounded
//! down, and fills it with whole objects by benefit.
//!
//! ```text
//!     |---- C/3 ----|---- C/3 ----|---- C/3 ----|
//!     | nuclide, ene| parts       | c           |     zones and a do not fit their part
//! ```

use isotherm_model::units::Bytes;

use super::colocation::{Colocation, SharedPlan};
use super::floor::FloorError;
use super::policy::SharingPolicy;
use super::whole_objects::in_parts;

/// Gives every program an equal part.
#[derive(Clone, Copy, Debug, Default)]
pub struct EqualSplit;

impl SharingPolicy for EqualSplit {
    fn name(&self) -> &'static str {
        "equal-split"
    }

    fn share(&self, colocation: &Colocation, capacity: Bytes) -> Result<SharedPlan, FloorError> {
        let programs = colocation.programs().len() as u64;
        let part = Bytes(capacity.0.checked_div(programs).unwrap_or(0));
        Ok(in_parts(self.name(), colocation, capacity, |_| part))
    }
}
